"""Strict YAML: every refusal with its exact text, and no hostile file that costs much."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from supervisor.policy.load import MAX_BYTES, Map, Scalar, Seq, load_bytes, load_file
from supervisor.policy.problems import Problem


def refused(data: bytes) -> str:
    """Return the rendered problems of a text that must be refused."""
    problems: list[Problem] = []
    assert load_bytes(data, "agent.yaml", problems) is None
    return "\n".join(problem.render() for problem in problems)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "agent.yaml: error: is empty"),
        (b"# only a comment\n", "agent.yaml: error: is empty"),
        (
            b"- a\n",
            "agent.yaml:1:1: error: a policy is a mapping of keys to values\n  1 | - a\n    | ^",
        ),
        (b"a: \xff\n", "agent.yaml:1: error: is not valid UTF-8 text"),
        (b"v: 1\n\xe9: x\n", "agent.yaml:2: error: is not valid UTF-8 text"),
        ("a: é".encode("utf-16"), "agent.yaml:1: error: is not valid UTF-8 text"),
        (
            b"a: x\0y\n",
            (
                "agent.yaml:1:5: error: NUL byte is not allowed in a policy\n"
                "  1 | a: x\\x00y\n    |     ^"
            ),
        ),
        (
            b"a: 1\nb: \x1b[2J\n",
            (
                "agent.yaml:2:4: error: control character '\\x1b' is not allowed in a policy\n"
                "  2 | b: \\x1b[2J\n    |    ^"
            ),
        ),
        (
            b"a: &x 1\n",
            "agent.yaml:1:4: error: anchors (&name) are not allowed\n  1 | a: &x 1\n    |    ^",
        ),
        (
            b"a: *x\n",
            "agent.yaml:1:4: error: aliases (*name) are not allowed\n  1 | a: *x\n    |    ^",
        ),
        (
            b"a: !!str 1\n",
            "agent.yaml:1:4: error: tags (!name) are not allowed\n  1 | a: !!str 1\n    |    ^",
        ),
        (
            b"<<: {a: 1}\n",
            "agent.yaml:1:1: error: merge keys (<<) are not allowed\n  1 | <<: {a: 1}\n    | ^",
        ),
        (
            b"[a]: 1\n",
            "agent.yaml:1:1: error: a key must be a single word\n  1 | [a]: 1\n    | ^",
        ),
        (
            b"%YAML 1.1\n---\na: 1\n",
            "agent.yaml:1:1: error: YAML directives are not allowed\n  1 | %YAML 1.1\n    | ^",
        ),
        (
            b"a: 1\n---\nb: 1\n",
            (
                "agent.yaml:2:1: error: a second document in one file is not allowed\n"
                "  2 | ---\n    | ^"
            ),
        ),
        (
            b"a: 1\nb: 2\na: 3\n",
            (
                "agent.yaml:3:1: error: repeated key 'a'\n  3 | a: 3\n    | ^\n"
                "  note: previous definition here: agent.yaml:1"
            ),
        ),
        (
            b"a: [1,\n  b: }\n",
            (
                "agent.yaml:2:6: error: not valid YAML: did not find expected node content\n"
                "  2 |   b: }\n    |      ^"
            ),
        ),
        (
            b"a: " + b"[" * 32 + b"\n",
            (
                "agent.yaml:1:35: error: nested deeper than 32 levels\n"
                "  1 | a: " + "[" * 32 + "\n    |" + " " * 35 + "^"
            ),
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """Each kind of forbidden YAML gives its own message with line, column and caret."""
    assert refused(data) == text


def test_all_problems_are_reported() -> None:
    """A repeated key does not hide the next one."""
    assert refused(b"a: 1\na: 2\nb: 1\nb: 2\n").count("error: repeated key") == 2


def test_deepest_nesting_is_accepted() -> None:
    """Exactly the limit is fine, so the limit is where it is said to be."""
    data = b"a: " + b"[" * 31 + b"]" * 31 + b"\n"
    assert load_bytes(data, "agent.yaml", []) is not None


def test_positions_and_plainness() -> None:
    """Nodes keep where they stood and whether they were quoted."""
    document = load_bytes("\ufeffk: [é, 'x']\n".encode(), "agent.yaml", [])
    assert document is not None
    [(key, value)] = document.root.items
    assert isinstance(document.root, Map)
    assert isinstance(value, Seq)
    first, second = value.items
    assert (key.value, key.line, key.column) == ("k", 1, 1)
    assert isinstance(second, Scalar)
    assert isinstance(first, Scalar)
    assert (first.plain, second.plain) == (True, False)
    assert (second.value, second.line, second.column) == ("x", 1, 8)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * MAX_BYTES,
        b"- " * (MAX_BYTES // 2),
        b"? " * (MAX_BYTES // 2),
        b"{a: " * (MAX_BYTES // 4),
        b"a: &a [x]\n" + b"b: [" + b"*a," * 300_000 + b"]",
        b"'" * MAX_BYTES,
        b"a" * (MAX_BYTES - 3) + b": b",
    ],
)
def test_hostile_files_are_cheap(data: bytes) -> None:
    """Bombs of nesting and aliases are refused at the first event that breaks a limit."""
    before = time.process_time()
    assert "error:" in refused(data)
    assert time.process_time() - before < 1


def test_large_file_is_not_read(tmp_path: Path) -> None:
    """A file of 100 MB is refused without being read whole."""
    path = tmp_path / "big.yaml"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    problems: list[Problem] = []
    before = time.process_time()
    assert load_file(str(path), "big.yaml", problems) is None
    assert time.process_time() - before < 0.5
    assert problems[0].render() == "big.yaml: error: is larger than 1048576 bytes"


def test_unreadable_paths(tmp_path: Path) -> None:
    """Missing files, folders and FIFOs give a sentence, and a FIFO does not hang."""
    os.mkfifo(tmp_path / "fifo")
    expected = {
        "none": "x: error: cannot be read: No such file or directory",
        ".": "x: error: is not a regular file",
        "fifo": "x: error: is not a regular file",
    }
    for name, text in expected.items():
        problems: list[Problem] = []
        assert load_file(str(tmp_path / name), "x", problems) is None
        assert problems[0].render() == text


def test_terminal_bytes_are_escaped() -> None:
    """Nothing of a policy or its name can drive the terminal that shows the error."""
    problem = Problem("a\x1b.yaml", 1, 3, "m", "x\u202ey\tz", "s\x07")
    assert problem.render() == (
        "a\\x1b.yaml:1:3: error: m (did you mean 's\\x07'?)\n  1 | x\\u202ey\\x09z\n    |        ^"
    )


def test_long_lines_are_cut_around_the_caret() -> None:
    """The caret stays under its column where the line is longer than a terminal."""
    text = "a" * 1000 + "!" + "b" * 1000
    shown = Problem("f", 1, 1001, "m", text).render().splitlines()
    assert len(shown[1]) < 200
    assert shown[1][shown[2].index("^")] == "!"
