"""Writes the audit log of a run: group commit, and no run without its record."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from supervisor.audit.record import Chain, event_fields
from supervisor.errors import SessionError
from supervisor.run.events import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from supervisor.audit.record import Value
    from supervisor.run.events import Event
    from supervisor.run.session import Outcome

SYNC_S = 0.05
SYNC_RECORDS = 256
_FLAGS = os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class LogFile:
    """An audit log that is open for appending, locked against other runs."""

    def __init__(self, fd: int, path: str, chain: Chain, size: int) -> None:
        """Take over an open and locked file; see :func:`create` and :func:`open_or_create`.

        Args:
            fd: the file, opened with O_APPEND.
            path: its name, for messages.
            chain: where its chain stands.
            size: its length in bytes, which ends with a whole line.
        """
        self._fd = fd
        self.path = path
        self._chain = chain
        self._size = size
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def append(self, batch: Sequence[Mapping[str, Value]]) -> None:
        """Add records, in one write.

        Args:
            batch: records without what the chain adds.

        Raises:
            SessionError: they cannot be written; whole lines stay in the file.
        """
        data = b"".join([self._chain.line(fields) for fields in batch])
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as problem:
            self._cut()
            raise _stopped(problem) from problem
        self._size += len(data)
        self._unsynced += len(batch)
        if self._unsynced >= SYNC_RECORDS:
            self.sync()

    def tick(self) -> None:
        """Sync what has waited for 50 ms.

        Raises:
            SessionError: the disk refused it.
        """
        if self._unsynced and time.monotonic() - self._synced_at >= SYNC_S:
            self.sync()

    def sync(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            SessionError: the disk refused it.
        """
        try:
            os.fdatasync(self._fd)
        except OSError as problem:
            raise _stopped(problem) from problem
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Close the file; what was not synced is left to the kernel."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _cut(self) -> None:
        """Take back a half-written line, so that the chain ends with a whole one."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return


def create(path: str, folder: int | None = None) -> LogFile:
    """Make a new log, readable by its owner alone.

    Args:
        path: a name that is free.
        folder: descriptor of the folder that it is in; then only the last part of the
            name is used.

    Raises:
        OSError: it is not free or cannot be made.
    """
    name = path if folder is None else os.path.basename(path)
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=folder)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return LogFile(fd, path, Chain(), 0)


def open_or_create(path: str) -> tuple[LogFile, int]:
    """Make a log, or go on with one whose chain is whole.

    A last line that a crash cut short is moved to ``PATH.torn``.

    Args:
        path: the file.

    Returns:
        The log, and how many bytes of a torn line were moved away.

    Raises:
        SessionError: it cannot be opened, is in use, or is no valid log.
    """
    try:
        return create(path), 0
    except FileExistsError:
        pass
    except (OSError, ValueError) as problem:
        raise _refused(path, str(getattr(problem, "strerror", problem))) from problem
    try:
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | _FLAGS)
    except OSError as problem:
        reason = "it is a symbolic link" if problem.errno == errno.ELOOP else problem.strerror
        raise _refused(path, str(reason)) from problem
    try:
        return _continue(fd, path)
    except BaseException:
        os.close(fd)
        raise


def _continue(fd: int, path: str) -> tuple[LogFile, int]:
    from supervisor.audit.reader import scan

    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise _refused(path, "it is not a regular file")
    if info.st_uid != os.geteuid():
        raise _refused(path, "it belongs to somebody else")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        raise _refused(path, "another run is writing to it") from problem
    with os.fdopen(os.dup(fd), "rb") as stream:
        report = scan(stream)
    if report.state in ("tampered", "missing"):
        raise _refused(path, f"it is no valid audit log: {report.detail}")
    torn = info.st_size - report.good
    if torn:
        try:
            _move_tail(fd, path, report.good, torn)
        except OSError as problem:
            raise _refused(path, f"its torn last line: {problem.strerror}") from problem
    return LogFile(fd, path, Chain(report.records, report.prev), report.good), torn


def _move_tail(fd: int, path: str, start: int, size: int) -> None:
    side = os.open(path + ".torn", os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | _FLAGS, 0o600)
    try:
        tail = os.pread(fd, size, start) + b"\n"
        if os.write(side, tail) != len(tail):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fdatasync(side)
    finally:
        os.close(side)
    os.ftruncate(fd, start)


class AuditTrail:
    """The record of one run: a follower of run.session."""

    def __init__(
        self,
        log: LogFile,
        session: str,
        policy: Mapping[str, Value],
        *,
        call_name: Callable[[int], str],
        rule: Callable[[int], tuple[str, str]],
        limits: Mapping[str, Value] | None = None,
    ) -> None:
        """Record into an open log.

        Args:
            log: the log.
            session: id of the run, 16 hex digits.
            policy: name and sha256 of the compiled policy.
            call_name: names a syscall.
            rule: id and source of a rule; empty strings for -1.
            limits: what the run may use, by name.
        """
        self._limits = limits or {}
        self._log = log
        self._session = session
        self._policy = policy
        self._call_name = call_name
        self._rule = rule
        self._events = 0
        self._denied = 0
        self._over = False

    def begin(self, action: Mapping[str, Value], torn: int = 0) -> None:
        """Write session_start and wait for the disk; nothing runs before that.

        Args:
            action: what is run: argv, cwd, user, host, version, mode, ...
            torn: bytes of a torn line that were moved away, from :func:`open_or_create`.

        Raises:
            SessionError: the log cannot be written.
        """
        batch = [self._own("session_start", action)]
        if torn:
            found = f"a torn last line of {torn} bytes was moved to {escape_path(self._log.path)}"
            batch.append(self._own("fault", {"call": "log_recovered", "detail": found}))
        self._log.append(batch)

    def events(self, batch: Sequence[Event]) -> None:
        """Record a batch.

        Raises:
            SessionError: the log cannot be written.
        """
        lines = [
            event_fields(
                event,
                self._session,
                self._call_name(event.nr),
                self._rule(event.rule),
                self._policy,
            )
            for event in batch
        ]
        self._events += len(lines)
        self._denied += sum(line["decision"] == "deny" for line in lines)
        self._log.append(lines)

    def tick(self) -> None:
        """Sync what has waited long enough.

        Raises:
            SessionError: the log cannot be written.
        """
        self._log.tick()

    def started(self, pid: int) -> None:
        """Nothing to record: the first event of the main command says it."""

    def ended(self, outcome: Outcome) -> None:
        """Record how the run ended.

        Raises:
            SessionError: the log cannot be written.
        """
        status = outcome.status
        self.end(
            {
                "exit": outcome.code,
                "timed_out": int(outcome.timed_out),
                "calls": status.calls,
                "denied": status.denied,
                "steered": status.steered,
                "counters": status.counters(),
                **({"limits": self._limits} if self._limits else {}),
                **({"limit": outcome.limit} if outcome.limit else {}),
            }
        )

    def end(self, action: Mapping[str, Value]) -> None:
        """Write session_end, wait for the disk and close the log; only once.

        Args:
            action: how it ended: exit code and counts.

        Raises:
            SessionError: the log cannot be written.
        """
        if self._over:
            return
        self._over = True
        counts = {"events": self._events, "denied_events": self._denied}
        try:
            self._log.append([self._own("session_end", {**action, **counts})])
            self._log.sync()
        finally:
            self._log.close()

    def _own(self, kind: str, action: Mapping[str, Value]) -> dict[str, Value]:
        return {
            "ts": time.time_ns(),
            "mono": time.monotonic_ns(),
            "type": kind,
            "session": self._session,
            "pid": os.getpid(),
            "comm": "supervise",
            "action": {"call": kind, **action},
            "decision": "allow",
            "effect": "none",
            "rule": "",
            "src": "",
            "policy": self._policy,
            "errno": 0,
        }


def escape_path(path: str) -> str:
    """Show the side file of a log as printable text.

    Args:
        path: name of the log.
    """
    return escape(os.fsencode(path + ".torn"))


def _stopped(problem: OSError) -> SessionError:
    full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    reason = "disk full" if full else problem.strerror or "write error"
    return SessionError(f"audit log cannot be written ({reason}): the session was stopped")


def _refused(path: str, reason: str) -> SessionError:
    return SessionError(f"the audit log {escape(os.fsencode(path))} cannot be used: {reason}")
