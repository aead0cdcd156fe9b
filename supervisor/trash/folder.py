"""Where the trash lies, and the part of it that a run fills.

``trash`` in the state folder holds a folder for each session that kept something.
There item N is the object itself, and the symbolic link ``N.path`` names where it was
(native/broker/trash.h).
"""

from __future__ import annotations

import os
import stat
import time

from supervisor.audit.folder import state_folder
from supervisor.errors import SessionError
from supervisor.policy import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

QUOTA = 2 << 30
"""Bytes that the trash may take where `supervise trash quota` was not used."""
ENTRY = 4096
"""Bytes that a name counts for, whatever is behind it."""
_QUOTA_FILE = "quota"
_LIMIT = 32


def trash_folder(env: Mapping[bytes, bytes]) -> bytes:
    """Name the folder of the trash; empty where the environment gives none.

    Args:
        env: the environment of the supervisor.
    """
    audit = state_folder(env)
    return os.fsencode(os.path.join(os.path.dirname(audit), "trash")) if audit else b""


def open_trash(env: Mapping[bytes, bytes], *, create: bool) -> int | None:
    """Open the trash; None where there is none, or where others may change it.

    Args:
        env: the environment of the supervisor.
        create: make it.
    """
    path = trash_folder(env)
    return private.open_folder(path, create=create) if path else None


def quota(trash: int) -> int:
    """Return how many bytes the trash may take.

    Args:
        trash: descriptor of the trash.
    """
    data = private.read(trash, _QUOTA_FILE, _LIMIT) or b""
    return int(data) if data.isdigit() else QUOTA


def set_quota(trash: int, size: int) -> None:
    """Remember how many bytes the trash may take.

    Args:
        trash: descriptor of the trash.
        size: bytes.

    Raises:
        SessionError: it cannot be written.
    """
    if not private.write(trash, _QUOTA_FILE, b"%d" % size):
        raise SessionError("the quota of the trash cannot be written")


def sessions(trash: int) -> list[str]:
    """Name the folders of sessions, oldest first.

    Args:
        trash: descriptor of the trash.
    """
    return sorted(n for n in os.listdir(trash) if n != _QUOTA_FILE and not n.startswith("."))


def open_session(trash: int, name: str) -> int:
    """Open the folder of a session.

    Args:
        trash: descriptor of the trash.
        name: from :func:`sessions`.

    Raises:
        OSError: it is gone, or no folder.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, dir_fd=trash)


def used(trash: int) -> int:
    """Return how many bytes the trash takes, as the quota counts them.

    Args:
        trash: descriptor of the trash.
    """
    total = 0
    for name in sessions(trash):
        folder = open_session(trash, name)
        try:
            for item in os.listdir(folder):
                if not item.endswith(".path"):
                    info = os.stat(item, dir_fd=folder, follow_symlinks=False)
                    total += ENTRY + (info.st_size if stat.S_ISREG(info.st_mode) else 0)
        finally:
            os.close(folder)
    return total


class SessionTrash:
    """The folder of one run: made at its start, gone at its end where it stayed empty."""

    def __init__(self, env: Mapping[bytes, bytes], session: str) -> None:
        """Make the folder.

        Args:
            env: the environment of the supervisor.
            session: id of the run.

        Raises:
            SessionError: it cannot be made.
        """
        path = trash_folder(env)
        try:
            trash = open_trash(env, create=True)
            if trash is None:
                why = "HOME is not set" if not path else "others may change it or a folder above it"
                raise SessionError(f"the policy keeps what is deleted, but has no trash: {why}")
            try:
                self.room = max(0, quota(trash) - used(trash))
                stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
                name = os.fsencode(f"{stamp}-{session}")
                os.mkdir(name, 0o700, dir_fd=trash)
                if os.geteuid() == 0:
                    # Programs that changed their identity keep things here, too; the
                    # folder above lets nobody else come here by a name.
                    os.chmod(name, 0o1777, dir_fd=trash)  # noqa: S103
            finally:
                os.close(trash)
        except OSError as problem:
            where = os.fsdecode(path)
            raise SessionError(f"the trash {where} cannot be used: {problem.strerror}") from problem
        self.path = os.path.join(path, name)

    def close(self) -> None:
        """Remove the folder where nothing was kept; never fails."""
        try:
            os.rmdir(self.path)
        except OSError:
            return
