"""Looking into another process works inside the tree and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest
from live_world import POLICY, Supervised

# Prints what each call gives for the process named, or for a child of its own.
LOOK = """
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
first = 310 if os.uname().machine == "x86_64" else 270
NUMBERS = dict(read=first, write=first + 1, kcmp=first + 2, getfd=438)
class Vec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("n", ctypes.c_size_t)]
text = ctypes.create_string_buffer(b"mine")
there = ctypes.addressof(text)
def call(name, *words):
    got = libc.syscall(ctypes.c_long(NUMBERS[name]), *[ctypes.c_long(w) for w in words])
    return "ok" if got >= 0 else errno.errorcode[ctypes.get_errno()]
pid = int(sys.argv[1])
r, w = os.pipe()
if not pid:
    pid = os.fork()
    if not pid:
        text.value = b"kid!"
        os.write(w, b"x")
        time.sleep(60)
        os._exit(0)
    os.read(r, 1)
here = ctypes.create_string_buffer(8)
mine = Vec(ctypes.addressof(here), 4)
yours = Vec(there, 4)
pair = (ctypes.addressof(mine), 1, ctypes.addressof(yours), 1, 0)
print("read", call("read", pid, *pair), here.value.decode())
print("write", call("write", pid, *pair))
print("kcmp", call("kcmp", pid, os.getpid(), 1, 0, 0))
print("getfd", call("getfd", os.pidfd_open(pid), 1, 0))
if int(sys.argv[1]) == 0:
    os.kill(pid, 9)
"""
NAMES = ("read", "write", "kcmp", "getfd")


def outcomes(out: bytes) -> dict[str, str]:
    """First word behind each call's name."""
    return {line.split()[0]: line.split()[1] for line in out.decode().splitlines()}


def test_inside_as_natively(supervised: Supervised) -> None:
    """A child's memory and descriptors are there for its parent, as without us."""
    words = ["/usr/bin/python3", "-c", LOOK, "0"]
    native, ours = supervised.natively(words), supervised(words)
    assert b"read ok kid!" in native.out
    assert ours.out == native.out


@pytest.mark.parametrize("options", [[], ["--mode", "observe"], ["--allow-degraded", "landlock"]])
def test_outside_never(supervised: Supervised, options: list[str]) -> None:
    """A process beside the tree, of the same user, cannot be looked into."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as beside:
        words = ["/usr/bin/python3", "-c", LOOK, str(beside.pid)]
        done = supervised(words, None, *options)
        beside.communicate(b"\n")
    assert outcomes(done.out) == dict.fromkeys(NAMES, "EPERM"), done.err


def test_nowhere_without_a_domain(supervised: Supervised) -> None:
    """Without Landlock nothing would keep it inside, so it is refused inside, too."""
    done = supervised(["/usr/bin/python3", "-c", LOOK, "0"], None, "--allow-degraded", "landlock")
    assert outcomes(done.out) == dict.fromkeys(NAMES, "EPERM"), done.err


def test_no_writing_where_arguments_count(supervised: Supervised) -> None:
    """A policy with rules about arguments keeps everybody from changing them after the exec."""
    rule = 'exec:\n  - {id: push, deny: git, argv: [push, "**"]}\n'
    words = ["/usr/bin/python3", "-c", LOOK, "0"]
    native = outcomes(supervised.natively(words).out)
    assert native["write"] == "ok"
    assert outcomes(supervised(words, POLICY + rule).out) == {**native, "write": "EPERM"}
