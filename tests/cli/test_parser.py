"""The command line: which words are ours, and what they mean."""

from __future__ import annotations

import argparse
import itertools

import pytest

from supervisor.cli import find, quick
from supervisor.cli.flags import allow_path, duration, setting
from supervisor.cli.parser import (
    LEAVES,
    actions,
    build,
    split_command,
)
from supervisor.cli.run import Options, _parse
from supervisor.cli.texts import SHORT_HELP
from supervisor.errors import UsageError


@pytest.mark.parametrize(
    ("line", "head", "command", "dashed"),
    [
        ("-- true", [], ["true"], True),
        ("true", [], ["true"], False),
        ("true -q", [], ["true", "-q"], False),
        ("-q true -v", ["-q"], ["true", "-v"], False),
        ("-p x true", ["-p", "x"], ["true"], False),
        ("-px true", ["-px"], ["true"], False),
        ("-qp x true", ["-qp", "x"], ["true"], False),
        ("-qv true", ["-qv"], ["true"], False),
        ("--policy x -- true --", ["--policy", "x"], ["true", "--"], True),
        ("--policy=x true", ["--policy=x"], ["true"], False),
        ("--timeout 5s sleep 9", ["--timeout", "5s"], ["sleep", "9"], False),
        ("-p -- true", ["-p", "--"], ["true"], False),
        ("-- -q", [], ["-q"], True),
        ("-", [], ["-"], False),
        ("--json sh -c a", ["--json"], ["sh", "-c", "a"], False),
        ("", [], [], False),
        ("--", [], [], True),
    ],
)
def test_split(line: str, head: list[str], command: list[str], dashed: bool) -> None:
    """The command starts behind -- or at the first word that is no option of ours."""
    assert split_command(build(("run",)), line.split()) == (head, command, dashed)


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("", ("run",), []),
        ("-- true", ("run",), ["--", "true"]),
        ("run -- true", ("run",), ["--", "true"]),
        ("run log", ("run",), ["log"]),
        ("make test", ("run",), ["make", "test"]),
        ("policy check x", ("policy", "check"), ["x"]),
        ("policy", ("policy",), []),
        ("policy none", ("policy",), ["none"]),
        ("log --denied", ("log",), ["--denied"]),
        ("audit verify f", ("audit", "verify"), ["f"]),
        ("-q log", ("run",), ["-q", "log"]),
    ],
)
def test_find(line: str, name: tuple[str, ...], rest: list[str]) -> None:
    """A subcommand is the first word; everything else is a run."""
    assert find(line.split()) == (name, rest)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5.0), ("500ms", 0.5), ("1.5s", 1.5), ("2m", 120.0), ("1h", 3600.0), ("1d", 86400.0)],
)
def test_duration(text: str, seconds: float) -> None:
    """Numbers with units become seconds."""
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "-1", "0", "1x", "nan", "inf", "1e9", "1..2", "٣", "99999d"]
)
def test_no_duration(text: str) -> None:
    """Whatever is not a sensible positive time is refused."""
    with pytest.raises(argparse.ArgumentTypeError):
        duration(text)


@pytest.mark.parametrize(
    ("text", "path", "ops"),
    [
        ("/a", "/a", ("read",)),
        ("/a:write", "/a", ("write",)),
        ("/a:read,write", "/a", ("read", "write")),
        ("/a:all", "/a", ("all",)),
        ("/a:b", "/a:b", ("read",)),
        ("/a:b:create", "/a:b", ("create",)),
        ("/a:read,b", "/a:read,b", ("read",)),
        ("a", "a", ("read",)),
    ],
)
def test_allow_path(text: str, path: str, ops: tuple[str, ...]) -> None:
    """Operations are what follows the last colon, if all of them are known."""
    assert allow_path(text) == (path, ops)


def test_setting() -> None:
    """A setting is cut at its first equals sign."""
    assert setting("a=b=c") == ("a", "b=c")
    assert setting("a=") == ("a", "")
    for text in ("a", "=b"):
        with pytest.raises(argparse.ArgumentTypeError):
            setting(text)


@pytest.mark.parametrize(
    "line",
    ["--nope", "--mode other", "--timeout never", "--pol x", "--set a", "--status-fd -1", "-z"],
)
def test_bad_flags_of_run_are_125(line: str) -> None:
    """A wrong flag of run is our failure, not the command's."""
    with pytest.raises(UsageError) as caught:
        build(("run",)).parse_args(line.split())
    assert caught.value.exit_code == 125


@pytest.mark.parametrize("name", [name for name in LEAVES if name != ("run",)])
def test_bad_flags_of_others_are_2(name: tuple[str, ...]) -> None:
    """A wrong flag of any other subcommand is 2."""
    with pytest.raises(UsageError) as caught:
        build(name).parse_args(["--nope"])
    assert caught.value.exit_code == 2


def test_short_help_is_short_and_true() -> None:
    """-h fits 25 lines, has two examples, and names no flag that is not there."""
    lines = SHORT_HELP.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("  supervise ") for line in lines) == 2
    known = {flag for action in actions(build(("run",))) for flag in action.option_strings}
    shown = {word.rstrip(",") for word in SHORT_HELP.split() if word.startswith("-")}
    assert shown - {"--"} <= known


def test_full_help_names_every_flag_and_subcommand() -> None:
    """--help lists all of it."""
    parser = build(("run",))
    text = parser.format_help()
    for action in actions(parser):
        assert all(flag in text for flag in action.option_strings)
    for name in LEAVES:
        assert " ".join(name) in text
    assert "128+N" in text


WORDS = ("-q", "--verbose", "-p", "--audit", "x", "log", "--", "-", "", "-qv", "--json", "-px")


def _both(words: tuple[str, ...], *, named: bool) -> tuple[object, object]:
    """What the short reader makes of a line, and what the parser makes of it."""
    options = Options()
    command = quick.read(words, options, named=named)
    if command is None:
        return None, None
    try:
        parsed = _parse(words, named=named)
    except UsageError:
        parsed = None
    return (vars(options), command), parsed and (vars(parsed[0]), parsed[1])


@pytest.mark.parametrize("named", [False, True])
def test_short_reader_agrees_with_the_parser(named: bool) -> None:
    """Of lines of up to three words the short reader says the same as the parser, or nothing."""
    answered = 0
    for count in range(1, 4):
        for words in itertools.product(WORDS, repeat=count):
            if words[0].startswith("-"):
                short, whole = _both(words, named=named)
                assert short is None or short == whole, words
                answered += short is not None
    assert answered > 100


@pytest.mark.parametrize("line", ["-q -- a", "-v a", "-p x -q a b", "--audit f --policy x -- log"])
def test_short_reader_takes_what_is_common(line: str) -> None:
    """The lines it is there for do not reach the parser."""
    short, whole = _both(tuple(line.split()), named=False)
    assert short == whole is not None
