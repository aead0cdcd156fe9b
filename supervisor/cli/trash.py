"""``supervise trash``: what runs deleted, and giving it back."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from supervisor.cli.output import out, out_json, table, visible
from supervisor.errors import UsageError
from supervisor.run.events import escape
from supervisor.trash import folder, store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from supervisor.trash.store import Item

_KINDS = {0o4: "folder", 0o10: "file", 0o12: "link", 0o1: "fifo", 0o14: "socket"}


def list(args: argparse.Namespace) -> int:  # noqa: A001 - named like its command
    """Print what is in the trash, oldest first.

    Args:
        args: parsed command line.
    """
    with _opened() as trash:
        found = store.items(trash) if trash is not None else []
    if args.path:
        found = [item for item in found if _at_or_below(item.path, _absolute(args.path))]
    if args.json:
        out_json([_facts(item) for item in found])
    elif found:
        rows = [("ID", "DELETED", "BYTES", "KIND", "PATH"), *map(_row, found)]
        out(visible(table(rows)))
    else:
        out("the trash is empty\n")
    return 0


def restore(args: argparse.Namespace) -> int:
    """Put things back.

    Args:
        args: parsed command line.

    Returns:
        0, or 1 where something stayed in the trash.
    """
    code = 0
    with _opened() as trash:
        if trash is None:
            raise UsageError("the trash is empty", exit_code=2)
        words = [_word(word) for word in args.what]
        picked = store.chosen(store.items(trash), words)
        to = _absolute(args.to) if args.to else b""
        for item, place, problem in store.restore(trash, picked, to=to, replace=args.replace):
            if problem:
                code = 1
                hint = "; --replace or --to DIR" if problem == "File exists" else ""
                out(f"kept      {item.id}  {escape(place)}: {problem}{hint}\n")
            else:
                out(f"restored  {item.id}  {escape(place)}\n")
    return code


def purge(args: argparse.Namespace) -> int:
    """Remove things for good.

    Args:
        args: parsed command line.

    Raises:
        UsageError: nothing says what.
    """
    if not (args.what or args.all or args.older_than):
        raise UsageError("what is to go? Name IDs or paths, --older-than or --all", exit_code=2)
    gone = 0
    with _opened() as trash:
        if trash is not None:
            found = store.items(trash)
            if args.what:
                found = store.chosen(found, [_word(word) for word in args.what])
            if args.older_than:
                found = [item for item in found if item.when < time.time() - args.older_than]
            gone = store.purge(trash, found)
    out(f"{gone} removed for good\n")
    return 0


def quota(args: argparse.Namespace) -> int:
    """Tell how full the trash is, or set what it may take.

    Args:
        args: parsed command line.
    """
    with _opened(create=args.size is not None) as trash:
        if trash is not None and args.size is not None:
            folder.set_quota(trash, args.size)
        limit = folder.quota(trash) if trash is not None else folder.QUOTA
        used = folder.used(trash) if trash is not None else 0
    if args.json:
        out_json({"used": used, "quota": limit})
    else:
        out(f"{used} of {limit} bytes used\n")
    return 0


@contextmanager
def _opened(*, create: bool = False) -> Iterator[int | None]:
    trash = folder.open_trash(os.environb, create=create)
    try:
        yield trash
    finally:
        if trash is not None:
            os.close(trash)


def _word(word: str) -> bytes:
    """An id stays as it is, a path becomes absolute."""
    head, slash, number = word.partition("/")
    is_id = slash and number.isdecimal() and len(head) == 8  # noqa: PLR2004
    return os.fsencode(word) if is_id else _absolute(word)


def _absolute(path: str) -> bytes:
    """The true path of the folder, as things that are gone have none."""
    full = os.path.abspath(os.fsencode(path))
    return os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))


def _at_or_below(path: bytes, top: bytes) -> bool:
    return path == top or path.startswith(top.rstrip(b"/") + b"/")


def _kind(item: Item) -> str:
    return _KINDS.get(item.mode >> 12, "other")


def _row(item: Item) -> tuple[str, ...]:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(item.when))
    return (item.id, when, str(item.size), _kind(item), escape(item.path))


def _facts(item: Item) -> dict[str, object]:
    return {
        "id": item.id,
        "path": escape(item.path),
        "deleted": item.when,
        "bytes": item.size,
        "kind": _kind(item),
    }
