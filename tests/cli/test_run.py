"""``supervise run`` from words to exit code, with the kernel's part faked."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from fakes_run import FakeSession, denial

from supervisor.audit.reader import records, verify
from supervisor.cli import COMMANDS, main
from supervisor.cli.flags import WAIVABLE
from supervisor.cli.parser import LEAVES, actions, build
from supervisor.cli.run import Options, degraded_bits
from supervisor.cli.run import run as run_command
from supervisor.errors import SessionError, SupervisorError, UsageError
from supervisor.model import Status
from supervisor.run.session import Outcome, Plan
from supervisor.run.session import run as run_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from supervisor.run.session import Follower


class Runner:
    """Runs plans over a fake session."""

    def __init__(self, session: FakeSession) -> None:
        self.session = session
        self.plan: Plan | None = None

    def __call__(self, plan: Plan, followers: Sequence[Follower]) -> Outcome:
        self.plan = plan
        return run_session(
            plan, followers, opener=lambda _blob, _tmp: self.session, guard=lambda: None
        )


def _run(line: str, session: FakeSession | None = None, *, named: bool = False) -> int:
    return run_command(line.split(), named=named, runner=Runner(session or FakeSession()))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Give a small policy of one's own."""
    path = tmp_path / "policy.yaml"
    path.write_text(
        "version: 1\nname: mine\nfiles:\n"
        "  - {id: sys, allow: [read, exec], paths: [/usr/**, /etc/**]}\n"
        '  - {id: keys, deny: all, paths: ["/home/**/.ssh/**"], say: "not yours"}\n'
    )
    return path


@pytest.mark.parametrize(
    ("end", "options", "code"),
    [
        (Status(exited=1, code=0), "", 0),
        (Status(exited=1, code=42), "", 42),
        (Status(exited=2, code=11), "", 139),
        (Status(exited=1, code=127, exec_err=2), "", 127),
        (Status(exited=1, code=127, exec_err=13), "", 126),
        (Status(exited=1, code=0, denied=1), "--fail-on-deny", 123),
        (Status(exited=1, code=0, denied=1), "", 0),
    ],
)
def test_exit_code(end: Status, options: str, code: int, policy: Path) -> None:
    """The command's end becomes our exit code."""
    assert _run(f"-q -p {policy} {options} -- cmd", FakeSession(end=end)) == code


