"""Network rules at their edges: no way round them, native outcomes, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from live_world import POLICY, Supervised
from processes import children

pytestmark = pytest.mark.live
Put = Callable[..., Path]
TRIES = int(os.environ.get("SUPERVISE_NETWORK_TRIES", "3000"))

TWO = POLICY + 'network:\n  - {id: two, allow: [connect, bind], to: ["127.0.0.2"]}\n'
LOOP = POLICY + 'network:\n  - {id: lo, allow: connect, to: ["127.0.0.0/8", "[::1]"]}\n'


@contextmanager
def catching(*addresses: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Serve TCP, UDP and UDP-Lite at one port of each address, outside.

    Yields what counts by address what came until now; its "port" is the port.
    """
    kinds = ((socket.SOCK_STREAM, 0), (socket.SOCK_DGRAM, 0), (socket.SOCK_DGRAM, 136))
    with ExitStack() as stack:
        ends: list[tuple[str, socket.socket]] = []
        port = 0
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            for kind, protocol in kinds:
                end = stack.enter_context(closing(socket.socket(family, kind, protocol)))
                if family == socket.AF_INET6:
                    end.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                end.bind((address, port))
                port = end.getsockname()[1]
                if kind == socket.SOCK_STREAM:
                    end.listen(1024)
                end.setblocking(False)
                ends.append((address, end))

        def came() -> dict[str, int]:
            time.sleep(0.2)
            counts = {"port": port, **dict.fromkeys(addresses, 0)}
            for address, end in ends:
                try:
                    while True:
                        if end.type == socket.SOCK_STREAM:
                            end.accept()[0].close()
                        else:
                            end.recv(1)
                        counts[address] += 1
                except BlockingIOError:
                    pass
            return counts

        yield came


@contextmanager
def answering(path: Path) -> Iterator[list[int]]:
    """Serve streams on a local socket, outside; yields who came."""
    came: list[int] = []
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(path))
        server.listen(1024)
        server.settimeout(0.2)
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    continue
                came.append(1)
                with connection, suppress(OSError):
                    connection.send(b"o")

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield came
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize("protocol", ["0", "262"], ids=["tcp", "mptcp"])
def test_what_a_connect_leaves_does_not_listen(
    supervised: Supervised, program: Put, protocol: str
) -> None:
    """The port that a connect chose is no permission to listen on every address."""
    tool = program("network_edges")
    native = supervised.natively([tool, "listen", protocol]).lines()
    for name in ("fresh", "dissolved", "failed"):
        assert f"{name} ok everywhere" in native
    done = supervised([tool, "listen", protocol], TWO, "-q").lines()
    for name in ("fresh", "dissolved", "failed"):
        assert f"{name} EACCES" in done
    for name in ("again", "bound, dissolved", "bound, failed"):
        assert f"{name} ok" in done


def test_no_other_way(supervised: Supervised, program: Put) -> None:
    """Options that lead packets elsewhere are refused; those with the same numbers are not."""
    tool = program("network_edges")
    done = supervised([tool, "ways"], TWO, "-q")
    assert done.lines() == [
        "IP_OPTIONS EPERM",
        "high IP_OPTIONS EPERM",
        "IPV6_RTHDR EPERM",
        "IPV6_2292PKTOPTIONS EPERM",
        "IPV6_FLOWLABEL_MGR EPERM",
        "SO_BROADCAST ok",
        "TCP_KEEPCNT ok",
        "IP_TTL ok",
    ]


def test_forms_of_an_address(supervised: Supervised, program: Put) -> None:
    """No way to write a forbidden address reaches it; where it is allowed, all is as natively."""
    tool = program("network_edges")
    with catching("127.0.0.1", "::1") as came:
        words = [tool, "forms", str(came()["port"])]
        expected = supervised.natively(words).lines()
        native = came()
        assert native["127.0.0.1"] > 0
        assert native["::1"] > 0
        supervised(words, TWO, "-q")
        reached = came()
        assert (reached["127.0.0.1"], reached["::1"]) == (0, 0)
        allowed = supervised(words, LOOP, "-q").lines()
        plain = [
            (a, b)
            for a, b in zip(expected, allowed, strict=True)
            # Carried addresses go to a gateway, which no rule allows; MSG_FASTOPEN never goes.
            if not a.startswith("fastopen") and "64:ff9b" not in a and "2002:" not in a
        ]
        odd = [(a, b) for a, b in plain if a != b and not known_difference(a, b)]
        assert odd == []
        assert came()["127.0.0.1"] > 0


