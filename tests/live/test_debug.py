"""gdb and strace work inside; what a debugger holds cannot run what is forbidden."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

pytestmark = pytest.mark.live
Put = Callable[..., Path]
TRIES = int(os.environ.get("SUPERVISE_TRACED_TRIES", "1000"))
SHELL = "ls / >/dev/null; echo hi; cat /dev/null; /bin/echo done"
MEMORY = '  - {id: memory, allow: write, paths: ["/proc/[0-9]*/mem", "/proc/*/task/*/mem"]}\n'
HOLE = '  - {id: bad, deny: exec, paths: ["${root}/forbidden"]}\n'
ARGUMENTS = "exec:\n  - {id: push, deny: git, argv: [push]}\n"


def executed(log: Path) -> list[str]:
    """Programs whose execve worked, as strace told."""
    lines = [line for line in log.read_text().splitlines() if line.endswith("= 0")]
    return sorted(line.partition("execve(")[2].partition(",")[0] for line in lines)


def test_strace(supervised: Supervised) -> None:
    """It follows children and sees the same execs as without us, and so does the record."""
    words = ["strace", "-f", "-e", "trace=execve", "-o", "log", "sh", "-c", SHELL]
    native = supervised.natively(words)
    expected = executed(supervised.root / "log")
    (supervised.root / "log").unlink()
    done = supervised(words, "pack:agent-dev")
    assert (done.code, done.out, done.err) == (native.code, native.out, native.err)
    assert executed(supervised.root / "log") == expected
    assert len(expected) == 4
    started = [e["action"]["path"] for e in done.events if e["action"].get("call") == "execve"]
    assert [Path(path).name for path in started][-3:] == ["ls", "cat", "echo"]


def test_strace_of_a_running_program(supervised: Supervised) -> None:
    """It attaches to a process of the tree and lets it go again."""
    shell = (
        "sleep 30 & p=$!; (until grep -q TracerPid:.[1-9] /proc/$p/status; do sleep 0.05; done;"
        " kill $p) & strace -o log -p $p 2>/dev/null; tail -n 1 log"
    )
    done = supervised(["bash", "-c", shell])
    assert done.lines() == ["+++ killed by SIGTERM +++"], done.err


def test_gdb(supervised: Supervised) -> None:
    """A program is started, stopped at a breakpoint, looked into and run to its end."""
    source = "int f(int n)\n{\n\treturn n + 1;\n}\nint main(void)\n{\n\treturn f(2);\n}\n"
    (supervised.root / "t.c").write_text(source)
    subprocess.run(["gcc", "-g", "-O0", "-o", "t", "t.c"], cwd=supervised.root, check=True)
    orders = ["break f", "run", "print n", "set var n = 6", "finish", "continue"]
    words = ["gdb", "-q", "-nx", "-batch", *[w for o in orders for w in ("-ex", o)], "./t"]
    native = supervised.natively(words)
    done = supervised(words, "pack:agent-dev")
    for text in (b"Breakpoint 1, f (n=2)", b"$1 = 2", b"Value returned is $2 = 7", b"code 07"):
        assert text in done.out, done.out + done.err
    assert len(done.lines()) == len(native.lines())
    assert done.err == native.err
    assert done.code == native.code


def test_attach(supervised: Supervised, program: Put) -> None:
    """A debugger attaches to a process of the tree, and to none outside."""
    tool = program("traced")
    # While a program starts, it is in our hands: a debugger that comes then gets EPERM.
    inside = supervised(["sh", "-c", f"sleep 60 & sleep 0.3; {tool} attach $!; kill -9 $!"])
    assert inside.lines()[0] == "attach ok", inside.err
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as beside:
        outside = supervised([tool, "attach", str(beside.pid)])
        beside.communicate(b"\n")
    assert outside.lines() == ["attach EPERM", "seize EPERM"]
    above = supervised(["sh", "-c", f"{tool} attach $PPID"])
    assert above.lines() == ["attach EPERM", "seize EPERM"]
    without = supervised([tool, "options"], None, "--allow-degraded", "landlock")
    assert without.lines() == ["plain EPERM", "suspend EPERM"]


def test_what_would_go_round(supervised: Supervised, program: Put) -> None:
    """The filter does not go away, and the supervisor is nobody's tracer."""
    tool = program("traced")
    assert supervised([tool, "traceme"]).lines() == ["traceme EPERM"]
    assert supervised([tool, "options"]).lines() == ["plain ok", "suspend EPERM"]
    many = supervised([tool, "orphans", "2000"])
    assert many.lines() == ["done"], many.err


