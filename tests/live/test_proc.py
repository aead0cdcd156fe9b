"""/proc and /dev/fd mean the caller's own, and show nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from live_world import Supervised
from processes import children

OWN = """
import os, sys, threading
def say(name, f):
    try: print(name, f())
    except OSError as e: print(name, e.strerror)
def status(path):
    return dict(l.split(":\\t", 1) for l in open(path).read().splitlines() if ":\\t" in l)
say("self", lambda: status("/proc/self/status")["Pid"] == str(os.getpid()))
say("thread", lambda: status("/proc/thread-self/status")["Pid"] == str(os.getpid()))
def inside():
    me = str(threading.get_native_id())
    say("other thread", lambda: status("/proc/thread-self/status")["Pid"] == me)
    say("other thread self", lambda: status("/proc/self/status")["Pid"] == str(os.getpid()))
t = threading.Thread(target=inside); t.start(); t.join()
say("exe", lambda: open("/proc/self/exe", "rb").read(4))
say("cmdline", lambda: b"marker" in open("/proc/self/cmdline", "rb").read())
say("mounts", lambda: " / " in open("/proc/mounts").read())
number = f"/proc/{os.getpid()}/mountinfo"
say("mountinfo", lambda: open("/proc/self/mountinfo").read() == open(number).read())
say("mtab", lambda: len(open("/etc/mtab").read()) > 0)
say("cwd", lambda: open("/proc/self/cwd/file").read())
say("root", lambda: open("/proc/self/root/etc/passwd").read(4))
say("fd list", lambda: sorted(os.listdir("/proc/self/fd"))[:3])
say("dev fd list", lambda: len(os.listdir("/dev/fd")) > 2)
fd = os.open("file", os.O_RDONLY)
say("by fd", lambda: open(f"/proc/self/fd/{fd}").read())
say("by dev", lambda: open(f"/dev/fd/{fd}").read())
say("fdinfo", lambda: "flags" in open(f"/proc/self/fdinfo/{fd}").read())
r, w = os.pipe()
w2 = os.open(f"/proc/self/fd/{w}", os.O_WRONLY)
os.write(w2, b"through")
r2 = os.open(f"/dev/fd/{r}", os.O_RDONLY)
print("pipe", os.read(r2, 20))
say("stdin", lambda: open("/dev/stdin").read())
say("task", lambda: str(os.getpid()) in os.listdir("/proc/self/task"))
say("deleted", lambda: (os.unlink("file"), open(f"/proc/self/fd/{fd}").read())[1])
say("missing fd", lambda: open("/proc/self/fd/999"))
say("missing pid", lambda: open("/proc/4194304/status"))
say("comm", lambda: open("/proc/self/comm").read())
open("/dev/stdout", "w").write("stdout\\n")
"""


def test_own_proc_is_as_natively(supervised: Supervised) -> None:
    """Every form gives the same natively and supervised."""
    found = []
    for ours in (False, True):
        (supervised.root / "file").write_text("content")
        words = ["python3", "-c", OWN, "marker"]
        done = supervised(words, None, "-q") if ours else supervised.natively(words)
        found.append(done.lines())
        assert done.err == b""
    assert found[1] == found[0]
    assert "self True" in found[0]


def test_stdin_by_name_and_process_substitution(supervised: Supervised) -> None:
    """Shells open /dev/stdin and /dev/fd/N of pipes."""
    done = supervised(
        [
            "bash",
            "-c",
            "cat /dev/stdin; cat <(echo sub) <(cat /proc/self/fd/0 | wc -c); echo e >/dev/stderr",
        ],
        stdin=b"given\n",
    )
    assert done.out == b"given\nsub\n0\n"
    assert done.err == b"e\n"


def test_terminal_by_name(supervised: Supervised) -> None:
    """/dev/tty and /proc/self/fd/0 are the caller's terminal."""
    import pty

    main, tty = pty.openpty()
    script = (
        "import os; a = os.open('/proc/self/fd/0', os.O_RDWR); b = os.open('/dev/tty', os.O_RDWR); "
        "print(os.ttyname(a) == os.ttyname(0), os.isatty(b))"
    )
    try:
        done = subprocess.run(
            ["setsid", "-c", *supervised.words(None, "-q"), "python3", "-c", script],
            stdin=tty,
            capture_output=True,
            cwd=supervised.root,
            env=supervised.environ(),
            timeout=30,
            check=False,
        )
    finally:
        os.close(main)
        os.close(tty)
    assert done.stdout == b"True True\n", done.stderr


