"""Whether a program has the bytes that a rule with ``sha256`` says, for ``explain``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a program found.

    Attributes:
        good: Whether it would run, as far as its bytes go.
        why: A sentence, or "" where there is nothing to say.
        found: Its SHA-256 in hex; "" where it could not be read or does not matter.
    """

    good: bool
    why: str = ""
    found: str = ""


def look(path: bytes, digest: bytes) -> Look:
    """Compare a program with a digest.

    Args:
        path: True path of the program.
        digest: SHA-256 that it must have.
    """
    try:
        with open(path, "rb") as stream:
            script = stream.read(2) == b"#!"
            stream.seek(0)
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as problem:
        return Look(good=True, why=f"its sha256 decides, and it cannot be read: {problem.strerror}")
    if script:
        why = "a script is read again by its interpreter, so no digest can hold for it"
        return Look(good=False, why=why)
    if found != digest.hex():
        why = f"the program's sha256 is {found} and not {digest.hex()}"
        return Look(good=False, why=why, found=found)
    return Look(good=True, why=f"the program's sha256 is {found}, as the rule says")
