"""System V IPC and message queues: as natively inside the run, and nothing of it outside."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from live_world import POLICY, Supervised, differing, twins
from processes import children, wait_until

Put = Callable[..., Path]
PYTHON = "/usr/bin/python3"
LIBC = ctypes.CDLL(None, use_errno=True)
CREATE, EXCLUSIVE, REMOVE, STAT = 0o1000, 0o2000, 0, 2
KINDS = ("shm", "sem", "msg")
QUEUES = POLICY + "  - {id: queues, allow: all, paths: [/dev/mqueue/**]}\n"
# Makes one call a line of its input, numbers or b"bytes" behind the name; @N is the result of the
# N-th. Says the result, or the errno's name.
CALLS = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(8192)
results = []
for line in sys.stdin:
    name, *words = line.split()
    values = {"buffer": buffer, "NULL": None}
    values |= {"ops": b"\\0\\0\\1\\0\\0\\0", "msg": b"\\1" * 8 + b"text"}
    for n, result in enumerate(results):
        values[f"@{n}"] = result
    args = [values[word] if word in values else eval(word) for word in words]
    results.append(getattr(libc, name)(*args))
    failed = results[-1] == -1
    print(errno.errorcode[ctypes.get_errno()] if failed else results[-1], flush=True)
"""


def made(kind: str, key: int = 0, flags: int = CREATE | EXCLUSIVE | 0o666) -> int:
    """An object of this process, outside of every run."""
    number: int = (
        LIBC.msgget(key, flags) if kind == "msg" else getattr(LIBC, f"{kind}get")(key, 4, flags)
    )
    assert number >= 0, os.strerror(ctypes.get_errno())
    return number


def control(kind: str, number: int, command: int) -> int:
    """shmctl, semctl or msgctl; 0, or the errno."""
    room = ctypes.create_string_buffer(1024)
    args = (number, 0, command, room) if kind == "sem" else (number, command, room)
    return ctypes.get_errno() if getattr(LIBC, f"{kind}ctl")(*args) < 0 else 0


@pytest.fixture
def outside() -> Iterator[dict[str, int]]:
    """One object of each kind by the key of this process, for everybody."""
    numbers = {kind: made(kind, 0x51000000 | os.getpid()) for kind in KINDS}
    yield numbers
    for kind, number in numbers.items():
        control(kind, number, REMOVE)


