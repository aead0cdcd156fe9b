"""Files of ours that others must not have touched: read and written with care.

A file counts only if it and its folder belong to us, nobody else may write them, and
nobody else may replace any folder above. What does not count is treated as absent.
"""

from __future__ import annotations

import os
import stat

_SHARED = stat.S_IWGRP | stat.S_IWOTH
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_folder(path: bytes, *, create: bool) -> int | None:
    """Open a folder that only we can change.

    Args:
        path: Absolute path.
        create: Make the folder and missing ones above it, with mode 0700.

    Returns:
        A descriptor, or None when the folder is missing or not ours alone.
    """
    if not path.startswith(b"/") or b"\0" in path:
        return None
    try:
        if create:
            make_folders(path)
        fd = os.open(b"/", _FOLDER)
    except OSError:
        return None
    parts = [part for part in path.split(b"/") if part]
    if b".." in parts or b"." in parts:
        os.close(fd)
        return None
    for i, part in enumerate(parts):
        try:
            last = i == len(parts) - 1
            way = _FOLDER if last else _FOLDER | os.O_PATH
            below = os.open(part, way | os.O_NOFOLLOW, dir_fd=fd)
        except OSError:
            os.close(fd)
            return None
        os.close(fd)
        fd = below
        if not _safe(os.fstat(fd), last=i == len(parts) - 1):
            os.close(fd)
            return None
    return fd


def make_folders(path: bytes) -> None:
    """Make a folder and missing ones above it, mode 0700 each: a umask may leave less private.

    Args:
        path: Absolute path.

    Raises:
        OSError: One cannot be made.
    """
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        os.mkdir(folder, 0o700)


def _safe(info: os.stat_result, *, last: bool) -> bool:
    if last:
        return info.st_uid == os.geteuid() and not info.st_mode & _SHARED
    if info.st_uid not in (0, os.geteuid()):
        return False
    return not info.st_mode & _SHARED or bool(info.st_mode & stat.S_ISVTX)


def read(folder: int, name: str, limit: int) -> bytes | None:
    """Return the bytes of a file that only we can have written, or None.

    Args:
        folder: Descriptor from :func:`open_folder`.
        name: File name.
        limit: Most bytes to read; a larger file counts as absent.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
            return None
        if info.st_mode & _SHARED or info.st_size > limit or info.st_nlink > 1:
            return None
        data = b""
        while part := os.read(fd, limit + 1 - len(data)):
            data += part
        return data if len(data) <= limit else None
    except OSError:
        return None
    finally:
        os.close(fd)


def write(folder: int, name: str, data: bytes) -> bool:
    """Put a file in place at once, mode 0600; return whether that worked."""
    temporary = f".{name}.{os.getpid()}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(temporary, flags, 0o600, dir_fd=folder)
    except OSError:
        return False
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        finally:
            os.close(fd)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        try:  # noqa: SIM105 - contextlib is a heavy import for a warm start
            os.unlink(temporary, dir_fd=folder)
        except OSError:
            pass
        return False
    return True
