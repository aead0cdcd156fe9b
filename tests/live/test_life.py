"""Beginning and end: exit codes, signals, daemons, dying supervisors, terminals."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from live_world import POLICY, Supervised
from processes import alive, children, marked, wait_until

LOOP = "while :; do sleep 0.05; done"


@contextmanager
def running(
    supervised: Supervised, script: str, *options: str, tmp: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A supervised shell script that has said "ready"; ended at the end."""
    policy = "pack:agent-dev" if tmp else None
    environ = supervised.environ({"TMPDIR": str(tmp)} if tmp else None)
    process = subprocess.Popen(
        [*supervised.words(policy, *options), "sh", "-c", script],
        cwd=supervised.root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()


@pytest.mark.parametrize("code", [0, 1, 2, 42, 122, 123, 124, 125, 126, 127, 128, 130, 254, 255])
def test_exit_code_is_the_commands(supervised: Supervised, code: int) -> None:
    """Whatever the command ends with comes out."""
    assert supervised(["sh", "-c", f"exit {code}"]).code == code


@pytest.mark.parametrize("sig", [1, 2, 3, 6, 8, 9, 11, 14, 15])
def test_signal_that_ended_the_command(supervised: Supervised, sig: int) -> None:
    """128+N, as a shell shows it."""
    assert supervised(["sh", "-c", f"ulimit -c 0; kill -{sig} $$"]).code == 128 + sig


def test_missing_program(supervised: Supervised) -> None:
    """127, with and without a slash, and a sentence."""
    for name in ("no-such-program", "./no-such-program", "/no/such/program"):
        done = supervised([name])
        assert (done.code, done.out) == (127, b"")
        assert b"not found" in done.err


def test_program_that_cannot_run(supervised: Supervised) -> None:
    """126: not executable, a folder, and denied by the policy."""
    (supervised.root / "plain").write_text("#!/bin/sh\n")
    assert supervised(["./plain"]).code == 126
    assert supervised(["."]).code == 126
    policy = POLICY + "exec:\n  - {id: no-env, deny: env}\n"
    done = supervised(["env"], policy)
    assert done.code == 126
    assert ("execve", "/usr/bin/env") in done.denied()


@pytest.mark.parametrize("flags", [["--no-such-flag"], ["--timeout", "soon"], ["-p", "no-such"]])
def test_our_own_failure(supervised: Supervised, flags: list[str]) -> None:
    """125 for a bad flag and a missing policy; the command never runs."""
    done = supervised(["touch", "ran"], None, *flags)
    assert done.code == 125
    assert done.err.startswith(b"supervise:")
    assert not (supervised.root / "ran").exists()


def test_bad_policy(supervised: Supervised) -> None:
    """125, with file, line and column."""
    done = supervised(["touch", "ran"], POLICY + "wrong: 1\n")
    assert done.code == 125
    assert b"policy.yaml:" in done.err
    assert not (supervised.root / "ran").exists()


def test_timeout_ends_the_command(supervised: Supervised) -> None:
    """124, and the command had a chance to clean up."""
    script = f"trap 'echo bye; exit 0' TERM; {LOOP}"
    done = supervised(["sh", "-c", script], None, "--timeout", "1s")
    assert (done.code, done.out) == (124, b"bye\n")


def test_timeout_ends_whoever_ignores_it(supervised: Supervised) -> None:
    """124 for a command that ignores SIGTERM, and nothing is left of it."""
    mark = f"304.{os.getpid()}"
    script = f"trap '' TERM; sleep {mark}; {LOOP}"
    done = supervised(["sh", "-c", script], None, "--timeout", "300ms")
    assert done.code == 124
    assert marked(mark) == []


def test_fail_on_deny(supervised: Supervised) -> None:
    """123 only where 0 would hide a denial."""
    (supervised.home / "hidden").touch()
    hidden = f"cat {supervised.home}/hidden; exit 0"
    assert supervised(["sh", "-c", hidden], None, "--fail-on-deny").code == 123
    assert supervised(["sh", "-c", hidden]).code == 0
    assert supervised(["true"], None, "--fail-on-deny").code == 0
    hidden = f"cat {supervised.home}/hidden; exit 7"
    assert supervised(["sh", "-c", hidden], None, "--fail-on-deny").code == 7


def test_daemons_end_with_the_command(supervised: Supervised) -> None:
    """A process that left session and parent behind is ended too."""
    mark = f"301.{os.getpid()}"
    done = supervised(["sh", "-c", f"(setsid sleep {mark} &); sleep 0.2; exit 3"])
    assert done.code == 3
    assert marked(mark) == []


def test_wait_all_waits_for_daemons(supervised: Supervised) -> None:
    """The exit code is the main command's, given when the last one ended."""
    script = "(setsid sh -c 'sleep 0.7; echo late > late' &); exit 3"
    assert supervised(["sh", "-c", script], None, "--wait-all").code == 3
    assert (supervised.root / "late").read_text() == "late\n"


def test_orphans_are_reaped(supervised: Supervised) -> None:
    """No zombie stays while the tree runs."""
    script = (
        "for i in $(seq 150); do (true & ); done; sleep 0.5; "
        "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z ' || true"
    )
    assert supervised(["sh", "-c", script], None, "-q").out == b"0\n"


def test_pipes_pass_through(supervised: Supervised) -> None:
    """Stdin and stdout are the caller's own, whatever their size."""
    data = os.urandom(1 << 20) * 3
    done = supervised(["sh", "-c", "cat; echo note >&2"], stdin=data)
    assert done.out == data
    assert done.err == b"note\n"


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1", "USR2", "QUIT"])
def test_signals_are_passed_on(supervised: Supervised, name: str) -> None:
    """The main command gets what we get, and its answer is ours."""
    script = f"trap 'exit 9' {name}; echo ready; {LOOP}"
    with running(supervised, script) as process:
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.wait(10) == 9


def test_untrapped_signal(supervised: Supervised) -> None:
    """A command that dies of the signal that we passed on gives 128+N."""
    with running(supervised, "echo ready; exec sleep 100") as process:
        process.terminate()
        assert process.wait(10) == 128 + signal.SIGTERM


@pytest.mark.parametrize("victim", ["supervisor", "guardian"])
def test_killed_supervisor_takes_the_tree_along(supervised: Supervised, victim: str) -> None:
    """Nothing of the tree is left, no process and no zombie."""
    mark = f"302.{os.getpid()}"
    tmp = supervised.home / "tmp"
    tmp.mkdir()
    script = f"(setsid sleep {mark} &); (sleep {mark} &); echo ready; sleep {mark}"
    with running(supervised, script, tmp=tmp) as process:
        assert wait_until(lambda: len(marked(f"sleep\0{mark}")) == 3)
        (supervisor,) = children(process.pid)
        os.kill(supervisor if victim == "supervisor" else process.pid, signal.SIGKILL)
        assert wait_until(lambda: not marked(f"sleep\0{mark}"), 15)
        assert wait_until(lambda: not alive(supervisor), 15)
        assert process.wait(15) == (137 if victim == "supervisor" else -signal.SIGKILL)
        assert wait_until(lambda: marked(mark) == [], 15)


@pytest.mark.xfail(reason="nobody who is left knows the folder's name")
@pytest.mark.parametrize("victim", ["supervisor", "guardian"])
def test_killed_supervisor_leaves_no_folder(supervised: Supervised, victim: str) -> None:
    """Whoever survives the other removes the private folder."""
    tmp = supervised.home / "tmp"
    tmp.mkdir()
    with running(supervised, "echo ready; sleep 60", tmp=tmp) as process:
        (supervisor,) = children(process.pid)
        os.kill(supervisor if victim == "supervisor" else process.pid, signal.SIGKILL)
        assert wait_until(lambda: not alive(supervisor), 3)
        process.wait(3)
        assert wait_until(lambda: list(tmp.iterdir()) == [], 1)


def test_private_folder_is_removed(supervised: Supervised) -> None:
    """Nothing of ours stays in TMPDIR, with whatever the command left in it."""
    tmp = supervised.home / "tmp"
    tmp.mkdir()
    script = 'mkdir "$TMPDIR/a"; echo x > "$TMPDIR/a/b"; echo "$TMPDIR"'
    done = supervised(["sh", "-c", script], "pack:agent-dev", env={"TMPDIR": str(tmp)})
    assert done.out.startswith(os.fsencode(str(tmp)) + b"/supervise-")
    assert list(tmp.iterdir()) == []


def test_closed_folder_in_the_private_one(supervised: Supervised) -> None:
    """Modes that the command left behind do not keep the folder."""
    tmp = supervised.home / "tmp"
    tmp.mkdir()
    script = 'mkdir "$TMPDIR/a"; echo x > "$TMPDIR/a/b"; chmod 0 "$TMPDIR/a"'
    supervised(["sh", "-c", script], "pack:agent-dev", env={"TMPDIR": str(tmp)})
    assert list(tmp.iterdir()) == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(supervised: Supervised, closed: str) -> None:
    """A missing stdin, stdout or stderr is no reason to fail, nor filled by our own files."""
    words = supervised.words(None, "-q")
    script = f'exec "$@" {closed}'
    inner = "ls -l /proc/self/fd > links; exit 4"
    done = subprocess.run(
        ["sh", "-c", script, "sh", *words, "sh", "-c", inner],
        cwd=supervised.root,
        env=supervised.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 4
    links = (supervised.root / "links").read_text()
    assert "policy" not in links
    assert ".log" not in links
    assert "seccomp" not in links


def test_no_home(supervised: Supervised) -> None:
    """Without HOME a run works; it says that it leaves no log."""
    environ = supervised.environ()
    del environ["HOME"]
    words = supervised.words()
    done = subprocess.run(
        [*words, "sh", "-c", "echo fine > f; cat f"],
        cwd=supervised.root,
        env=environ,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"fine\n")


def test_nested_supervise(supervised: Supervised) -> None:
    """One tree, one supervisor: the inner one says so and ends with 125."""
    places = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2])}
    rules = "".join(
        f'  - {{id: python-{i}, allow: [read, exec], paths: ["{place}/**"]}}\n'
        for i, place in enumerate(sorted(places))
    )
    inner = [*supervised.words(None, "-q"), "touch", "ran"]
    file = supervised.root / "inner.yaml"
    file.write_text(POLICY)
    inner[inner.index("-p") + 1] = str(file)
    done = supervised(inner, POLICY + rules, "-q")
    assert done.code == 125
    assert b"another supervisor already holds this tree" in done.err
    assert not (supervised.root / "ran").exists()


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, supervised: Supervised) -> None:
        """Start it in the workspace."""
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(supervised.root)
            os.execve("/bin/bash", ["bash", "--norc", "-i"], supervised.environ({"PS1": "$ "}))

    def type(self, text: str) -> None:
        """Type, Enter included where text says so."""
        os.write(self.fd, text.encode())

    def expect(self, text: str, seconds: float = 15.0) -> None:
        """Wait for output; what came before it is forgotten."""
        end = time.monotonic() + seconds
        while text.encode() not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} did not come, but {self.seen!r}"
            self.seen += os.read(self.fd, 65536)
        self.seen = self.seen.partition(text.encode())[2]

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(supervised: Supervised) -> Iterator[Terminal]:
    """An interactive shell."""
    shell = Terminal(supervised)
    yield shell
    shell.close()


