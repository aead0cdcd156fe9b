"""Limits: exactly so much is given, to all threads together, and what is above it is not done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_world import POLICY, Result, Supervised

from supervisor.model import COUNTED

Program = Callable[..., Path]


def with_limits(text: str, rules: str = "") -> str:
    """The plain policy with these limits."""
    return f"{POLICY}limits: {{{text}}}\n{rules}"


def counts(result: Result) -> dict[str, int]:
    """What the racing program counted."""
    pairs = (line.split() for line in result.lines())
    return {word: int(number) for word, number in pairs}


def end(result: Result) -> dict[str, Any]:
    """The last record of the run."""
    action = result.events[-1]["action"]
    assert isinstance(action, dict)
    assert action["call"] == "session_end"
    return action


def fill(root: Path, threads: int, tries: int, *, folders: bool = False) -> None:
    """What the racing program removes and moves, and where it moves it."""
    for name in ("s", "d"):
        (root / name).mkdir()
    for thread in range(threads):
        for i in range(tries):
            path = root / "s" / f"{thread}-{i}"
            path.mkdir() if folders else path.touch()


@pytest.mark.parametrize("mode", ["open", "mkdir", "mknod", "symlink", "link"])
def test_files_created_exactly(supervised: Supervised, program: Program, mode: str) -> None:
    """Of 8 threads that make 3,200 names, 700 succeed and leave a name; the others get EDQUOT."""
    race = program("budget_race")
    (supervised.root / "d").mkdir()
    (supervised.root / "present").touch()
    result = supervised([race, mode, "8", "400"], with_limits("files_created: 700"))
    assert counts(result) == {"done": 700, "refused": 2500, "other": 0}
    assert len(os.listdir(supervised.root / "d")) == 700
    assert end(result)["counters"]["files_created"] == 700
    rules = {event["rule"] for event in result.events if event["decision"] == "deny"}
    assert rules == {"limit:files_created"}


@pytest.mark.parametrize("mode", ["unlink", "rmdir"])
def test_files_deleted_exactly(supervised: Supervised, program: Program, mode: str) -> None:
    """Of 8 threads that remove 3,200 names, 700 succeed, and 2,500 names are left."""
    race = program("budget_race")
    fill(supervised.root, 8, 400, folders=mode == "rmdir")
    result = supervised([race, mode, "8", "400"], with_limits("files_deleted: 700"))
    assert counts(result) == {"done": 700, "refused": 2500, "other": 0}
    assert len(os.listdir(supervised.root / "s")) == 2500


def test_renames_that_replace(supervised: Supervised, program: Program) -> None:
    """What a rename replaces is deleted; a rename to a free name is not counted."""
    race = program("budget_race")
    fill(supervised.root, 8, 300)
    for name in os.listdir(supervised.root / "s")[::2]:
        (supervised.root / "d" / name).touch()
    result = supervised([race, "rename", "8", "300"], with_limits("files_deleted: 500"))
    assert counts(result) == {"done": 1200 + 500, "refused": 700, "other": 0}
    assert len(os.listdir(supervised.root / "s")) == 700


def test_replaced_while_it_is_made(supervised: Supervised, program: Program) -> None:
    """A name that another thread makes meanwhile is not replaced uncounted."""
    race = program("budget_race")
    fill(supervised.root, 8, 400)
    result = supervised([race, "contend", "8", "400"], with_limits("files_deleted: 100"))
    counters = end(result)["counters"]
    left = sum(len(os.listdir(supervised.root / name)) for name in ("s", "d"))
    assert 8 * 400 + counters["files_created"] - left == counters["files_deleted"] <= 100


def test_actions_exactly(supervised: Supervised, program: Program) -> None:
    """So many calls are carried out, and then none."""
    race = program("budget_race")
    (supervised.root / "present").touch()
    result = supervised([race, "read", "8", "500"], with_limits("actions: 1000"))
    assert end(result)["counters"]["actions"] == 1000
    seen = counts(result)
    assert seen["done"] + seen["refused"] == 4000
    assert 900 < seen["done"] < 1000
    assert not seen["other"]


def test_execs_exactly(supervised: Supervised, program: Program) -> None:
    """The command is the first of them; what is above gets EAGAIN and does not run."""
    race = program("budget_race")
    result = supervised([race, "exec", "8", "25"], with_limits("execs: 101"), timeout=120)
    assert counts(result) == {"done": 100, "refused": 100, "other": 0}
    assert sum(event["type"] == "exec" and not event["errno"] for event in result.events) == 101


def test_connections_exactly(supervised: Supervised, program: Program) -> None:
    """Local sockets count as addresses do."""
    race = program("budget_race")
    result = supervised([race, "connect", "8", "100"], with_limits("connections: 300"))
    assert counts(result) == {"done": 300, "refused": 500, "other": 0}


DATAGRAMS = """\
import errno, socket
servers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for server in servers:
    server.bind(("127.0.0.1", 0))
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for server in servers + servers:
    try:
        print(client.sendto(b"x", server.getsockname()))
    except OSError as error:
        print(errno.errorcode[error.errno])
