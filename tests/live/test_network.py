"""Network rules: what they allow is as natively, what they do not is not reached."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from live_world import POLICY, Supervised, without

pytestmark = pytest.mark.live
HERE = Path(__file__).parent

LOOPBACK = (
    POLICY
    + """\
network:
  - {id: here, allow: [connect, bind], to: ["127.0.0.0/8", "[::1]", "unix:@*"]}
  - {id: every, allow: bind, to: ["0.0.0.0", "[::]"]}
"""
)


def with_rules(*rules: str) -> str:
    """The plain policy with these network rules."""
    return POLICY + "network:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules)


@contextmanager
def server(
    host: str = "127.0.0.1", kind: int = socket.SOCK_STREAM
) -> Iterator[tuple[int, list[str]]]:
    """Serve outside; yields the port and who came."""
    came: list[str] = []
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    over = threading.Event()
    with closing(socket.socket(family, kind)) as listener:
        listener.bind((host, 0))
        listener.settimeout(0.05)
        if kind == socket.SOCK_STREAM:
            listener.listen(64)

        def run() -> None:
            while not over.is_set():
                try:
                    if kind == socket.SOCK_STREAM:
                        connection, peer = listener.accept()
                        connection.close()
                    else:
                        _, peer = listener.recvfrom(100)
                except TimeoutError:
                    continue
                came.append(peer[0])

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()[1], came
        finally:
            over.set()
            thread.join()


def python(supervised: Supervised, code: str, policy: str) -> list[str]:
    """What a program prints that has `socket`, `attempt` and `out`, an errno or what came."""
    head = """\
