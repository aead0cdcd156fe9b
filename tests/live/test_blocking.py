"""Calls that wait must hold one task, never a worker, and end as they would natively."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import Supervised
from processes import children, wait_until

Put = Callable[..., Path]


def test_waiting_openers_hold_nobody_up(supervised: Supervised, program: Put) -> None:
    """300 openers of a FIFO wait while other opens stay about as fast as alone."""
    tool = program("blocking")
    ratio = 99.0
    for _ in range(3):  # other programs on this machine may slow one of the two halves down
        done = supervised([tool, "crowd", "300", "1500"], None, "-q")
        assert done.code == 0, done.err
        before, beside, early = done.out.split()
        assert early == b"early=0"
        ratio = min(ratio, int(beside) / int(before))
        (supervised.root / "fifo").unlink()
        if ratio < 3:
            break
    assert ratio < 3


@pytest.mark.parametrize("flags", ["restart", "plain"])
def test_alarm_during_a_waiting_open(supervised: Supervised, program: Put, flags: str) -> None:
    """EINTR without SA_RESTART; with it the call goes on after each handler."""
    tool = program("blocking")
    native = supervised.natively([tool, "alarm", flags]).out
    (supervised.root / "fifo").unlink()
    assert supervised([tool, "alarm", flags]).out == native
    assert native == (b"opened alarms=several\n" if flags == "restart" else b"EINTR alarms=one\n")


def test_both_ends_inside(supervised: Supervised, program: Put) -> None:
    """Two waiting ends find each other, and end of file comes when the writer is gone."""
    assert supervised([program("blocking"), "meet"]).out == b"hello then 0\n"


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_killed_while_waiting(supervised: Supervised, program: Put, sig: int) -> None:
    """A waiting opener dies at once, and its half-made opening is gone with it."""
    tool = program("blocking")
    os.mkfifo(supervised.root / "fifo")
    process = subprocess.Popen(
        [*supervised.words(None, "-q"), str(tool), "wait", "fifo"],
        cwd=supervised.root,
        env=supervised.environ(),
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        (supervisor,) = children(process.pid)
        (target,) = children(supervisor)
        os.kill(target, sig)
        assert process.wait(5) == 128 + sig
        with pytest.raises(OSError, match="No such device or address"):
            os.open(supervised.root / "fifo", os.O_WRONLY | os.O_NONBLOCK)
    finally:
        process.kill()
        process.communicate()


def test_waiting_open_meets_the_world_outside(supervised: Supervised, program: Put) -> None:
    """The other end may be a program that nobody supervises."""
    tool = program("blocking")
    os.mkfifo(supervised.root / "fifo")
    process = subprocess.Popen(
        [*supervised.words(None, "-q"), str(tool), "wait", "fifo"],
        cwd=supervised.root,
        env=supervised.environ(),
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        end = []

        def write() -> bool:
            try:
                end.append(os.open(supervised.root / "fifo", os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                return False
            return True

        assert wait_until(write)
        os.close(end[0])
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.communicate()


def test_openings_that_could_wait_keep_their_number(supervised: Supervised) -> None:
    """A pipe opened by name gives a descriptor of its own, always: an answer that was
    disturbed on its way would be 0, the caller's stdin.
    """
    script = (
        "import os\n"
        "wrong = 0\n"
        "for _ in range(3000):\n"
        "    r, w = os.pipe()\n"
        "    a = os.open(f'/proc/self/fd/{w}', os.O_WRONLY)\n"
        "    b = os.open(f'/dev/fd/{r}', os.O_RDONLY)\n"
        "    wrong += (a, b) != (w + 1, w + 2)\n"
        "    for fd in {r, w, a, b} - {0}: os.close(fd)\n"
        "print(wrong)\n"
    )
    assert supervised(["python3", "-c", script], None, "-q").out == b"0\n"
