"""Events as Python sees them, their names, and how bytes are shown to people.

The numbers are those of native/supervise.h (a test compares them), kept here so
that logs can be read where the compiled module is not built.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

CALL, EXEC, FAULT, LIMIT = 1, 2, 3, 4
ALLOW, STEER, APPROVE, DENY = 0, 1, 2, 3

OPS = {
    "read": 1,
    "write": 2,
    "create": 4,
    "delete": 8,
    "rename": 16,
    "metadata": 32,
    "list": 64,
    "exec": 128,
}
OP_EXEC = OPS["exec"]
NET_OPS = {"connect": 0x200, "bind": 0x400, "send": 0x800}
OP_BIND = NET_OPS["bind"]
NETWORK = sum(NET_OPS.values())
"""Operations whose path is an address or a local socket, such as "[::1]:80" and "unix:@x"."""
OP_SIGNAL = 0x1000
"""Whose path is a signal and whom it is for, such as "KILL child"; path2: whom by number."""
ACTIONS = ("allow", "steer", "approve", "deny")
EFFECTS = ("none", "continue", "errno", "broker", "rewrite", "kill")
EFFECT_KILL = EFFECTS.index("kill")
KINDS = ("?", "file", "exec", "fault", "limit")
CLASSES = ("allow", "broker", "verify", "absent", "look", "net", "signal")
_INTS, _TEXTS = 11, 4
FIELDS = _INTS + _TEXTS


class Event:
    """One record of the event stream; the fields are those of struct sv_event."""

    __slots__ = (
        "action",
        "comm",
        "detail",
        "effect",
        "err",
        "kind",
        "mono_ns",
        "nr",
        "ops",
        "path",
        "path2",
        "rule",
        "seq",
        "tid",
        "time_ns",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of a record
        self,
        kind: int,
        seq: int,
        time_ns: int,
        mono_ns: int,
        tid: int,
        nr: int,
        ops: int,
        action: int,
        effect: int,
        rule: int,
        err: int,
        path: bytes,
        path2: bytes,
        comm: bytes,
        detail: bytes,
    ) -> None:
        """Hold one decided call, verified exec or fault."""
        self.kind = kind
        self.seq = seq
        self.time_ns = time_ns
        self.mono_ns = mono_ns
        self.tid = tid
        self.nr = nr
        self.ops = ops
        self.action = action
        self.effect = effect
        self.rule = rule
        self.err = err
        self.path = path
        self.path2 = path2
        self.comm = comm
        self.detail = detail

    @classmethod
    def of(cls, fields: Sequence[object]) -> Event:
        """Build an event from a decoded record.

        Args:
            fields: eleven ints, then four byte strings.

        Raises:
            TypeError: the record has another shape.
        """
        if len(fields) != FIELDS:
            raise TypeError(f"a record has {FIELDS} fields, not {len(fields)}")
        numbers = [field for field in fields[:_INTS] if isinstance(field, int)]
        texts = [field for field in fields[_INTS:] if isinstance(field, bytes)]
        if len(numbers) != _INTS or len(texts) != _TEXTS:
            raise TypeError("a record is eleven ints and four byte strings")
        kind, seq, time_ns, mono_ns, tid, nr, ops, action, effect, rule, err = numbers
        path, path2, comm, detail = texts
        return cls(
            kind,
            seq,
            time_ns,
            mono_ns,
            tid,
            nr,
            ops,
            action,
            effect,
            rule,
            err,
            path,
            path2,
            comm,
            detail,
        )


SMALL = 4096
"""Largest batch in bytes that is decoded without importing msgpack."""


def unpacker(limit: int) -> Callable[[memoryview], Iterable[Sequence[object]]]:
    """Make a decoder for batches of whole records.

    Small batches, all that a short command makes, go through :func:`few_records`;
    msgpack is imported with the first large one.

    Args:
        limit: size of the largest batch in bytes.
    """

    def records(data: memoryview) -> Iterable[Sequence[object]]:
        return few_records(bytes(data)) if len(data) <= SMALL else _many_records(data, limit)

    return records


def _many_records(data: memoryview, limit: int) -> Iterator[Sequence[object]]:
    import msgpack

    stream = msgpack.Unpacker(use_list=False, raw=True, max_buffer_size=limit, strict_map_key=False)
    stream.feed(data)
    end = 0
    for record in stream:
        end = stream.tell()
        if not isinstance(record, tuple):
            raise TypeError("a record is an array")
        yield record
    if end != len(data):
        raise ValueError("the last record is cut short")


_ARRAY_OF_15 = 0x9F
_FIXINT, _NEGATIVE = 0x7F, 0xE0
# First byte -> (width of the number or length, signed) of msgpack's formats.
_NUMBERS = {
    0xCC: (1, False), 0xCD: (2, False), 0xCE: (4, False), 0xCF: (8, False),
    0xD0: (1, True), 0xD1: (2, True), 0xD2: (4, True), 0xD3: (8, True),
}  # fmt: skip
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}


def few_records(data: bytes) -> list[Sequence[object]]:
    """Decode a batch of records with no import at all.

    Source: the msgpack specification, formats int and bin family.

    Args:
        data: whole records.

    Raises:
        TypeError: something else than an array of 15 ints and byte strings.
        ValueError: the last record is cut short.
    """
    records: list[Sequence[object]] = []
    at = 0
    while at < len(data):
        if data[at] != _ARRAY_OF_15:
            raise TypeError("a record is an array of 15")
        at += 1
        fields: list[object] = []
        for _ in range(FIELDS):
            value, at = _field(data, at)
            fields.append(value)
        records.append(fields)
    return records


def _field(data: bytes, at: int) -> tuple[object, int]:
    if at >= len(data):
        raise ValueError("the last record is cut short")
    kind = data[at]
    at += 1
    if kind <= _FIXINT:
        return kind, at
    if kind >= _NEGATIVE:
        return kind - 256, at
    width, signed = _NUMBERS.get(kind, (_BYTES.get(kind, 0), False))
    if not width:
        raise TypeError(f"a field of format {kind:#x}")
    end = at + width
    number = int.from_bytes(data[at:end], "big", signed=signed)
    size = number if kind in _BYTES else 0
    if end + size > len(data):
        raise ValueError("the last record is cut short")
    return (data[end : end + size], end + size) if kind in _BYTES else (number, end)


def op_names(ops: int) -> str:
    """Name the operations of a mask, joined by ``+``.

    Args:
        ops: bits of enum sv_op, enum sv_net_op and enum sv_signal_op.
    """
    known = OPS if not ops & (NETWORK | OP_SIGNAL) else OPS | NET_OPS | {"signal": OP_SIGNAL}
    return "+".join(name for name, bit in known.items() if ops & bit) or "?"


def name_of(table: Sequence[str], index: int) -> str:
    """Look up an enum's name; an unknown number shows as itself.

    Args:
        table: names by number.
        index: the number.
    """
    return table[index] if 0 <= index < len(table) else str(index)


def treated(klass: int, err: int) -> str:
    """Say in one word how a row of the syscall table is treated.

    Args:
        klass: enum sv_class.
        err: the row's errno; a call that comes to us only to be refused has one.
    """
    verify = CLASSES.index("verify")
    return "refuse" if err and klass == verify else name_of(CLASSES, klass)


def escape(data: bytes, extra: str = "") -> str:
    r"""Show bytes as one line of printable text that :func:`unescape` turns back.

    ``\\`` is a backslash and ``\xNN`` one byte: whatever is not valid UTF-8,
    and the bytes of every character that does not print (controls, ANSI escapes,
    bidirectional and zero-width marks, odd spaces, line separators).

    Args:
        data: any bytes.
        extra: further characters to show as bytes, such as a quote.
    """
    text = data.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text and not any(c in text for c in extra):
        return text
    return "".join(_show(char, extra) for char in text)


def unescape(text: str) -> bytes:
    """Turn the text of :func:`escape` back into its bytes.

    Args:
        text: escaped text.

    Raises:
        ValueError: a backslash starts no escape.
    """
    first, *rest = text.split("\\")
    out = [first.encode()]
    parts = iter(rest)
    for part in parts:
        if part[:1] == "x" and part[2:3]:
            out.append(bytes.fromhex(part[1:3]) + part[3:].encode())
        elif part == "" and (after := next(parts, None)) is not None:
            out.append(b"\\" + after.encode())
        else:
            raise ValueError("a backslash starts no escape")
    return b"".join(out)


def _show(char: str, extra: str) -> str:
    if char == "\\":
        return "\\\\"
    if char.isprintable() and char not in extra:
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
