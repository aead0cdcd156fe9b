"""A storm of signals: every call happens exactly once, and says what it did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import Supervised

COUNT = 4000


@pytest.mark.parametrize("flags", ["restart", "plain"])
@pytest.mark.parametrize("call", ["mkdir", "open", "rename", "link"])
def test_no_call_happens_twice(
    supervised: Supervised,
    program: Callable[..., Path],
    record_property: Callable[[str, object], None],
    call: str,
    flags: str,
) -> None:
    """Effects equal successful returns; a doubled call would meet its own name (EEXIST, ENOENT).

    With SA_RESTART nothing else is seen. Without it, a signal that comes between a call and the
    moment when a worker takes it up gives EINTR, which the kernel offers no way to prevent: such
    a call has not happened. No descriptor may be lost on the way.
    """
    done = supervised([program("storm"), call, str(COUNT), flags], None, "-q")
    assert done.code == 0, done.err
    good, eintr, other, effects, signals, lowest = map(int, done.out.split())
    record_property("eintr", f"{eintr}/{COUNT} under {signals} signals")
    assert signals > 20
    assert other == 0
    assert effects == good
    assert good + eintr == COUNT
    if flags == "restart":
        assert eintr == 0
    assert eintr <= signals
    assert lowest == 3