client.connect(servers[0].getsockname())
"""


def test_datagrams_count_by_address(supervised: Supervised) -> None:
    """A second datagram to an address is free, a third address is refused."""
    rules = 'network:\n  - {allow: [connect, bind], to: ["127.0.0.0/8"]}\n'
    policy = with_limits("connections: 2", rules)
    result = supervised(["/usr/bin/python3", "-c", DATAGRAMS], policy)
    assert result.lines() == ["1", "1", "EACCES"] * 2
    assert b"PermissionError" in result.err  # and so is a connect


ATTEMPTS = """\
import errno, socket
closed = socket.socket()
closed.bind(("127.0.0.1", 0))
for timeout in (None, 0) * 3:
    client = socket.socket()
    client.settimeout(timeout)
    print(errno.errorcode[client.connect_ex(closed.getsockname())])
"""


def test_connects_count_when_they_are_tried(supervised: Supervised) -> None:
    """Nobody listens, or it is not known yet: what is looked for was asked of the network."""
    rules = 'network:\n  - {allow: [connect, bind], to: ["127.0.0.0/8"]}\n'
    result = supervised(["/usr/bin/python3", "-c", ATTEMPTS], with_limits("connections: 4", rules))
    assert set(result.lines()[:4]) <= {"ECONNREFUSED", "EINPROGRESS"}
    assert result.lines()[4:] == ["EACCES"] * 2
    assert end(result)["counters"]["connections"] == 4


@pytest.mark.parametrize("left", [0, 1])
def test_calls_that_fail_cost_nothing(supervised: Supervised, left: int) -> None:
    """What the kernel refuses is given back, and so is an exec that came to nothing.

    Names that are taken or missing are told even where nothing is left of a limit.
    """
    (supervised.root / "full/x").mkdir(parents=True)
    (supervised.root / "none").symlink_to("nowhere")
    (supervised.root / "bad").write_bytes(b"\x7fELF nonsense")
    (supervised.root / "bad").chmod(0o755)
    code = """\
import os
for _ in range(50):
    for call in (lambda: os.rmdir("full"), lambda: os.mkdir("full"), lambda: os.unlink("full/none"),
                 lambda: os.rename("full/none", "full"), lambda: os.symlink("a", "full"),
                 lambda: os.execv("./bad", ["bad"]), lambda: open("full/x", "x")):
        try:
            call()
        except OSError:
            pass
