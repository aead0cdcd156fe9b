"""Removes a folder that hostile programs filled."""

from __future__ import annotations

import os
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: bytes) -> None:
    """Remove a folder and all in it, however deep and whatever its modes; never fails.

    No link is followed. Folders are moved up before they are emptied, so depth costs
    neither recursion nor descriptors.

    Args:
        path: a folder whose own name nobody else can change.
    """
    try:
        root = os.open(path, _FOLDER)
    except OSError:
        return
    try:
        count = 0
        while folders := _empty(root):
            for name in folders:
                count = _flatten(root, name, count)
        os.rmdir(path)
    except OSError:
        pass  # somebody still writes there, or it is a mount: what is left is left
    finally:
        os.close(root)


def _empty(folder: int) -> list[str]:
    """Unlink everything but folders, and return those."""
    found = []
    for name in os.listdir(folder):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            found.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return found


def _flatten(root: int, name: str, count: int) -> int:
    """Move the folders in ``name`` up into the root, then remove it."""
    below = _open(root, name)
    try:
        for inner in _empty(below):
            # Its own folder must be writable for ".." in it to change.
            os.close(_open(below, inner))
            count += 1
            os.rename(
                inner,
                f".supervise-{count}-{os.urandom(4).hex()}",
                src_dir_fd=below,
                dst_dir_fd=root,
            )
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=root)
    return count


def _open(folder: int, name: str) -> int:
    """Open a folder to change it, giving ourselves the right where it is ours."""
    pinned = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_IMODE(os.fstat(pinned).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{pinned}", stat.S_IRWXU)
    finally:
        os.close(pinned)
    return os.open(name, _FOLDER, dir_fd=folder)
