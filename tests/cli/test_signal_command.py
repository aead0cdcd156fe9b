"""``supervise policy`` about signals: explain, test, check and show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from supervisor.cli import main

POLICY = """\
version: 1
name: sig
signals:
  - {id: soft, steer: [KILL], to: TERM, target: others}
  - {id: no, deny: USR1, target: child, say: "not to children"}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """Give a policy."""
    path = tmp_path / "sig.yaml"
    path.write_text(POLICY)
    return str(path)


def test_explain(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Verdict, rule, what is sent, mechanism and change; the code says denied or not."""
    ask = ["policy", "explain", "-p", policy, "--signal"]
    assert main([*ask, "USR1", "--target", "child"]) == 1
    assert capfd.readouterr().out == (
        'DENY signal "USR1 child" = -1 EPERM\n'
        f"  rule       no ({policy}:5): not to children\n"
        f"             {POLICY.splitlines()[4].strip()}\n"
        "  mechanism  refused\n"
        f"  change     take USR1 out of rule 'no' ({policy}:5)\n"
    )
    assert main([*ask, "KILL", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["path"], answer["decision"], answer["rule"]["id"]) == (
        "KILL tree",
        "steer",
        "soft",
    )
    assert main([*ask, "HUP", "--target", "self"]) == 0
    assert "default: no rule speaks of it" in capfd.readouterr().out


def test_wrong_questions(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """What is no signal or target is a usage error with a suggestion."""
    ask = ["policy", "explain", "-p", policy, "--signal"]
    for words, text in (
        (["SIGKILL"], "did you mean 'KILL'?"),
        (["KILL", "--target", "parent"], "self, child, others, tree"),
        (["KILL", "--path", "/"], "exactly one of"),
    ):
        assert main([*ask, *words]) == 2
        assert text in capfd.readouterr().err


def test_expectations(policy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A list of expectations asks about signals, too."""
    wishes = tmp_path / "wishes.yaml"
    wishes.write_text(
        "- {signal: KILL, target: others, expect: steer, rule: soft}\n"
        "- {signal: USR1, expect: deny}\n"
        "- {signal: USR1, target: self, expect: allow}\n"
        "- {signal: TERM, expect: deny}\n"
    )
    assert main(["policy", "test", "-p", policy, str(wishes)]) == 1
    out = capfd.readouterr().out
    assert f"{wishes}:4: signal TERM: expected deny, got allow" in out
    assert "3 of 4 expectations hold" in out
    for text in (
        "- {signal: KILL, target: me, expect: deny}",
        "- {path: /, target: self, expect: deny}",
    ):
        wishes.write_text(text)
        assert main(["policy", "test", "-p", policy, str(wishes)]) == 2
        assert "target goes with signal" in capfd.readouterr().err


def test_show_and_check(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The merged policy has its signal rules, and they are counted."""
    assert main(["policy", "show", policy, "--merged"]) == 0
    assert capfd.readouterr().out.endswith(
        "signals:\n"
        f"  # {policy}:4\n  - id: soft\n    steer: [KILL]\n    target: others\n    to: TERM\n"
        f"  # {policy}:5\n  - id: no\n    deny: [USR1]\n    target: child\n"
    )
    assert main(["policy", "show", policy, "--json"]) == 0
    first = json.loads(capfd.readouterr().out)["signals"][0]
    assert (first["signals"], first["target"], first["to"]) == (["KILL"], "others", "TERM")
    assert main(["policy", "check", policy]) == 0
    assert "2 rules" in capfd.readouterr().out