"""
    limits = f"files_created: {left}, files_deleted: {left}, execs: {2 if left else 1}"
    result = supervised(["/usr/bin/python3", "-Bc", code], with_limits(limits))
    assert result.code == 0, result.err
    # what fails for another reason than its name is not tried
    refused = set() if left else {"rmdir", "execve"}
    assert {call for call, _ in result.denied()} == refused
    counters = end(result)["counters"]
    assert (counters["files_created"], counters["files_deleted"], counters["execs"]) == (0, 0, 1)


@pytest.mark.parametrize("name", ["execs", "actions"])
def test_no_program_at_all(supervised: Supervised, name: str) -> None:
    """A limit of 0 is one: the command itself does not start."""
    result = supervised(["true"], with_limits(f"{name}: 0"))
    assert result.code == 126
    assert end(result)["counters"][name] == 0


def test_none_at_all(supervised: Supervised) -> None:
    """With 0 the first is refused, and nothing is done."""
    (supervised.root / "kept").touch()
    code = "rm kept; true > new; mkdir folder; mv kept other; ls"
    result = supervised(["sh", "-c", code], with_limits("files_deleted: 0, files_created: 0"))
    assert result.lines() == ["other"]
    assert [call for call, _ in result.denied()] == ["unlinkat", "openat", "mkdir"]


def test_deletes_that_are_kept_count(supervised: Supervised) -> None:
    """A delete that goes to the trash is one."""
    for name in "abc":
        (supervised.root / name).touch()
    rules = '  - {id: bin, steer: delete, paths: ["${root}/**"], to: trash}\n'
    policy = POLICY + rules + "limits: {files_deleted: 2}\n"
    result = supervised(["rm", "a", "b", "c"], policy)
    assert result.code == 1
    assert os.listdir(supervised.root) == ["c"]
    assert result.denied() == [("unlinkat", str(supervised.root / "c"))]
    assert b"Disk quota exceeded" in result.err


def test_soft_limits_are_told_once(supervised: Supervised) -> None:
    """What is above a soft limit is done; one record and one line say so."""
    code = "for i in 1 2 3 4 5 6; do : > f$i; done"
    result = supervised(["sh", "-c", code], with_limits("files_created: {soft: 3}"))
    assert result.code == 0
    assert len(os.listdir(supervised.root)) == 6
    told = [event for event in result.events if event["type"] == "limit"]
    assert [(event["rule"], event["decision"]) for event in told] == [
        ("limit:files_created", "allow")
    ]
    assert told[0]["action"]["detail"] == "soft limit: more than 3"
    assert result.err.count(b"warning: limit:files_created") == 1


def alive(text: str) -> list[int]:
    """Processes with this in their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_halt_ends_everything(supervised: Supervised) -> None:
    """The whole tree is gone, children in sessions of their own included; 122 says why."""
    mark = f"98{os.getpid()}"
    code = (
        f"setsid sleep {mark} & (trap '' TERM; sleep {mark}) & sleep 0.3; "
        "true > a; true > b; true > c; while :; do :; done"
    )
    policy = with_limits("files_created: {hard: 2, on_exceed: halt}")
    result = supervised(["sh", "-c", code], policy, "--wait-all")
    assert result.code == 122
    assert not alive(mark)
    assert sorted(os.listdir(supervised.root)) == ["a", "b"]
    ended = [event for event in result.events if event["type"] == "limit"]
    assert [(event["rule"], event["effect"]) for event in ended] == [
        ("limit:files_created", "kill")
    ]
    assert end(result)["limit"] == "files_created"
    assert b"ended limit:files_created" in result.err


def test_too_many_denials_end_the_run(supervised: Supervised) -> None:
    """Five are allowed; the sixth ends it."""
    code = "i=0; while [ $i -lt 50 ]; do true > /var/none; i=$((i+1)); echo $i; done"
    result = supervised(["sh", "-c", code], with_limits("denials: 5"))
    assert result.code == 122
    assert result.lines()[:5] == ["1", "2", "3", "4", "5"]
    assert len(result.lines()) == 5
    assert len([1 for _, path in result.denied() if path == "/var/none"]) == 6
    assert end(result)["limit"] == "denials"


def test_wall_time(supervised: Supervised) -> None:
    """It ends the run as --timeout does, the smaller of the two."""
    before = time.monotonic()
    result = supervised(["sleep", "60"], with_limits("wall: {hard: 2s, soft: 1s}"))
    assert result.code == 124
    assert 1.9 < time.monotonic() - before < 10
    details = [e["action"]["detail"] for e in result.events if e["type"] == "limit"]
    assert details == ["soft limit: more than 1 s", "more than 2 s"]
    before = time.monotonic()
    result = supervised(["sleep", "60"], with_limits("wall: 1h"), "--timeout", "500ms")
    assert result.code == 124
    assert time.monotonic() - before < 10


