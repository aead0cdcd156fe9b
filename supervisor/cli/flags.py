"""Readers of flag values: text in, value out, argparse's error for what is none."""

from __future__ import annotations

import argparse

OPS = "read, write, create, delete, rename, metadata, list, exec"
WAIVABLE = ("landlock", "wait-killable")
"""The facilities that a run can do without at the cost of something; it needs the others."""


def duration(text: str) -> float:
    """Read a duration.

    Args:
        text: number with an optional unit ms, s, m, h or d; seconds without one.

    Returns:
        Seconds.

    Raises:
        argparse.ArgumentTypeError: it is none, or not positive.
    """
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    unit = next((u for u in units if text.endswith(u)), "")
    number = text[: len(text) - len(unit)]
    if number.replace(".", "", 1).isdecimal() and number.isascii():
        seconds = float(number) * units.get(unit, 1.0)
        if 0 < seconds <= 10 * 365 * 86400:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 500ms, 30s, 5m or 1h")


def size(text: str) -> int:
    """Read a number of bytes.

    Args:
        text: number with an optional unit K, M, G or T, powers of 1024; bytes without one.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    plain = text.upper().removesuffix("IB")
    power = " KMGT".find(plain[-1:]) if plain[-1:] else 0
    number = plain[:-1] if power > 0 else plain
    if number.isdecimal() and number.isascii() and len(number) < 16:  # noqa: PLR2004
        return int(number) << 10 * max(power, 0)
    raise argparse.ArgumentTypeError(f"{text!r} is no size such as 500M or 2GiB")


def setting(text: str) -> tuple[str, str]:
    """Read ``key=value``.

    Args:
        text: the argument of --set.

    Raises:
        argparse.ArgumentTypeError: there is no key or no ``=``.
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form key=value")
    return key, value


def allow_path(text: str) -> tuple[str, tuple[str, ...]]:
    """Read ``PATH[:OPS]``; a colon that is followed by no operations belongs to the path.

    Args:
        text: the argument of --allow-path.

    Returns:
        The path and the operations, read alone where none are named.

    Raises:
        argparse.ArgumentTypeError: the path is empty.
    """
    known = {*OPS.split(", "), "all"}
    path, colon, tail = text.rpartition(":")
    ops = tuple(tail.split(","))
    if not colon or not known.issuperset(ops):
        path, ops = text, ("read",)
    if not path:
        raise argparse.ArgumentTypeError(f"{text!r} names no path")
    return path, ops


def facility(text: str) -> str:
    """Read the name of a facility that a run can do without.

    Args:
        text: the argument of --allow-degraded.

    Raises:
        argparse.ArgumentTypeError: it is none of :data:`WAIVABLE`.
    """
    if text in WAIVABLE:
        return text
    known = " and ".join(WAIVABLE)
    raise argparse.ArgumentTypeError(f"{text!r} cannot be waived: only {known} can")


def descriptor(text: str) -> int:
    """Read the number of a file descriptor.

    Args:
        text: the argument of --status-fd.

    Raises:
        argparse.ArgumentTypeError: it is no number below 2**20.
    """
    if text.isdecimal() and text.isascii() and int(text) < 1 << 20:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no file descriptor")
