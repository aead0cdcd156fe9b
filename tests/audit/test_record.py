"""Records: canonical text, the chain, and events as records."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.audit.record import GENESIS, Chain, arguments, digest, encode, event_fields
from supervisor.errors import SessionError
from supervisor.run.events import CALL, DENY, EXEC, FAULT, Event, unescape

VALUES = st.recursive(
    st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_encode_is_json_in_canonical_form(value: object) -> None:
    """What is written is what json writes with sorted keys and no spaces, and reads back."""
    text = encode(value)  # type: ignore[arg-type]
    assert text == json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert json.loads(text) == value
    assert text.isascii()


@pytest.mark.parametrize("value", [1.5, None, True, b"x", {"a": [1.0]}])
def test_encode_refuses_what_has_no_one_spelling(value: object) -> None:
    """Floats, null, booleans and bytes do not belong in a record."""
    with pytest.raises(SessionError):
        encode(value)  # type: ignore[arg-type]


def test_hash_covers_domain_prev_and_seq() -> None:
    """The hash is the documented one, computed here from the text alone."""
    line = Chain(6, "ab").line({"type": "file"}).decode()
    record = json.loads(line)
    h = record.pop("h")
    body = json.dumps(record, sort_keys=True, separators=(",", ":"))
    assert record == {"prev": "ab", "seq": 7, "type": "file", "v": 1}
    assert h == hashlib.sha256(b"supervise-audit-v1\0" + b"ab" + body.encode()).hexdigest()
    assert line.endswith("\n")


def test_lines_are_linked() -> None:
    """Each line names the hash of the one before; the first names zeros."""
    chain = Chain()
    first, second = (json.loads(chain.line({"n": n})) for n in (1, 2))
    assert first["prev"] == GENESIS
    assert second["prev"] == first["h"] != digest(GENESIS, "{}")
    assert (first["seq"], second["seq"]) == (1, 2)


def _event(kind: int, ops: int, *, path: bytes = b"/p", detail: bytes = b"") -> Event:
    return Event(kind, 9, 11, 12, 42, 257, ops, DENY, 2, 3, 13, path, b"", b"c\xff", detail)


def _fields(event: Event) -> dict[str, object]:
    policy = {"name": "p", "sha256": "0"}
    return dict(event_fields(event, "s", "openat", ("rule", "f:1"), policy))


def test_denied_open_as_record() -> None:
    """Every field of the schema is there and says what the event says."""
    assert _fields(_event(CALL, 3)) == {
        "ts": 11,
        "mono": 12,
        "type": "file",
        "session": "s",
        "pid": 42,
        "comm": "c\\xff",
        "action": {"call": "openat", "ops": "read+write", "path": "/p"},
        "decision": "deny",
        "effect": "errno",
        "rule": "rule",
        "src": "f:1",
        "policy": {"name": "p", "sha256": "0"},
        "errno": 13,
    }


def test_exec_and_fault_as_records() -> None:
    """An exec carries its arguments, a fault its sentence."""
    found = _fields(_event(EXEC, 128, detail=b"ls\0-l\0\0x"))
    assert found["type"] == "exec"
    assert found["action"] == {
        "call": "openat",
        "ops": "exec",
        "path": "/p",
        "argv": ["ls", "-l", "", "x"],
    }
    fault = _fields(_event(FAULT, 128, detail=b"unreadable"))
    assert fault["type"] == "fault"
    assert fault["action"] == {
        "call": "openat",
        "ops": "exec",
        "path": "/p",
        "detail": "unreadable",
    }


def test_network_as_record() -> None:
    """A call about the network names its operation, and the other end as its path."""
    for ops, name in ((0x200, "connect"), (0x400, "bind"), (0x800, "send")):
        found = _fields(_event(CALL, ops, path=b"[::1]:80"))
        assert found["type"] == "network"
        assert found["action"] == {"call": "openat", "ops": name, "path": "[::1]:80"}
    assert _fields(_event(FAULT, 0x200))["type"] == "fault"


@given(st.binary())
def test_paths_come_back_from_the_line(path: bytes) -> None:
    """Any path, of whatever bytes, is found again in the parsed line."""
    line = Chain().line(event_fields(_event(CALL, 1, path=path), "s", "c", ("", ""), {}))
    assert unescape(json.loads(line)["action"]["path"]) == path


@pytest.mark.parametrize(
    ("detail", "expected"),
    [(b"", []), (b"a", [b"a"]), (b"a\0", [b"a"]), (b"a\0\0", [b"a", b""]), (b"\0b", [b"", b"b"])],
)
def test_arguments(detail: bytes, expected: list[bytes]) -> None:
    """Arguments are split at NULs; one at the end ends the last of them."""
    assert arguments(detail) == expected
