"""Our lines on stderr: they never raise, never hang, never deceive."""

from __future__ import annotations

import contextlib
import os
import time

import pytest

from supervisor.cli.output import Stderr, table, visible, want_colour


def test_text_arrives() -> None:
    """What is said can be read, with its label."""
    readable, writable = os.pipe()
    Stderr(writable).error("it failed", "try again")
    assert os.read(readable, 999) == b"supervise: error: it failed\n  hint: try again\n"
    os.close(readable)
    os.close(writable)


def test_closed_descriptor_is_harmless() -> None:
    """A closed stderr takes nothing and raises nothing."""
    readable, writable = os.pipe()
    os.close(readable)
    os.close(writable)
    stderr = Stderr(writable)
    stderr.say("x")
    assert stderr.dropped == 1


def test_reader_that_went_away_is_harmless() -> None:
    """A broken pipe is no error of ours."""
    readable, writable = os.pipe()
    stderr = Stderr(writable)
    os.close(readable)
    stderr.say("x")
    assert stderr.dropped == 1
    os.close(writable)


def test_full_pipe_never_hangs() -> None:
    """A reader that does not read costs a second in all, however much is said."""
    readable, writable = os.pipe()
    stderr = Stderr(writable)
    os.set_blocking(writable, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writable, b"x" * 4096)
    os.set_blocking(writable, True)
    begin = time.monotonic()
    for _ in range(1000):
        stderr.say("y" * 10000)
    assert time.monotonic() - begin < 30  # and not a thousand
    assert stderr.dropped == 1000
    assert os.get_blocking(writable)
    os.close(readable)
    os.close(writable)


def test_flags_of_the_command_are_left_alone() -> None:
    """O_NONBLOCK is set on a descriptor of our own, never on the shared one."""
    readable, writable = os.pipe()
    Stderr(writable).say("x")
    assert os.get_blocking(writable)
    os.close(readable)
    os.close(writable)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", "plain é"),
        ("two\nlines\t.", "two\nlines\t."),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb", "a\\xe2\\x80\\xaeb"),
        ("a\udcffb", "a\\xffb"),
        ("a\rb", "a\\x0db"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    """Only newlines and tabs keep their power."""
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("choice", "env", "expected"),
    [
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"CLICOLOR_FORCE": "1"}, True),
        ("auto", {"CLICOLOR_FORCE": "0"}, False),
        ("auto", {"TERM": "xterm"}, False),
    ],
)
def test_colour(choice: str, env: dict[str, str], expected: bool) -> None:
    """Flag before NO_COLOR before FORCE_COLOR before the terminal (a pipe here)."""
    readable, writable = os.pipe()
    assert want_colour(choice, env, writable) is expected
    os.close(readable)
    os.close(writable)


def test_table() -> None:
    """Columns are as wide as their widest cell; no line ends in spaces."""
    assert table([("a", "b"), ("ccc", "")]) == "a    b\nccc\n"
    assert table([]) == ""