def test_control_c(supervised: Supervised, terminal: Terminal) -> None:
    """Ctrl-C reaches the command once, which decides what follows."""
    words = " ".join(supervised.words(None, "-q"))
    (supervised.root / "s").write_text(f"trap 'echo INT''ED; exit 5' INT\necho rea''dy\n{LOOP}\n")
    terminal.type(f"{words} sh s\n")
    terminal.expect("ready")
    terminal.type("\x03")
    terminal.expect("INTED")
    terminal.type("echo code=$?\n")
    terminal.expect("code=5")


def test_control_z_and_foreground(supervised: Supervised, terminal: Terminal) -> None:
    """Ctrl-Z stops the job as a whole, fg goes on, and Ctrl-C ends it."""
    words = " ".join(supervised.words(None, "-q"))
    (supervised.root / "s").write_text("echo rea''dy\nread line\necho got:$line\nread line\n")
    terminal.type(f"{words} sh s\n")
    terminal.expect("ready")
    terminal.type("\x1a")
    terminal.expect("Stopped")
    terminal.expect("$ ")
    # A shell that just took its terminal back may lose one byte: a blank, here.
    terminal.type(" \n")
    terminal.expect("$ ")
    terminal.type("echo back''again\n")
    terminal.expect("backagain")
    terminal.type("fg\n")
    terminal.expect("sh s")
    terminal.type("hello\n")
    terminal.expect("got:hello")
    terminal.type("\x03")
    terminal.expect("$ ")
    terminal.type("echo code=$?\n")
    terminal.expect("code=130")