@pytest.mark.parametrize("rule", [HOLE, ARGUMENTS])
def test_rules_about_programs_keep_debuggers_out(
    supervised: Supervised, program: Put, rule: str
) -> None:
    """Where only a look at each start can keep the rules, nobody is traced or written to."""
    tool = program("traced")
    done = supervised([tool, "options"], POLICY + rule)
    assert done.lines() == ["plain EPERM", "suspend EPERM"]
    assert b"rules about programs" in done.err
    poked = supervised([tool, "memory"], POLICY + MEMORY + rule)
    assert poked.lines() == ["own EACCES 1", "child EACCES", "tracee EACCES"]


def test_memory_of_others(supervised: Supervised, program: Put) -> None:
    """/proc/PID/mem is written by the process itself and by its debugger, by nobody else."""
    tool = program("traced")
    done = supervised([tool, "memory"], POLICY + MEMORY)
    assert done.lines() == ["own ok 2", "child EACCES", "tracee ok"], done.err
    assert supervised([tool, "memory"]).lines() == ["own EACCES 1", "child EACCES", "tracee EACCES"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["takeover", "hold"])
def test_threads_that_execute_at_once(supervised: Supervised, program: Put, mode: str) -> None:
    """One of them under a debugger: neither its process nor the tree waits for ever."""
    tool = program("tracedthreads")
    tries = str(max(TRIES // 4, 1))
    done = supervised([tool, mode, tries], None, "-q", timeout=280)
    assert done.lines() == [f"{tries} of {tries}"], done.err


def outside(supervised: Supervised, compiled: Path, folder: Path) -> tuple[Path, Path]:
    """A program that may run in the workspace, and one that may not outside of it."""
    folder.mkdir()
    shutil.copy("/bin/true", supervised.root / "allowed")
    return supervised.root / "allowed", Path(shutil.copy(compiled, folder / "forbidden"))


def test_links_in_rules(supervised: Supervised, program: Put, tmp_path: Path) -> None:
    """A rule for a folder that is a link lets the kernel start nothing behind the link."""
    tool = program("traced")
    good, bad = outside(supervised, tool, tmp_path / "outside")
    (tmp_path / "link").symlink_to(bad.parent)
    rules = (
        f'  - {{id: link, allow: exec, paths: ["{tmp_path}/link/**"]}}\n'
        f'  - {{id: seen, allow: read, paths: ["{bad.parent}/**"]}}\n'
        f'  - {{id: no, deny: exec, paths: ["{bad.parent}/**"]}}\n'
    )
    words: list[str | Path] = [tool, "race", str(TRIES), good, bad]
    done = supervised(words, POLICY + rules, "-q", timeout=120)
    assert b"FORBIDDEN" not in done.out
    assert done.lines()[-1:], done.err
    assert "ran 0 of" not in done.lines()[-1], done.err


def test_without_landlock_a_debugger_from_outside(
    supervised: Supervised, program: Put, tmp_path: Path
) -> None:
    """Nothing bounds what the kernel would start there, so nothing starts."""
    tool = program("traced")
    good, bad = outside(supervised, tool, tmp_path / "outside")
    options = ("-q", "--allow-degraded", "landlock")
    ours = supervised.words(None, *options)
    traced = ["strace", "-f", "-e", "trace=none", "-o", "log", *ours]
    done = supervised.natively([*traced, tool, "race", str(TRIES), good, bad])
    assert done.out == b""
    assert done.code == 126, done.err


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["race", "orphan", "seized"])
def test_flipped_path(supervised: Supervised, program: Put, tmp_path: Path, mode: str) -> None:
    """A path that is flipped while a traced task executes it never runs what no rule lets run."""
    tool = program("traced")
    good, bad = outside(supervised, tool, tmp_path / "outside")
    words: list[str | Path] = [tool, mode, str(TRIES), good, bad]
    # Natively an orphan that asks to be traced would be stopped for good by init.
    native = supervised.natively([tool, "race", *map(str, words[2:])], timeout=120)
    assert b"FORBIDDEN" in native.out, "the attack is too weak: it never hits natively"
    policy = POLICY + f'  - {{id: seen, allow: read, paths: ["{bad.parent}/**"]}}\n'
    done = supervised(words, policy, "-q", timeout=280)
    assert done.code == 0, done.err
    assert b"FORBIDDEN" not in done.out
    assert "ran 0 of" not in done.lines()[-1], "no try ran anything: nothing was shown"
