"""Sends one signal by every call to every kind of target, and prints what came of it.

Run inside and outside of supervise: ``signal_calls.py NUMBER [CALL...]``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
NR = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "queue": (129, 138),
    "tgqueue": (297, 240),
    "pidfd": (424, 424),
}
WATCHED = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGRTMIN + 1}
PIDFD_THREAD = os.O_EXCL
TO_THREAD, TO_PROCESS, TO_GROUP = 1, 2, 4


def syscall(name: str, *args: int | bytes) -> str:
    """Make a call; "0" or the errno's name."""
    number = NR[name][0 if X86 else 1]
    given = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in args]
    if LIBC.syscall(ctypes.c_long(number), *given, *[ctypes.c_long(0)] * (6 - len(given))) == 0:
        return "0"
    return errno.errorcode[ctypes.get_errno()]


def siginfo(number: int, code: int = -1) -> bytes:
    """A struct siginfo of sigqueue(3) with the value 7."""
    return struct.pack("iiiiiiq", number, 0, code, 0, os.getpid(), os.getuid(), 7) + bytes(96)


def by_pidfd(pid: int, number: int, info: bytes | int = 0, flags: int = 0, kind: int = 0) -> str:
    """pidfd_send_signal(2) with a fresh pidfd."""
    fd = LIBC.syscall(ctypes.c_long(434), ctypes.c_long(pid), ctypes.c_long(kind))
    if fd < 0:
        return f"pidfd_open {errno.errorcode[ctypes.get_errno()]}"
    try:
        return syscall("pidfd", fd, number, info, flags)
    finally:
        os.close(fd)


CALLS: dict[str, Callable[[int, int], str]] = {
    "kill": lambda pid, n: syscall("kill", pid, n),
    "high": lambda pid, n: syscall("kill", pid | 7 << 32, n | 9 << 32),
    "tkill": lambda pid, n: syscall("tkill", pid, n),
    "tgkill": lambda pid, n: syscall("tgkill", pid, pid, n),
    "queue": lambda pid, n: syscall("queue", pid, n, siginfo(n)),
    "queue-other-number": lambda pid, n: syscall("queue", pid, n, siginfo(3)),
    "queue-as-kernel": lambda pid, n: syscall("queue", pid, n, siginfo(n, 0x80)),
    "tgqueue": lambda pid, n: syscall("tgqueue", pid, pid, n, siginfo(n)),
    "pidfd": by_pidfd,
    "pidfd-info": lambda pid, n: by_pidfd(pid, n, siginfo(n)),
    "pidfd-wrong-info": lambda pid, n: by_pidfd(pid, n, siginfo(3)),
    "pidfd-thread": lambda pid, n: by_pidfd(pid, n, 0, TO_THREAD),
    "pidfd-thread-info": lambda pid, n: by_pidfd(pid, n, siginfo(n), TO_THREAD),
    "pidfd-process": lambda pid, n: by_pidfd(pid, n, 0, TO_PROCESS),
    "pidfd-of-thread": lambda pid, n: by_pidfd(pid, n, 0, 0, PIDFD_THREAD),
    "pidfd-flags": lambda pid, n: by_pidfd(pid, n, 0, 3),
    "pidfd-none": lambda _, n: syscall("pidfd", 0, n, 0, 0),
    "pidfd-bad": lambda _, n: syscall("pidfd", 99, n, 0, 0),
}


def seen(sender: int) -> str:
    """What is pending: number, code, and whether the sender is named."""
    got = signal.sigtimedwait(WATCHED, 0)
    if got is None:
        return "nothing"
    return f"{int(got.si_signo)} code={got.si_code} {'sender' if got.si_pid == sender else 'other'}"


class Receiver:
    """A child that waits for one signal and says what it saw."""

    def __init__(self) -> None:
        """Start it; everything watched is blocked in it."""
        ours, theirs = os.pipe()
        told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(theirs)
            sender = struct.unpack("q", os.read(ours, 8))[0]
            os.read(ours, 1)  # sent, and so pending
            os.write(tell, seen(sender).encode())
            os._exit(0)
        os.close(ours)
        os.close(tell)
        self._tell, self._told = theirs, told

    def after(self, send: Callable[[], str], sender: int = 0) -> str:
        """Send, and say what came of it."""
        os.write(self._tell, struct.pack("q", sender or os.getpid()))
        result = send()
        os.write(self._tell, b"x")
        return f"{result} {self.end()}"

    def end(self) -> str:
        """What it saw."""
        text = os.read(self._told, 100).decode() or "gone"
        os.waitpid(self.pid, 0)
        os.close(self._tell)
        os.close(self._told)
        return text


def to_others(call: Callable[[int, int], str], number: int) -> str:
    """A sibling sends to the receiver."""
    receiver = Receiver()
    go, start = os.pipe()
    result, tell = os.pipe()
    sibling = os.fork()
    if sibling == 0:
        os.read(go, 1)
        os.write(tell, call(receiver.pid, number).encode())
        os._exit(0)

    def send() -> str:
        os.write(start, b"x")
        return os.read(result, 100).decode()

    said = receiver.after(send, sibling)
    os.waitpid(sibling, 0)
    for fd in (go, start, result, tell):
        os.close(fd)
    return said


def main(number: int, names: list[str]) -> None:
    """Print a line for each call and target."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    for name in names or CALLS:
        call = CALLS[name]
        result = call(os.getpid(), number)
        print(name, "self", result, seen(os.getpid()))
        receiver = Receiver()
        print(name, "child", receiver.after(lambda c=call, r=receiver: c(r.pid, number)))  # type: ignore[misc]
        print(name, "others", to_others(call, number))
        if name != "queue-as-kernel":  # natively EPERM, before anybody is looked up
            print(name, "nobody", call(4194303, number), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
