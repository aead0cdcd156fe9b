"""Nothing that runs inside reaches the supervisor, its guardian or its files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

ATTACK = r"""
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NR = {"prlimit64": 302, "sched_setaffinity": 203, "setpriority": 141, "ioprio_set": 251,
      "kill": 62, "tkill": 200, "sched_setscheduler": 144, "sched_setparam": 142,
      "sched_setattr": 314, "migrate_pages": 256, "move_pages": 279, "process_vm_readv": 310,
      "ptrace": 101, "pidfd_getfd": 438, "process_madvise": 440, "kcmp": 312,
      "rt_sigqueueinfo": 129, "tgkill": 234}
sup = os.getppid()
guard = int(sys.argv[1])
buf = ctypes.create_string_buffer(128)
big = (ctypes.c_ulong * 16)(*([2**62] * 16))
param = (ctypes.c_int * 4)(0)
attr = (ctypes.c_uint32 * 12)(48)
info = (ctypes.c_int * 32)(9, 0, -1)
def call(name, *args):
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    rc = libc.syscall(ctypes.c_long(NR[name]), *words)
    print(name, "worked" if rc >= 0 else errno.errorcode[ctypes.get_errno()])
low = (ctypes.c_ulong * 2)(1, 1)
vec = (ctypes.c_ulong * 2)(ctypes.addressof(low) & ~4095, 4096)
for pid in (sup, guard):
    call("prlimit64", pid, 7, low, None)
    call("prlimit64", pid, 7, None, low)
    call("sched_setaffinity", pid, 128, big)
    call("sched_setscheduler", pid, 5, param)
    call("sched_setparam", pid, param)
    call("sched_setattr", pid, attr, 0)
    call("setpriority", 0, pid, 19)
    call("ioprio_set", 1, pid, 3 << 13)
    call("migrate_pages", pid, 1, low, low)
    call("move_pages", pid, 1, low, low, low, 0)
    call("kill", pid, 9)
    call("kill", pid, 0)
    call("tkill", pid, 19)
    call("tgkill", pid, pid, 19)
    call("rt_sigqueueinfo", pid, 9, info)
    call("process_vm_readv", pid, vec, 1, vec, 1, 0)
    call("process_madvise", os.pidfd_open(pid), vec, 1, 20, 0)
    call("ptrace", 0x4206, pid, 0, 0)
    call("kcmp", pid, os.getpid(), 2, 0, 0)
    try:
        fd = os.pidfd_open(pid)
        call("pidfd_getfd", fd, 0, 0)
        import signal
        signal.pidfd_send_signal(fd, 9); print("pidfd_send_signal worked")
    except OSError as e:
        print("pidfd", errno.errorcode[e.errno])
for name, args in (("setpriority", (1, 0, 19)), ("setpriority", (2, os.getuid(), 19)),
                   ("ioprio_set", (2, 0, 3 << 13)), ("ioprio_set", (3, os.getuid(), 3 << 13))):
    call(name, *args)
