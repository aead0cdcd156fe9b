"""Reads audit logs and checks their chain, line by line in constant memory."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supervisor.audit.record import GENESIS, TYPES, VERSION, digest, encode
from supervisor.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAX_LINE = 1 << 22
"""Longest line that can be one of ours, in bytes."""

Record = dict[str, "int | str | list[object] | dict[str, object]"]


@dataclass(frozen=True, slots=True)
class Report:
    """What a check of a log found.

    Attributes:
        state: valid | valid-but-open | torn-tail | tampered | missing | empty.
        seq: number of the last good line, or of the first bad or missing one.
        detail: a sentence for people.
        records: good lines from the start.
        sessions: runs that started.
        unfinished: runs that have no end.
        good: bytes from the start up to the end of the last good line.
        prev: ``h`` of the last good line.
    """

    state: str
    seq: int
    detail: str
    records: int
    sessions: int
    unfinished: int
    good: int
    prev: str


def open_log(path: str | bytes) -> BinaryIO:
    """Open a log for reading.

    Args:
        path: the file.

    Raises:
        SessionError: it cannot be read or is no regular file (exit code 2).
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as problem:
        raise SessionError(
            f"{os.fsdecode(path)}: cannot be read: {_reason(problem)}", exit_code=2
        ) from problem
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SessionError(f"{os.fsdecode(path)}: is not a regular file", exit_code=2)
    return os.fdopen(fd, "rb")


def verify(path: str | bytes) -> Report:
    """Check a log's chain.

    Args:
        path: the file.

    Raises:
        SessionError: it cannot be read (exit code 2).
    """
    with open_log(path) as stream:
        try:
            return scan(stream)
        except OSError as problem:
            raise SessionError(
                f"{os.fsdecode(path)}: cannot be read: {_reason(problem)}", exit_code=2
            ) from problem


def records(path: str | bytes) -> Iterator[Record]:
    """Yield the lines of a log that can be read; their chain is not checked.

    Args:
        path: the file.

    Raises:
        SessionError: it cannot be read (exit code 2).
    """
    with open_log(path) as stream:
        while line := stream.readline(MAX_LINE):
            if (record := _parse(line)) is not None:
                yield record


def scan(stream: BinaryIO) -> Report:
    """Check the chain of an open log from its start.

    Args:
        stream: binary stream at the start of the log.
    """
    state = _State()
    while line := stream.readline(MAX_LINE):
        if not line.endswith(b"\n"):
            if len(line) == MAX_LINE:
                return state.report("tampered", state.seq + 1, "a line is too long to be ours")
            text = f"the last line is cut short after {len(line)} bytes"
            return state.report("torn-tail", state.seq, text)
        problem = state.take(line)
        if problem is not None:
            return problem
    if not state.seq:
        return state.report("empty", 0, "there is no record")
    if state.running:
        text = "every line is in place, but the last session has no end"
        return state.report("valid-but-open", state.seq, text)
    return state.report("valid", state.seq, f"{state.seq} records in an unbroken chain")


class _State:
    """The chain as far as it was read."""

    def __init__(self) -> None:
        self.seq = 0
        self.prev = GENESIS
        self.good = 0
        self.sessions = 0
        self.ended = 0
        self.running = ""

    def report(self, state: str, seq: int, detail: str) -> Report:
        return Report(
            state,
            seq,
            detail,
            self.seq,
            self.sessions,
            self.sessions - self.ended,
            self.good,
            self.prev,
        )

    def take(self, line: bytes) -> Report | None:
        """Check the next line; None when it continues the chain."""
        expected = self.seq + 1
        record = _parse(line)
        if record is None or not _intact(record, line):
            text = f"line {expected} was changed: it does not match its hash"
            return self.report("tampered", expected, text)
        seq = record["seq"]
        if record["prev"] != self.prev or seq != expected:
            if isinstance(seq, int) and seq > expected:
                text = f"lines {expected} to {seq - 1} are missing"
                return self.report("missing", expected, text)
            text = f"line {expected} does not follow from the one before"
            return self.report("tampered", expected, text)
        if not self._follow(str(record["type"]), str(record["session"])):
            text = f"line {expected} belongs to no running session"
            return self.report("tampered", expected, text)
        self.seq, self.prev = expected, str(record["h"])
        self.good += len(line)
        return None

    def _follow(self, kind: str, session: str) -> bool:
        if kind == "session_start":
            self.running = session
            self.sessions += 1
            return True
        if session != self.running:
            return False
        if kind == "session_end":
            self.running = ""
            self.ended += 1
        return True


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _intact(record: Record, line: bytes) -> bool:
    """Whether the line is canonical, of our schema, and matches its own hash."""
    if record.get("v") != VERSION or record.get("type") not in TYPES:
        return False
    if not all(isinstance(record.get(key), str) for key in ("h", "prev", "session")):
        return False
    try:
        if (encode(record) + "\n").encode() != line:  # type: ignore[arg-type]
            return False
        body = encode({key: value for key, value in record.items() if key != "h"})  # type: ignore[misc]
    except (SessionError, RecursionError):
        return False
    return digest(str(record["prev"]), body) == record["h"]


def _reason(problem: Exception) -> str:
    return problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)
