"""Finding and watching processes from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def wait_until(true: Callable[[], object], seconds: float = 10.0) -> bool:
    """Poll until something holds; False when the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return bool(true())


def stat_of(pid: int) -> tuple[str, int] | None:
    """State letter and parent of a process; None when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def children(pid: int) -> list[int]:
    """Processes whose parent is this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            state = stat_of(int(name))
            if state and state[1] == pid:
                found.append(int(name))
    return sorted(found)


def alive(pid: int) -> bool:
    """Is there such a process, zombies not counted?"""
    state = stat_of(pid)
    return state is not None and state[0] not in "ZX"


def marked(text: str) -> list[int]:
    """Processes whose command line holds a text."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if (
                name.isdecimal()
                and int(name) != os.getpid()
                and text.encode() in Path(f"/proc/{name}/cmdline").read_bytes()
            ):
                found.append(int(name))
    return found