def known_difference(native: str, ours: str) -> bool:
    """Whether an outcome is allowed to differ."""
    # A message to a stream: MSG_FASTOPEN left the native one connected for the next call.
    if native.startswith(("sendmsg ", "sendmmsg ")) and ours.endswith("EPIPE"):
        return True
    # ::127.0.0.1 is no loopback address, and no rule allows it; nor is what no kind of socket
    # takes, such as an IPv4 address on a stream of IPv6, asked about any differently.
    return " ::127.0.0.1/" in native


def test_a_socket_that_changes_its_family(supervised: Supervised, program: Put) -> None:
    """An address that means nothing on IPv6 does not get a meaning while it is sent to."""
    tool = program("network_edges")
    with catching("127.0.0.1", "127.0.0.2") as came:
        words = [tool, "changed", str(came()["port"]), str(TRIES)]
        done = supervised(words, TWO, "-q")
        reached = came()
        assert done.lines() == ["sent some"]
        assert reached["127.0.0.1"] == 0
        assert reached["127.0.0.2"] > 0


@pytest.mark.root
def test_netlink_changes_nothing(supervised: Supervised, program: Put) -> None:
    """Not even root's tree changes routes, in a network namespace of its own."""
    tool = program("network_edges")
    lone = [shutil.which("unshare") or "unshare", "-n", "sh", "-c"]
    start = "ip link set lo up && "
    show = "; ip route"
    native = supervised.natively([*lone, f"{start}{tool} netlink{show}"])
    assert "write ok" in native.lines(), native.err
    assert "passed ok" in native.lines()
    assert b"198.51.100.0/24" in native.out
    ours = " ".join(supervised.words(TWO, "-q"))
    done = supervised.natively([*lone, f"{start}{ours} {tool} netlink{show}"])
    assert done.lines() == [
        "write EPERM",
        "send EPERM",
        "sendto EPERM",
        "sendmsg EPERM",
        "sendmsg to EPERM",
        "passed EPERM",
        "connect ok",
        "connected EPERM",
        "other EPERM",
        "ioctl EPERM",
    ], done.err


def test_a_link_is_not_what_was_bound(supervised: Supervised, program: Put) -> None:
    """A socket from outside that is linked to a name just bound stays one from outside."""
    tool = program("network_edges")
    folder = supervised.root / "folder"
    folder.mkdir()
    outside = supervised.root / "outside"
    with answering(outside) as came:
        done = supervised([tool, "relink", str(3 * TRIES), folder, outside], TWO, "-q")
        assert done.lines() == ["bound some reached 0"]
        assert came == []


MOVES = """\
import os, socket, sys
def attempt(what, *args):
    try:
        what(*args)
        print("ok")
    except OSError as error:
        print(error.strerror)
def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)
here = os.getcwd()
os.mkdir("mine")
own = socket.socket(socket.AF_UNIX)
own.bind("mine/own")
own.listen(1)
attempt(connect, "closed/s")
attempt(os.rename, "closed/s", "open/s")
attempt(os.link, "closed/s", "open/s")
attempt(os.rename, "closed", "open/folder")
os.symlink(here + "/closed/s", "open/symlink")
attempt(connect, "open/symlink")
attempt(os.rename, "closed/s", "closed/other")
attempt(os.rename, "mine/own", "open/own")
attempt(connect, "open/own")
attempt(os.rename, "closed/file", "open/file")
"""


def test_a_socket_is_not_moved_to_where_it_may_be_reached(supervised: Supervised) -> None:
    """A new name for a socket outside, or for its folder, gives no more than the old one."""
    for name in ("closed", "open"):
        (supervised.root / name).mkdir()
    (supervised.root / "closed" / "file").write_text("x")
    rule = 'network:\n  - {id: open, allow: connect, to: ["unix:${root}/open/**"]}\n'
    with answering(supervised.root / "closed" / "s") as came:
        done = supervised(["python3", "-c", MOVES], POLICY + rule, "-q")
        assert done.lines() == [
            "Connection refused",
            "Invalid cross-device link",
            "Invalid cross-device link",
            "Invalid cross-device link",
            "Connection refused",
            "ok",
            "ok",
            "ok",
            "ok",
        ], done.err
        assert came == []