"""


def test_calls_about_the_supervisor_fail(supervised: Supervised) -> None:
    """Limits, scheduling, memory, signals and descriptors of ours are out of reach."""
    process = subprocess.Popen(
        [*supervised.words(None, "-q"), "sh", "-c", 'read pid; exec python3 -c "$0" $pid', ATTACK],
        cwd=supervised.root,
        env=supervised.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(f"{process.pid}\n".encode(), timeout=30)
    lines = out.decode().splitlines()
    assert len(lines) >= 40, err
    assert [line for line in lines if line.endswith("worked")] == []
    assert process.returncode == 0


def test_calls_about_itself_work(supervised: Supervised) -> None:
    """What is refused about us is allowed about the caller and its children."""
    script = (
        "import os, resource, subprocess, signal\n"
        "child = subprocess.Popen(['sleep', '30'])\n"
        "for pid in (0, os.getpid(), child.pid):\n"
        "    resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))\n"
        "    os.sched_setaffinity(pid, os.sched_getaffinity(0))\n"
        "    os.setpriority(os.PRIO_PROCESS, pid, 20)\n"
        "os.kill(child.pid, signal.SIGTERM)\n"
        "print(child.wait())\n"
    )
    assert supervised(["python3", "-c", script]).out == b"-15\n"


def test_kill_everybody_means_the_tree(supervised: Supervised) -> None:
    """kill(-1) and kill(0) reach nobody outside the tree."""
    outsider = subprocess.Popen(["sleep", "60"])
    try:
        script = (
            "import os, signal; signal.signal(15, signal.SIG_IGN); os.kill(0, 15); print('alive')"
        )
        done = supervised(["python3", "-c", script])
        assert (done.code, done.out) == (0, b"alive\n")
        if os.geteuid() != 0:
            done = supervised(["python3", "-c", script.replace("kill(0", "kill(-1")])
            assert done.code == 0
        assert outsider.poll() is None
    finally:
        outsider.kill()
        outsider.wait()


@pytest.mark.parametrize("command", ["0x5412", "0x541c", "0x541d", "0x5423"])
def test_typing_into_the_terminal_is_refused(supervised: Supervised, command: str) -> None:
    """TIOCSTI and its kin would be input for the shell that started us."""
    import pty

    main, tty = pty.openpty()
    script = (
        "import fcntl\n"
        f"for upper in (0, 1 << 32):\n"
        f"    try: fcntl.ioctl(0, {command}, b'x'); print('typed')\n"
        "    except OSError as e: print(e.errno)\n"
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
    assert done.stdout == b"1\n1\n", done.stderr


def test_our_files_in_the_workspace(supervised: Supervised) -> None:
    """Policy, cache and audit log cannot be changed from inside, wherever they lie."""
    root = supervised.root
    home = root / "home"
    home.mkdir()
    policy = root / "policy.yaml"
    policy.write_text(POLICY.replace("${root}", str(root)))
    log = root / "audit.log"
    environ = supervised.environ({"HOME": str(home)})
    script = (
        "for f in policy.yaml audit.log; do echo x >> $f; : > $f; rm -f $f; mv $f moved; "
        "ln $f hard; ln -sf $PWD/$f soft; echo x >> soft; chmod 777 $f; truncate -s 0 $f; "
        "cp /etc/passwd $f; done; "
        'find home -type f | while read f; do echo x >> "$f"; rm -f "$f"; done; '
        "mv home home2; rm -rf home; mkdir other; mv other home 2>/dev/null; "
        "mkdir -p home/.cache/x; true"
    )
    words = [*supervised.words()]
    base = [*words[: words.index("-p")], "-p", str(policy), "--audit", str(log), "-q", "--"]
    for _ in range(2):  # the second run finds the cache of the first
        before = policy.read_text()
        done = subprocess.run(
            [*base, "sh", "-c", script],
            cwd=root,
            env=environ,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert policy.read_text() == before, done.stderr
        assert policy.stat().st_mode & 0o777 == 0o644
        assert not (root / "moved").exists()
        verified = subprocess.run(
            [*base[:3], "audit", "verify", str(log)], capture_output=True, check=False, timeout=60
        )
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert b'"session_end"' in log.read_bytes()
        for name in ("soft", "hard"):
            (root / name).unlink(missing_ok=True)
    files = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in files if path.read_bytes().endswith(b"x\n")] == []


def test_our_code_cannot_be_changed(supervised: Supervised) -> None:
    """Even a policy that allows everything leaves what we are made of alone."""
    import supervisor

    code = Path(supervisor.__file__)
    policy = "version: 1\nname: all\nfiles:\n  - {id: all, allow: all, paths: [/**]}\n"
    script = f"echo '# changed' >> {code}; mv {code} {code}.old; touch {code.parent}/new.py"
    text = code.read_text()
    done = supervised(["sh", "-c", script], policy, "-q")
    assert code.read_text() == text
    assert not (code.parent / "new.py").exists(), done.err