class Session:
    """A run of CALLS that is asked one call at a time."""

    def __init__(self, supervised: Supervised) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            [*supervised.words(None, "-q"), PYTHON, "-c", CALLS],
            cwd=supervised.root,
            env=supervised.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __call__(self, call: str) -> str:
        """Make one call inside."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(call.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().strip()

    def end(self) -> int:
        """Let it come to its end."""
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture
def session(supervised: Supervised) -> Iterator[Session]:
    """A run that makes calls when it is asked to."""
    running = Session(supervised)
    yield running
    with suppress(ProcessLookupError):
        running.process.kill()
    running.process.communicate()


def same(pairs: list[tuple[str, str]], least: int) -> None:
    """Hold the two runs against each other."""
    assert len(pairs) > least
    wrong = differing(pairs)
    assert not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(wrong[:20])


def test_objects_behave_as_natively(supervised: Supervised, program: Put) -> None:
    """Errnos, results, attributes, signals and blocking are equal line by line."""
    same(twins(supervised, program("ipc_table")), 1000)


@pytest.mark.whole_root
def test_queues_behave_as_natively(supervised: Supervised, program: Put) -> None:
    """Names, flags, modes, attributes and what comes through are equal line by line."""
    same(twins(supervised, program("queue_table"), None, QUEUES), 300)


@pytest.mark.root
@pytest.mark.parametrize("table", ["ipc_table", "queue_table"])
def test_changed_identity(supervised: Supervised, program: Put, table: str) -> None:
    """A child with other ids has objects of its own, with what rights it would have natively."""
    same(twins(supervised, program(table), 54321, QUEUES), 300)


def reaching(numbers: dict[str, int]) -> list[str]:
    """Calls that would reach objects by their ids."""
    shm, sem, msg = (numbers[kind] for kind in KINDS)
    by_id = [f"{kind}ctl {numbers[kind]} {'0 ' * (kind == 'sem')}" for kind in KINDS]
    return [
        f"shmat {shm} NULL 0",
        f"shmat {shm} NULL 0o10000",
        f"semop {sem} ops 1",
        f"semtimedop {sem} ops 1 NULL",
        f"semctl {sem} 0 12",
        f"semctl {sem} 0 13 buffer",
        f"semctl {sem} 0 16 5",
        f"msgsnd {msg} msg 4 0o4000",
        f"msgrcv {msg} buffer 10 0 0o4000",
        *(f"{call} {command} buffer" for call in by_id for command in (0, 1, 2)),
        *(f"shmctl {shm & 0x7FFF} {command} buffer" for command in (13, 15)),
        *(f"semctl {sem & 0x7FFF} 0 {command} buffer" for command in (18, 20)),
        *(f"msgctl {msg & 0x7FFF} {command} buffer" for command in (11, 13)),
    ]


@pytest.mark.parametrize("when", ["before", "during"])
def test_outside_cannot_be_reached(session: Session, outside: dict[str, int], when: str) -> None:
    """Objects of the same user are as if they were not there, by key and by id."""
    if when == "during":
        assert session("getpid").isdigit()
        for kind, number in outside.items():
            control(kind, number, REMOVE)
            outside[kind] = made(kind, 0x51000000 | os.getpid())
    key = 0x51000000 | os.getpid()
    for kind, number in outside.items():
        extra = "" if kind == "msg" else "4 "
        assert session(f"{kind}get {key} {extra}0") == "ENOENT"
        own = session(f"{kind}get {key} {extra}{CREATE | EXCLUSIVE | 0o600}")
        assert own.isdigit()
        assert int(own) != number
        assert control(kind, int(own), STAT) == 0
    calls = reaching(outside)
    assert [call for call in calls if session(call) != "EINVAL"] == []
    assert session("semctl 0 0 19 buffer") == "EPERM"
    assert session.end() == 0
    assert [kind for kind in KINDS if control(kind, outside[kind], STAT)] == []
    assert LIBC.semctl(outside["sem"], 0, 12) == 0


def test_reaching_out_is_told(supervised: Supervised, outside: dict[str, int]) -> None:
    """Whoever tries an id of others reads so, and it is on record."""
    call = f"msgrcv {outside['msg']} buffer 10 0 0o4000\nmsgctl 0x7ffffff0 0 NULL\n"
    done = supervised([PYTHON, "-c", CALLS], stdin=call.encode())
    assert done.lines() == ["EINVAL", "EINVAL"]
    assert done.denied() == [("msgrcv", f"message queue {outside['msg']}")]
    assert b"made by a program outside the run" in done.err


def fill(session: Session) -> dict[str, list[int]]:
    """Objects by key, without, and shared memory that is attached."""
    found = {}
    for kind in KINDS:
        extra = "" if kind == "msg" else "4 "
        calls = [f"{kind}get {key} {extra}{CREATE | 0o600}" for key in (0, 0, 77)]
        found[kind] = [int(session(call)) for call in calls]
    assert session(f"shmat {found['shm'][0]} NULL 0") != "EINVAL"
    assert {control(kind, n, STAT) for kind in KINDS for n in found[kind]} == {0}
    return found


def left(found: dict[str, list[int]]) -> list[tuple[str, int]]:
    """Which of them are still there."""
    return [(kind, n) for kind in KINDS for n in found[kind] if control(kind, n, STAT) == 0]


def test_nothing_stays(session: Session) -> None:
    """What a run made is gone with it."""
    found = fill(session)
    assert session.end() == 0
    assert left(found) == []


def test_nothing_stays_of_a_killed_supervisor(session: Session) -> None:
    """The guardian removes it too."""
    found = fill(session)
    (supervisor,) = children(session.process.pid)
    os.kill(supervisor, signal.SIGKILL)
    assert session.process.wait(timeout=30) == 128 + signal.SIGKILL
    assert left(found) == []


@pytest.mark.root
def test_nothing_stays_of_another_identity(supervised: Supervised) -> None:
    """Objects that a child with other ids made are removed as well."""
    supervised.root.parent.chmod(0o711)
    calls = f"shmget 0 4 {CREATE | 0o600}\nsemget 5 1 {CREATE | 0o600}\nmsgget 0 0o1000\n"
    around = ["/usr/bin/setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--"]
    done = supervised([*around, PYTHON, "-c", CALLS], stdin=calls.encode(), cwd=Path("/"))
    numbers = [int(line) for line in done.lines()]
    assert len(numbers) == len(KINDS)
    assert left({kind: [n] for kind, n in zip(KINDS, numbers, strict=True)}) == []


@pytest.mark.parametrize("kind", KINDS)
def test_removed_from_outside(session: Session, kind: str) -> None:
    """An id whose object somebody outside removed is dead, also when it means another one."""
    extra = "" if kind == "msg" else "4 "
    number = int(session(f"{kind}get 99 {extra}{CREATE | 0o600}"))
    assert control(kind, number, REMOVE) == 0
    next_id = Path(f"/proc/sys/kernel/{kind}_next_id")
    again = -1
    with suppress(OSError):  # root, where the kernel lets ids be chosen
        next_id.write_text(str(number))
        again = made(kind)
        assert again == number
    command = f"{kind}ctl {number} {'0 ' * (kind == 'sem')}"
    assert session(f"{command}{STAT} buffer") == "EINVAL"
    assert session(f"{command}{REMOVE} buffer") == "EINVAL"
    assert session(f"{kind}get 99 {extra}0") == "ENOENT"
    assert session(f"{kind}get 99 {extra}{CREATE | 0o600}") != str(number)
    assert session.end() == 0
    if again >= 0:
        assert control(kind, again, REMOVE) == 0


def test_limit(supervised: Supervised) -> None:
    """A run has 1,024 objects of a kind and no more, until it removes some."""
    calls = [f"msgget 0 {CREATE | 0o600}"] * 1025 + ["msgctl @7 0 NULL", "msgget 3 0o1000"] * 2
    calls.append(f"semget 0 1 {CREATE}")
    done = supervised([PYTHON, "-c", CALLS], stdin="\n".join(calls).encode())
    lines = done.lines()
    numbers = [int(line) for line in lines[:1024]]
    assert len(set(numbers)) == 1024
    assert lines[1024:1026] == ["ENOSPC", "0"]
    assert lines[1026].isdigit()
    assert lines[1027:1029] == ["EINVAL", lines[1026]]
    assert lines[1029].isdigit()
    assert left({"shm": [], "sem": [int(lines[1029])], "msg": numbers}) == []


def queue(number: int) -> bytes:
    """A name that nobody else uses."""
    return b"sv-test-%d-%d" % (os.getpid(), number)


@pytest.fixture
def queues() -> Iterator[list[str]]:
    """Two queues of this process, as Python writes their names."""
    names = [queue(0), queue(1)]
    for name in names:
        os.close(LIBC.mq_open(b"/" + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666, None))
    yield [repr(b"/" + name) for name in names]
    for number in range(4):
        LIBC.mq_unlink(b"/" + queue(number))


def test_queues_are_decided_as_files(supervised: Supervised, queues: list[str]) -> None:
    """A queue opens, comes to be and goes as rules for /dev/mqueue/NAME say."""
    rule = "  - {{id: q{}, allow: [{}], paths: [/dev/mqueue/{}]}}\n"
    policy = POLICY + rule.format(0, "read", queue(0).decode())
    policy += rule.format(2, "create, write", queue(2).decode())
    readable, hidden = queues
    fresh, other = repr(b"/" + queue(2)), repr(b"/" + queue(3))
    table = {
        f"mq_open {readable} {os.O_RDONLY}": "3",
        f"mq_open {readable} {os.O_RDWR}": "EACCES",
        f"mq_open {readable} {os.O_RDONLY | os.O_CREAT} 0o600 NULL": "4",
        f"mq_open {readable} {os.O_WRONLY | os.O_CREAT} 0o600 NULL": "EACCES",
        f"mq_open {readable} {os.O_RDWR | os.O_CREAT | os.O_EXCL} 0o600 NULL": "EEXIST",
        f"mq_unlink {readable}": "EACCES",
        f"mq_open {hidden} {os.O_RDONLY}": "EACCES",
        f"mq_unlink {hidden}": "EACCES",
        f"mq_open {other} {os.O_RDONLY}": "ENOENT",
        f"mq_open {other} {os.O_RDWR | os.O_CREAT} 0o600 NULL": "EACCES",
        f"mq_unlink {other}": "ENOENT",
        f"mq_open {fresh} {os.O_WRONLY | os.O_CREAT} 0o600 NULL": "5",
        f"mq_open {fresh} {os.O_RDONLY}": "EACCES",
        f"mq_unlink {fresh}": "EACCES",
        f"open b'/proc/self/fd/3' {os.O_RDONLY}": "6",
        f"open b'/proc/self/fd/3' {os.O_RDWR}": "EACCES",
        f"open b'/proc/self/fd/5' {os.O_RDONLY}": "EACCES",
        "fchmod 3 0o600": "EACCES",
    }
    done = supervised([PYTHON, "-c", CALLS], policy, stdin="\n".join(table).encode())
    assert dict(zip(table, done.lines(), strict=True)) == table
    refused = [call.split() for call in table if table[call] == "EACCES"]
    names = {repr(b"/" + queue(n)): f"/dev/mqueue/{queue(n).decode()}" for n in range(4)}
    first, _, third, _ = names.values()
    by_number = [("openat", first), ("openat", third), ("fchmod", first)]
    named = [(words[0], names[words[1]]) for words in refused[: -len(by_number)]]
    assert done.denied() == [*named, *by_number]


def test_a_session_ends_when_its_supervisor_waits(session: Session) -> None:
    """A semaphore that nobody raises does not keep a run that is asked to end."""
    number = session(f"semget 0 1 {CREATE | 0o600}")
    assert session.process.stdin is not None
    session.process.stdin.write(f"semop {number} b'\\0\\0\\xff\\xff\\0\\0' 1\n".encode())
    session.process.stdin.flush()
    wait_until(lambda: LIBC.semctl(int(number), 0, 14) == 1)
    session.process.terminate()
    assert session.process.wait(timeout=30) == 128 + signal.SIGTERM
    assert control("sem", int(number), STAT) == errno.EINVAL
