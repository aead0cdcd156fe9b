"""Calls of the network on this machine, one line each: run natively and supervised, and compared.

Ports and numbers that the kernel chooses are not shown.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable

LO4, LO6 = "127.0.0.1", "::1"
MPTCP, UDPLITE = 262, 136


def say(what: str, call: Callable[[], object]) -> None:
    """Print what a call gives, or its errno."""
    try:
        print(what, call())
    except OSError as error:
        print(what, errno.errorcode.get(error.errno or 0, error))


def tcp(family: int, host: str, protocol: int = 0) -> None:
    """One connection, with what either side is told of the other."""
    server = socket.socket(family, socket.SOCK_STREAM, protocol)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((host, 0))
    server.listen(5)
    name = server.getsockname()
    client = socket.socket(family, socket.SOCK_STREAM, protocol)
    client.connect(name)
    other, peer = server.accept()
    print("tcp", host, client.getpeername() == name, other.getsockname() == name)
    print("tcp", host, peer == client.getsockname())
    client.sendall(b"x" * 100000)
    client.shutdown(socket.SHUT_WR)
    print("tcp", host, len(other.makefile("rb").read()))
    say("again", lambda: client.connect(name))
    say("to an address", lambda: other.sendto(b"abc", name))
    print("tcp", host, client.recv(10))
    client.close()
    print("end", other.recv(10))
    say("listen again", lambda: server.listen(1))
    say("bind again", lambda: server.bind((host, 0)))
    server.close()
    other.close()
    say("nobody", lambda: socket.create_connection(name[:2]))


def waiting(host: str) -> None:
    """A connection that is made while the caller does something else."""
    with socket.create_server((host, 0)) as server, socket.socket() as client:
        client.setblocking(False)
        print("eager", errno.errorcode.get(client.connect_ex(server.getsockname()), 0))
        select.select([], [client], [])
        print("eager", client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        print("eager", errno.errorcode.get(client.connect_ex(server.getsockname()), 0))
    with socket.socket() as client:
        client.setblocking(False)
        got = client.connect_ex((host, 1))
        select.select([], [client], [])
        late = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        print("refused", errno.errorcode[got], errno.errorcode[late])
    with socket.socket() as client:
        client.settimeout(5)
        say("with a limit", lambda: client.connect((host, 1)))


def datagrams(family: int, host: str, protocol: int = 0) -> None:
    """With and without a connection, to the right and the wrong address."""
    one = socket.socket(family, socket.SOCK_DGRAM, protocol)
    two = socket.socket(family, socket.SOCK_DGRAM, protocol)
    one.bind((host, 0))
    name = one.getsockname()
    print("udp", two.sendto(b"abc", name), one.recv(10))
    print("udp", two.sendmsg([b"ab", b"cd"], [], 0, name), one.recv(10))
    print("udp", two.sendto(b"", name), one.recvfrom(10)[0])
    say("too long", lambda: two.sendto(bytes(65508), name))
    say("much too long", lambda: two.sendmsg([bytes(65536), bytes(65536)], [], 0, name))
    say("short address", lambda: two.sendto(b"abc", name) if family == 0 else "not asked")
    two.connect(name)
    print("connected", two.getpeername() == name, two.send(b"x"), one.recv(5))
    say("elsewhere", lambda: two.sendto(b"y", (host, 9)))
    one.close()
    two.send(b"nobody")
    say("nobody", lambda: two.recv(5))
    two.close()


def dissolve() -> None:
    """connect() with AF_UNSPEC takes a connection back."""
    libc = __import__("ctypes").CDLL(None, use_errno=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((LO4, 9))
        nothing = struct.pack("H14x", socket.AF_UNSPEC)
        print("dissolve", libc.connect(s.fileno(), nothing, 16))
        say("then", s.getpeername)


def addresses() -> None:
    """Senseless addresses, as bytes."""
    ctypes = __import__("ctypes")
    libc = ctypes.CDLL(None, use_errno=True)
    v4 = struct.pack("!H", 0)
    good = (
        struct.pack("=H", socket.AF_INET) + struct.pack("!H", 9) + bytes([127, 0, 0, 1]) + bytes(8)
    )
    table = {
        "nothing": b"",
        "one byte": b"\2",
        "family alone": good[:2],
        "cut": good[:15],
        "long": good + bytes(112),
        "too long": good + bytes(113),
        "family 99": struct.pack("=H", 99) + good[2:],
        "family 10": struct.pack("=H", socket.AF_INET6) + good[2:],
        "local": struct.pack("=H", socket.AF_UNIX) + b"/x\0" + v4,
    }
    kinds = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
    for kind, number in kinds.items():
        for name, text in table.items():
            for call in ("connect", "bind", "sendto"):
                with socket.socket(socket.AF_INET, number) as s:
                    args = [text, len(text)]
                    if call == "sendto":
                        args = [b"x", 1, socket.MSG_NOSIGNAL, *args]
                    rc = getattr(libc, call)(s.fileno(), *args)
                    print(kind, name, call, rc, errno.errorcode.get(ctypes.get_errno() * (rc < 0)))
    with socket.socket() as s:
        for length in (-1, 1 << 30, 129):
            rc = libc.connect(s.fileno(), good, ctypes.c_uint(length & 0xFFFFFFFF))
            print("length", length, rc, errno.errorcode.get(ctypes.get_errno()))
        rc = libc.connect(s.fileno(), ctypes.c_void_p(8), 16)
        print("address 8", rc, errno.errorcode.get(ctypes.get_errno()))
    for call in ("connect", "bind"):
        print(
            "no socket", call, getattr(libc, call)(0, good, 16), getattr(libc, call)(999, good, 16)
        )
    print("listen", libc.listen(0, 1), errno.errorcode.get(ctypes.get_errno()))


def messages() -> None:
    """Descriptors and other control data, from one thread and from two."""
    for threads in (1, 2):
        over = threading.Event()
        if threads == 2:
            threading.Thread(target=over.wait, daemon=True).start()
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
            a, b = socket.socketpair(socket.AF_UNIX, kind)
            r, w = os.pipe()
            print("fds", threads, socket.send_fds(a, [b"two"], [w, r]))
            text, fds, _, _ = socket.recv_fds(b, 10, 4)
            os.write(fds[0], b"through")
            print("fds", text, os.read(r, 10))
            for fd in (r, w, *fds):
                os.close(fd)
            bad = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [999]))]
            say("bad", lambda: a.sendmsg([b"x"], bad))  # noqa: B023 - called at once
            say("parts", lambda: a.sendmsg([b"a" * 3000, b"", b"b" * 5]))  # noqa: B023
            print("parts", len(b.recv(9000)))
            b.close()
            say("gone", lambda: a.sendmsg([b"x"], [], socket.MSG_NOSIGNAL))  # noqa: B023
            a.close()
        over.set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((LO4, 0))
        one.setsockopt(socket.IPPROTO_IP, 8, 1)
        info = struct.pack("=iii", 0, 0, 0)
        print("pktinfo", one.sendmsg([b"x"], [(0, 8, info)], 0, one.getsockname()))
        text, control, _, _ = one.recvmsg(10, 100)
        print("pktinfo", text, [c[:2] for c in control])


def large() -> None:
    """More than a socket takes at once, blocking, from a program with threads."""
    a, b = socket.socketpair()
    got = []
    reader = threading.Thread(target=lambda: got.append(len(b.makefile("rb").read())))
    reader.start()
    print("large", a.sendmsg([bytes(3_000_001), b"", bytes(1_999_999)]))
    a.close()
    reader.join()
    print("large", got)


def packets() -> None:
    """Whole ones, up to what the socket's buffer holds."""
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        a, b = socket.socketpair(socket.AF_UNIX, kind)
        print("packet", a.sendmsg([bytes(100_000)]), len(b.recv(200_000)))
        say("packet", lambda: a.sendmsg([bytes(300_000)]))  # noqa: B023 - called at once
        b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        mine = struct.pack("=iII", os.getpid(), os.getuid(), os.getgid())
        print("ids", a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, mine)]))
        _, [(_, _, said)], _, _ = b.recvmsg(10, 100)
        print("ids", said[4:] == mine[4:])
        other = struct.pack("=iII", 1, os.getuid(), os.getgid())
        if os.getuid():
            bad = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, other)]
            say("others", lambda: a.sendmsg([b"x"], bad))  # noqa: B023
    over.set()


