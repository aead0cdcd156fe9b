"""What a run says to type next, typed."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from fakes_run import FakeSession, denial
from hypothesis import given
from hypothesis import strategies as st

from supervisor import native
from supervisor.cli import main
from supervisor.cli.hints import Hints, shell_word
from supervisor.cli.lookup import NO_TMP, Lookup
from supervisor.cli.request import Request
from supervisor.cli.run import Options, run
from supervisor.policy.blob import read_rules
from supervisor.run.events import EXEC, OP_EXEC, OPS
from supervisor.run.session import run as run_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from supervisor.run.events import Event
    from supervisor.run.session import Follower, Outcome, Plan

BASE = """\
version: 1
name: base
vars: {work: /nowhere}
files:
  - {id: sys, allow: [read, exec], paths: [/usr/**, /etc/**]}
  - {id: work, allow: all, paths: ["${work}/**"]}
"""
MORE = """\
version: 1
name: more
files:
  - {id: keep, deny: [write, rename], paths: ["**/keep/**"]}
exec:
  - {id: push, deny: git, argv: ["push", "**"]}
  - {id: linked, deny: nick}
"""
OTHER = OPS["write"] | OPS["create"]


class Player:
    """Runs a plan whose one denial is made from its own policy, and keeps that policy."""

    def __init__(self, event: Event, argv: Sequence[bytes] = (), name: bytes = b"") -> None:
        self.event = event
        self.argv = argv
        self.name = name
        self.rule = ""

    def __call__(self, plan: Plan, followers: Sequence[Follower]) -> Outcome:
        """Decide as the library does, tell the denial."""
        e = self.event
        paths = [path for path in (e.path, e.path2) if path]
        found = [
            native.decide(plan.blob, e.ops, p, name=self.name, argv=self.argv, tmp=NO_TMP)
            for p in paths
        ]
        verdict = next(one for one in found if one.action == e.action)
        e.rule, e.err = verdict.rule, verdict.err
        self.rule = read_rules(plan.blob)[e.rule].id if e.rule >= 0 else ""
        session = FakeSession([[e]])
        return run_session(plan, followers, opener=lambda _b, _t: session, guard=lambda: None)


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give options of a run that all matter for its decisions."""
    odd = tmp_path / "my policies"
    odd.mkdir()
    (odd / "base.yaml").write_text(BASE)
    (tmp_path / "more.yaml").write_text(MORE)
    (tmp_path / "work" / "keep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    extra = f"{tmp_path}/extra:read,write"
    words = ["-p", "./my policies/base.yaml", "--policy=more.yaml"]
    return [*words, "--set", f"work={tmp_path}/work", "--allow-path", extra]


def _hinted(player: Player, flags: Sequence[str], capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The command line that the run hints at, as a shell would read it."""
    assert run([*flags, "--", "cmd"], named=False, runner=player) == 0
    line = capfd.readouterr().err.partition("hint: `")[2].partition("`")[0]
    words = shlex.split(line)
    assert words[:3] == ["supervise", "policy", "explain"]
    return words[1:]


def _answer(words: Sequence[str], capfd: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What the hinted line answers: decision and rule."""
    place = next(i for i, word in enumerate(words) if word in ("--path", "--exec"))
    code = main([*words[:place], "--json", *words[place:]])
    answer = json.loads(capfd.readouterr().out)
    assert code == (answer["decision"] == "deny")
    return answer["decision"], (answer["rule"] or {"id": ""})["id"]


@pytest.mark.parametrize(
    ("path", "ops", "rule"),
    [
        ("work/keep/x", OTHER, "keep"),
        ("work/keep/a b", OPS["rename"], "keep"),
        ("outside", OTHER, ""),
        ("extra", OTHER, ""),
        ("x/keep/\u00e9", OPS["write"], "keep"),
    ],
)
def test_hint_about_a_path_gives_the_same_answer(
    path: str,
    ops: int,
    rule: str,
    flags: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Policies, variables and allowed paths are those of the run."""
    player = Player(denial(f"{tmp_path}/{path}".encode(), ops=ops))
    words = _hinted(player, flags, capfd)
    assert player.rule == rule
    assert _answer(words, capfd) == ("deny", rule)


def test_hint_about_a_rename_names_the_end_that_was_denied(
    flags: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The end that is allowed would be answered with ALLOW."""
    event = denial(f"{tmp_path}/work/a".encode(), ops=OPS["rename"])
    event.path2 = f"{tmp_path}/work/keep/a".encode()
    assert _answer(_hinted(Player(event), flags, capfd), capfd) == ("deny", "keep")


def test_hint_that_cannot_be_found_costs_no_run(flags: list[str], tmp_path: Path) -> None:
    """A path that the matcher refuses to look at leaves the other end of the rename."""
    assert flags
    event = denial(b"/a", ops=OPS["rename"], rule=0)
    event.path2 = b"/" + b"x" * 100_000
    assert "--path /a --op rename" in _hints(tmp_path / "more.yaml").fix(event)


def test_hint_about_a_program_has_its_arguments(
    flags: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a rule looks at arguments they are part of the question."""
    argv = [b"git", b"push", b"--force", b"a b", b""]
    event = denial(b"/usr/bin/git", ops=OP_EXEC, kind=EXEC)
    event.detail = b"\0".join(argv) + b"\0"
    words = _hinted(Player(event, argv, b"git"), flags, capfd)
    assert words[-6:] == ["--exec", "/usr/bin/git", "push", "--force", "a b", ""]
    assert _answer(words, capfd) == ("deny", "push")


def test_hint_about_a_link_names_it_as_the_rule_does(
    flags: list[str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rule about a name is asked by that name where the true path has another."""
    (tmp_path / "nick").symlink_to("/usr/bin/env")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    event = denial(str((tmp_path / "nick").resolve()).encode(), ops=OP_EXEC)
    words = _hinted(Player(event, [b"nick"], b"nick"), flags, capfd)
    assert words[-2:] == ["--exec", "nick"]
    assert _answer(words, capfd) == ("deny", "linked")


def _hints(policy: Path) -> Hints:
    blob = Request([str(policy)]).compiled().blob
    return Hints(["-p", str(policy)], lookup=Lookup(blob))


def test_arguments_that_nobody_read_are_asked_for(flags: list[str], tmp_path: Path) -> None:
    """A refused call may come without its arguments: then the line is not called complete."""
    assert flags
    text = _hints(tmp_path / "more.yaml").fix(denial(b"/usr/bin/git", ops=OP_EXEC, rule=0))
    assert "--exec /usr/bin/git`, with its arguments behind, tells" in text


def test_arguments_that_no_rule_looks_at_are_left_out(flags: list[str], tmp_path: Path) -> None:
    """A long command line would say nothing."""
    assert flags
    event = denial(b"/usr/bin/sh", ops=OP_EXEC)
    event.detail = b"sh\0-c\0a long script\0"
    text = _hints(tmp_path / "more.yaml").fix(event)
    assert text.startswith(f"`supervise policy explain -p {tmp_path}/more.yaml --exec /usr/bin/sh`")


def test_values_that_look_like_options_stay_values() -> None:
    """A name that starts with a dash is tied to its flag."""
    from supervisor.cli.hints import policy_words

    options = Options()
    options.policy = ["-x.yaml"]
    options.allow_path = [("-y", ("read",))]
    assert policy_words(options) == ["--policy=-x.yaml", "--allow-path=-y:read"]


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
    text = Hints().fix(denial(b"/bin/x", ops=OP_EXEC))
    assert text.startswith("`supervise policy explain --exec /bin/x`, or allow once")
