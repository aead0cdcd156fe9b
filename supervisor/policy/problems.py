"""What is wrong with a policy, and where: collected, then shown all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN_WIDTH = 160
_SHOWN_VALUE = 80


def escape(text: str) -> str:
    """Return ``text`` with everything a terminal could obey written as an escape."""
    out = []
    for char in text:
        if char.isprintable():
            out.append(char)
        elif char <= "\xff":
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(f"\\u{ord(char):04x}")
    return "".join(out)


def quote(text: str) -> str:
    """Return ``text`` escaped, shortened and between single quotes, for a message."""
    if len(text) > _SHOWN_VALUE:
        text = text[:_SHOWN_VALUE] + "..."
    return f"'{escape(text)}'"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the known word that ``word`` was probably meant to be, or ""."""
    import difflib  # costs an import, so only where something is wrong already

    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return close[0] if close else ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error in one policy file.

    Attributes:
        file: The file as the user knows it, or "" when it is about none.
        line: Line, from 1; 0 when the whole file is meant.
        column: Column in characters, from 1; 0 when unknown.
        message: What is wrong, without a full stop.
        text: The source line, or "".
        suggestion: The word that was probably meant, or "".
        notes: Further lines, for example where something was defined before.
    """

    file: str
    line: int
    column: int
    message: str
    text: str = ""
    suggestion: str = ""
    notes: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the problem as people read it: position, source line, caret, notes."""
        where = escape(self.file)
        if self.line:
            where += f":{self.line}"
            if self.column:
                where += f":{self.column}"
        hint = f" (did you mean '{escape(self.suggestion)}'?)" if self.suggestion else ""
        lines = [f"{where}: error: {self.message}{hint}".removeprefix(": ")]
        if self.line and self.text:
            lines.extend(self._excerpt())
        lines.extend(f"  note: {note}" for note in self.notes)
        return "\n".join(lines)

    def _excerpt(self) -> list[str]:
        start = 0
        if self.column > _SHOWN_WIDTH // 2:
            start = self.column - _SHOWN_WIDTH // 2
        shown = self.text[start : start + _SHOWN_WIDTH]
        number = str(self.line)
        lines = [f"  {number} | {escape(shown)}"]
        if self.column:
            before = escape(self.text[start : self.column - 1])
            lines.append(f"  {' ' * len(number)} | {' ' * len(before)}^")
        return lines
