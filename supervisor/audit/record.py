"""The one schema of the audit log, and the hash chain over it.

A log is a text file of JSON lines. A line is canonical: ASCII, keys sorted, no
spaces, only objects, lists, strings and integers. Its fields:

``v``        version of this schema, 1
``seq``      number of the line in its file, from 1, without gaps
``ts``       wall clock, nanoseconds since 1970
``mono``     monotonic clock, nanoseconds
``type``     session_start | file | network | exec | signal | fault | limit | session_end
``session``  id of the run, 16 hex digits
``pid``      task that made the call; the supervisor in session_start and session_end
``comm``     its name
``action``   what it is about: ``call`` (the syscall), ``ops``, ``path``, ``path2``, ``argv``, ...
``decision`` allow | steer | approve | deny; ``effect`` how it was carried out
``rule``     id of the winning rule, "" for the default; ``src`` its file and line
``errno``    what the task saw, 0 for success
``policy``   ``name`` and ``sha256`` of the compiled policy
``prev``     ``h`` of the line before, 64 zeros in the first one
``h``        SHA-256 of "supervise-audit-v1", a NUL, ``prev`` and the line without ``h``

Paths, names and arguments are bytes: they are written with
:func:`supervisor.run.events.escape`, which :func:`supervisor.run.events.unescape`
turns back. The json package is not imported here: it would cost
a tenth of a warm start.
"""

from __future__ import annotations

from supervisor.errors import SessionError
from supervisor.policy.digest import hexdigest
from supervisor.run.events import (
    ACTIONS,
    EFFECTS,
    EXEC,
    FAULT,
    KINDS,
    LIMIT,
    NETWORK,
    OP_EXEC,
    OP_SIGNAL,
    escape,
    name_of,
    op_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from supervisor.run.events import Event

    Value = int | str | Sequence["Value"] | Mapping[str, "Value"]
    _quote: Callable[[str], str]

try:
    from _json import encode_basestring_ascii as _quote
except ImportError:
    from json.encoder import encode_basestring_ascii as _quote

VERSION = 1
GENESIS = "0" * 64
"""``prev`` of the first line of a file."""
_DOMAIN = b"supervise-audit-v1\0"
TYPES = frozenset(
    {"session_start", "file", "network", "exec", "signal", "fault", "limit", "session_end"}
)


def encode(value: Value) -> str:
    """Write a value as canonical JSON.

    Args:
        value: integers, strings, and lists and objects of them.

    Raises:
        SessionError: the value holds something else; a float has no one spelling.
    """
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(k)}:{encode(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(encode(item) for item in value) + "]"
    raise SessionError(f"an audit record cannot hold a {type(value).__name__}")


def digest(prev: str, body: str) -> str:
    """Hash a line into the chain.

    Args:
        prev: ``h`` of the line before.
        body: the canonical line without ``h``.
    """
    return hexdigest(_DOMAIN + prev.encode() + body.encode())


class Chain:
    """Numbers and links lines; it keeps no file."""

    __slots__ = ("prev", "seq")

    def __init__(self, seq: int = 0, prev: str = GENESIS) -> None:
        """Go on after a line.

        Args:
            seq: number of the last line, 0 for none.
            prev: its ``h``.
        """
        self.seq = seq
        self.prev = prev

    def line(self, fields: Mapping[str, Value]) -> bytes:
        """Make the next line of the file, newline included.

        Args:
            fields: the record without ``v``, ``seq``, ``prev`` and ``h``.
        """
        self.seq += 1
        whole = {**fields, "v": VERSION, "seq": self.seq, "prev": self.prev}
        parts = {key: f"{_quote(key)}:{encode(whole[key])}" for key in sorted(whole)}
        self.prev = digest(self.prev, "{" + ",".join(parts.values()) + "}")
        parts["h"] = f'"h":"{self.prev}"'
        return ("{" + ",".join(parts[key] for key in sorted(parts)) + "}\n").encode()


def event_fields(
    event: Event, session: str, call: str, rule: tuple[str, str], policy: Mapping[str, Value]
) -> dict[str, Value]:
    """Describe an event of the native library as a record.

    Args:
        event: the event.
        session: id of the run.
        call: name of its syscall.
        rule: id of the winning rule and its source; empty strings for the default.
        policy: name and sha256 of the compiled policy.
    """
    action: dict[str, Value] = {"call": call, "path": escape(event.path)}
    if event.ops:
        action["ops"] = op_names(event.ops)
    if event.path2:
        action["path2"] = escape(event.path2)
    if event.kind in (FAULT, LIMIT):
        action["detail"] = escape(event.detail)
    elif event.kind == EXEC or event.ops & OP_EXEC:
        action["argv"] = [escape(argument) for argument in arguments(event.detail)]
    kind = name_of(KINDS, event.kind)
    if event.kind not in (FAULT, LIMIT) and event.ops & (OP_EXEC | NETWORK):
        kind = "exec" if event.ops & OP_EXEC else "network"
    if event.kind != FAULT and event.ops & OP_SIGNAL:
        kind = "signal"
    return {
        "ts": event.time_ns,
        "mono": event.mono_ns,
        "type": kind,
        "session": session,
        "pid": event.tid,
        "comm": escape(event.comm),
        "action": action,
        "decision": name_of(ACTIONS, event.action),
        "effect": name_of(EFFECTS, event.effect),
        "rule": rule[0],
        "src": rule[1],
        "policy": policy,
        "errno": event.err,
    }


def arguments(detail: bytes) -> list[bytes]:
    """Split the arguments of an exec event.

    Args:
        detail: arguments joined by NUL, with or without one at the end.
    """
    if not detail:
        return []
    return detail.removesuffix(b"\0").split(b"\0")
