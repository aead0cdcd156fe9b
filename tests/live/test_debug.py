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

Put = Callable[..., Path]
TRIES = int(os.environ.get("SUPERVISE_TRACED_TRIES", "150"))
SHELL = "ls / >/dev/null; echo hi; cat /dev/null; /bin/echo done"
DENY = '  - {id: bad, deny: exec, paths: ["${root}/forbidden"]}\n'
MARK = "#!/bin/sh\necho x >> {}\n"


def executed(log: Path) -> list[str]:
    """Programs whose execve worked, as strace told."""
    lines = [line for line in log.read_text().splitlines() if line.endswith("= 0")]
    return sorted(line.partition("execve(")[2].partition(",")[0] for line in lines)


def test_strace(supervised: Supervised) -> None:
    """It follows children and sees the same execs as without us."""
    words = ["strace", "-f", "-e", "trace=execve", "-o", "log", "sh", "-c", SHELL]
    native = supervised.natively(words)
    expected = executed(supervised.root / "log")
    (supervised.root / "log").unlink()
    done = supervised(words)
    assert (done.code, done.out, done.err) == (native.code, native.out, b"")
    assert executed(supervised.root / "log") == expected
    assert len(expected) == 4


def test_gdb(supervised: Supervised) -> None:
    """A program is started, stopped at a breakpoint, looked into and run to its end."""
    source = "int f(int n)\n{\n\treturn n + 1;\n}\nint main(void)\n{\n\treturn f(2);\n}\n"
    (supervised.root / "t.c").write_text(source)
    subprocess.run(["gcc", "-g", "-O0", "-o", "t", "t.c"], cwd=supervised.root, check=True)
    orders = ["break f", "run", "print n", "finish", "continue"]
    words = ["gdb", "-q", "-nx", "-batch", *[w for o in orders for w in ("-ex", o)], "./t"]
    done = supervised(words)
    for text in (b"Breakpoint 1, f (n=2)", b"$1 = 2", b"Value returned is $2 = 3", b"code 03"):
        assert text in done.out, done.out + done.err


def test_attach(supervised: Supervised, program: Put) -> None:
    """A debugger attaches to a process of the tree, and to none outside."""
    tool = program("traced")
    inside = supervised(["sh", "-c", f"sleep 60 & {tool} attach $!; kill -9 $!"])
    assert inside.lines()[0] == "attach ok", inside.err
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as beside:
        outside = supervised([tool, "attach", str(beside.pid)])
        beside.communicate(b"\n")
    assert outside.lines() == ["attach EPERM", "seize EPERM"]
    without = supervised([tool, "traceme"], None, "--allow-degraded", "landlock")
    assert without.lines() == ["traceme EPERM"]


def test_what_would_go_round(supervised: Supervised, program: Put) -> None:
    """Neither the filter nor the stop at an exec goes away, and the supervisor is no tracer."""
    tool = program("traced")
    assert supervised([tool, "traceme"]).lines() == ["traceme EPERM"]
    assert supervised([tool, "options"]).lines() == ["plain ok", "suspend EPERM"]
    weak = supervised([tool, "weak", "/bin/true"])
    assert weak.lines() == ["auto EPERM", "seize ok", "again EPERM", "exec EACCES"]
    blocked = supervised([tool, "blocked", "/bin/true"])
    assert blocked.lines() == ["exec EACCES"]
    assert b"blocks SIGTRAP" in blocked.err


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["race", "orphan"])
def test_flipped_path(supervised: Supervised, program: Put, mode: str) -> None:
    """A path that is flipped while a traced task executes it never runs the forbidden program."""
    tool = program("traced")
    shutil.copy("/bin/true", supervised.root / "allowed")
    (supervised.root / "forbidden").write_text(MARK.format(supervised.root / "ran"))
    (supervised.root / "forbidden").chmod(0o755)
    good, bad = (str(supervised.root / name) for name in ("allowed", "forbidden"))
    # An orphan that asks to be traced would be stopped for good by init.
    native = supervised.natively([tool, "race", str(TRIES), good, bad], timeout=120)
    assert native.code == 0
    assert (supervised.root / "ran").exists(), "the attack is too weak: it never hits natively"
    (supervised.root / "ran").unlink()
    tries = 0
    caught = 0
    while tries < TRIES:
        done = supervised([tool, mode, str(TRIES), good, bad], POLICY + DENY, "-q", timeout=120)
        tries += TRIES if done.code == 0 else 10
        caught += sum(e["effect"] == "kill" for e in done.events)
        assert not (supervised.root / "ran").exists()
    assert caught > 0, "no try hit the window: nothing was shown"