@pytest.mark.parametrize(
    "script",
    [
        "kill -TSTP 0\nread line\n",
        "kill -STOP $$\nread line\n",
        "trap 'kill -STOP $$' TSTP\nread line\n",
    ],
    ids=["group", "itself", "on Ctrl-Z"],
)
def test_command_that_stops_itself(supervised: Supervised, terminal: Terminal, script: str) -> None:
    """The shell gets its terminal back, and fg goes on: editors stop themselves on Ctrl-Z."""
    words = " ".join(supervised.words(None, "-q"))
    (supervised.root / "s").write_text(f"echo rea''dy\n{script}echo got:$line\n")
    terminal.type(f"{words} bash s\n")
    terminal.expect("ready")
    if "trap" in script:
        terminal.type("\x1a")
    terminal.expect("Stopped")
    terminal.expect("$ ")
    # a byte may be lost, as above
    terminal.type(" \n\n")
    terminal.expect("$ ")
    terminal.type("fg\n")
    terminal.expect("bash s")
    terminal.type("hello\n")
    terminal.expect("got:hello")


def test_reading_in_the_background_stops(supervised: Supervised, terminal: Terminal) -> None:
    """A job that reads the terminal in the background is stopped, and its shell says so."""
    words = " ".join(supervised.words(None, "-q"))
    terminal.type(f"{words} cat &\n")
    terminal.expect("$ ")
    terminal.type("until jobs -s | grep -q cat; do sleep 0.1; done; echo se''en\n")
    terminal.expect("seen")
    terminal.type("fg\n")
    terminal.expect("cat")
    terminal.type("hello\n")
    terminal.expect("hello\r\nhello")


def test_stop_that_no_shell_sees(supervised: Supervised) -> None:
    """A command that stops itself and is continued by its own child goes on."""
    done = supervised(["sh", "-c", "(sleep 0.3; kill -CONT $$) & kill -STOP $$; echo on; wait"])
    assert (done.code, done.out) == (0, b"on\n")


def test_stopped_command_that_is_killed(supervised: Supervised, terminal: Terminal) -> None:
    """The end of a command that had stopped itself is seen by the shell."""
    words = " ".join(supervised.words(None, "-q"))
    terminal.type(f"{words} sh -c '(sleep 0.5; kill -KILL $$) & kill -STOP $$'\n")
    terminal.expect("Stopped")
    for _ in range(60):  # the shell tells before a prompt
        terminal.type("\n")
        with suppress(AssertionError):
            terminal.expect("Exit 137", 0.3)
            return
    raise AssertionError(terminal.seen)
