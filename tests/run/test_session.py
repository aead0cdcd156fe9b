"""One run over a fake session: order, clean-up, failures."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from fakes_run import FakeSession, denial

from supervisor.errors import SessionError
from supervisor.model import Status
from supervisor.run.session import Outcome, Plan, PrivateTmp, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from supervisor.run.events import Event


class Follower:
    """Notes everything; fails at the event it is told to."""

    def __init__(self, fail: bool = False) -> None:
        self.log: list[object] = []
        self.fail = fail

    def started(self, pid: int) -> None:
        self.log.append(("started", pid))

    def events(self, batch: Sequence[Event]) -> None:
        if self.fail:
            raise SessionError("audit log cannot be written (disk full): the session was stopped")
        self.log += [event.path for event in batch]

    def tick(self) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        self.log.append(("ended", outcome.code))


def no_env(_tmp: bytes) -> dict[bytes, bytes]:
    return {}


def _run(session: FakeSession, plan: Plan, *followers: Follower) -> Outcome:
    return run(plan, followers, opener=lambda _blob, _tmp: session, guard=lambda: None)


def test_followers_hear_start_events_end() -> None:
    """A follower hears of the start, then of each event, then of the end."""
    follower = Follower()
    session = FakeSession([[denial(b"/a")], [denial(b"/b")]], end=Status(exited=1, code=3))
    outcome = _run(session, Plan([b"true"], b"", no_env), follower)
    assert outcome.code == 3
    assert follower.log == [("started", 4242), b"/a", b"/b", ("ended", 3)]
    assert session.names() == ["spawn", "close"]


def test_failing_follower_ends_the_tree() -> None:
    """When the audit log fails the tree is ended, the session closed, the error raised."""
    session = FakeSession([[denial()]], lives=10**9)
    with pytest.raises(SessionError, match="disk full") as caught:
        _run(session, Plan([b"true"], b"", no_env), Follower(fail=True))
    assert caught.value.exit_code == 125
    assert session.names() == ["spawn", "kill", "close"]


def test_failing_spawn_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the start fails nothing of the private folder is left."""
    session = FakeSession(spawn_error=SessionError("no"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(SessionError):
        _run(session, Plan([b"true"], b"", no_env, private_tmp=True))
    assert list(tmp_path.iterdir()) == []
    assert session.names()[-1] == "close"


def test_guard_comes_first() -> None:
    """The process is protected before the policy is loaded or a folder is made."""
    order: list[str] = []

    def opener(_blob: bytes, _tmp: bytes) -> FakeSession:
        order.append("open")
        return FakeSession()

    run(Plan([b"true"], b"", no_env), opener=opener, guard=lambda: order.append("guard"))
    assert order == ["guard", "open"]


def test_private_tmp_reaches_command_and_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TMPDIR and the values that the policy sets point into the private folder."""
    seen: list[bytes] = []
    session = FakeSession()

    def opener(_blob: bytes, tmp: bytes) -> FakeSession:
        seen.append(tmp)
        return session

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    run(
        Plan([b"true"], b"", lambda tmp: {b"CACHE": tmp + b"/cache"}, private_tmp=True),
        opener=opener,
        guard=lambda: None,
    )
    spawned = session.calls[0][2]
    assert isinstance(spawned, dict)
    assert seen[0].startswith(os.fsencode(tmp_path) + b"/supervise-")
    assert spawned == {b"TMPDIR": seen[0], b"CACHE": seen[0] + b"/cache"}
    assert list(tmp_path.iterdir()) == []


def test_private_tmp_is_private_and_removed_with_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is 0700, has a new name each time, and goes even when it is full."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with PrivateTmp(wanted=True) as one, PrivateTmp(wanted=True) as two:
        assert one != two
        assert stat.S_IMODE(os.stat(one).st_mode) == 0o700
        with open(one + b"/file", "wb") as file:
            file.write(b"x")
    assert list(tmp_path.iterdir()) == []


def test_private_tmp_not_wanted() -> None:
    """Nothing is made where the policy needs nothing."""
    with PrivateTmp(wanted=False) as name:
        assert name == b""


def test_private_tmp_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unusable TMPDIR is one clear sentence."""
    monkeypatch.setenv("TMPDIR", "/proc/none")
    with pytest.raises(SessionError, match="private folder cannot be made") as caught:
        PrivateTmp(wanted=True).__enter__()
    assert "TMPDIR" in caught.value.hint


def test_denials_turn_zero_into_123() -> None:
    """With fail_on_deny a denial shows in the exit code."""
    session = FakeSession(end=Status(exited=1, code=0, denied=2))
    assert _run(session, Plan([b"true"], b"", no_env, fail_on_deny=True)).code == 123