def test_processor_time_of_the_tree(supervised: Supervised) -> None:
    """Many short processes use it up together, none of which is long enough alone."""
    work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
    result = supervised(["sh", "-c", f"while :; do sh -c '{work}'; done"], with_limits("cpu: 2s"))
    assert result.code == 122
    assert end(result)["limit"] == "cpu"
    assert b"ended limit:cpu" in result.err


def test_open_files(supervised: Supervised) -> None:
    """So many descriptors, opens that we carry out included; nobody inside raises that."""
    code = """\
import errno, os, resource
print(resource.getrlimit(resource.RLIMIT_NOFILE))
held = []
try:
    while True:
        held.append(os.open("/etc/passwd", os.O_RDONLY))
except OSError as error:
    print(errno.errorcode[error.errno], max(held))
for file in held:
    os.close(file)
for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
    try:
        resource.setrlimit(what, (500, 500000))
        print("raised")
    except (ValueError, OSError) as error:
        print(type(error).__name__)
"""
    policy = with_limits("open_files: 64, file_size: 1000")
    result = supervised(["/usr/bin/python3", "-c", code], policy)
    assert result.lines() == ["(64, 64)", "EMFILE 63", "ValueError", "ValueError"]


def test_file_size(supervised: Supervised) -> None:
    """No file grows above it: not by writing, nor by truncate with a name, which we carry out."""
    code = """\
import errno, os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def attempt(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]
fd = os.open("f", os.O_CREAT | os.O_WRONLY)
print(os.write(fd, b"x" * 5000), attempt(lambda: os.write(fd, b"x")))
print(attempt(lambda: os.ftruncate(fd, 2000)))
print(attempt(lambda: os.truncate("f", 2000)), attempt(lambda: os.truncate("f", 1000)))
"""
    result = supervised(["/usr/bin/python3", "-c", code], with_limits("file_size: 1kB"))
    assert result.lines() == ["1000 EFBIG", "EFBIG", "EFBIG None"]
    assert (supervised.root / "f").stat().st_size == 1000


def test_one_process_that_uses_the_processor(supervised: Supervised) -> None:
    """The kernel's own limit is there, too, for when nobody measures."""
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CPU))"
    result = supervised(["/usr/bin/python3", "-c", code], with_limits("cpu: 90s"))
    assert result.lines() == ["(90, 91)"]


def test_observed_limits_pass(supervised: Supervised) -> None:
    """Where rules only record, limits do: once."""
    code = "for i in 1 2 3 4 5 6; do : > f$i; done"
    policy = with_limits("files_created: {hard: 3, on_exceed: halt}")
    result = supervised(["sh", "-c", code], policy, "--mode", "observe")
    assert result.code == 0
    assert len(os.listdir(supervised.root)) == 6
    told = [e["action"]["detail"] for e in result.events if e["type"] == "limit"]
    assert told == ["more than 3"]


def test_counters_are_shown(supervised: Supervised) -> None:
    """On --status-fd, with -v and in the record."""
    words = supervised.words(with_limits("files_created: {soft: 5, hard: 9}"), "-v")
    log = supervised.home / "status.log"
    words[-1:-1] = ["--status-fd", "1", "--audit", str(log)]
    done = subprocess.run(
        [*words, "sh", "-c", ": > a; : > b"],
        cwd=supervised.root,
        env=supervised.environ(),
        capture_output=True,
        check=True,
    )
    last = json.loads(done.stdout.splitlines()[-1])
    assert tuple(last["counters"]) == COUNTED
    assert last["counters"]["files_created"] == 2
    assert last["limit"] == ""
    assert b"2 files_created" in done.stderr
    record = json.loads(log.read_bytes().splitlines()[-1])["action"]
    assert record["counters"] == last["counters"]
    assert record["limits"] == {"files_created": {"hard": 9, "soft": 5}}


def test_a_killed_run_has_no_limit(supervised: Supervised) -> None:
    """A signal of the command's own is not taken for a limit."""
    result = supervised(["sh", "-c", "kill -KILL $$"], with_limits("wall: 1h, denials: 3"))
    assert result.code == 128 + signal.SIGKILL
    assert "limit" not in end(result)
