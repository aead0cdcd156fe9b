"""Exit codes of a run, in one table."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.model import Status

EXITED, KILLED = 1, 2
"""What ``exited`` of a status says about its ``code``."""

LIMIT = 122
"""A limit of the policy ended the command."""
DENIED = 123
"""With ``--fail-on-deny``: the command ended with 0, but something was denied."""
TIMEOUT = 124
"""``--timeout`` ended the command."""
FAULT = 125
"""We failed; bad flags and bad policies included."""
REFUSED = 126
"""The program was found but could not be executed, or the policy denies it."""
MISSING = 127
"""The program was not found."""
SIGNALLED = 128
"""Added to the number of the signal that ended the command."""

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})


def exit_code(
    status: Status,
    *,
    timed_out: bool = False,
    fail_on_deny: bool = False,
    denied: int = 0,
    limit: str = "",
) -> int:
    """Translate the end of the main command into the exit code of ``supervise run``.

    Args:
        status: the session's last state.
        timed_out: the time limit had passed.
        fail_on_deny: answer 123 where 0 would hide denials.
        denied: how many calls were denied.
        limit: the limit of the policy that ended the run, other than its time limit.
    """
    if status.exec_err:
        return MISSING if status.exec_err in _ABSENT else REFUSED
    if timed_out:
        return TIMEOUT
    if limit:
        return LIMIT
    if status.exited == EXITED:
        return DENIED if fail_on_deny and denied and not status.code else status.code
    if status.exited == KILLED:
        return SIGNALLED + status.code
    return FAULT


def exec_failure(status: Status) -> str:
    """Say why the program did not start; empty when it did.

    Args:
        status: the session's last state.
    """
    if not status.exec_err:
        return ""
    if status.exec_err in _ABSENT:
        return "not found"
    import os

    return os.strerror(status.exec_err)
