"""What is told of denials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes_run import denial
from hypothesis import given
from hypothesis import strategies as st

from supervisor.cli.denials import LIVE, Denials
from supervisor.cli.hints import Hints
from supervisor.model import Status
from supervisor.policy.blob import RuleInfo
from supervisor.run.events import ALLOW, EFFECTS, FAULT, OP_EXEC, Event
from supervisor.run.session import Outcome

ROOT = Path(__file__).parents[2]
RULES = [
    RuleInfo("secrets.ssh-keys", 3, 255, 13, "private keys stay out of reach", "a.yaml:31"),
    RuleInfo("supervise.self", 3, 255, 13, "records stay out of reach", "built-in"),
]
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


@pytest.mark.parametrize(
    ("path", "ops", "asked", "rule"),
    [
        (b"127.0.0.1:80", 0x200, "connect 127.0.0.1:80", 'allow: connect, to: ["127.0.0.1:80"]'),
        (b"[::1]:0", 0x400, "bind '[::1]:0'", 'allow: bind, to: ["[::1]"]'),
        (b"unix:/run/x", 0x200, "connect unix:/run/x", 'allow: connect, to: ["unix:/run/x"]'),
        (b"unix:@a*", 0x400, "bind 'unix:@a*'", 'allow: bind, to: ["unix:@a\\\\*"]'),
    ],
)
def test_network_denial_names_the_rule_to_add(path: bytes, ops: int, asked: str, rule: str) -> None:
    """No flag allows an address; the rule that does is shown."""
    denials, memory = _denials()
    denials.events([denial(path, ops=ops)])
    word = asked.partition(" ")[0]
    first, why, hint, rest = memory.text.split("\n")
    assert first == f'supervise: denied openat "{path.decode()}" for {word} = -1 EACCES  [cat 42]'
    assert why == "  rule  default: nothing allows it"
    assert hint == (
        f"  hint: `supervise policy explain --{asked}`, "
        f"or add under network: `- {{id: my-{word}, {rule}}}`"
    )
    assert not rest
    denials.events([denial(path, ops=ops, rule=0)])
    assert memory.text.endswith(f"explain --{asked}` tells what decides this\n")


def test_sending_is_allowed_as_connecting() -> None:
    """What was sent is named, and the rule that allows it is about connecting."""
    denials, memory = _denials()
    denials.events([denial(b"192.0.2.1:53", ops=0x800)])
    assert '"192.0.2.1:53" for send = -1' in memory.text
    assert "explain --connect 192.0.2.1:53`" in memory.text
    assert '{id: my-connect, allow: connect, to: ["192.0.2.1:53"]}' in memory.text


def test_socket_without_a_name_cannot_be_asked_about() -> None:
    """A network denial without an address has no hint."""
    denials, memory = _denials()
    denials.events([denial(b"", ops=0x200)])
    assert "hint" not in memory.text


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


@pytest.mark.parametrize("effect", ["continue", "broker", "rewrite"])
@pytest.mark.parametrize("err", [0, 2])
def test_observed_denial_is_told_as_such(effect: str, err: int) -> None:
    """In observe mode the call went on; that it failed by itself is no refusal of ours."""
    denials, memory = _denials()
    event = denial(err=err)
    event.effect = EFFECTS.index(effect)
    denials.events([event, event])
    denials.ended(END)
    assert memory.text.startswith('supervise: would deny openat "/p" for read  [cat 42]\n')
    assert memory.text.endswith('supervise: would deny openat "/p" for read x2\n')


def test_killed_program_is_told_as_such() -> None:
    """What was ended at the exec stop passed nowhere, although it has no errno."""
    denials, memory = _denials()
    effect = EFFECTS.index("kill")
    why = b"another file than the one decided on"
    event = Event(FAULT, 1, 2, 3, 42, 59, OP_EXEC, ALLOW, effect, 0, 0, b"/b/x", b"", b"x", why)
    denials.events([event])
    assert memory.text == (
        f'supervise: killed openat "/b/x" for exec  [x 42]\n  why   {why.decode()}\n'
    )


def test_both_ends_of_a_rename_are_told() -> None:
    """Which of the two the rule is about cannot be seen from one."""
    denials, memory = _denials()
    event = denial(b"/a", ops=16)
    event.path2 = b"/b"
    denials.events([event])
    assert 'denied openat "/a" -> "/b" for rename = -1 EACCES' in memory.text


def test_what_has_no_path_cannot_be_asked_about() -> None:
    """A pipe or an address gets no hint that leads nowhere."""
    denials, memory = _denials()
    denials.events([denial(b"pipe:[7]"), denial(b"")])
    assert "hint" not in memory.text


def test_what_protects_us_cannot_be_asked_about() -> None:
    """The built-in rules differ from run to run (--audit): their sentence is the whole answer."""
    denials, memory = _denials()
    denials.events([denial(b"/log", rule=1)])
    assert memory.text.endswith("  rule  supervise.self (built-in): records stay out of reach\n")


@pytest.mark.parametrize(
    ("log", "end"),
    [
        ("", ": see `supervise log --denied`\n"),
        ("/a b/log", ": see `supervise log --denied '/a b/log'`\n"),
        (None, " other kinds\n"),
    ],
)
def test_summary_names_the_log_of_this_run(log: str | None, end: str) -> None:
    """The log is where --audit put it; without one nothing is pointed to."""
    memory = Memory()
    denials = Denials(
        memory,  # type: ignore[arg-type]
        rule=lambda _: None,
        call_name=lambda _: "openat",
        hints=Hints(log=log),
    )
    denials.events([denial(b"/%d" % i) for i in range(LIVE + 1)])
    denials.ended(END)
    assert memory.text.endswith(end)


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
    assert (rows[0]["effect"], rows[0]["path2"]) == ("errno", "")
    assert rows[-2]["count"] == 2
    assert rows[-1] == {"count": 11, "event": "denied-more"}


@given(
    st.binary(max_size=40),
    st.sampled_from([(b"/", 1), (b"unix:/", 0x200), (b"unix:@", 0x400), (b"1", 0x200)]),
    st.binary(max_size=20),
)
def test_no_byte_deceives(rest: bytes, kind: tuple[bytes, int], comm: bytes) -> None:
    """Whatever the path and the name are, there are three printable lines."""
    denials, memory = _denials()
    event = denial(kind[0] + rest, ops=kind[1])
    event.comm = comm
    denials.events([event])
    lines = memory.text.split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
