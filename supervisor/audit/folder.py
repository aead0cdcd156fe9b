"""The state folder: where runs without --audit leave their logs, and how many stay."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from supervisor.audit.writer import create
from supervisor.policy import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from supervisor.audit.writer import LogFile

KEEP = 200
"""Default logs that are kept; the oldest go first."""


def state_folder(env: Mapping[bytes, bytes]) -> str:
    """Name the folder of the default logs; empty where the environment gives none.

    Args:
        env: the environment of the supervisor.
    """
    state = os.fsdecode(env.get(b"XDG_STATE_HOME", b""))
    home = os.fsdecode(env.get(b"HOME", b""))
    if not state.startswith("/"):
        state = os.path.join(home, ".local/state") if home.startswith("/") else ""
    # The true path: a link that the user made is no reason to go without a log.
    return os.path.join(os.path.realpath(state), "supervise/audit") if state else ""


def create_default(folder: str, session: str) -> LogFile:
    """Make the log of a run in the state folder and remove the oldest ones.

    Args:
        folder: from :func:`state_folder`.
        session: id of the run.

    Raises:
        OSError: the folder or the file cannot be made.
    """
    opened = private.open_folder(os.fsencode(folder), create=True)
    if opened is None:
        reason = "it cannot be made, or others may change it or a folder above it"
        raise PermissionError(errno.EPERM, reason)
    try:
        now = time.time_ns()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9))
        name = f"{stamp}.{now // 1000 % 10**6:06d}Z-{session}.jsonl"
        log = create(os.path.join(folder, name), opened)
        for old in default_logs(opened)[:-KEEP]:
            _remove_unused(old, opened)
    finally:
        os.close(opened)
    return log


def default_logs(folder: str | int) -> list[str]:
    """List the names of the default logs, oldest first.

    Args:
        folder: from :func:`state_folder`, or a descriptor of it.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(".jsonl"))


def _remove_unused(name: str, folder: int) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    except OSError:
        return
    finally:
        os.close(fd)
