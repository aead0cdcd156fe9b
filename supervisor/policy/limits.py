"""``limits``: reading them, and the smallest of several files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supervisor.model import COUNTED
from supervisor.policy import schema
from supervisor.policy.fields import KINDS, Reader
from supervisor.policy.load import Map, Node, Scalar
from supervisor.policy.problems import quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from supervisor.policy.schema import Source

NAMES = (*COUNTED, "open_files", "file_size", "cpu", "wall")
"""All limits, by enum sv_limit_kind."""
LATER = {
    "memory": "is not supported by this version: it takes a cgroup v2 of the run's own",
    "processes": "is not supported by this version: it takes a cgroup v2 of the run's own",
    "bytes_out": "is not supported by this version: bytes written to a connected socket stay in "
    "the kernel",
}
KEYS = ("hard", "soft", "on_exceed")
_DURATIONS = ("cpu", "wall")
_KERNEL = ("open_files", "file_size")
_ALWAYS_HALT = (*_DURATIONS, "denials")
LARGEST = 1 << 62
_COUNT = re.compile(r"[0-9]{1,30}")
_DURATION = re.compile(r"(?:([0-9]{1,20})h)?(?:([0-9]{1,20})m)?(?:([0-9]{1,20})s)?")
_BYTES = re.compile(r"([0-9]{1,30})(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?")
_UNITS = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of one thing a run may use.

    Attributes:
        name: One of ``NAMES``.
        hard: More than this is not given; None = no end.
        soft: More than this is told, once; None = never.
        halt: What is above ``hard`` ends the run; else it is refused.
        source: Where it stands; of several files, where the smallest ``hard`` does.
    """

    name: str
    hard: int | None
    soft: int | None
    halt: bool
    source: Source

    @property
    def id(self) -> str:
        """Return what it is called in events; no rule of a file can have this id."""
        return f"limit:{self.name}"

    @property
    def say(self) -> str:
        """Return a sentence about it, for whoever is refused."""
        if self.hard is None:
            return f"{self.name}: more than {self.show(self.soft)} is told"
        end = "ends the run" if self.halt else "is refused"
        return f"{self.name}: more than {self.show(self.hard)} {end}"

    def values(self) -> tuple[tuple[str, int], ...]:
        """Return the names and values of what is set."""
        both = (("hard", self.hard), ("soft", self.soft))
        return tuple((name, value) for name, value in both if value is not None)

    def show(self, value: int | None) -> str:
        """Return one of its values as people write it."""
        unit = "s" if self.name in _DURATIONS else ""
        return "-" if value is None else f"{value}{unit}"


def read(reader: Reader, node: Node) -> tuple[Limit, ...]:
    """Turn the section into records; every problem is noted."""
    if not isinstance(node, Map):
        reader.fail(node, f"'limits' must be a mapping, found {KINDS[type(node)]}")
        return ()
    found = [_limit(reader, key, value) for key, value in node.items]
    return tuple(limit for limit in found if limit is not None)


def _limit(reader: Reader, key: Scalar, node: Node) -> Limit | None:
    name = key.value
    if name in LATER:
        reader.fail(key, f"{quote(name)} {LATER[name]}")
        return None
    if name not in NAMES:
        hint = suggest(name, (*NAMES, *LATER))
        reader.fail(key, f"unknown limit {quote(name)}; known: {', '.join(NAMES)}", hint=hint)
        return None
    before = len(reader.problems)
    hard, soft, halt = _values(reader, name, key, node)
    if len(reader.problems) > before:
        return None
    return Limit(name, hard, soft, halt, reader.source(key))


def _values(
    reader: Reader, name: str, key: Scalar, node: Node
) -> tuple[int | None, int | None, bool]:
    if not isinstance(node, Map):
        return _value(reader, name, node), None, name in _ALWAYS_HALT
    keys = reader.keys(node, KEYS)
    hard = _value(reader, name, keys["hard"][1]) if "hard" in keys else None
    soft = _value(reader, name, keys["soft"][1]) if "soft" in keys else None
    if not {"hard", "soft"} & set(keys):
        reader.fail(key, f"limit {quote(name)} needs 'hard' or 'soft'")
    if "soft" in keys and name in _KERNEL:
        reader.fail(keys["soft"][0], f"the kernel does not tell when {quote(name)} is passed")
    if hard is not None and soft is not None and soft > hard:
        reader.fail(keys["soft"][1], "the soft limit is above the hard one and would not be told")
    return hard, soft, _halts(reader, name, keys["on_exceed"][1] if "on_exceed" in keys else None)


def _halts(reader: Reader, name: str, node: Node | None) -> bool:
    if node is None:
        return name in _ALWAYS_HALT
    word = node.value if isinstance(node, Scalar) else ""
    if word == "approve":
        reader.fail(node, f"'on_exceed: approve' {schema.LATER}")
    elif word not in ("deny", "halt"):
        reader.fail(node, "'on_exceed' must be deny or halt", hint=suggest(word, ("deny", "halt")))
    elif word == "deny" and name in _ALWAYS_HALT:
        reader.fail(node, f"what is above {quote(name)} cannot be refused: it ends the run")
    elif word == "halt" and name in _KERNEL:
        reader.fail(node, f"the kernel refuses what is above {quote(name)}, and tells nobody")
    return word == "halt"


def _value(reader: Reader, name: str, node: Node) -> int | None:
    """Return a number of things, bytes or seconds; None when a problem was noted."""
    text = node.value if isinstance(node, Scalar) else None
    if text is None:
        message = f"limit {quote(name)} must be a single value, found {KINDS[type(node)]}"
        reader.fail(node, message)
        return None
    if text.startswith("-"):
        reader.fail(node, f"limit {quote(name)} is negative: 0 stands for none at all")
        return None
    value = _number(name, text)
    if value is None:
        want = "a whole number, as 100"
        if name in _DURATIONS:
            want = "a time in whole seconds, as 90s, 30m or 1h30m"
        elif name == "file_size":
            want = "bytes, as 500MB, 2GiB or a plain number"
        reader.fail(node, f"limit {quote(name)} must be {want}: found {quote(text)}")
    elif value > LARGEST:
        note = "leave the limit out for no limit"
        reader.fail(node, f"limit {quote(name)} is above 2^62", note=note)
        return None
    return value


def _number(name: str, text: str) -> int | None:
    if name in _DURATIONS:
        match = _DURATION.fullmatch(text)
        if text == "0":
            return 0
        if not match or not text:
            return None
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds
    if name == "file_size":
        match = _BYTES.fullmatch(text)
        return int(match[1]) * _UNITS[match[2] or ""] if match else None
    return int(text) if _COUNT.fullmatch(text) else None


def smallest(files: Iterable[Iterable[Limit]]) -> tuple[Limit, ...]:
    """Return one limit of each name: a file can only narrow what another says."""
    found: dict[str, Limit] = {}
    for limit in (limit for limits in files for limit in limits):
        other = found.get(limit.name)
        found[limit.name] = limit if other is None else _narrower(other, limit)
    return tuple(found[name] for name in NAMES if name in found)


def _narrower(a: Limit, b: Limit) -> Limit:
    first = a if b.hard is None or (a.hard is not None and a.hard <= b.hard) else b
    soft = [value for value in (a.soft, b.soft) if value is not None]
    return Limit(a.name, first.hard, min(soft, default=None), a.halt or b.halt, first.source)