def test_silent_where_nothing_was_denied(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run without denials writes nothing anywhere."""
    assert _run(f"-p {policy} -- cmd") == 0
    assert capfd.readouterr() == ("", "")


def test_denials_go_to_stderr(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A denial is told with its rule; nothing is written to stdout."""
    _run(f"-p {policy} -- cmd", FakeSession([[denial(b"/x"), denial(b"/x")]]))
    out, err = capfd.readouterr()
    assert out == ""
    assert 'denied openat "/x" for read = -1 EACCES  [cat 42]\n' in err
    assert err.endswith('supervise: denied openat "/x" for read x2\n')


def test_quiet_and_json(policy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """-q tells nothing; --json tells in lines that are JSON."""
    _run(f"-q -p {policy} -- cmd", FakeSession([[denial(b"/x")]]))
    assert capfd.readouterr() == ("", "")
    _run(f"--json -p {policy} -- cmd", FakeSession([[denial(b"/x")]]))
    assert json.loads(capfd.readouterr().err)["path"] == "/x"


def test_closed_stderr_is_harmless(policy: Path, tmp_path: Path) -> None:
    """With stderr closed a run with denials ends as usual and spoils no file of ours."""
    saved = os.dup(2)
    os.close(2)
    try:
        line = f"--audit {tmp_path}/log -p {policy} -- cmd"
        code = _run(line, FakeSession([[denial()] * 50]))
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    assert code == 0
    assert verify(str(tmp_path / "log")).state == "valid"


def test_default_audit_log(policy: Path, tmp_path: Path) -> None:
    """Every run leaves a chain with its start, its events and its end."""
    session = FakeSession([[denial(b"/a\xff")]], end=Status(exited=1, code=3, calls=7))
    assert _run(f"-q -p {policy} -- cmd arg", session) == 3
    logs = list((tmp_path / "home/.local/state/supervise/audit").iterdir())
    assert len(logs) == 1
    assert verify(str(logs[0])).state == "valid"
    start, event, end = records(str(logs[0]))
    assert isinstance(start["action"], dict)
    assert start["action"]["argv"] == ["cmd", "arg"]
    assert start["action"]["mode"] == "enforce"
    assert event["action"] == {"call": "openat", "ops": "read", "path": "/a\\xff"}
    assert isinstance(end["action"], dict)
    assert (end["action"]["exit"], end["action"]["calls"]) == (3, 7)
    assert {str(r["session"]) for r in (start, event, end)} == {logs[0].stem.rpartition("-")[2]}


def test_audit_file_of_ones_own(policy: Path, tmp_path: Path) -> None:
    """--audit names the log, two runs make one chain, and no default log is left."""
    for _ in range(2):
        assert _run(f"--audit {tmp_path}/log -p {policy} -- cmd") == 0
    report = verify(str(tmp_path / "log"))
    assert (report.state, report.sessions) == ("valid", 2)
    assert not (tmp_path / "home/.local/state/supervise/audit").exists()


def test_audit_file_that_cannot_be_used_is_125(policy: Path, tmp_path: Path) -> None:
    """Without its log a run does not start."""
    session = FakeSession()
    with pytest.raises(SessionError) as caught:
        _run(f"--audit {tmp_path}/none/log -p {policy} -- cmd", session)
    assert caught.value.exit_code == 125
    assert session.calls == []


def test_failed_run_closes_its_log(policy: Path, tmp_path: Path) -> None:
    """A run that could not start says so in its log."""
    with pytest.raises(SessionError):
        _run(
            f"--audit {tmp_path}/log -p {policy} -- cmd",
            FakeSession(spawn_error=SessionError("the filter is refused")),
        )
    assert verify(str(tmp_path / "log")).state == "valid"
    last = list(records(str(tmp_path / "log")))[-1]["action"]
    assert isinstance(last, dict)
    assert (last["exit"], last["detail"]) == (125, "the filter is refused")


def test_no_home_is_one_line(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without HOME there is a warning and a run; with -q only the run."""
    monkeypatch.delenv("HOME")
    assert _run(f"-p {policy} -- cmd") == 0
    assert capfd.readouterr().err == (
        "supervise: warning: this run leaves no audit log: HOME is not set\n"
    )
    assert _run(f"-q -p {policy} -- cmd") == 0
    assert capfd.readouterr().err == ""


def test_status_lines(policy: Path) -> None:
    """--status-fd hears of the start and of the end."""
    readable, writable = os.pipe()
    _run(f"--status-fd {writable} -p {policy} -- cmd", FakeSession(end=Status(exited=1, code=5)))
    lines = [json.loads(line) for line in os.read(readable, 999).splitlines()]
    assert [line["event"] for line in lines] == ["started", "exit"]
    assert (lines[0]["pid"], lines[1]["code"]) == (4242, 5)
    os.close(readable)
    os.close(writable)


def test_status_fd_that_is_closed_is_a_usage_error(policy: Path) -> None:
    """A descriptor that is not open is refused before anything runs."""
    with pytest.raises(UsageError, match="--status-fd 999"):
        _run(f"--status-fd 999 -p {policy} -- cmd")


def test_allow_path_is_part_of_the_policy(
    policy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """--allow-path adds a rule, shown by --dry-run; the path is literal text."""
    odd = tmp_path / "a*b ${X}"
    odd.mkdir()
    args = ["-p", str(policy), "--allow-path", f"{odd}:write", "--dry-run", "--", "cmd"]
    assert run_command(args, named=False, runner=Runner(FakeSession())) == 0
    assert "allow-path-1" in capfd.readouterr().out


def test_environment_follows_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are dropped and set as the policy says."""
    path = tmp_path / "env.yaml"
    path.write_text(
        "version: 1\nname: env\nfiles:\n  - {id: a, allow: read, paths: [/usr/**]}\n"
        'env: {drop: ["*_TOKEN"], set: {CI: "1"}}\n'
    )
    monkeypatch.setenv("MY_TOKEN", "secret")
    runner = Runner(FakeSession())
    run_command(["-q", "-p", str(path), "--", "cmd"], named=False, runner=runner)
    env = runner.session.calls[0][2]
    assert isinstance(env, dict)
    assert b"MY_TOKEN" not in env
    assert env[b"CI"] == b"1"


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("--nope -- cmd", 125, "--nope"),
        ("--", 125, "`supervise -h` tells more"),
        ("", 125, "no command"),
        ("-q log", 125, "`log` is a subcommand"),
        ("-p no-such-policy -- cmd", 125, "error: there is no policy called 'no-such-policy'\n"),
        ("--set a -- cmd", 125, "key=value"),
        ("-p agentdev -- cmd", 125, "(did you mean 'agent-dev'?)"),
        ("--allow-degraded nonsense -- cmd", 125, "nonsense"),
        ("--allow-degraded openat2 -- cmd", 125, "only landlock and wait-killable can"),
        ("--polcy x -- cmd", 125, "did you mean `--policy`?"),
        ("log --denied --jsn", 2, "did you mean `--json`?"),
        ("policy", 2, "subcommand is missing"),
        ("policy nonsense", 2, "policy nonsense"),
        ("policy lst", 2, "did you mean `list`?"),
        ("policy show pythondev", 2, "(did you mean 'python-dev'?)"),
        ("policy check /no/such/file.yaml", 1, None),
        ("policy check agent-dev", 0, None),
        ("policy explain", 2, "--path, --exec, --connect, --bind and --signal"),
        ("policy explain --path /etc/passwd --op fly", 2, "'fly'"),
        ("policy explain --path /etc/passwd --op read,fly", 2, "'fly'"),
        ("policy explain --path /etc/passwd --op read,", 2, "''"),
        ("policy explain --path /etc/passwd --op read,list", 0, None),
        ("policy explain --path /etc/passwd --op read,write", 1, None),
        ("policy explain --path /etc/passwd", 0, None),
        ("policy explain --path /etc/shadow --op write", 1, None),
        ("policy explain --exec true", 0, None),
        ("audit verify /no/such/log", 2, "cannot be read"),
        ("log /no/such/log", 2, "cannot be read"),
        ("log", 2, "no log"),
        ("completion bash", 0, None),
        ("completion tcsh", 2, "tcsh"),
        ("policy list", 0, None),
        ("policy syscalls", 0, None),
        ("--version", 0, None),
        ("-h", 0, None),
        ("--help", 0, None),
        ("policy check --help", 0, None),
        ("policy --help", 0, None),
    ],
)
def test_exit_codes_of_main(
    line: str, code: int, text: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each kind of failure has its code and one sentence on stderr."""
    assert main(line.split()) == code
    err = capfd.readouterr().err
    if text is None:
        assert err == ""
    else:
        assert err.startswith("supervise: ")
        assert text in err
        assert err.count("error:") == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("doctr", "supervise doctor"),
        ("logs", "supervise log"),
        ("explain", "supervise policy explain"),
        ("help", "supervise --help"),
        ("./doctr", ""),
        ("frobnicate", ""),
    ],
)
def test_mistyped_subcommand_is_recognised(
    typed: str, meant: str, policy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A program that is not found may have been meant as a command of ours."""
    end = Status(exited=1, code=127, exec_err=2)
    assert _run(f"-p {policy} -- {typed}", FakeSession(end=end)) == 127
    err = capfd.readouterr().err
    hint = f"  hint: did you mean `{meant}`?\n" if meant else ""
    assert err == f"supervise: error: cannot run `{typed}`: not found\n{hint}"


def test_waivable_facilities_exist() -> None:
    """What --allow-degraded takes are facilities of the library, each with its own bit."""
    bits = degraded_bits(WAIVABLE)
    assert bits.bit_count() == len(WAIVABLE)
    assert degraded_bits([]) == 0


def test_bug_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An exception that nobody expected ends in a sentence and our code, not in a traceback."""

    def broken(*_args: object, **_kwargs: object) -> int:
        raise ZeroDivisionError("x\x1b")

    monkeypatch.setattr("supervisor.cli.run.run", broken)
    assert main(["--", "cmd"]) == 125
    err = capfd.readouterr().err
    assert err.startswith("supervise: error: ZeroDivisionError: x\\x1b\n")
    assert "report" in err


def test_names_of_commands_agree() -> None:
    """The short list that a warm start reads names the same commands as the parser."""
    assert set(COMMANDS) == {name[0] for name in LEAVES}


def test_defaults_are_those_of_the_parser() -> None:
    """Options holds what the parser would give for an empty line."""
    parsed = vars(build(("run",)).parse_args([]))
    assert vars(Options()) == parsed
    assert {action.dest for action in actions(build(("run",)))} == set(parsed)


def test_supervisor_error_has_a_code() -> None:
    """The base error is a failure of ours."""
    assert SupervisorError("x").exit_code == 125
