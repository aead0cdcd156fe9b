"""Reading single values out of positioned nodes, with one message for each mistake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from supervisor.policy import schema
from supervisor.policy.load import Document, Map, Node, Scalar, Seq
from supervisor.policy.problems import Problem, quote, suggest
from supervisor.policy.schema import Source, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

_NULL = re.compile(r"|~|null|Null|NULL")
_NOT_TEXT = re.compile(
    r"(?i:true|false|yes|no|on|off|null|~)|[-+]?(0x[0-9a-fA-F_]+|[0-9][0-9_]*(\.[0-9_]*)?"
    r"|\.[0-9_]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|nan)"
)
KINDS = {Map: "a mapping", Seq: "a list", Scalar: "a single value"}

Keys = dict[str, tuple[Scalar, Node]]
"""The known keys of a mapping: name to key and value nodes."""


class Reader:
    """Reads values of one document and notes what is wrong with them."""

    def __init__(self, document: Document, problems: list[Problem]) -> None:
        self.document = document
        self.problems = problems

    def fail(self, node: Node, message: str, *, hint: str = "", note: str = "") -> None:
        """Note a problem at a node."""
        notes = (note,) if note else ()
        problem = self.document.problem(
            node.line, node.column, message, suggestion=hint, notes=notes
        )
        self.problems.append(problem)

    def source(self, node: Node) -> Source:
        """Return the position of a node."""
        return Source(self.document.file, node.line, node.column)

    def keys(self, node: Node, known: Sequence[str], later: Sequence[str] = ()) -> Keys:
        """Return the known keys of a mapping; report all others."""
        if not isinstance(node, Map):
            self.fail(node, f"expected a mapping, found {KINDS[type(node)]}")
            return {}
        found: Keys = {}
        for key, value in node.items:
            if key.value in known:
                found[key.value] = (key, value)
            elif key.value in later:
                self.fail(key, f"{quote(key.value)} {schema.LATER}")
            else:
                self.fail(key, f"unknown key {quote(key.value)}", hint=suggest(key.value, known))
        return found

    def items(self, node: Node, what: str) -> tuple[Node, ...]:
        """Return the items of a list that must not be empty."""
        if not isinstance(node, Seq):
            self.fail(node, f"{what} must be a list, found {KINDS[type(node)]}")
            return ()
        if not node.items:
            self.fail(node, f"{what} is empty")
        return node.items

    def text(self, node: Node, what: str, *, empty: bool = False) -> Text | None:
        """Return a scalar that must be text, or None when a problem was noted."""
        if not isinstance(node, Scalar):
            self.fail(node, f"{what} must be text, found {KINDS[type(node)]}")
        elif node.plain and _NULL.fullmatch(node.value):
            self.fail(node, f"{what} has no value")
        elif node.plain and _NOT_TEXT.fullmatch(node.value):
            self.fail(node, f'{what} must be text: write "{node.value}" in quotes')
        elif "\0" in node.value or "\x01" in node.value:
            self.fail(node, f"{what} contains a NUL or 0x01 byte")
        elif not node.value and not empty:
            self.fail(node, f"{what} is empty")
        else:
            return Text(node.value, self.source(node))
        return None

    def texts(self, node: Node, what: str, *, single: bool = False) -> tuple[Text, ...]:
        """Return a list of texts; ``single`` also takes one text alone."""
        if single and isinstance(node, Scalar):
            one = self.text(node, what)
            return (one,) if one else ()
        found = [self.text(item, what) for item in self.items(node, what)]
        return tuple(text for text in found if text is not None)

    def word(self, node: Node, what: str, known: Sequence[str]) -> str:
        """Return one of the known words, or "" when a problem was noted."""
        text = self.text(node, what)
        if text is None:
            return ""
        if text.value not in known:
            listed = ", ".join(known)
            self.fail(
                node,
                f"unknown {what} {quote(text.value)}; known: {listed}",
                hint=suggest(text.value, known),
            )
            return ""
        return text.value
