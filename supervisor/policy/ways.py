"""The names that lead to a path: whoever changes one of them leads the next run elsewhere."""

from __future__ import annotations

import os

_MAX_LINKS = 40


def ways_to(path: bytes) -> tuple[set[bytes], set[bytes]]:
    """Return every name that is looked up on the way to a path, those of links included.

    Args:
        path: absolute; need not exist.

    Returns:
        The true paths of the names that are there, and of the first that is missing.
    """
    there: set[bytes] = set()
    todo = [part for part in path.split(b"/") if part not in (b"", b".")]
    todo.reverse()
    at, links = b"/", 0
    while todo:
        part = todo.pop()
        if part == b"..":
            at = os.path.dirname(at)
            continue
        name = os.path.join(at, part)
        try:
            target = os.readlink(name)
        except FileNotFoundError:
            return there, {name}
        except OSError:  # no link
            there.add(name)
            at = name
            continue
        there.add(name)
        links += 1
        if links > _MAX_LINKS:
            return there, set()
        if target.startswith(b"/"):
            at = b"/"
        todo += [p for p in reversed(target.split(b"/")) if p not in (b"", b".")]
    return there, set()


def all_ways(paths: list[bytes]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Do as :func:`ways_to` for several paths, in order and without what repeats.

    Args:
        paths: absolute.
    """
    there: set[bytes] = set()
    missing: set[bytes] = set()
    for path in paths:
        found, lost = ways_to(path)
        there |= found
        missing |= lost
    return tuple(sorted(there)), tuple(sorted(missing))
