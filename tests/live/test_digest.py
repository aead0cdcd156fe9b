"""Programs of which a rule says the bytes: ``sha256`` in exec rules."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

Put = Callable[..., Path]
OTHER = "0" * 64


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned(program: str, sha256: str, more: str = "") -> str:
    """The usual policy with one pinned program."""
    return POLICY + f'exec:\n  - {{id: pin, allow: {program}, sha256: "{sha256}"}}\n{more}'


@pytest.fixture
def tool(supervised: Supervised, program: Put) -> Path:
    """A program in the workspace, under a name that rules can pin."""
    return Path(shutil.copy(program("execs"), supervised.root / "tool"))


@pytest.mark.parametrize("named", ["tool", '"${root}/tool"', '"${root}/t*"'])
def test_right_bytes_run(supervised: Supervised, tool: Path, named: str) -> None:
    """The bytes that the rule says run, however it names the program."""
    done = supervised([tool, "show", "a"], pinned(named, digest(tool)))
    assert done.lines()[0] == f"[{tool}][show][a]"
    ran = [e for e in done.events if e["type"] == "exec" and e["action"]["path"] == str(tool)]
    assert [event["rule"] for event in ran] == ["pin"]


@pytest.mark.parametrize("named", ["tool", '"${root}/tool"', '"${root}/t*"'])
def test_other_bytes_are_denied(supervised: Supervised, tool: Path, named: str) -> None:
    """Other bytes get EACCES, and a sentence that tells rule and digest."""
    done = supervised(["sh", "-c", "./tool show; echo $?"], pinned(named, OTHER))
    assert done.out == b"126\n"
    said = done.err.decode()
    assert f"sha256 is {digest(tool)} and not {OTHER}" in said
    assert "rule  pin (" in said
    faults = [event for event in done.events if event["type"] == "fault"]
    assert faults
    assert all(event["rule"] == "pin" and event["decision"] == "deny" for event in faults)
    assert all(event["effect"] == "errno" for event in faults)


def test_by_another_name(supervised: Supervised, tool: Path) -> None:
    """Links, descriptors and threads are no way round: the true path and the name called count."""
    (supervised.root / "link").symlink_to("tool")
    free = supervised.root / "bin/execs"
    ways = [
        ["./link", "show"],
        [free, "at", ".", "tool"],
        [free, "fd", "tool"],
        [free, "thread", "tool"],
        [free, "spawn", "tool"],
        [free, "vfork", "tool"],
    ]
    for way in ways:
        bad = supervised(way, pinned('"${root}/tool"', OTHER), "-q")
        assert b"[show]" not in bad.out, way
        good = supervised(way, pinned('"${root}/tool"', digest(tool)), "-q")
        assert b"[show]" in good.out, way


def test_changed_while_we_run(supervised: Supervised, tool: Path) -> None:
    """A program that the tree changes after the policy was loaded runs no more, nor anew."""
    script = "./tool show >/dev/null; echo $?; echo >> tool; ./tool show; echo $?"
    done = supervised(["sh", "-c", script], pinned('"${root}/tool"', digest(tool)), "-q")
    assert done.out == b"0\n126\n"


@pytest.mark.usefixtures("tool")
def test_not_by_moving_it(supervised: Supervised) -> None:
    """Other bytes cannot leave the name that they may not run under."""
    script = "mv tool free 2>/dev/null; ln tool free2; ./free2 show; mv bin/execs tool2; ./tool2 x"
    done = supervised(["sh", "-c", script], pinned('"${root}/tool"', OTHER))
    assert not (supervised.root / "free2").exists()
    assert b"[" not in done.out
    renames = [e for e in done.events if e["action"].get("call", "").startswith(("rename", "link"))]
    assert renames


def test_scripts_are_denied(supervised: Supervised) -> None:
    """No digest can hold for a script, even the right one."""
    script = supervised.root / "script"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    done = supervised(["sh", "-c", "./script; echo $?"], pinned("script", digest(script)))
    assert done.out == b"126\n"
    assert b"a script is read again by its interpreter" in done.err
    assert [e["rule"] for e in done.events if e["type"] == "fault"][:1] == ["pin"]


@pytest.mark.parametrize("good", [True, False])
def test_interpreters(supervised: Supervised, good: bool) -> None:
    """The interpreter of a script is a program that starts."""
    shutil.copy("/bin/sh", supervised.root / "mysh")
    script = supervised.root / "script"
    script.write_text(f"#!{supervised.root}/mysh\necho ran\n")
    script.chmod(0o755)
    sha256 = digest(supervised.root / "mysh") if good else OTHER
    done = supervised([script], pinned("mysh", sha256), "-q")
    assert done.out == (b"ran\n" if good else b"")


@pytest.mark.parametrize("good", [True, False])
def test_steered_to(supervised: Supervised, tool: Path, good: bool) -> None:
    """What a call is steered to is held against its digest, too."""
    more = '  - {id: fetch, steer: [curl], to: ["${root}/tool", show, "ours"]}\n'
    shutil.copy("/bin/true", supervised.root / "curl")
    policy = pinned("tool", digest(tool) if good else OTHER, more)
    done = supervised(["./curl", "x"], policy, "-q")
    assert done.lines()[:1] == ([f"[{tool}][show][ours]"] if good else [])


def test_observing(supervised: Supervised, tool: Path) -> None:
    """Other bytes run, and are on record as denied."""
    done = supervised([tool, "show"], pinned("tool", OTHER), "--mode", "observe")
    assert b"[show]" in done.out
    shown = [(e["decision"], e["rule"]) for e in done.events if e["type"] == "exec"]
    assert ("deny", "pin") in shown


def test_only_asking(supervised: Supervised, tool: Path) -> None:
    """AT_EXECVE_CHECK (Linux 6.14) is answered by the bytes, too; before, it is EINVAL."""
    free = supervised.root / "bin/execs"
    good = supervised([free, "at", ".", "tool", "0x10000"], pinned("tool", digest(tool)), "-q")
    bad = supervised([free, "at", ".", "tool", "0x10000"], pinned("tool", OTHER), "-q")
    assert bad.out == b"EACCES\n"
    natively = supervised.natively([free, "at", ".", "tool", "0x10000"])
    assert good.out == natively.out


def test_loaders_are_denied(supervised: Supervised) -> None:
    """Nobody keeps writers from a loader that is mapped, so it cannot be pinned."""
    own = next(path for path in Path("/lib64").glob("ld-*") if path.exists()).resolve()
    policy = pinned(f'"{own}"', digest(own))
    done = supervised(["/bin/true"], policy)
    assert done.code != 0
    assert b"loader" in done.err


def test_long_programs_hold_nobody_up(supervised: Supervised, tool: Path) -> None:
    """While big programs are read, other programs start, and other calls are answered."""
    big = supervised.root / "big"
    shutil.copy(tool, big)
    os.truncate(big, 400 << 20)
    script = (
        "for i in 1 2 3 4 5 6 7 8; do ./big show >/dev/null & done; sleep 0.3; "
        "s=$(date +%s%N); for i in 1 2 3 4 5; do /bin/true; done; "
        "e=$(date +%s%N); echo $(( (e - s) / 1000000 )); kill $(jobs -p) 2>/dev/null; true"
    )
    sha256 = digest(big)
    done = supervised(["sh", "-c", script], pinned("big", sha256), "-q", timeout=120)
    took = int(done.lines()[0])
    assert took < 1500, "starts waited for the digests"


def test_too_long_is_denied(supervised: Supervised, tool: Path) -> None:
    """A file of more than a gibibyte is nobody's program; it is not read for nothing."""
    big = supervised.root / "big"
    shutil.copy(tool, big)
    os.truncate(big, (1 << 30) + 1)
    begin = time.monotonic()
    done = supervised(["./big", "show"], pinned("big", OTHER), timeout=120)
    assert done.code == 126
    assert b"too large for a digest" in done.err
    assert time.monotonic() - begin < 3, "to read it takes longer"


def test_the_kernel_keeps_writers_away(supervised: Supervised) -> None:
    """What the digest rests on: nobody writes to a program that runs."""
    running = Path(shutil.copy("/bin/sleep", supervised.root / "running"))
    child = subprocess.Popen([running, "60"])
    try:
        # Popen returns only when the program has started.
        with pytest.raises(OSError, match="Text file busy"):
            os.open(running, os.O_WRONLY)
    finally:
        child.kill()
        child.wait()
