"""Policy bytes to positioned nodes: strict YAML, with hard limits.

The tree is built from the parser's events, not from its composed nodes, so that a
hostile file is refused at the first event that breaks a limit, before it costs
memory or stack. Anchors, aliases, tags, merge keys and second documents have no
place in a policy and are refused.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from supervisor.policy.digest import hexdigest
from supervisor.policy.problems import Problem, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 1 << 20
"""Largest policy file, in bytes."""
MAX_DEPTH = 32
"""Deepest nesting of lists and mappings."""

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value; ``plain`` is true when it was written without quotes."""

    value: str
    plain: bool
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Seq:
    """A list of nodes."""

    items: tuple[Node, ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Map:
    """A mapping; keys are scalars and unique."""

    items: tuple[tuple[Scalar, Node], ...]
    line: int
    column: int


Node = Scalar | Seq | Map


@dataclass(frozen=True, slots=True)
class Document:
    """One policy file, read once.

    Attributes:
        file: The name shown to people.
        path: Absolute path, or "" for text that came from no file.
        sha256: Hex digest of the bytes that were parsed.
        lines: The source lines, for messages.
        root: The top mapping.
    """

    file: str
    path: str
    sha256: str
    lines: tuple[str, ...]
    root: Map

    def problem(
        self,
        line: int,
        column: int,
        message: str,
        *,
        suggestion: str = "",
        notes: tuple[str, ...] = (),
    ) -> Problem:
        """Return a problem at a position of this file, with its source line."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Problem(self.file, line, column, message, text, suggestion, notes)


def read_bytes(path: str, file: str, problems: list[Problem]) -> bytes | None:
    """Read a policy file whole, or report why it cannot be one.

    Args:
        path: Path to open; links are followed.
        file: The name for messages.
        problems: Where problems are added.
    """
    try:
        # O_NONBLOCK: a FIFO given by mistake must not hang the start.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        problems.append(Problem(file, 0, 0, f"cannot be read: {reason}"))
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            problems.append(Problem(file, 0, 0, "is not a regular file"))
            return None
        data = b""
        while len(data) <= MAX_BYTES and (part := os.read(fd, MAX_BYTES + 1 - len(data))):
            data += part
    except OSError as error:
        problems.append(Problem(file, 0, 0, f"cannot be read: {error.strerror}"))
        return None
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        problems.append(Problem(file, 0, 0, f"is larger than {MAX_BYTES} bytes"))
        return None
    return data


def load_file(path: str, file: str, problems: list[Problem]) -> Document | None:
    """Read and parse one policy file.

    Args:
        path: Absolute path of the file.
        file: The name for messages.
        problems: Where problems are added.

    Returns:
        The document, or None when a problem was added.
    """
    data = read_bytes(path, file, problems)
    return None if data is None else load_bytes(data, file, problems, path=path)


def load_bytes(
    data: bytes, file: str, problems: list[Problem], *, path: str = ""
) -> Document | None:
    """Parse the bytes of one policy file.

    Args:
        data: The bytes; UTF-8 without NUL, at most ``MAX_BYTES``.
        file: The name for messages.
        problems: Where problems are added.
        path: Absolute path of the file, or "" for text that came from no file.

    Returns:
        The document, or None when a problem was added.
    """
    if len(data) > MAX_BYTES:
        problems.append(Problem(file, 0, 0, f"is larger than {MAX_BYTES} bytes"))
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(Problem(file, line, 0, "is not valid UTF-8 text"))
        return None
    lines = tuple(_BREAK.split(text))
    builder = _Builder(file, lines)
    if (bad := _UNPRINTABLE.search(text)) is not None:
        before = _BREAK.split(text[: bad.start()])
        name = "NUL byte" if bad[0] == "\0" else f"control character {quote(bad[0])}"
        builder.fail(len(before), len(before[-1]) + 1, f"{name} is not allowed in a policy")
    else:
        builder.parse(text)
    problems.extend(builder.problems)
    if builder.root is None or builder.problems:
        return None
    return Document(file, path, hexdigest(data), lines, builder.root)


class _Stop(Exception):
    """The file is refused; the problem has been noted."""


class _Builder:
    """Builds the node tree of one file from the parser's events."""

    def __init__(self, file: str, lines: tuple[str, ...]) -> None:
        self.file = file
        self.lines = lines
        self.problems: list[Problem] = []
        self.root: Map | None = None

    def fail(self, line: int, column: int, message: str, notes: tuple[str, ...] = ()) -> None:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        self.problems.append(Problem(self.file, line, column, message, text, "", notes))

    def parse(self, text: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._document(yaml.parse(text, Loader=loader))
        except _Stop:
            return
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            reason = error.problem or error.context or "cannot be parsed"
            line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
            self.fail(line, column, f"not valid YAML: {reason}")
        except (yaml.YAMLError, RecursionError) as error:
            self.fail(0, 0, f"not valid YAML: {quote(str(error))}")

    def _stop(self, event: Any, message: str) -> _Stop:  # noqa: ANN401 - yaml is untyped here
        self.fail(event.start_mark.line + 1, event.start_mark.column + 1, message)
        return _Stop()

    def _document(self, events: Iterator[Any]) -> None:
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise self._stop(event, "a second document in one file is not allowed")
                if event.version or event.tags:
                    raise self._stop(event, "YAML directives are not allowed")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, events, 1)
        if root is None or (isinstance(root, Scalar) and not root.value):
            self.fail(0, 0, "is empty")
        elif not isinstance(root, Map):
            self.fail(root.line, root.column, "a policy is a mapping of keys to values")
        else:
            self.root = root

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:  # noqa: ANN401
        if isinstance(event, yaml.AliasEvent):
            raise self._stop(event, "aliases (*name) are not allowed")
        if event.anchor is not None:
            raise self._stop(event, "anchors (&name) are not allowed")
        if event.tag is not None:
            raise self._stop(event, "tags (!name) are not allowed")
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, event.style is None or event.style == "", line, column)
        if depth > MAX_DEPTH:
            raise self._stop(event, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(inner := next(events), yaml.SequenceEndEvent):
                items.append(self._node(inner, events, depth + 1))
            return Seq(tuple(items), line, column)
        return self._map(events, depth, line, column)

    def _map(self, events: Iterator[Any], depth: int, line: int, column: int) -> Map:
        seen: dict[str, Scalar] = {}
        items = []
        while not isinstance(inner := next(events), yaml.MappingEndEvent):
            key = self._node(inner, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            if not isinstance(key, Scalar):
                self.fail(key.line, key.column, "a key must be a single word")
                continue
            if key.plain and key.value == "<<":
                self.fail(key.line, key.column, "merge keys (<<) are not allowed")
                continue
            if (first := seen.get(key.value)) is not None:
                note = f"previous definition here: {self.file}:{first.line}"
                self.fail(key.line, key.column, f"repeated key {quote(key.value)}", (note,))
                continue
            seen[key.value] = key
            items.append((key, value))
        return Map(tuple(items), line, column)
