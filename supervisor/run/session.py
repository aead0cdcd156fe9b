"""One run from a compiled policy to an exit code.

Nothing here prints and nothing decides: the caller brings the plan and the
sinks, the native library decides and passes signals on, this file keeps the
order of the steps.
"""

from __future__ import annotations

import os

from supervisor.errors import SessionError
from supervisor.run.pump import Pump
from supervisor.run.status import exit_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from supervisor.model import Status
    from supervisor.run.events import Event
    from supervisor.run.limits import TimeLimit, Watch
    from supervisor.run.pump import Sink

    class Running(Protocol):
        """The part of native.Session that a run uses."""

        def spawn(
            self,
            argv: Sequence[bytes],
            env: Mapping[bytes, bytes],
            *,
            cwd: bytes | None = None,
            path: bytes | None = None,
            degraded: int = 0,
            trash: tuple[bytes, int] | None = None,
        ) -> int:
            """Start the main command."""

        def poll(self, timeout_ms: int) -> list[Event]:
            """Take waiting events."""

        def status(self) -> Status:
            """Tell the state."""

        def rule(self, index: int) -> tuple[str, str]:
            """Tell a rule's id and source."""

        def kill(self, sig: int = 0) -> None:
            """Send a signal, or end the tree."""

        def close(self) -> None:
            """Free everything."""

    class Trash(Protocol):
        """Where a run keeps what its command deletes."""

        path: bytes
        room: int

        def close(self) -> None:
            """The run is over."""

    class Follower(Sink, Protocol):
        """A sink that also hears of the run's start and end."""

        def started(self, pid: int) -> None:
            """The main command was started."""

        def ended(self, outcome: Outcome) -> None:
            """Everything has ended and every event was delivered."""


NEEDS_TMP = 2
"""Flag of a compiled policy: patterns or destinations lie in the private folder."""


class Plan:
    """What to run and how; treat instances as constants."""

    __slots__ = (
        "argv",
        "blob",
        "degraded",
        "env",
        "fail_on_deny",
        "limits",
        "opened",
        "private_tmp",
        "timeout",
        "trash",
        "wait_all",
    )

    def __init__(  # noqa: PLR0913 - a record of options, all but three by name
        self,
        argv: Sequence[bytes],
        blob: bytes,
        env: Callable[[bytes], Mapping[bytes, bytes]],
        *,
        private_tmp: bool = False,
        trash: Callable[[], Trash] | None = None,
        degraded: int = 0,
        timeout: float | None = None,
        wait_all: bool = False,
        fail_on_deny: bool = False,
        opened: Callable[[Running], None] | None = None,
        limits: Sequence[TimeLimit] = (),
    ) -> None:
        """Describe a run.

        Args:
            argv: the command and its arguments.
            blob: the compiled policy.
            env: gives the command's whole environment for the private folder (empty: none).
            private_tmp: the policy needs a private folder (flag ``NEEDS_TMP``).
            trash: makes the folder for what is deleted, where the policy keeps that.
            degraded: bits of the facilities that the user does without.
            timeout: seconds until the command is ended; None for never.
            wait_all: wait for the whole tree, not only for the main command.
            fail_on_deny: exit 123 where the command ended with 0 after denials.
            opened: told of the session before the command starts.
            limits: those of the policy.
        """
        self.limits = tuple(limits)
        self.argv = tuple(argv)
        self.blob = blob
        self.env = env
        self.private_tmp = private_tmp
        self.trash = trash
        self.degraded = degraded
        self.timeout = timeout
        self.wait_all = wait_all
        self.fail_on_deny = fail_on_deny
        self.opened = opened


class Outcome:
    """How a run ended."""

    __slots__ = ("code", "limit", "status", "timed_out")

    def __init__(self, code: int, status: Status, *, timed_out: bool, limit: str = "") -> None:
        """Hold the exit code, the last state, whether time was up, and which limit ended it."""
        self.limit = limit
        self.code = code
        self.status = status
        self.timed_out = timed_out


