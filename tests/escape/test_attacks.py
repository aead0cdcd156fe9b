"""The catalogue of single attempts: each works natively where it can, none is let through."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from privilege import lacking, whole_root

if TYPE_CHECKING:
    from tests.escape.conftest import Tree

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

CATALOGUE = (Path(__file__).parent / "attacks.def").read_text(encoding="utf-8")
ROW = re.compile(
    r'^ATTACK\((\w+), (WORKS|ROOT|MAYBE|NEVER), (BLOCK|ALLOW|LIMIT), "(.*)"\)$', re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Attack:
    """A row of attacks.def, whose head says what the words mean."""

    name: str
    native: str
    policy: str
    why: str


ATTACKS = tuple(Attack(*match.groups()) for match in ROW.finditer(CATALOGUE))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the program printed of one attack, and what it said beside."""

    verdict: str
    errno: int
    notes: str


def attempt(name: str, tree: Tree, around: list[str]) -> Outcome:
    """Runs one attack below `around`, with the workspace as working directory."""
    done = subprocess.run(
        [*around, str(tree.root / "bin/attacks"), str(tree.root), name],
        capture_output=True,
        timeout=120,
        check=False,
        cwd=tree.root / "area_a",
    )
    out = done.stdout.decode(errors="backslashreplace")
    notes = done.stderr.decode(errors="backslashreplace")
    match = re.fullmatch(rf"{name} (blocked|REACHED|absent|HANGS) (-?\d+)\n", out)
    assert match is not None, f"exit {done.returncode}, printed {out!r}: {notes[-2000:]}"
    return Outcome(match[1], int(match[2]), notes)


def test_catalogue_is_whole() -> None:
    """Every line of the catalogue is a row that these tests understand."""
    assert len(ATTACKS) == CATALOGUE.count("\nATTACK(") > 100
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_native(attack: Attack, tree: Tree) -> None:
    """The control: with nobody supervising, the attack does what its row says."""
    outcome = attempt(attack.name, tree, [])
    if attack.native == "NEVER":
        assert outcome.verdict in {"blocked", "absent"}, outcome
    elif attack.native == "WORKS" or (attack.native == "ROOT" and whole_root()):
        assert outcome.verdict == "REACHED", outcome
    else:
        assert outcome.verdict in {"REACHED", "blocked", "absent"}, outcome


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_supervised(attack: Attack, tree: Tree, supervise: Callable[[Tree], list[str]]) -> None:
    """Under the policy nothing is reached, nothing hangs and nothing protected changes."""
    if attack.policy == "ALLOW" and attack.native == "ROOT" and lacking():
        pytest.skip(lacking())
    before = tree.marks()
    outcome = attempt(attack.name, tree, supervise(tree))
    if attack.policy == "ALLOW":
        there = attack.native == "WORKS" or (attack.native == "ROOT" and whole_root())
        assert outcome.verdict in ({"REACHED"} if there else {"REACHED", "absent"}), outcome
    elif attack.policy == "BLOCK":
        assert outcome.verdict in {"blocked", "absent"}, outcome
    else:
        assert outcome.verdict != "HANGS", outcome
    assert tree.marks() == before
    assert "\x1b" not in outcome.notes, "a name's escape byte came out on the terminal"
