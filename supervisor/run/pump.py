"""Moves events from the session to their sinks until the tree has ended."""

from __future__ import annotations

import time

from supervisor.errors import SessionError
from supervisor.model import COUNTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from supervisor.model import Status
    from supervisor.run.events import Event
    from supervisor.run.limits import Watch
    from supervisor.run.session import Running

    class Sink(Protocol):
        """Whoever wants the events of a run."""

        def events(self, batch: Sequence[Event]) -> None:
            """Take a batch, oldest first."""

        def tick(self) -> None:
            """Called at least every :data:`TICK_MS`, with or without events."""


TICK_MS = 50
"""Longest wait for events, in milliseconds."""
_STATUS_S = 0.05
_GRACE_S = 2.0
_DRAIN_S = 30.0
_KILL_MS = 2
_SIGTERM = 15


class Pump:
    """The loop of a run; time comes from ``clock`` so that tests need not wait."""

    def __init__(
        self,
        session: Running,
        sinks: Sequence[Sink],
        *,
        timeout: float | None = None,
        wait_all: bool = False,
        clock: Callable[[], float] = time.monotonic,
        watch: Watch | None = None,
    ) -> None:
        """Prepare the loop.

        Args:
            session: a session whose main command was started.
            sinks: who gets the events, in this order.
            timeout: seconds until the command is asked to end; None for never.
            wait_all: wait for the whole tree instead of ending it with the main command.
            clock: seconds that only grow.
            watch: the time limits of the policy.
        """
        self._watch = watch
        self._session = session
        self._sinks = sinks
        self._wait_all = wait_all
        self._clock = clock
        self._deadline = None if timeout is None else clock() + timeout
        self.timed_out = False

    def run(self) -> Status:
        """Pump until the main command, and the tree with it, has ended.

        Returns:
            The session's last state.

        Raises:
            SupervisorError: a sink or the session failed; the tree still runs then.
        """
        checked = float("-inf")
        while True:
            moved = self._move(TICK_MS)
            now = self._clock()
            self._watch_deadline(now)
            self._watch_limits(now)
            # A tree that floods us with events must not hide its main command's end.
            if not moved or now - checked >= _STATUS_S:
                checked = now
                if self._over(self._session.status()):
                    return self._drain()

    def _over(self, status: Status) -> bool:
        if status.running:
            return False
        return not (self._wait_all and status.tasks and not status.halted)

    def _drain(self) -> Status:
        """End what is left, again and again: what forks while it is ended must go too."""
        give_up = self._clock() + _DRAIN_S
        while True:
            status = self._session.status()
            if status.tasks:
                self._session.kill(0)
            if not self._move(_KILL_MS if status.tasks else 0) and not status.tasks:
                return status
            if self._clock() >= give_up:
                raise SessionError("processes of the tree cannot be ended")

    def _move(self, timeout_ms: int) -> bool:
        batch = self._session.poll(timeout_ms)
        for sink in self._sinks:
            if batch:
                sink.events(batch)
            sink.tick()
        return bool(batch)

    def _watch_deadline(self, now: float) -> None:
        if self._deadline is None or now < self._deadline:
            return
        if self.timed_out:
            self._session.kill(0)
            self._deadline = None
            return
        self._end_in_time(now)

    def _end_in_time(self, now: float) -> None:
        self.timed_out = True
        self._deadline = now + _GRACE_S
        self._session.kill(_SIGTERM)

    def _watch_limits(self, now: float) -> None:
        """The time limit of a policy ends a run as ``timeout`` does; processor time at once."""
        events = self._watch.look(now) if self._watch else []
        if self._watch is None or not events:
            return
        for sink in self._sinks:
            sink.events(events)
        if self._watch.over == "wall" and not self.timed_out:
            self._end_in_time(now)
        elif self._watch.over == "cpu":
            self._session.kill(0)

    def limit(self, status: Status) -> str:
        """Name the limit of the policy that ended the run, or "".

        Args:
            status: the session's last state.
        """
        if status.limit:
            return COUNTED[status.limit - 1]
        return self._watch.over if self._watch else ""