def unbound() -> None:
    """listen() alone takes some port of every address."""
    with socket.socket() as server:
        server.listen(1)
        host, port = server.getsockname()
        print("unbound", host, port > 0)
        socket.create_connection((LO4, port)).close()
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::", 0))
        server.listen(9)
        port = server.getsockname()[1]
        for host in (LO4, LO6, "0.0.0.0", "::"):  # noqa: S104 - to connect to
            with contextlib.closing(socket.create_connection((host, port))) as client:
                print("both", client.getpeername()[0])


def local() -> None:
    """Abstract names, and datagrams by path."""
    name = f"\0network-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(name)
        server.listen(1)
        client.connect(name)
        print("abstract", client.getpeername() == name.encode())
    one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    two = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.bind("one")
    two.bind("two")
    two.sendto(b"hello", "one")
    text, back = one.recvfrom(10)
    print("local", text, one.sendto(b"back", back), two.recv(10))
    two.connect("one")
    print("local", two.send(b"x"), one.recv(1), two.getpeername())
    say("nobody", lambda: two.sendto(b"x", "absent"))
    say("no socket", lambda: two.sendto(b"x", sys.argv[0]))


def interfaces() -> None:
    """What getifaddrs and its like ask for."""
    print("interfaces", [name for _, name in socket.if_nameindex()][:1])
    print("index", socket.if_nametoindex("lo"))
    found = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    print("getaddrinfo", found[0][4])


def main() -> None:
    """All of it."""
    tcp(socket.AF_INET, LO4)
    tcp(socket.AF_INET6, LO6)
    with contextlib.suppress(OSError):
        tcp(socket.AF_INET, LO4, MPTCP)
    waiting(LO4)
    for protocol in (0, UDPLITE):
        datagrams(socket.AF_INET, LO4, protocol)
        datagrams(socket.AF_INET6, LO6, protocol)
    dissolve()
    addresses()
    messages()
    large()
    packets()
    unbound()
    local()
    interfaces()


main()
