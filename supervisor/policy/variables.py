"""Replacing ``${NAME}`` in the texts of a policy, as literal bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from supervisor.policy import patterns
from supervisor.policy.problems import quote, suggest
from supervisor.policy.schema import Text

if TYPE_CHECKING:
    from supervisor.policy.context import Context

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_BUILT_IN = ("CWD", "HOME", "TMPDIR", "UID")
MARK = bytes([patterns.TMPDIR_MARK])
"""Stands for the session's private folder, at the start of a pattern or target only."""

Fail = Callable[[Text, str, str], None]
"""Notes a problem: the text, a message, a suggested word or ""."""


class Variables:
    """The variables of one policy.

    Args:
        context: The values of the built-in ones.
        declared: ``vars`` of the files, later files first to win.
        given: ``--set`` values, which beat ``declared``.
        fail: Where problems go.
    """

    def __init__(
        self,
        context: Context,
        declared: Mapping[str, Text],
        given: Mapping[str, str],
        fail: Fail,
    ) -> None:
        self._context = context
        self._declared = declared
        self._given = given
        self._fail = fail
        self._open: list[str] = []
        self.used: dict[str, bytes] = {}
        self.used_env: set[str] = set()
        self.asked: set[str] = set()

    def expand(self, text: Text, *, glob: bool) -> bytes | None:
        """Replace all variables of a text.

        Args:
            text: The text; without variables it is returned as it is.
            glob: The text is a pattern, so wildcards in values are escaped.

        Returns:
            The bytes, or None when a problem was noted.
        """
        out = b""
        position = 0
        is_path = False
        value = text.value
        for found in _REFERENCE.finditer(value):
            out += value[position : found.start()].encode()
            replaced = self._value(text, found[1])
            if replaced is None:
                return None
            if replaced[:1] == MARK and (
                out or value[found.end() : found.end() + 1] not in ("", "/")
            ):
                self._fail(text, "${TMPDIR} must start the text and be followed by '/'", "")
                return None
            if replaced[:1] in (b"/", MARK):
                # "${CWD}/**" must stay a pattern when the folder is "/".
                is_path = True
                replaced = replaced.rstrip(b"/")
            out += patterns.escape(replaced) if glob else replaced
            position = found.end()
        rest = value[position:]
        if "${" in rest:
            self._fail(text, "'${' without '}'", "")
            return None
        out += rest.encode()
        return b"/" if is_path and not out else out

    def _value(self, text: Text, name: str) -> bytes | None:
        if name not in self.used:
            raw = self._find(text, name)
            if raw is None:
                return None
            if b"\0" in raw or MARK in raw[1:]:
                self._fail(text, f"the value of {quote(name)} holds a NUL or 0x01 byte", "")
                return None
            self.used[name] = raw
        return self.used[name]

    def _find(self, text: Text, name: str) -> bytes | None:
        self.asked.add(name)
        if name == "TMPDIR":
            return MARK
        if name == "UID":
            return str(self._context.uid).encode()
        if name in ("CWD", "HOME"):
            value = self._context.cwd if name == "CWD" else self._context.home
            if not value:
                self._fail(text, f"${{{name}}} has no value here", "")
            return self._literal(text, name, value) if value else None
        if name.startswith("ENV:"):
            return self._environment(text, name[4:])
        return self._own(text, name)

    def _environment(self, text: Text, name: str) -> bytes | None:
        self.used_env.add(name)
        found = self._context.environ.get(os.fsencode(name))
        if found is None:
            self._fail(text, f"environment variable {quote(name)} is not set", "")
            return None
        return self._literal(text, name, found)

    def _own(self, text: Text, name: str) -> bytes | None:
        if name in self._given:
            return self._literal(text, name, os.fsencode(self._given[name]))
        if name in self._open:
            loop = " -> ".join([*self._open, name])
            self._fail(text, f"variable {quote(name)} refers to itself ({loop})", "")
            return None
        declared = self._declared.get(name)
        if declared is None:
            known = [*self._declared, *_BUILT_IN]
            self._fail(text, f"undefined variable {quote(name)}", suggest(name, known))
            return None
        self._open.append(name)
        try:
            return self.expand(declared, glob=False)
        finally:
            self._open.pop()

    def _literal(self, text: Text, name: str, value: bytes) -> bytes | None:
        if MARK in value:
            self._fail(text, f"the value of {quote(name)} holds a NUL or 0x01 byte", "")
            return None
        return value
