"""Events: numbers as in the header, decoding, and the text of bytes."""

from __future__ import annotations

import re
from pathlib import Path

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.model import COUNTED
from supervisor.policy import blob, schema
from supervisor.policy.limits import NAMES
from supervisor.run import events
from supervisor.run.events import Event, escape, op_names, unescape, unpacker

HEADER = Path(__file__).parents[2] / "native" / "supervise.h"
FIELDS = (1, 2, 3, 4, 5, 257, 1, 3, 2, -1, 13, b"/a\xff", b"", b"cat", b"")


def _enum(name: str) -> dict[str, int]:
    body = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    items = re.search(rf"enum {name} {{(.*?)}}", body, re.DOTALL)
    assert items is not None
    found: dict[str, int] = {}
    for item in items[1].split(","):
        key, _, value = (part.strip() for part in item.partition("="))
        found[key] = int(value, 0) if value else max(found.values(), default=-1) + 1
    return found


def test_numbers_are_those_of_the_header() -> None:
    """The names that Python shows belong to the numbers that C sends."""
    assert {f"SV_OP_{name.upper()}": bit for name, bit in events.OPS.items()} == _enum("sv_op")
    assert {f"SV_OP_{n.upper()}": bit for n, bit in events.NET_OPS.items()} == _enum("sv_net_op")
    assert schema.NET_BITS.items() < events.NET_OPS.items()
    nets = {"SV_NET_ADDRESS": schema.NET_ADDRESS, "SV_NET_PATH": schema.NET_PATH}
    assert nets | {"SV_NET_ABSTRACT": schema.NET_ABSTRACT} == _enum("sv_net_kind")
    assert schema.NET_ABSTRACT == blob.NET_ABSTRACT
    actions = {f"SV_{name.upper()}": i for i, name in enumerate(events.ACTIONS)}
    assert actions == _enum("sv_action")
    effects = {f"SV_EFFECT_{name.upper()}": i for i, name in enumerate(events.EFFECTS)}
    assert effects == _enum("sv_effect")
    classes = {f"SV_CLASS_{name.upper()}": i for i, name in enumerate(events.CLASSES)}
    assert classes == _enum("sv_class")
    kinds = {"SV_EVENT_CALL": 1, "SV_EVENT_EXEC": 2, "SV_EVENT_FAULT": 3}
    assert kinds | {"SV_EVENT_LIMIT": 4} == _enum("sv_event_kind")
    assert (events.CALL, events.EXEC, events.FAULT, events.LIMIT) == (1, 2, 3, 4)
    limits = {f"SV_LIMIT_{name.upper()}": i for i, name in enumerate(NAMES)}
    assert _enum("sv_limit_kind") == limits | {"SV_LIMITS": len(NAMES)}
    assert NAMES[: len(COUNTED)] == COUNTED


def test_batch_is_decoded() -> None:
    """Consecutive records come out as events, bytes untouched."""
    data = msgpack.packb(FIELDS) * 3
    found = [Event.of(record) for record in unpacker(1 << 18)(memoryview(data))]
    assert [event.path for event in found] == [b"/a\xff"] * 3
    assert (found[0].kind, found[0].rule, found[0].err) == (1, -1, 13)


def test_cut_record_is_refused() -> None:
    """A batch that ends inside a record is damage, not silence."""
    data = msgpack.packb(FIELDS)[:-1]
    with pytest.raises(ValueError, match="cut short"):
        list(unpacker(1 << 18)(memoryview(data)))


@pytest.mark.parametrize("fields", [FIELDS[:-1], (*FIELDS, 1), ("1", *FIELDS[1:])])
def test_wrong_shape_is_refused(fields: tuple[object, ...]) -> None:
    """A record of another shape is refused."""
    with pytest.raises(TypeError):
        Event.of(fields)


@given(st.binary(), st.sampled_from(["", '"', "'"]))
@example(b"\\x41", "")
@example(b"\\", "'")
@example("a\u202eb".encode(), '"')
def test_escape_round_trip(data: bytes, extra: str) -> None:
    """Any bytes show as printable text without the extra characters, and come back."""
    text = escape(data, extra)
    assert text.isprintable()
    assert not set(extra) & set(text)
    assert unescape(text) == data


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"/home/u/\xc3\xa9", "/home/u/é"),
        (b"a\x1b[31mred", "a\\x1b[31mred"),
        ("safe\u202etxt".encode(), "safe\\xe2\\x80\\xaetxt"),
        (b"\xff\n", "\\xff\\x0a"),
        ("zero\u200bwidth".encode(), "zero\\xe2\\x80\\x8bwidth"),
    ],
)
def test_what_could_deceive_is_visible(data: bytes, shown: str) -> None:
    """Controls, ANSI, bidirectional marks and broken UTF-8 are shown as bytes."""
    assert escape(data) == shown


@pytest.mark.parametrize("text", ["\\", "a\\q", "\\x4", "\\xzz"])
def test_unescape_refuses_what_is_no_escape(text: str) -> None:
    """A stray backslash is an error."""
    with pytest.raises(ValueError, match=r"."):
        unescape(text)


def test_op_names() -> None:
    """A mask reads as its operations, an empty one as unknown."""
    assert op_names(3) == "read+write"
    assert op_names(0) == "?"


NUMBER = st.integers(min_value=-(2**63), max_value=2**64 - 1)
RECORD = st.tuples(*[NUMBER] * 11, *[st.binary(max_size=300)] * 4)


@given(st.lists(RECORD, max_size=4), st.integers(min_value=0, max_value=200))
def test_small_decoder_is_msgpack(records: list[tuple[object, ...]], cut: int) -> None:
    """Both decoders give the same records, and the small one refuses a cut batch."""
    data = b"".join(msgpack.packb(record) for record in records)
    assert [tuple(fields) for fields in events.few_records(data)] == records
    assert [tuple(fields) for fields in events._many_records(memoryview(data), 1 << 18)] == records
    if records and 0 < cut <= len(msgpack.packb(records[-1])):
        with pytest.raises(ValueError, match="cut short"):
            events.few_records(data[:-cut] if cut < len(msgpack.packb(records[-1])) else data[:-1])


@pytest.mark.parametrize("data", [b"\x90", b"\x9f\xc0", b"\x9f" + b"\xa1x" * 15])
def test_small_decoder_refuses_what_is_no_record(data: bytes) -> None:
    """Anything but an array of 15 ints and byte strings is an error."""
    with pytest.raises(TypeError):
        events.few_records(data)
