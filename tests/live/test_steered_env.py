"""The policy's environment at steered execs: keep, drop and set, as at the start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

Put = Callable[..., Path]
ENV = 'env: {keep: [PATH, HOME, LAST, "T*", "*X"], drop: ["*_TOKEN"], set: {CI: "1", TX: ""}}\n'
STEER = 'exec:\n  - {id: fetch, steer: [curl], to: [/usr/bin/env, "-0"]}\n'
BEFORE = "A_TOKEN=s FOOX=kept OTHER=dropped CI=mine TX=mine "


@pytest.fixture
def curl(supervised: Supervised, program: Put) -> Path:
    """A program that the policy steers to /usr/bin/env."""
    program("execs")
    return Path(shutil.copy("/bin/true", supervised.root / "curl"))


def variables(out: bytes) -> dict[bytes, bytes]:
    """What env -0 printed."""
    return dict(line.split(b"=", 1) for line in out.split(b"\0") if line)


@pytest.mark.usefixtures("curl")
def test_filtered_when_steered(supervised: Supervised) -> None:
    """What a caller added is filtered as the command's own environment was."""
    done = supervised(["sh", "-c", BEFORE + "./curl"], POLICY + STEER + ENV)
    found = variables(done.out)
    assert found == {
        b"PATH": found[b"PATH"],
        b"HOME": str(supervised.home).encode(),
        b"FOOX": b"kept",
        b"CI": b"1",
        b"TX": b"",
    }


@pytest.mark.usefixtures("curl")
def test_others_keep_their_own(supervised: Supervised) -> None:
    """A call that is not steered gets its caller's environment, whatever it holds."""
    done = supervised(["sh", "-c", BEFORE + "env -0"], POLICY + STEER + ENV)
    found = variables(done.out)
    assert (found[b"A_TOKEN"], found[b"OTHER"], found[b"CI"]) == (b"s", b"dropped", b"mine")


@pytest.mark.usefixtures("curl")
def test_without_rules_it_is_the_callers(supervised: Supervised) -> None:
    """A policy that says nothing of the environment changes nothing."""
    done = supervised(["sh", "-c", BEFORE + "./curl"], POLICY + STEER)
    found = variables(done.out)
    assert (found[b"A_TOKEN"], found[b"OTHER"], found[b"CI"]) == (b"s", b"dropped", b"mine")


@pytest.mark.usefixtures("curl")
def test_private_folder(supervised: Supervised) -> None:
    """Where the command's TMPDIR is the private folder, so is that of a steered program."""
    env = 'env: {drop: [X], set: {P: "${TMPDIR}/p"}}\n'
    script = "echo $TMPDIR; TMPDIR=/elsewhere P=mine ./curl"
    done = supervised(["sh", "-c", script], POLICY + STEER + env)
    private, _, rest = done.out.partition(b"\n")
    found = variables(rest)
    assert private.startswith(b"/")
    assert (found[b"TMPDIR"], found[b"P"]) == (private, private + b"/p")


@pytest.mark.usefixtures("curl")
@pytest.mark.parametrize("how", ["spawn", "vfork", "thread", "fd"])
def test_from_anywhere(supervised: Supervised, how: str) -> None:
    """Every way to call exec reads the environment from its own register."""
    words = ["env", "A_TOKEN=s", "FOOX=kept", "bin/execs", how, "curl"]
    found = variables(supervised(words, POLICY + STEER + ENV, "-q").out)
    assert found[b"FOOX"] == b"kept"
    assert b"A_TOKEN" not in found


@pytest.mark.usefixtures("curl")
def test_odd_entries(supervised: Supervised) -> None:
    """What is no variable is left out; a name that is there twice stays so; none is fine."""
    env = 'env: {drop: ["*_TOKEN"], set: {CI: "1"}}\n'
    done = supervised(["bin/execs", "env", "odd", "curl"], POLICY + STEER + env)
    assert done.out == b"TWICE=1\0TWICE=2\0=x\0LAST=\0CI=1\0"
    done = supervised(["bin/execs", "env", "null", "curl"], POLICY + STEER + env)
    assert done.out == b"CI=1\0"


@pytest.mark.usefixtures("curl")
@pytest.mark.parametrize(("what", "errno"), [("bad", b"EFAULT"), ("huge", b"E2BIG")])
def test_unreadable_is_refused(supervised: Supervised, what: str, errno: bytes) -> None:
    """An environment that cannot be read, or is too large to be looked at, starts nothing."""
    env = 'env: {drop: ["*_TOKEN"]}\n'
    done = supervised(["bin/execs", "env", what, "./curl"], POLICY + STEER + env)
    assert done.out == errno + b"\n"
    faults = [event for event in done.events if event["type"] == "fault"]
    assert len(faults) == 1
