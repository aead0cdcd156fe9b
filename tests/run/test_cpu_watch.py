"""Time limits: what is told, and when, by a clock of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from fakes_run import FakeSession

from supervisor.model import Status
from supervisor.run.events import ALLOW, DENY, LIMIT
from supervisor.run.limits import Watch, tree_cpu
from supervisor.run.pump import Pump
from supervisor.run.status import exit_code


def watch(*limits: tuple[str, int, int, int], used: float = 0.0) -> Watch:
    """Watch from 100 s on."""
    return Watch(limits, clock=lambda: 100.0, measure=lambda: used)


def test_other_limits_are_not_watched() -> None:
    """What is counted elsewhere is never told here."""
    seen = watch(("execs", 0, 0, 3), used=50.0)
    assert not seen.look(1000.0)
    assert not seen.over


def test_wall_is_told_in_time() -> None:
    """Soft and hard are told when they are over, once each, and not a second later."""
    seen = watch(("wall", 3, 1, 7))
    assert not seen.look(100.0)
    assert not seen.look(100.9)
    soft = seen.look(101.0)
    assert [(e.kind, e.action, e.rule, e.detail) for e in soft] == [
        (LIMIT, ALLOW, 7, b"soft limit: more than 1 s")
    ]
    assert not seen.look(102.5)
    hard = seen.look(103.0)
    assert [(e.action, e.detail) for e in hard] == [(DENY, b"more than 3 s")]
    assert seen.over == "wall"
    assert not seen.look(104.0)


def test_processor_time_is_measured_once_a_second() -> None:
    """Looking at all processes is not free."""
    measured: list[int] = []

    def measure() -> float:
        measured.append(1)
        return 4.0

    seen = Watch([("cpu", 5, -1, 2)], clock=lambda: 0.0, measure=measure)
    for i in range(40):
        assert not seen.look(i * 0.05)
    assert len(measured) == 2


def test_only_one_limit_ends_a_run() -> None:
    """Where both are over at once, one is told."""
    seen = watch(("cpu", 0, -1, 2), ("wall", 0, -1, 3), used=1.0)
    assert [event.rule for event in seen.look(100.0)] == [2]
    assert seen.over == "cpu"


def test_the_loop_ends_the_tree() -> None:
    """Processor time ends it at once; the outcome names the limit."""
    session = FakeSession(lives=3, end=Status(exited=2, code=9))
    pump = Pump(session, [], watch=watch(("cpu", 1, -1, 2), used=1.0), clock=lambda: 100.0)
    status = pump.run()
    assert ("kill", 0) in session.calls
    assert pump.limit(status) == "cpu"
    assert exit_code(status, limit=pump.limit(status)) == 122


def test_the_loop_asks_before_it_ends_in_time() -> None:
    """Wall time sends SIGTERM first, as --timeout."""
    session = FakeSession(lives=3, end=Status(exited=2, code=15))
    pump = Pump(session, [], watch=watch(("wall", 0, -1, 2)), clock=lambda: 100.0)
    status = pump.run()
    assert ("kill", 15) in session.calls
    assert pump.timed_out
    assert exit_code(status, timed_out=pump.timed_out, limit=pump.limit(status)) == 124


def test_a_counted_limit_is_named() -> None:
    """What the session says about the end is what is told."""
    assert Pump(FakeSession(), []).limit(Status(limit=3)) == "files_deleted"


def test_time_of_children_and_of_theirs() -> None:
    """Processes that run count, and those that have ended."""
    code = "import time\nwhile time.process_time() < 0.5: pass"
    before = tree_cpu()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert tree_cpu() - before > 0.4
    before = tree_cpu()
    words = ["sh", "-c", f"{sys.executable} -c '{code}\ntime.sleep(60)'; true"]
    with subprocess.Popen(words, start_new_session=True) as child:
        give_up = time.monotonic() + 30
        while (used := tree_cpu() - before) < 0.4 and time.monotonic() < give_up:
            time.sleep(0.05)
        os.killpg(child.pid, 9)
    assert used > 0.4
