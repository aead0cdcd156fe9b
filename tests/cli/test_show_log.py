"""``supervise log``: which log, which lines, what they say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from supervisor.audit.folder import create_default, state_folder
from supervisor.audit.writer import AuditTrail
from supervisor.cli import main
from supervisor.cli.log import last_log
from supervisor.run.events import ALLOW, CALL, DENY, EFFECTS, FAULT, OP_EXEC, Event

POLICY = {"name": "mine", "sha256": "0" * 64}


def _event(kind: int, action: int, effect: str, path: bytes, detail: bytes = b"") -> Event:
    number = EFFECTS.index(effect)
    return Event(
        kind, 1, 10**18, 5, 42, 59, OP_EXEC, action, number, -1, 0, path, b"", b"x", detail
    )


def _run(session: str, *events: Event) -> None:
    """Leave the default log of a run."""
    log = create_default(state_folder(os.environb), session)
    names = {"call_name": lambda _: "execve", "rule": lambda _: ("", "")}
    trail = AuditTrail(log, session, POLICY, **names)  # type: ignore[arg-type]
    trail.begin({"argv": ["cmd", session]})
    trail.events(events)
    trail.end({"exit": 0})


@pytest.mark.parametrize("words", [["log"], ["log", "last"]])
def test_newest_start_is_the_last(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """The last run is the one that began last, whatever its id and whichever was written last."""
    for session in ("ff", "aa"):
        _run(session)
        time.sleep(0.001)
    older = next(path for path in Path(last_log()).parent.iterdir() if "-ff" in path.name)
    os.utime(older, (2**31, 2**31))
    assert main(words) == 0
    assert "cmd aa" in capfd.readouterr().out


def test_killed_program_is_a_denial_with_its_path(capfd: pytest.CaptureFixture[str]) -> None:
    """A fault is shown with what it was about, also among the denials."""
    _run(
        "1",
        _event(CALL, DENY, "errno", b"/bin/a"),
        _event(CALL, ALLOW, "continue", b"/bin/b"),
        _event(FAULT, ALLOW, "kill", b"/bin/c", b"another file"),
        _event(FAULT, DENY, "errno", b"/bin/d", b"cannot be read"),
    )
    assert main(["log", "--denied"]) == 0
    lines = [line[25:] for line in capfd.readouterr().out.splitlines()]
    assert lines == [
        'deny    execve "/bin/a" for exec  [x 42]  default',
        'killed  execve "/bin/c": another file  [x 42]',
        'fault   execve "/bin/d": cannot be read  [x 42]',
    ]


def test_without_a_run_there_is_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing to show is an error that says what to do."""
    assert main(["log"]) == 2
    assert "no log of an earlier run" in capfd.readouterr().err
