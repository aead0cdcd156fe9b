"""The loop of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes_run import FakeSession, denial

from supervisor.errors import SessionError
from supervisor.model import Status
from supervisor.run.pump import Pump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.run.events import Event


class Collector:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.ticks = 0

    def events(self, batch: Sequence[Event]) -> None:
        self.seen += batch

    def tick(self) -> None:
        self.ticks += 1


class Clock:
    """Time that moves a step with each look."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_every_event_arrives_in_order() -> None:
    """Nothing is lost between the batches and the end."""
    batches = [[denial(b"/%d" % i) for i in range(n, n + 3)] for n in (0, 3, 6)]
    sink = Collector()
    status = Pump(FakeSession(batches), [sink]).run()
    assert [event.path for event in sink.seen] == [b"/%d" % i for i in range(9)]
    assert status.exited == 1
    assert sink.ticks >= 4


def test_rest_of_the_tree_is_ended_with_the_main_command() -> None:
    """Without wait_all what the command left behind is ended."""
    session = FakeSession(tasks_after=3)
    Pump(session, []).run()
    assert ("kill", 0) in session.calls


def test_nothing_is_ended_where_nothing_is_left() -> None:
    """A tree that ended by itself is not signalled."""
    session = FakeSession()
    Pump(session, []).run()
    assert session.names() == []


def test_wait_all_waits_for_the_tree() -> None:
    """With wait_all the loop goes on while tasks are left."""

    class Leaving(FakeSession):
        def status(self) -> Status:
            status = super().status()
            if not status.running and self.tasks:
                self.tasks -= 1
            return status

    session = Leaving(tasks_after=3)
    Pump(session, [], wait_all=True).run()
    assert ("kill", 0) not in session.calls
    assert session.tasks == 0


def test_timeout_asks_then_ends() -> None:
    """At the deadline the command gets SIGTERM, and after the grace the tree is ended."""
    session = FakeSession(lives=10**6)
    session.ignores = {15}
    pump = Pump(session, [], timeout=5.0, clock=Clock(0.5))
    pump.run()
    assert pump.timed_out
    assert [call for call in session.calls if call[0] == "kill"][:2] == [("kill", 15), ("kill", 0)]


def test_timeout_that_is_obeyed_needs_no_kill() -> None:
    """A command that ends on SIGTERM is not killed."""
    session = FakeSession(lives=10**6)
    pump = Pump(session, [], timeout=5.0, clock=Clock(0.5))
    pump.run()
    assert pump.timed_out
    assert [call for call in session.calls if call[0] == "kill"] == [("kill", 15)]


def test_a_flood_of_events_does_not_hide_the_end() -> None:
    """The status is looked at even when every poll brings events."""

    class Flood(FakeSession):
        def poll(self, timeout_ms: int) -> list[Event]:
            self.calls.append(("poll", timeout_ms))
            return [denial()] if self.tasks else []

        def status(self) -> Status:
            return Status(exited=1, code=4, tasks=self.tasks)

    session = Flood(tasks_after=1)
    assert Pump(session, [], clock=Clock(0.02)).run().code == 4
    assert ("kill", 0) in session.calls


def test_a_tree_that_cannot_be_ended_is_given_up() -> None:
    """A task that survives SIGKILL (in an uninterruptible wait) is an error, and no hang."""

    class Stuck(FakeSession):
        def kill(self, sig: int = 0) -> None:
            self.calls.append(("kill", sig))

    stuck = Stuck(tasks_after=1)
    with pytest.raises(SessionError, match="cannot be ended"):
        Pump(stuck, [], clock=Clock(0.5)).run()
    assert stuck.calls.count(("kill", 0)) > 10, "it was tried again and again"