NAMES = """\
import os, socket
def attempt(kind, call, name):
    s = socket.socket(socket.AF_UNIX, kind)
    try:
        s.connect(name) if call == "connect" else s.sendto(b"x", name)
        print("ok")
    except OSError as error:
        print(error.strerror)
names = [b"\\0fine", b"\\0fine\\0", b"\\0fine\\0bad", b"\\0fin", b"\\0", b"\\0\\0fine", b"\\0bad"]
for name in [*names, b"l" * 108, b"../work/" + b"l" * 100, b"/proc/self/cwd/outside",
             b"/proc/self/fd/5/./outside", b"/proc/thread-self/root" + os.getcwdb() + b"/outside"]:
    attempt(socket.SOCK_STREAM, "connect", name)
    attempt(socket.SOCK_DGRAM, "sendto", name)
"""


def test_odd_names(supervised: Supervised) -> None:
    """What a rule does not name is not reached by a name that looks alike."""
    rule = 'network:\n  - {id: fine, allow: connect, to: ["unix:@fine"]}\n'
    os.symlink("outside", supervised.root / ("l" * 100))
    os.symlink("outside", supervised.root / ("l" * 108))
    names = [b"\0fine", b"\0fine\0", b"\0fine\0bad", b"\0bad", b"\0\0fine"]
    with answering(supervised.root / "outside") as came, ExitStack() as stack:
        for name in names:
            server = stack.enter_context(closing(socket.socket(socket.AF_UNIX)))
            server.bind(name)
            server.listen(8)
        done = supervised(["python3", "-c", NAMES], POLICY + rule, "-q")
        assert done.lines()[0] == "ok", done.err
        assert "ok" not in done.lines()[2:]
        assert came == []


@pytest.mark.parametrize("what", ["connect", "local", "stream", "packets"])
def test_signals_while_it_waits(supervised: Supervised, program: Put, what: str) -> None:
    """With SA_RESTART the call goes on, without it ends: as natively."""
    tool = program("network_waits")
    native = supervised.natively([tool, "signals", what])
    assert native.lines() == [f"{what} EINTR signals 2 late"]
    assert supervised([tool, "signals", what], TWO).lines() == native.lines()


@pytest.mark.parametrize("what", ["connect", "local", "stream", "packets"])
def test_others_go_on_while_it_waits(supervised: Supervised, program: Put, what: str) -> None:
    """200 calls that wait for ever do not keep the workers from opening files."""
    tool = program("network_waits")
    native = int(supervised.natively([tool, "busy", what]).out)
    opens = int(supervised([tool, "busy", what], TWO, "-q").out)
    assert opens > native / 4


def test_passed_descriptors(supervised: Supervised, program: Put) -> None:
    """How many may be passed, which, and with what errno: as natively."""
    tool = program("network_waits")
    native = supervised.natively([tool, "rights"])
    done = supervised([tool, "rights"], TWO)
    assert done.lines() == native.lines()
    assert "  253 arrived, 253 the same" in native.lines()


@pytest.mark.root
@pytest.mark.parametrize(
    ("what", "calls"), [("connect", 3000), ("noise", 10000), ("rights", 3000), ("killed", 60)]
)
def test_nothing_is_left(supervised: Supervised, program: Put, what: str, calls: int) -> None:
    """Calls that fail half-way, or whose caller is killed, leave no descriptor and no thread."""
    tool = program("network_waits")
    found = []
    for n in (1, calls):
        words = [*supervised.words(TWO, "-q"), str(tool), "many", what, str(n)]
        with subprocess.Popen(
            words,
            cwd=supervised.root,
            env=supervised.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            assert b"done\n" in iter(run.stdout.readline, b"")
            (supervisor,) = children(run.pid)[:1]
            left = (0, 0)
            for _ in range(20):
                of = Path(f"/proc/{supervisor}")
                left = (len(list((of / "fd").iterdir())), len(list((of / "task").iterdir())))
                if found and all(a <= b for a, b in zip(left, found[0], strict=True)):
                    break
                time.sleep(0.1)
            found.append(left)
            run.stdin.close()
        assert run.returncode == 0
    assert all(a <= b for a, b in zip(found[1], found[0], strict=True)), found


def test_no_signal_of_the_start_is_left(supervised: Supervised, program: Put) -> None:
    """Who sends the listener is a child for a moment; the command does not hear of its end."""
    tool = program("network_waits")
    words = [*supervised.words(TWO, "-q"), str(tool), "pending"]
    done = subprocess.run(
        words,
        cwd=supervised.root,
        env=supervised.environ(),
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD]),
    )
    assert done.stdout == b"none\n"
