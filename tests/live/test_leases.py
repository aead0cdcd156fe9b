"""A lease makes others wait for its holder, for up to 45 seconds: them, and never a worker."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from live_world import Supervised, reachable

Put = Callable[..., Path]
# More than there are workers, whatever the machine.
MANY = 40
SIZES = {"read": 10, "write": 10, "cut": 0, "truncate": 3}


def files(supervised: Supervised) -> None:
    """What the program opens."""
    (supervised.root / "leased").write_text("0123456789")
    (supervised.root / "other").write_text("other")


@contextmanager
def held_outside(supervised: Supervised, tool: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A lease of a program that nobody supervises; it ends with its stdin."""
    holder = subprocess.Popen(
        [tool, "hold"], cwd=supervised.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder
    finally:
        holder.communicate(timeout=30)
    assert holder.returncode == 0


@pytest.mark.parametrize("name", ["", "/"], ids=["relative", "absolute"])
@pytest.mark.parametrize("call", SIZES)
def test_waiting_for_leases_holds_nobody_up(
    supervised: Supervised, program: Put, call: str, name: str
) -> None:
    """All wait until the lease is given up and then succeed; an open beside them does not."""
    words = [str(program("leases")), "crowd", name + call, str(MANY)]
    for run in (supervised.natively, supervised):
        files(supervised)
        assert run(words).lines() == [f"opened early=0 good={MANY} size={SIZES[call]}"]


@pytest.mark.parametrize("name", ["", "/"], ids=["relative", "absolute"])
def test_unwilling_to_wait(supervised: Supervised, program: Put, name: str) -> None:
    """With O_NONBLOCK the answer is EAGAIN, and comes at once."""
    files(supervised)
    words = [str(program("leases")), "crowd", f"{name}nonblock", str(MANY)]
    native = supervised.natively(words).lines()
    assert native == [f"opened early={MANY} good=0 size=10"]
    assert supervised(words).lines() == native


@pytest.mark.parametrize(
    ("call", "flags"),
    [(call, how) for call in SIZES for how in ("plain", "restart")],
)
def test_alarm_while_waiting(supervised: Supervised, program: Put, call: str, flags: str) -> None:
    """EINTR without SA_RESTART; with it the call goes on after each handler."""
    files(supervised)
    words = [str(program("leases")), "alarm", call, flags]
    native = supervised.natively(words).lines()
    assert native == ["done alarmed" if flags == "restart" else "EINTR alarmed"]
    files(supervised)
    assert supervised(words).lines() == native


@pytest.mark.parametrize("name", ["", "/"], ids=["relative", "absolute"])
@pytest.mark.parametrize("call", SIZES)
def test_lease_of_a_program_outside(
    supervised: Supervised, program: Put, call: str, name: str
) -> None:
    """It waits for that one, too; what it gets then does not show how we asked."""
    tool = program("leases")
    words = [str(tool), "call", name + call]
    files(supervised)
    native = supervised.natively(words).lines()
    files(supervised)
    assert supervised(words).lines() == native
    with held_outside(supervised, tool) as holder:
        process = subprocess.Popen(
            [*supervised.words(None, "-q"), *words],
            cwd=supervised.root,
            env=supervised.environ(),
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"calling\n"
            assert select.select([process.stdout], [], [], 0.3)[0] == []
            holder.communicate(b"", timeout=30)
            said = process.communicate(timeout=30)[0]
        finally:
            process.kill()
            process.communicate()
    assert ["calling", said.decode().strip()] == native


BY_ANOTHER = """
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open("leased", os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if os.fork() == 0:
    os.setgid(54321); os.setuid(54321)
    try: os.truncate("leased", 3); print("done", flush=True)
    except OSError as e: print(e.strerror, flush=True)
    os._exit(0)
time.sleep(0.5); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK); os.wait()
"""


@pytest.mark.root
def test_truncate_by_another_user(supervised: Supervised) -> None:
    """A task that changed its ids waits for the lease like any other."""
    reachable(supervised.root)
    (supervised.root / "leased").write_text("0123456789")
    (supervised.root / "leased").chmod(0o666)
    assert supervised(["/usr/bin/python3", "-c", BY_ANOTHER]).lines() == ["done"]
