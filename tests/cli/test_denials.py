"""What is told of denials."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
from fakes_run import denial
from hypothesis import given
from hypothesis import strategies as st

from supervisor.cli.denials import LIVE, Denials, fix, shell_word
from supervisor.model import Status
from supervisor.policy.blob import RuleInfo
from supervisor.run.events import FAULT, Event
from supervisor.run.session import Outcome

RULES = [RuleInfo("secrets.ssh-keys", 3, 255, 13, "private keys stay out of reach", "a.yaml:31")]
END = Outcome(0, Status(exited=1), timed_out=False)


class Memory:
    """Keeps the lines."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def say(self, text: str) -> None:
        self.text += f"supervise: {text}\n"

    def paint(self, _colour: str, text: str) -> str:
        return text


def _denials(*, as_json: bool = False) -> tuple[Denials, Memory]:
    memory = Memory()
    denials = Denials(
        memory,  # type: ignore[arg-type]
        rule=lambda i: RULES[i] if i >= 0 else None,
        call_name=lambda _nr: "openat",
        as_json=as_json,
    )
    return denials, memory


def test_three_lines_for_a_rule() -> None:
    """Call, rule with its source and sentence, and where to ask."""
    denials, memory = _denials()
    denials.events([denial(b"/home/u/.ssh/id_rsa", rule=0)])
    assert memory.text == (
        'supervise: denied openat "/home/u/.ssh/id_rsa" for read = -1 EACCES  [cat 42]\n'
        "  rule  secrets.ssh-keys (a.yaml:31): private keys stay out of reach\n"
        "  hint: `supervise policy explain --path /home/u/.ssh/id_rsa --op read`"
        " tells what decides this\n"
    )


def test_default_denial_names_the_flag() -> None:
    """Where no rule allowed it, a flag would: it is shown ready to copy."""
    denials, memory = _denials()
    denials.events([denial(b"/x y", ops=3)])
    assert "  rule  default: nothing allows it\n" in memory.text
    assert "allow once with `--allow-path '/x y':read,write`" in memory.text


def test_equal_denials_are_folded() -> None:
    """The first is told at once, the others are counted in one line at the end."""
    denials, memory = _denials()
    denials.events([denial(), denial(b"/q")])
    told = memory.text
    denials.events([denial()] * 13)
    assert memory.text == told
    denials.ended(END)
    assert memory.text == told + 'supervise: denied openat "/p" for read x14\n'


def test_other_rule_path_or_call_is_told_apart() -> None:
    """Rule, path and syscall make a denial another one."""
    denials, memory = _denials()
    denials.events([denial(), denial(rule=0), denial(b"/q"), denial(nr=2)])
    assert memory.text.count("supervise: denied") == 4


def test_only_so_many_are_told() -> None:
    """Beyond the limit denials are counted."""
    denials, memory = _denials()
    denials.events([denial(b"/%d" % (i // 2)) for i in range((LIVE + 5) * 2)])
    assert memory.text.count("supervise: denied") == LIVE
    denials.ended(END)
    last = memory.text.splitlines()[-1]
    assert last == "supervise: and 10 more denials of 5 other kinds: see `supervise log --denied`"


def test_memory_is_bounded() -> None:
    """A flood of different paths is counted without being kept."""
    denials, memory = _denials()
    denials.events([denial(b"/%d" % i) for i in range(10_000)])
    denials.ended(END)
    assert len(denials._counts) == 4096
    assert f"and {10_000 - LIVE} more denials" in memory.text


def test_observed_denial_is_told_as_such() -> None:
    """In observe mode the call passed."""
    denials, memory = _denials()
    denials.events([denial(err=0)])
    assert memory.text.startswith('supervise: would deny openat "/p" for read  [cat 42]\n')


def test_fault_is_told() -> None:
    """What could not be read shows its reason instead of a rule."""
    denials, memory = _denials()
    denials.events([Event(FAULT, 1, 2, 3, 42, 257, 1, 3, 2, -1, 1, b"", b"", b"x", b"bad \x1b")])
    assert "  why   bad \\x1b\n" in memory.text


def test_json_lines() -> None:
    """With --json every line is an object, the summary included."""
    denials, memory = _denials(as_json=True)
    denials.events([denial(b"/\xff\n", rule=0)] + [denial(b"/%d" % i) for i in range(30)])
    denials.events([denial(b"/\xff\n", rule=0)])
    denials.ended(END)
    rows = [json.loads(line) for line in memory.text.splitlines()]
    assert rows[0]["path"] == "/\\xff\\x0a"
    assert (rows[0]["rule"], rows[0]["src"], rows[0]["errno"]) == (
        "secrets.ssh-keys",
        "a.yaml:31",
        "EACCES",
    )
    assert rows[-2]["count"] == 2
    assert rows[-1] == {"count": 11, "event": "denied-more"}


@given(st.binary(max_size=40), st.binary(max_size=20))
def test_no_byte_deceives(path: bytes, comm: bytes) -> None:
    """Whatever the path and the name are, there are three printable lines."""
    denials, memory = _denials()
    event = denial(path)
    event.comm = comm
    denials.events([event])
    lines = memory.text.split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


@given(st.binary(min_size=1, max_size=40).filter(lambda data: b"\0" not in data))
def test_shell_word_names_the_same_bytes(data: bytes) -> None:
    """Words without escapes mean their bytes to a POSIX shell; the others are marked."""
    word = shell_word(data)
    assert word.isprintable()
    if not word.startswith("$'"):
        assert shlex.split(word) == [data.decode()]


@pytest.mark.parametrize("data", [b"a\xffb", b"it's", b"back\\slash", "x\u202ey".encode(), b"a\nb"])
def test_escaped_words_are_what_bash_understands(data: bytes) -> None:
    """The marked words come out of bash as the bytes that went in."""
    command = ["bash", "-c", f"printf %s {shell_word(data)}"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == data


def test_fix_for_programs() -> None:
    """A program is asked about as a program."""
    assert fix(denial(b"/bin/x", ops=128)).startswith("`supervise policy explain --exec /bin/x`")
