"""Writer and reader together: chains that hold, and every way of breaking one."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor.audit import folder as logs
from supervisor.audit import writer
from supervisor.audit.folder import create_default
from supervisor.audit.reader import records, verify
from supervisor.audit.writer import AuditTrail, LogFile, open_or_create
from supervisor.errors import SessionError
from supervisor.model import COUNTED, Status
from supervisor.run.events import CALL, DENY, Event
from supervisor.run.session import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _event(path: bytes = b"/p") -> Event:
    return Event(CALL, 1, 2, 3, 42, 257, 1, DENY, 2, -1, 13, path, b"", b"cat", b"")


def _trail(log: LogFile, session: str = "s1") -> AuditTrail:
    policy = {"name": "test", "sha256": "0"}
    return AuditTrail(
        log, session, policy, call_name=lambda _nr: "openat", rule=lambda _rule: ("", "")
    )


def _write(path: Path, events: int = 3, *, end: bool = True, session: str = "s1") -> None:
    log, torn = open_or_create(str(path))
    trail = _trail(log, session)
    trail.begin({"argv": ["true"]}, torn)
    trail.events([_event(b"/%d" % i) for i in range(events)])
    if end:
        trail.ended(Outcome(0, Status(exited=1, calls=9, denied=3), timed_out=False))
    else:
        log.close()


def test_whole_log_is_valid(tmp_path: Path) -> None:
    """A finished run verifies, is private, and says how it ended."""
    path = tmp_path / "log"
    _write(path)
    report = verify(str(path))
    assert (report.state, report.records, report.sessions, report.unfinished) == ("valid", 5, 1, 0)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    last = json.loads(path.read_bytes().splitlines()[-1])
    assert last["action"] == {
        "call": "session_end",
        "exit": 0,
        "timed_out": 0,
        "calls": 9,
        "denied": 3,
        "steered": 0,
        "counters": dict.fromkeys(COUNTED, 0),
        "events": 3,
        "denied_events": 3,
    }


def test_log_without_end_is_open(tmp_path: Path) -> None:
    """A run that was cut off is told apart from a finished one."""
    path = tmp_path / "log"
    _write(path, end=False)
    assert verify(str(path)).state == "valid-but-open"


def test_second_run_continues_the_chain(tmp_path: Path) -> None:
    """A valid log is appended to and stays one chain."""
    path = tmp_path / "log"
    _write(path, end=False)
    _write(path, session="s2")
    report = verify(str(path))
    assert (report.state, report.records, report.sessions, report.unfinished) == ("valid", 9, 2, 1)


def test_torn_tail_is_told_and_moved_away(tmp_path: Path) -> None:
    """A line cut short is reported; the next run moves it aside and says so."""
    path = tmp_path / "log"
    _write(path, end=False)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert verify(str(path)).state == "torn-tail"
    _write(path, session="s2")
    assert verify(str(path)).state == "valid"
    cut = whole[:-20].rpartition(b"\n")[2]
    assert (tmp_path / "log.torn").read_bytes() == cut + b"\n"
    found = [record for record in records(str(path)) if record["type"] == "fault"]
    action = found[0]["action"]
    assert isinstance(action, dict)
    assert action["call"] == "log_recovered"
    assert str(len(cut)) in str(action["detail"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_bit_flip_is_found(tmp_path: Path, data: st.DataObject) -> None:
    """One flipped bit anywhere makes the log invalid."""
    path = tmp_path / "good"
    if not path.exists():
        _write(path)
    raw = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    bad = tmp_path / "bad"
    bad.write_bytes(raw)
    assert verify(str(bad)).state in ("tampered", "torn-tail", "missing")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_truncation_is_found(tmp_path: Path, data: st.DataObject) -> None:
    """A log cut anywhere is never valid."""
    path = tmp_path / "good"
    if not path.exists():
        _write(path)
    raw = path.read_bytes()
    bad = tmp_path / "bad"
    bad.write_bytes(raw[: data.draw(st.integers(0, len(raw) - 1))])
    assert verify(str(bad)).state in ("torn-tail", "valid-but-open", "empty")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_missing_and_moved_lines_are_named(tmp_path: Path) -> None:
    """Removed lines are named by number, swapped and doubled ones are tampering."""
    path = tmp_path / "log"
    _write(path)
    lines = _lines(path)
    cases = [
        (lines[:1] + lines[3:], "missing", 2),
        (lines[1:], "missing", 1),
        ([lines[0], lines[2], lines[1], *lines[3:]], "missing", 2),
        ([*lines[:2], lines[1], *lines[2:]], "tampered", 3),
        ([*lines, lines[-1]], "tampered", 6),
    ]
    for changed, state, seq in cases:
        path.write_bytes(b"".join(changed))
        report = verify(str(path))
        assert (report.state, report.seq) == (state, seq)


def test_other_spelling_of_a_record_is_tampering(tmp_path: Path) -> None:
    """A line that parses to the same record but is spelled differently is refused."""
    path = tmp_path / "log"
    _write(path)
    lines = _lines(path)
    lines[1] = json.dumps(json.loads(lines[1]), sort_keys=True).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    assert (verify(str(path)).state, verify(str(path)).seq) == ("tampered", 2)


def test_record_outside_a_session_is_tampering(tmp_path: Path) -> None:
    """Events need a session that started and has not ended."""
    path = tmp_path / "log"
    log, _ = open_or_create(str(path))
    _trail(log).events([_event()])
    log.close()
    assert verify(str(path)).state == "tampered"


@pytest.mark.parametrize(
    "content", [b"hello\n", b"\n", b"[]\n", b"{}\n", b'{"v":1}\n', b"[" * 100000 + b"\n"]
)
def test_other_files_are_no_logs(tmp_path: Path, content: bytes) -> None:
    """Foreign content is tampering to the reader and refused by the writer."""
    path = tmp_path / "log"
    path.write_bytes(content)
    assert verify(str(path)).state == "tampered"
    with pytest.raises(SessionError, match="no valid audit log"):
        open_or_create(str(path))
    assert path.read_bytes() == content


def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    """Only a regular file that is no link can be a log."""
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "none/log"):
        with pytest.raises(SessionError) as caught:
            open_or_create(str(tmp_path / name))
        assert caught.value.exit_code == 125
    for name in ("pipe", ".", "none"):
        with pytest.raises(SessionError) as caught:
            verify(str(tmp_path / name))
        assert caught.value.exit_code == 2


def test_a_log_in_use_is_refused(tmp_path: Path) -> None:
    """Two runs cannot write one chain."""
    path = str(tmp_path / "log")
    log, _ = open_or_create(path)
    with pytest.raises(SessionError, match="another run"):
        open_or_create(path)
    log.close()
    open_or_create(path)[0].close()


def test_full_disk_stops_and_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails half-way is taken back, and the error says what to do."""
    path = tmp_path / "log"
    log, _ = open_or_create(str(path))
    trail = _trail(log)
    trail.begin({})
    real = os.write
    calls: list[int] = []

    def full(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) == 1:
            return real(fd, bytes(data)[:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SessionError, match=r"disk full.*session was stopped") as caught:
        trail.events([_event()])
    monkeypatch.undo()
    assert caught.value.exit_code == 125
    log.close()
    assert verify(str(path)).state == "valid-but-open"


def test_records_are_synced_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end waits for the disk; before it every 256 records or 50 ms do."""
    syncs: list[int] = []
    monkeypatch.setattr(os, "fdatasync", syncs.append)
    now = [100.0]
    monkeypatch.setattr(writer.time, "monotonic", lambda: now[0])
    log, _ = open_or_create(str(tmp_path / "log"))
    trail = _trail(log)
    trail.begin({})
    assert len(syncs) == 0
    trail.events([_event()] * 200)
    trail.tick()
    assert len(syncs) == 0
    trail.events([_event()] * 55)
    assert len(syncs) == 1
    trail.events([_event()])
    now[0] += 0.051
    trail.tick()
    assert len(syncs) == 2
    trail.end({})
    trail.end({})
    assert len(syncs) == 3


def _default(folder: Path, sessions: Sequence[str]) -> None:
    for session in sessions:
        create_default(str(folder), session).close()


def test_default_logs_are_private_and_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is 0700 and keeps the newest logs, and those still in use."""
    folder = tmp_path / "state" / "audit"
    monkeypatch.setattr(logs, "KEEP", 3)
    held = create_default(str(folder), "0")
    _default(folder, ["1", "2", "3", "4"])
    names = [name.rpartition("-")[2] for name in logs.default_logs(str(folder))]
    assert names == ["0.jsonl", "2.jsonl", "3.jsonl", "4.jsonl"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    held.close()


def test_default_folder_that_others_can_change_is_refused(tmp_path: Path) -> None:
    """A folder that is not ours alone holds no log."""
    folder = tmp_path / "audit"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.raises(PermissionError):
        create_default(str(folder), "1")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, ""),
        ({b"HOME": b""}, ""),
        ({b"HOME": b"relative"}, ""),
        ({b"HOME": b"/h"}, "/h/.local/state/supervise/audit"),
        ({b"HOME": b"/h", b"XDG_STATE_HOME": b"/s"}, "/s/supervise/audit"),
        ({b"HOME": b"/h", b"XDG_STATE_HOME": b"s"}, "/h/.local/state/supervise/audit"),
    ],
)
def test_state_folder(env: dict[bytes, bytes], expected: str) -> None:
    """XDG_STATE_HOME counts where it is absolute, then HOME; else there is none."""
    assert logs.state_folder(env) == expected


def test_descriptor_is_not_inherited(tmp_path: Path) -> None:
    """The supervised command never gets the log's descriptor."""
    log, _ = open_or_create(str(tmp_path / "log"))
    assert fcntl.fcntl(log._fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    log.close()
