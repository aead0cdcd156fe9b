"""What is in the trash: listed, given back, or removed for good.

Nothing in an item is trusted to lead anywhere: the place that it came from is walked
folder by folder without following a link, since the program that deleted it may own
those folders.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass

from supervisor.errors import SupervisorError
from supervisor.trash.folder import open_session, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ID = 8


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was deleted.

    Attributes:
        session: name of its session's folder.
        number: its name there.
        path: where it was, absolute.
        when: when it was deleted, seconds since the epoch.
        mode: as stat tells it; its type is the first part.
        size: bytes; of a folder 0.
    """

    session: str
    number: int
    path: bytes
    when: float
    mode: int
    size: int

    @property
    def id(self) -> str:
        """How people name it: the beginning of its session's id, and its number."""
        return f"{self.session.rpartition('-')[2][:_ID]}/{self.number}"

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, which is always an empty one."""
        return stat.S_ISDIR(self.mode)


def items(trash: int) -> list[Item]:
    """List what is in the trash, oldest first.

    Args:
        trash: descriptor of the trash.
    """
    found = [item for name in sessions(trash) for item in _session(trash, name)]
    return sorted(found, key=lambda item: (item.when, item.session, item.number))


def _session(trash: int, name: str) -> Iterator[Item]:
    try:
        folder = open_session(trash, name)
    except OSError:
        return
    try:
        for entry in os.listdir(folder):
            if entry.isdecimal() and (item := _item(folder, name, entry)) is not None:
                yield item
    finally:
        os.close(folder)


def _item(folder: int, session: str, entry: str) -> Item | None:
    """Read one item; a run may be putting it there or taking it back right now."""
    try:
        info = os.stat(entry, dir_fd=folder, follow_symlinks=False)
        told = os.stat(entry + ".path", dir_fd=folder, follow_symlinks=False)
        path = os.readlink(os.fsencode(entry + ".path"), dir_fd=folder)
    except OSError:
        return None
    size = 0 if stat.S_ISDIR(info.st_mode) else info.st_size
    return Item(session, int(entry), path, told.st_mtime, info.st_mode, size)


def chosen(found: Iterable[Item], words: Iterable[bytes]) -> list[Item]:
    """Pick items by id, or by path: what was there and below.

    Args:
        found: from :func:`items`.
        words: ids and absolute paths.

    Returns:
        The items, of each path the one that was deleted last; by id every one.

    Raises:
        SupervisorError: a word fits nothing.
    """
    found = list(found)
    by_id = {os.fsencode(item.id): item for item in found}
    picked: dict[tuple[str, int], Item] = {}
    for word in words:
        hits = [by_id[word]] if word in by_id else _below(found, word)
        if not hits:
            shown = word.decode("utf-8", "backslashreplace")
            raise SupervisorError(f"nothing in the trash is called or was at {shown!r}")
        picked.update({(item.session, item.number): item for item in hits})
    return list(picked.values())


def _below(found: list[Item], path: bytes) -> list[Item]:
    path = path.rstrip(b"/") or b"/"
    inside = path if path.endswith(b"/") else path + b"/"
    last = {i.path: i for i in found if i.path == path or i.path.startswith(inside)}
    return list(last.values())


def restore(
    trash: int, wanted: Iterable[Item], *, to: bytes = b"", replace: bool = False
) -> Iterator[tuple[Item, bytes, str]]:
    """Put items back where they were, or below another folder.

    Folders come first and get their times last, as what is put into them changes those.

    Args:
        trash: descriptor of the trash.
        wanted: what to put back.
        to: folder to put them into, with their paths kept below it; b"" = where they were.
        replace: replace what is there now.

    Yields:
        The item, where it went, and "" or why it stayed.
    """
    order = sorted(wanted, key=lambda item: (not item.is_folder, item.path))
    done: list[tuple[Item, bytes]] = []
    for item in order:
        place = to.rstrip(b"/") + item.path if to else item.path
        try:
            parent = _open_parents(place)
            try:
                _put(trash, item, parent, os.path.basename(place), replace=replace)
            finally:
                os.close(parent)
            problem = ""
            done.append((item, place))
        except OSError as error:
            problem = error.strerror or str(error)
        yield item, place, problem
    for item, place in reversed(done):
        if item.is_folder:
            _look_like(trash, item, place)
        _forget(trash, item)


def _open_parents(place: bytes) -> int:
    """Open the folder that a path names its thing in, making what is missing.

    Raises:
        OSError: a link lies in the way, or a folder cannot be made.
    """
    folder = os.open(b"/", _FOLDER)
    try:
        for part in place.split(b"/")[1:-1]:
            below = _open_or_make(folder, part)
            os.close(folder)
            folder = below
    except BaseException:
        os.close(folder)
        raise
    return folder


def _open_or_make(folder: int, name: bytes) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)


def _put(trash: int, item: Item, parent: int, name: bytes, *, replace: bool) -> None:
    folder = open_session(trash, item.session)
    source = b"%d" % item.number
    try:
        if item.is_folder:
            _put_folder(parent, name)
            return
        _give_name(folder, source, item, parent, name, replace=replace)
    finally:
        os.close(folder)


def _put_folder(parent: int, name: bytes) -> None:
    """Make the folder; one that is there again already will do."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise


