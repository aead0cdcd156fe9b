"""What people see: stderr that never hangs or raises, stdout, colour, JSON."""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PIPE_BUF = 4096  # a pipe that polls writable takes this much without blocking
_WAIT_MS = 100
_PATIENCE = 10  # messages in all that may each wait _WAIT_MS for a slow reader
_COLOURS = {"red": "31", "yellow": "33", "cyan": "36", "bold": "1"}
_CHARS_KEPT = "\n\t"


def visible(text: str) -> str:
    """Write everything that a terminal could obey as an escape; keep newlines and tabs.

    Args:
        text: a message, possibly with foreign text in it.
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in _CHARS_KEPT
        else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
        for char in text
    )


def want_colour(choice: str, env: Mapping[str, str], fd: int) -> bool:
    """Decide on colour: flag, then NO_COLOR, then FORCE_COLOR, then the terminal.

    Args:
        choice: auto | always | never.
        env: the environment.
        fd: where the text goes.
    """
    if choice != "auto":
        return choice == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR") or env.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    try:
        return os.isatty(fd) and env.get("TERM", "dumb") != "dumb"
    except OSError:
        return False


class Stderr:
    """Our lines on stderr.

    A closed stderr, a full pipe or a stopped terminal loses text but never
    raises and never holds up the run for longer than a second in all.
    """

    def __init__(self, fd: int = 2, *, colour: bool = False) -> None:
        """Prepare to write.

        A pipe or terminal is opened once more, because O_NONBLOCK on the
        descriptor itself would be seen by the supervised command too.

        Args:
            fd: where to write.
            colour: use ANSI colours.
        """
        self._fd = fd
        self._colour = colour
        self._patience = _PATIENCE
        self.dropped = 0
        self._reopen()

    def _reopen(self) -> None:
        try:
            mode = os.fstat(self._fd).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_APPEND
                self._fd = os.open(f"/proc/self/fd/{self._fd}", flags)
        except OSError:
            return

    def paint(self, colour: str, text: str) -> str:
        """Colour a piece of text where colours are wanted.

        Args:
            colour: red | yellow | cyan | bold.
            text: the piece.
        """
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._colour else text

    def say(self, text: str) -> None:
        """Write a message that begins with ``supervise:``.

        Args:
            text: the rest of it, one line or more.
        """
        self.write(f"supervise: {visible(text)}\n")

    def error(self, message: str, hint: str = "") -> None:
        """Write why we failed, and what to do about it.

        Args:
            message: a sentence, or several lines.
            hint: the fix; empty for none.
        """
        label = self.paint("red", "error:")
        self.write(f"supervise: {label} {visible(message)}\n")
        if hint:
            self.write(f"  {self.paint('cyan', 'hint:')} {visible(hint)}\n")

    def write(self, text: str) -> None:
        """Write text as it is.

        Args:
            text: whole lines, already made visible.
        """
        data = text.encode("utf-8", "backslashreplace")
        for start in range(0, len(data), _PIPE_BUF):
            if not self._put(data[start : start + _PIPE_BUF]):
                self.dropped += 1
                return

    def _put(self, data: bytes) -> bool:
        while data:
            try:
                if not self._writable():
                    return False
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def _writable(self) -> bool:
        import select

        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        found = poll.poll(0)
        if not found and self._patience:
            self._patience -= 1
            found = poll.poll(_WAIT_MS)
        return any(event & select.POLLOUT for _, event in found)


def open_standard_files() -> None:
    """Put /dev/null where a standard descriptor is closed.

    Otherwise the next file that we open would become the command's stdin or
    the place of our messages.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            try:
                os.open(os.devnull, os.O_RDWR)
                os.set_inheritable(fd, True)
            except OSError:
                return


def out(text: str) -> None:
    """Write data to stdout; a reader that went away ends that quietly.

    Args:
        text: whole lines.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (BrokenPipeError, ValueError, AttributeError):
        _mute_stdout()
    except UnicodeEncodeError:
        out(text.encode("ascii", "backslashreplace").decode())


def out_json(value: object) -> None:
    """Write a value to stdout as indented JSON with sorted keys.

    Args:
        value: what json can write.
    """
    import json

    out(json.dumps(value, indent=2, sort_keys=True) + "\n")


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Align rows in columns, two spaces apart.

    Args:
        rows: cells; every row has as many.
    """
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def _mute_stdout() -> None:
    """Send what Python still holds nowhere, so that its exit does not complain."""
    try:
        sink = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(sink, 1)
        os.close(sink)
    except OSError:
        return
