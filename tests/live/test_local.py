"""Local sockets: between programs of the tree as natively, to nobody outside."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

pytestmark = pytest.mark.live
Put = Callable[..., Path]
TRIES = int(os.environ.get("SUPERVISE_LOCAL_TRIES", "5000"))

CALLS = """\
import os, socket, stat, threading
from multiprocessing.connection import Client, Listener

here = os.getcwd()
os.umask(0o027)
server = socket.socket(socket.AF_UNIX)
server.bind(here + "/s")
print(server.getsockname() == here + "/s")
print(oct(os.stat("s").st_mode), oct(os.fstat(server.fileno()).st_mode))
server.listen(5)
client = socket.socket(socket.AF_UNIX)
client.connect("s")
other, address = server.accept()
print(repr(address), client.getpeername() == here + "/s", other.getsockname() == here + "/s")
client.send(b"x")
print(other.recv(1), repr(client.getsockname()), repr(other.getpeername()))
packets = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
packets.bind("relative")
packets.listen(1)
print(packets.getsockname())
os.mkdir("other")
twin = socket.socket(socket.AF_UNIX)
twin.bind("other/s")
print(twin.getsockname(), server.getsockname() == here + "/s")
os.symlink("s", "link")
os.mkdir("closed")
open("file", "w").close()
os.chmod("file", 0)
names = ["absent", "s", "link", "file", "/dev/null", ".", "..", "", "no/x", "file/x", "s/"]
for name in (*names, "new/"):
    for call in ("bind", "connect"):
        try:
            print(call, name, getattr(socket.socket(socket.AF_UNIX), call)(name))
        except OSError as error:
            print(call, name, error.errno)
try:
    client.bind("late")
    print("late", client.getsockname())
    client.bind("later")
except OSError as error:
    print("later", error.errno)
listener = Listener(None, "AF_UNIX")
threading.Thread(target=lambda: listener.accept().send("hello")).start()
print(Client(listener.address).recv())
"""


@contextmanager
def listening(path: Path) -> Iterator[list[bytes]]:
    """Serve on path, outside; yields who came."""
    came: list[bytes] = []
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind(str(path))
        server.listen(64)
        server.settimeout(0.2)
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    continue
                came.append(b"x")
                with connection:
                    connection.send(b"o")

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield came
        finally:
            over.set()
            thread.join()


def test_as_natively(supervised: Supervised, tmp_path: Path) -> None:
    """Names, modes, errnos and data are the kernel's."""
    program = tmp_path / "calls.py"
    program.write_text(CALLS)
    native = tmp_path / "native"
    native.mkdir()
    expected = supervised.natively(["python3", program], cwd=native)
    (supervised.root / "calls.py").write_text(CALLS)
    policy = POLICY
    policy += "  - {id: scratch, allow: all, paths: ['${TMPDIR}/**']}\n"
    policy += "env: {set: {TMPDIR: '${TMPDIR}'}}\n"
    done = supervised(["python3", "calls.py"], policy)
    assert done.lines() == expected.lines(), done.err
    assert done.lines()[-1] == "hello"
    assert done.err == expected.err == b""


def test_multiprocessing(supervised: Supervised) -> None:
    """Pools, managers and the fork server work under the default policy."""
    code = """\
import multiprocessing as m
from multiprocessing import shared_memory
if __name__ == "__main__":
    for method in m.get_all_start_methods():
        with m.get_context(method).Pool(2) as pool:
            print(method, pool.map(abs, [-1, -2]))
    with m.Manager() as manager:
        print(manager.list([1]))
    block = shared_memory.SharedMemory(create=True, size=8)
    block.close()
    block.unlink()
"""
    (supervised.root / "many.py").write_text(code)
    done = supervised(["python3", "many.py"], "pack:agent-dev")
    native = supervised.natively(["python3", "many.py"])
    assert done.lines() == native.lines(), done.err
    assert len(done.lines()) == 4
    assert done.err == b""


def test_nobody_outside(supervised: Supervised, program: Put) -> None:
    """A server outside is not reached by its path, flipped in or moved in."""
    tool = program("local")
    outside = supervised.root / "outside"
    with listening(outside) as came:
        native = supervised.natively(
            [tool, "race", str(20 * TRIES), supervised.root / "native", outside]
        )
        assert b"outside 0" not in native.out, "the attack is too weak: it never hits natively"
        before = len(came)
        plain = f"import socket; socket.socket(socket.AF_UNIX).connect({str(outside)!r})"
        done = supervised(["python3", "-c", plain])
        assert b"ConnectionRefusedError" in done.err
        assert ("connect", f"unix:{outside}") in done.denied()
        raced = supervised(
            [tool, "race", str(TRIES), supervised.root / "inside", outside], None, "-q"
        )
        words = raced.lines()[0].split()
        assert int(words[1]) > 0, raced.lines()
        assert words[3] == "0"
        assert int(words[5]) > 0, "no try asked for the outside"
        (supervised.root / "folder").mkdir()
        swapped = supervised(
            [tool, "swap", str(TRIES), supervised.root / "folder", outside], None, "-q"
        )
        assert swapped.lines() == ["bound some reached 0"]
        assert len(came) == before


def test_what_may_listen(supervised: Supervised, program: Put) -> None:
    """Local sockets only, and none in a place where rules let nothing be made."""
    tool = program("local")
    done = supervised([tool, "kinds"])
    assert done.lines() == [
        "tcp bind EACCES",
        "tcp listen EACCES",
        "unbound EINVAL",
        "abstract EACCES",
        "file ENOTSOCK",
        "none EBADF",
    ]
    rule = '  - {id: fixed, deny: create, paths: ["${root}/fixed/**"], as: EROFS}\n'
    (supervised.root / "fixed").mkdir()
    code = "import socket; socket.socket(socket.AF_UNIX).bind('fixed/s')"
    refused = supervised(["python3", "-c", code], POLICY + rule)
    assert b"Read-only file system" in refused.err
    assert not (supervised.root / "fixed" / "s").exists()


def test_a_full_queue(supervised: Supervised, program: Put) -> None:
    """A connection waits for the server, and a signal ends the wait."""
    tool = program("local")
    expected = ["first ok", "eager EAGAIN", "second EINTR", "third ok"]
    native = supervised.natively([tool, "queue", supervised.root / "native"])
    assert native.lines() == expected
    assert supervised([tool, "queue", supervised.root / "s"]).lines() == expected


@pytest.mark.root
def test_changed_identity(supervised: Supervised, program: Put) -> None:
    """Whoever gave up root does not come to a server as root."""
    tool = program("local")
    path = Path("/tmp") / f"local-{os.getpid()}"
    policy = POLICY + f"  - {{id: s, allow: all, paths: ['{path}']}}\n"
    try:
        done = supervised([tool, "identity", path], policy)
    finally:
        path.unlink(missing_ok=True)
    assert done.lines() == ["connect EACCES"]