def run(
    plan: Plan,
    followers: Sequence[Follower] = (),
    *,
    opener: Callable[[bytes, bytes], Running] | None = None,
    guard: Callable[[], None] | None = None,
    leave: bool = False,
) -> Outcome:
    """Run a command under a compiled policy and wait for its end.

    The calling process forks (see native.guard): it goes on as the child, so
    call this before any thread exists. Whatever fails, the tree is ended and
    the private folder removed before the error is raised.

    Args:
        plan: what to run.
        followers: who hears of events, of the start and of the end.
        opener: makes the session; native.Session.open when None.
        guard: protects the process; native.guard when None.
        leave: the caller exits at once: where nothing of the tree is left, the session's
            threads are left to the kernel, which ends them faster than we would.

    Raises:
        SupervisorError: the policy was refused, a facility is missing, or a
            follower failed (an audit log that cannot be written).
    """
    if opener is None or guard is None:
        from supervisor import native

        opener = opener or native.Session.open
        guard = guard or native.guard
    guard()
    with PrivateTmp(wanted=plan.private_tmp) as tmp, _Trashing(plan) as trash:
        session: Running | None = None
        try:
            session = opener(plan.blob, tmp)
            pid = _spawn(plan, session, tmp, trash)
            outcome = _follow(plan, session, followers, pid)
        except BaseException:
            if session is not None:
                session.kill(0)
            raise
        else:
            if leave and not outcome.status.tasks:
                session = None
            return outcome
        finally:
            if session is not None:
                session.close()


def run_and_leave(plan: Plan, followers: Sequence[Follower]) -> Outcome:
    """Do as :func:`run`, for a process that exits at once.

    Args:
        plan: what to run.
        followers: who hears of events, of the start and of the end.

    Raises:
        SupervisorError: as :func:`run`.
    """
    return run(plan, followers, leave=True)


def _spawn(plan: Plan, session: Running, tmp: bytes, trash: Trash | None) -> int:
    env = dict(plan.env(tmp))
    if tmp:
        env[b"TMPDIR"] = tmp
    if plan.opened is not None:
        plan.opened(session)
    kept = None if trash is None else (trash.path, trash.room)
    return session.spawn(plan.argv, env, degraded=plan.degraded, trash=kept)


def _follow(
    plan: Plan,
    session: Running,
    followers: Sequence[Follower],
    pid: int,
) -> Outcome:
    for follower in followers:
        follower.started(pid)
    pump = Pump(
        session,
        followers,
        timeout=plan.timeout,
        wait_all=plan.wait_all,
        watch=_watch(plan.limits),
    )
    status = pump.run()
    code = exit_code(
        status,
        timed_out=pump.timed_out,
        fail_on_deny=plan.fail_on_deny,
        denied=status.denied,
        limit=pump.limit(status),
    )
    outcome = Outcome(code, status, timed_out=pump.timed_out, limit=pump.limit(status))
    for follower in followers:
        follower.ended(outcome)
    return outcome


def _watch(limits: Sequence[TimeLimit]) -> Watch | None:
    """Most runs have no time limits, and no use for the code."""
    if not any(name in ("cpu", "wall") for name, *_ in limits):
        return None
    from supervisor.run.limits import Watch

    return Watch(limits)


class _Trashing:
    """The folder for what is deleted, while the run lasts."""

    def __init__(self, plan: Plan) -> None:
        self._make = plan.trash
        self._trash: Trash | None = None

    def __enter__(self) -> Trash | None:
        if self._make is not None:
            self._trash = self._make()
        return self._trash

    def __exit__(self, *_error: object) -> None:
        if self._trash is not None:
            self._trash.close()


class PrivateTmp:
    """A folder of this run alone: made on entry, removed on exit."""

    def __init__(self, *, wanted: bool) -> None:
        """Remember whether one is wanted and where our TMPDIR points; /tmp without one.

        Args:
            wanted: without it nothing is made and the name is empty.
        """
        base = os.environb.get(b"TMPDIR", b"")
        self._base = base if base.startswith(b"/") else b"/tmp"
        self._wanted = wanted
        self._made = b""

    def __enter__(self) -> bytes:
        """Make the folder.

        Raises:
            SessionError: the place cannot be written.
        """
        while self._wanted and not self._made:
            name = os.path.join(self._base, b"supervise-" + os.urandom(6).hex().encode())
            try:
                os.mkdir(name, 0o700)
            except FileExistsError:
                continue
            except OSError as problem:
                raise SessionError(
                    f"the private folder cannot be made: {problem.strerror}: "
                    f"{os.fsdecode(self._base)}",
                    hint="point TMPDIR to a folder that can be written",
                ) from problem
            self._made = os.path.realpath(name)
        return self._made

    def __exit__(self, *_error: object) -> None:
        """Remove the folder with what the command left in it; never fails."""
        if not self._made:
            return
        try:
            os.rmdir(self._made)
        except OSError:
            from supervisor.run.remove import remove_tree

            remove_tree(self._made)
