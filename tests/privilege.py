"""What our root may do: in a container it has not all that some tests rest on."""

from __future__ import annotations

import os
from pathlib import Path

# Other identities are looked into; names, mounts, attributes and devices are made.
NEEDED = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21}
WHOLE_RANGE = ["0", "0", "4294967295"]


def _status(name: str) -> str:
    """A field of this process's status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith(f"{name}:"))


def lacking() -> str:
    """What our root lacks, as a reason to skip; empty where it is whole or we are not root."""
    if os.geteuid() != 0:
        return ""
    held = int(_status("CapEff"), 16)
    missing = [name for name, bit in NEEDED.items() if not held >> bit & 1]
    if missing:
        return f"root without {' and '.join(missing)}, as in a container"
    if Path("/proc/self/uid_map").read_text().split() != WHOLE_RANGE:
        return "root of a user namespace, not of the machine"
    return ""


def whole_root() -> bool:
    """Are we root, with nothing taken away?"""
    return os.geteuid() == 0 and not lacking()


def filtered() -> bool:
    """Is there a seccomp filter around us already, which may answer first?"""
    return _status("Seccomp") == "2"