PROBE = """
import os, sys
for pid in sys.argv[1:]:
    for leaf in ("status", "maps", "environ", "mem", "cmdline", "stat", "fd/0", "cwd/x",
                 "root/etc/passwd", "exe", "task"):
        path = f"/proc/{pid}/{leaf}"
        try:
            if leaf == "task": os.listdir(path)
            else: open(path, "rb").read(10)
            print(pid, leaf, "open")
        except OSError as e:
            print(pid, leaf, e.errno)
"""


def test_outsiders_are_closed(supervised: Supervised) -> None:
    """Nothing below /proc/PID of a process outside the tree can be opened."""
    outsider = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
    try:
        done = supervised(["python3", "-c", PROBE, str(outsider.pid), str(os.getpid()), "1"])
    finally:
        outsider.kill()
        outsider.wait()
    assert len(done.lines()) == 33
    assert [line for line in done.lines() if line.endswith("open")] == []


def test_supervisor_and_guardian_are_closed(supervised: Supervised) -> None:
    """Nothing of ours can be opened, and none of our descriptors seen."""
    script = (
        "import os, subprocess, sys\n"
        "up = os.getppid()\n"
        "probe = ['python3', '-c', sys.argv[1], str(up), str(up - 1)]\n"
        "print(subprocess.run(probe, capture_output=True, text=True).stdout)\n"
        "for leaf in ('fd', 'task', 'ns', 'map_files'):\n"
        "    try: print('listed', os.listdir(f'/proc/{up}/{leaf}'))\n"
        "    except OSError: pass\n"
        "for n in range(64):\n"
        "    try: print('link', n, os.readlink(f'/proc/{up}/fd/{n}'))\n"
        "    except OSError: pass\n"
    )
    done = supervised(["python3", "-c", script, PROBE])
    assert len(done.lines()) >= 22
    assert [line for line in done.lines() if "open" in line] == []
    assert [line for line in done.lines() if line.startswith(("listed", "link"))] == []


def test_siblings_are_open(supervised: Supervised) -> None:
    """Processes of the tree see each other."""
    script = (
        "sleep 30 & pid=$!; grep -c State /proc/$pid/status; tr '\\0' ' ' < /proc/$pid/cmdline; "
        "readlink /proc/$pid/exe; kill $pid"
    )
    done = supervised(["sh", "-c", script], None, "-q")
    assert done.lines()[0] == "1"
    assert done.lines()[1].startswith("sleep 30 ")


def test_nothing_of_ours_is_inherited(supervised: Supervised) -> None:
    """The command starts with its three streams and nothing else."""
    done = supervised(
        ["python3", "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"]
    )
    assert done.out == b"[0, 1, 2, 3]\n"


@pytest.mark.parametrize("leaf", ["sysrq-trigger", "sys/kernel/core_pattern", "self/oom_score_adj"])
def test_writing_below_proc_is_refused(supervised: Supervised, leaf: str) -> None:
    """Read rules for /proc give no writing, whoever runs us."""
    done = supervised(["sh", "-c", f"echo x > /proc/{leaf}"])
    assert done.code != 0
    assert done.denied()


def test_children_helper_sees_the_tree(supervised: Supervised) -> None:
    """What other tests build on: guardian above supervisor above command."""
    process = subprocess.Popen(
        [*supervised.words(None, "-q"), "sh", "-c", "echo ready; sleep 60"],
        cwd=supervised.root,
        env=supervised.environ(),
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (supervisor,) = children(process.pid)
        assert len(children(supervisor)) == 1
        assert (
            Path(f"/proc/{supervisor}/cmdline").read_bytes().startswith(os.fsencode(sys.executable))
        )
    finally:
        process.terminate()
        process.communicate()