import errno, os, socket, struct
def attempt(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode.get(error.errno, error)
def connect(host, port, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(5)
        return attempt(lambda: s.connect((host, port)) or "connected")
def send(host, port, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        return attempt(lambda: s.sendto(b"x", (host, port)))
"""
    done = supervised(["python3", "-c", head + code], policy, "-q")
    assert done.code == 0, done.err
    return done.lines()


def test_as_natively(supervised: Supervised, tmp_path: Path) -> None:
    """Two hundred calls of TCP, UDP, local sockets and their like, on this machine."""
    native = tmp_path / "native"
    native.mkdir()
    program = shutil.copy(HERE / "network_calls.py", supervised.root / "calls.py")
    expected = supervised.natively(["python3", program], cwd=native)
    done = supervised(["python3", program], LOOPBACK)
    assert done.lines() == expected.lines(), done.err
    assert len(done.lines()) > 180
    assert done.lines()[-1].startswith("getaddrinfo")
    assert done.err == expected.err == b""
    assert done.denied() == []


def test_nothing_without_rules(supervised: Supervised) -> None:
    """Without network rules nothing is reached, and datagram sockets are not made."""
    with server() as (port, came):
        code = f"print(connect('127.0.0.1', {port}))\n"
        code += "print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))\n"
        assert python(supervised, code, POLICY) == ["EACCES", "EACCES"]
    assert came == []


def test_what_a_rule_says(supervised: Supervised) -> None:
    """The strictest rule, its errno, ports and prefixes; each refusal names its rule."""
    with server() as (port, came), server("127.0.0.2") as (other, came2):
        policy = with_rules(
            "id: lo, allow: connect, to: ['127.0.0.0/8']",
            f"id: not, deny: connect, to: ['127.0.0.2:{other}'], as: ECONNREFUSED, say: ask first",
        )
        code = f"""\
print(connect('127.0.0.1', {port}), connect('127.0.0.2', {other}))
print(connect('127.0.0.2', 1), connect('192.0.2.1', 80))
print(attempt(lambda: socket.socket().bind(('127.0.0.1', 8099))))
"""
        done = supervised(["python3", "-c", "exit"], policy)
        assert done.code == 0
        assert python(supervised, code, policy) == [
            "connected ECONNREFUSED",
            "ECONNREFUSED EACCES",
            "EACCES",
        ]
        one = f"import socket; socket.create_connection(('127.0.0.2', {other}))"
        told = supervised(["python3", "-c", one], policy)
    assert (came, came2) == (["127.0.0.1"], [])
    assert told.denied() == [("connect", f"127.0.0.2:{other}")]
    refused = next(e for e in told.events if e["decision"] == "deny")
    assert (refused["rule"], refused["action"]["ops"]) == ("not", "connect")
    assert b"ask first" in told.err


SPELLINGS = [
    ("127.0.0.1", socket.AF_INET, True),
    ("0.0.0.0", socket.AF_INET, True),  # noqa: S104 - to connect to
    ("::ffff:127.0.0.1", socket.AF_INET6, True),
    ("::ffff:0.0.0.0", socket.AF_INET6, True),
    ("::", socket.AF_INET6, True),
    ("::1", socket.AF_INET6, True),
    ("127.0.0.2", socket.AF_INET, False),
    ("::ffff:127.0.0.2", socket.AF_INET6, False),
    ("::127.0.0.2", socket.AF_INET6, False),
    ("64:ff9b::127.0.0.2", socket.AF_INET6, False),
    ("2002:7f00:2::1", socket.AF_INET6, False),
    ("fe80::1", socket.AF_INET6, False),
    ("255.255.255.255", socket.AF_INET, False),
    ("224.0.0.1", socket.AF_INET, False),
]


def test_spellings_of_one_address(supervised: Supervised) -> None:
    """However an address is written, it is decided as what the kernel reaches by it."""
    policy = with_rules(
        "id: here, allow: connect, to: ['127.0.0.1', '[::1]', '[::]/0']".replace(
            "[::]/0", "[::/0]"
        ),
        "id: never, deny: connect, to: ['127.0.0.2']",
        "id: link, deny: connect, to: ['[fe80::/10]']",
    )
    rows = [(host, int(family)) for host, family, _ in SPELLINGS]
    code = f"""\
for host, family in {rows!r}:
    name = (host, 9) if family == socket.AF_INET else (host, 9, 0, 0)
    with socket.socket(family, socket.SOCK_DGRAM) as s, socket.socket(family) as t:
        t.settimeout(0)
        print(*(attempt(call) for call in (
            lambda: s.connect(name), lambda: s.sendto(b"x", name),
            lambda: s.sendmsg([b"x"], [], 0, name), lambda: t.connect(name))))
"""
    lines = python(supervised, code, policy)
    for (host, _, allowed), line in zip(SPELLINGS, lines, strict=True):
        assert ("EACCES" not in line) == allowed, (host, line)
        assert allowed or line.split() == ["EACCES"] * 4, (host, line)


def test_sending(supervised: Supervised) -> None:
    """Datagrams reach what rules allow, by every call, and nothing else."""
    with (
        server(kind=socket.SOCK_DGRAM) as (port, came),
        server("127.0.0.2", socket.SOCK_DGRAM) as (
            other,
            never,
        ),
    ):
        code = f"""\
import ctypes
good, bad = ("127.0.0.1", {port}), ("127.0.0.2", {other})
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    print(*(attempt(lambda: s.sendto(b"x", a)) for a in (good, bad)))
    print(*(attempt(lambda: s.sendmsg([b"x"], [], 0, a)) for a in (good, bad)))
    libc = ctypes.CDLL(None, use_errno=True)
    def pack(a):
        return struct.pack("=H", 2) + struct.pack("!H4s8x", a[1], socket.inet_aton(a[0]))
    names = [pack(a) for a in (good, bad)]
    def message(name, part):
        at, parts = ctypes.addressof(name), ctypes.addressof(part)
        return struct.pack("=QI4xQQQQI4xI4x", at, 16, parts, 1, 0, 0, 0, 7)
    def vector(order):
        keep, heads = [], b""
        for i in order:
            name = ctypes.create_string_buffer(names[i], 16)
            text = ctypes.create_string_buffer(b"y")
            part = (ctypes.c_uint64 * 2)(ctypes.addressof(text), 1)
            keep += [name, text, part]
            heads += message(name, part)
        out = ctypes.create_string_buffer(heads, len(heads))
        n = libc.sendmmsg(s.fileno(), out, len(order), 0)
        lens = [struct.unpack_from("=I", out.raw, 56 + 64 * i)[0] for i in range(len(order))]
        return n, errno.errorcode.get(ctypes.get_errno() * (n < 0)), lens
    print(vector([0, 0]), vector([0, 1, 0]), vector([1, 0]))
    s.connect(good)
    print(s.send(b"x"), attempt(lambda: s.sendto(b"x", bad)), attempt(lambda: s.connect(bad)))
"""
        policy = with_rules("id: one, allow: connect, to: ['127.0.0.1']")
        assert python(supervised, code, policy) == [
            "1 EACCES",
            "1 EACCES",
            "(2, None, [1, 1]) (1, None, [1, 7, 7]) (-1, 'EACCES', [7, 7])",
            "1 EACCES EACCES",
        ]
    assert never == []
    assert len(came) == 6


def test_listening(supervised: Supervised) -> None:
    """bind, and listen without it, need a rule for what they bind."""
    policy = with_rules(
        "id: lo, allow: bind, to: ['127.0.0.1', '[::]', '127.0.0.2:5000-6000']",
        "id: no, deny: bind, to: ['127.0.0.7']",
    )
    code = """\
def bind(host, port, family=socket.AF_INET):
    with socket.socket(family) as s:
        return attempt(lambda: s.bind((host, port)) or s.listen() or "bound")
print(attempt(lambda: socket.socket().bind(("127.0.0.3", 0)) or "bound"))
print(bind("127.0.0.1", 0), bind("0.0.0.0", 0), bind("127.0.0.2", 0), bind("127.0.0.3", 0))
print(bind("127.0.0.2", 5999), bind("127.0.0.2", 6001))
print(bind("::", 0, socket.AF_INET6), bind("::1", 0, socket.AF_INET6))
print(attempt(lambda: socket.socket().listen()))
def datagrams(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return attempt(lambda: s.bind((host, port)) or "bound")
print(datagrams("0.0.0.0", 0), datagrams("127.0.0.7", 0), datagrams("127.0.0.3", 5000))
"""
    assert python(supervised, code, policy) == [
        "bound",  # a port like the one that connecting would choose
        "bound EACCES EACCES EACCES",
        "bound EACCES",
        "EACCES EACCES",  # the wildcard of IPv6 is that of IPv4, too
        "EACCES",
        "bound EACCES EACCES",
    ]


def test_any_port_that_a_rule_denies(supervised: Supervised) -> None:
    """A rule that denies counts, though the default speaks of the same wildcard, too."""
    policy = with_rules(
        "id: lo, allow: connect, to: ['127.0.0.1']", "id: no, deny: bind, to: ['[::]'], as: EPERM"
    )
    code = """\
for family, kind in ((10, 1), (10, 2), (2, 1), (2, 2)):
    with socket.socket(family, kind) as s:
        print(attempt(lambda: s.bind(("::" if family == 10 else "0.0.0.0", 0))))
"""
    assert python(supervised, code, policy) == ["EPERM", "EPERM", "None", "None"]


def test_local_servers_outside(supervised: Supervised, tmp_path: Path) -> None:
    """By the true path of the socket; a rule may deny one of the tree's own, too."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (supervised.root / "link").symlink_to(outside / "open")
    sockets = []
    for name in ("open", "shut"):
        one = socket.socket(socket.AF_UNIX)
        one.bind(str(outside / name))
        one.listen(9)
        sockets.append(one)
    policy = with_rules(
        f"id: open, allow: connect, to: ['unix:{outside}/*']",
        f"id: shut, deny: connect, to: ['unix:{outside}/shut'], as: EPERM",
        "id: own, deny: connect, to: ['unix:${root}/mine'], as: EHOSTUNREACH",
        "id: names, allow: [connect, bind], to: ['unix:@ok-*']",
        "id: unbound, deny: bind, to: ['unix:${root}/never'], as: EROFS",
    )
    code = f"""\
def local(name):
    with socket.socket(socket.AF_UNIX) as s:
        return attempt(lambda: s.connect(name) or "connected")
print(local("{outside}/open"), local("link"), local("{outside}/shut"), local("{outside}/none"))
one = socket.socket(socket.AF_UNIX); one.bind("mine"); one.listen(1)
two = socket.socket(socket.AF_UNIX); two.bind("other"); two.listen(1)
print(local("mine"), local("other"))
print(attempt(lambda: socket.socket(socket.AF_UNIX).bind("never")))
three = socket.socket(socket.AF_UNIX)
print(attempt(lambda: three.bind("\\0no")), attempt(lambda: three.bind("\\0ok-{os.getpid()}")))
three.listen(1)
print(local("\\0ok-{os.getpid()}"), local("\\0no"))
"""
    try:
        assert python(supervised, code, policy) == [
            "connected connected EPERM ENOENT",
            "EHOSTUNREACH connected",
            "EROFS",
            "EACCES None",
            "connected EACCES",
        ]
    finally:
        for one in sockets:
            one.close()


def test_blocks(supervised: Supervised) -> None:
    """A program that a block is for, and what it starts, reaches less; never more."""
    with server() as (port, _), server("127.0.0.2") as (other, came):
        block = """\
blocks:
  - id: narrow
    for: {program: sh}
    default: deny
    files: [{id: as-outside, allow: all, paths: ["/**"]}]
    network:
      - {id: inner, deny: connect, to: ["127.0.0.2"]}
      - {id: wider, allow: connect, to: ["127.0.0.0/8"]}
"""
        policy = (
            with_rules(f"id: a, allow: connect, to: ['127.0.0.1:{port}', '127.0.0.2:{other}']")
            + block
        )
        code = f"""\
import socket
for a in (("127.0.0.1", {port}), ("127.0.0.2", {other}), ("127.0.0.3", 1)):
    try:
        socket.create_connection(a)
        print("connected")
    except OSError as error:
        print(error.errno)
"""
        (supervised.root / "try.py").write_text(code)
        plain = supervised(["python3", "try.py"], policy, "-q")
        inside = supervised(["sh", "-c", "python3 try.py; true"], policy, "-q")
    assert plain.lines() == ["connected", "connected", "13"], plain.err
    assert inside.lines() == ["connected", "13", "13"], inside.err
    assert len(came) == 1


def test_no_notification_per_byte(supervised: Supervised) -> None:
    """Once connected, sending and receiving stay in the kernel: the counter says so."""
    code = """\
import socket, sys
n = int(sys.argv[1])
with socket.create_server(("127.0.0.1", 0)) as server:
    one = socket.create_connection(server.getsockname())
    two, _ = server.accept()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("127.0.0.1", 0))
v.connect(u.getsockname())
for _ in range(n):
    one.sendall(b"x" * 1000)
    two.recv(1000)
    v.send(b"y" * 1000)
    u.recv(1000)
"""
    (supervised.root / "send.py").write_text(code)
    counts = []
    for n in ("10", "3000"):
        done = supervised(["python3", "send.py", n], LOOPBACK, "-v")
        said = re.search(rb"(\d+) calls", done.err)
        assert said, done.err
        counts.append(int(said[1]))
    assert abs(counts[0] - counts[1]) < 50, counts


def test_many_at_once(supervised: Supervised) -> None:
    """A thousand connections under way, of one program, from eight threads."""
    code = """\
import resource, socket, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
server = socket.create_server(("127.0.0.1", 0), backlog=2000)
name = server.getsockname()
kept, failed = [], []
def run():
    for i in range(125):
        s = socket.socket()
        s.setblocking(i % 2)
        rc = s.connect_ex(name)
        kept.append(s)
        if rc not in (0, 115):
            failed.append(rc)
threads = [threading.Thread(target=run) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len([server.accept() for _ in range(1000)]), failed)
"""
    done = supervised(["python3", "-c", code], LOOPBACK)
    assert done.lines() == ["1000 []"], done.err


def test_observing(supervised: Supervised) -> None:
    """All passes, and what rules would refuse is on record."""
    with server() as (port, came):
        policy = with_rules("id: no, deny: connect, to: ['127.0.0.1']") + "mode: observe\n"
        path = supervised.home / "outside"
        code = f"""\
import socket
socket.create_connection(('127.0.0.1', {port}))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x", ("127.0.0.1", 9))
s.sendmsg([b"x"], [], 0, ("127.0.0.1", 10))
socket.socket(socket.AF_UNIX).connect({str(path)!r})
print(socket.if_nameindex()[0])
"""
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(path))
            listener.listen()
            done = supervised(["python3", "-c", code], policy)
        assert done.code == 0, done.err
        passed = done.denied()
    assert came == ["127.0.0.1"]
    assert {
        ("connect", f"127.0.0.1:{port}"),
        ("sendto", "127.0.0.1:9"),
        ("sendmsg", "127.0.0.1:10"),
        ("connect", f"unix:{path}"),
    } <= set(passed)


def test_netlink_only_reads(supervised: Supervised) -> None:
    """Interfaces are listed; whoever may change them natively may not here."""
    inside = ["unshare", "-Urn"] if os.geteuid() else ["unshare", "-n"]
    script = "ip link set lo up && ip -o link show lo; ip link set lo down; echo $?"
    shown = "ip -o link show lo; ip link set lo up; echo $?"
    native = subprocess.run(
        [*inside, "sh", "-c", script], capture_output=True, text=True, check=True, timeout=20
    )
    assert native.stdout.splitlines()[-1] == "0"
    words = supervised.words(LOOPBACK, "-q")
    done = subprocess.run(
        [*inside, *words, "sh", "-c", shown],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        cwd=supervised.root,
        env=supervised.environ(),
    )
    assert "LOOPBACK" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "2"
    assert "Operation not permitted" in done.stderr


def test_needs_duplicates(supervised: Supervised) -> None:
    """Where sockets cannot be duplicated, a policy that allows some does not start."""
    words = supervised.words(LOOPBACK)
    done = supervised.natively([*without("pidfd_getfd"), *words, "echo", "ran"])
    assert (done.code, done.out) == (125, b"")
    assert b"pidfd_getfd" in done.err
    denying = with_rules("id: no, deny: connect, to: ['127.0.0.1']")
    assert supervised(["echo", "ran"], denying).lines() == ["ran"]