def _give_name(
    folder: int, source: bytes, item: Item, parent: int, name: bytes, *, replace: bool
) -> None:
    """Link it there, or copy it onto another file system; the name appears whole."""
    made = b".supervise-" + os.urandom(6).hex().encode()
    try:
        os.link(source, made, src_dir_fd=folder, dst_dir_fd=parent, follow_symlinks=False)
    except OSError:
        _copy(folder, source, item, parent, made)
    try:
        if replace:
            os.rename(made, name, src_dir_fd=parent, dst_dir_fd=parent)
        else:
            os.link(made, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    finally:
        if os.path.lexists(f"/proc/self/fd/{parent}/".encode() + made):
            os.unlink(made, dir_fd=parent)


def _copy(folder: int, source: bytes, item: Item, parent: int, made: bytes) -> None:
    from_path = f"/proc/self/fd/{folder}/".encode() + source
    to_path = f"/proc/self/fd/{parent}/".encode() + made
    if stat.S_ISLNK(item.mode):
        os.symlink(os.readlink(from_path), to_path)
    elif stat.S_ISREG(item.mode):
        shutil.copyfile(from_path, to_path, follow_symlinks=False)
    else:
        os.mknod(to_path, stat.S_IFMT(item.mode) | 0o600)
    _take_looks(from_path, to_path)


def _take_looks(from_path: bytes, to_path: bytes) -> None:
    """Owner where we may, mode, times and extended attributes."""
    info = os.lstat(from_path)
    with contextlib.suppress(PermissionError):
        os.chown(to_path, info.st_uid, info.st_gid, follow_symlinks=False)
    shutil.copystat(from_path, to_path, follow_symlinks=False)


def _look_like(trash: int, item: Item, place: bytes) -> None:
    """Give a folder that was put back its mode, times and attributes."""
    folder = open_session(trash, item.session)
    try:
        parent = _open_parents(place)
        try:
            below = os.open(os.path.basename(place), _FOLDER, dir_fd=parent)
        finally:
            os.close(parent)
        try:
            source = f"/proc/self/fd/{folder}/{item.number}".encode()
            _take_looks(source, f"/proc/self/fd/{below}/.".encode())
        finally:
            os.close(below)
    except OSError:
        return
    finally:
        os.close(folder)


def purge(trash: int, unwanted: Iterable[Item]) -> int:
    """Remove items for good.

    Args:
        trash: descriptor of the trash.
        unwanted: what to remove.

    Returns:
        How many went.
    """
    return sum(_forget(trash, item) for item in unwanted)


def _forget(trash: int, item: Item) -> bool:
    """Take an item out, the object first; its session's folder goes with the last one."""
    try:
        folder = open_session(trash, item.session)
    except OSError:
        return False
    try:
        if item.is_folder:
            os.rmdir(str(item.number), dir_fd=folder)
        else:
            os.unlink(str(item.number), dir_fd=folder)
        os.unlink(f"{item.number}.path", dir_fd=folder)
    except OSError:
        return False
    finally:
        os.close(folder)
    with contextlib.suppress(OSError):
        os.rmdir(item.session, dir_fd=trash)
    return True
