"""``supervise policy`` and ``supervise doctor``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from supervisor.cli import doctor as doctor_module
from supervisor.cli import main
from supervisor.cli.doctor import Finding

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """\
version: 1
name: mine
files:
  - {id: sys, allow: [read, exec], paths: [/usr/**, /etc/**]}
  - {id: keys, deny: all, paths: [/etc/ssl/private/**], say: "not yours"}
exec:
  - {id: push, deny: git, argv: ["push", "**"]}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """Give a policy with a rule of each kind."""
    path = tmp_path / "mine.yaml"
    path.write_text(POLICY)
    return str(path)


def _test(tmp_path: Path, policy: str, text: str) -> int:
    path = tmp_path / "expect.yaml"
    path.write_text(text)
    return main(["policy", "test", str(path), "-p", policy, "--json"])


def test_expectations_that_hold(
    tmp_path: Path, policy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Paths and programs are decided by the matcher and compared."""
    text = """\
- {path: /etc/hosts, op: read, expect: allow, rule: sys}
- {path: /etc/hosts, op: write, expect: deny}
- {path: /etc/ssl/private/key, expect: deny, rule: keys}
- {exec: [/usr/bin/git, push, origin], expect: deny, rule: push}
- {exec: [/usr/bin/git, status], expect: allow}
"""
    assert _test(tmp_path, policy, text) == 0
    assert all(row["ok"] for row in json.loads(capfd.readouterr().out))


BLOCKS = """\
blocks:
  - id: narrow
    for: {program: [agent, sh]}
    files:
      - {id: in-hosts, allow: read, paths: [/etc/hosts]}
"""


def test_expectations_within_blocks(
    tmp_path: Path, policy: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """An expectation may say which program asks; its blocks then count."""
    with open(policy, "a", encoding="utf-8") as file:
        file.write(BLOCKS)
    text = """\
- {path: /etc/passwd, expect: allow, rule: sys}
- {path: /etc/passwd, program: agent, expect: deny, rule: narrow}
- {path: /etc/passwd, program: sh, expect: deny, rule: narrow}
- {path: /etc/passwd, program: cat, expect: allow, rule: sys}
- {path: /etc/hosts, program: agent, expect: allow, rule: sys}
- {exec: [/usr/bin/git, status], program: agent, expect: deny, rule: narrow}
"""
    assert _test(tmp_path, policy, text) == 0
    assert all(row["ok"] for row in json.loads(capfd.readouterr().out))


def test_explain_within_blocks(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The answer names the blocks that counted."""
    with open(policy, "a", encoding="utf-8") as file:
        file.write(BLOCKS)
    words = ["policy", "explain", "-p", policy, "--path", "/etc/passwd"]
    assert main([*words, "--program", "agent"]) == 1
    said = capfd.readouterr().out
    assert "  blocks     narrow\n" in said
    assert "add under files of block 'narrow'" in said
    assert main([*words, "--program", "cat", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["blocks"] == []
    assert main(["policy", "show", "--merged", policy]) == 0
    assert "    for: {program: [agent, sh]}\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    "item",
    [
        "{path: /etc/hosts, expect: deny}",
        "{path: /etc/hosts, expect: allow, rule: other}",
        "{exec: [/usr/bin/git, push], expect: allow}",
    ],
)
def test_expectation_that_fails(tmp_path: Path, policy: str, item: str) -> None:
    """A wrong answer, or the right one by another rule, is a finding."""
    assert _test(tmp_path, policy, f"- {item}\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "- 1",
        "- {expect: allow}",
        "- {path: /a, exec: b, expect: allow}",
        "- {path: /a, expect: maybe}",
        "- {path: /a, expect: allow, op: fly}",
        "- {path: /a, expect: allow, oops: 1}",
        "- {path: [], expect: allow}",
        "- {path: /a, path: /b, expect: allow}",
        "a: [",
    ],
)
def test_list_that_cannot_be_meant(tmp_path: Path, policy: str, text: str) -> None:
    """A list that says something else is an error, never a pass."""
    assert _test(tmp_path, policy, text) == 2


def test_check_tells_all_errors(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Every error has its position."""
    path = tmp_path / "bad.yaml"
    path.write_text(
        "version: 1\nname: x\nfiles:\n  - {alow: read}\n  - {allow: fly, paths: [/a]}\n"
    )
    assert main(["policy", "check", str(path)]) == 1
    out = capfd.readouterr().out
    assert f"{path}:4:" in out
    assert f"{path}:5:" in out


def test_explain_names_rule_and_change(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The answer has verdict, rule with source, losers and a change."""
    line = ["policy", "explain", "-p", policy, "--path", "/etc/ssl/private/k", "--json"]
    assert main(line) == 1
    answer = json.loads(capfd.readouterr().out)
    assert (answer["decision"], answer["rule"]["id"]) == ("deny", "keys")
    assert answer["rule"]["src"].endswith("mine.yaml:5")
    assert [loser["id"] for loser in answer["losers"]] == ["sys"]
    assert answer["change"]


def test_show_source_and_merged(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Show prints the file; --merged what comes out of it."""
    assert main(["policy", "show", policy]) == 0
    assert capfd.readouterr().out == POLICY
    assert main(["policy", "show", "--merged", policy]) == 0
    assert "/etc/ssl/private/**" in capfd.readouterr().out


def test_project_policy_needs_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A file in the current folder is used only as it was when it was trusted."""
    monkeypatch.chdir(tmp_path)
    own = tmp_path / ".supervise.yaml"
    own.write_text(POLICY)
    ask = ["policy", "explain", "--exec", "/usr/bin/git", "push"]
    assert main(ask) == 0
    assert main(["policy", "trust", ".supervise.yaml"]) == 0
    assert main(ask) == 1
    own.write_text(POLICY + "# changed\n")
    assert main(ask) == 0
    own.write_text(POLICY)
    assert main(["policy", "trust", "--remove", ".supervise.yaml"]) == 0
    assert main(ask) == 0
    assert capfd.readouterr().err == ""


def test_doctor_fails_where_something_needed_is_missing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What a run needs decides the exit code; what it can do without does not."""
    findings = [Finding("a", "x", "found", ok=True, needed=True)]
    monkeypatch.setattr(doctor_module, "examine", lambda: findings)
    assert main(["doctor"]) == 0
    findings.append(Finding("b", "x", "", ok=False, needed=False))
    assert main(["doctor"]) == 0
    findings.append(Finding("c", "x", "", ok=False, needed=True))
    assert main(["doctor", "--json"]) == 1
    assert main(["doctor"]) == 1
    assert "cannot start without: c" in capfd.readouterr().out


HIDING = """\
version: 1
name: hiding
files:
  - {id: hidden, deny: all, as: ENOENT, paths: [/a/**]}
  - {id: shown, deny: all, as: ENOENT, hide: false, paths: [/b/**]}
  - {id: partly, deny: read, as: ENOENT, paths: [/c/**]}
  - {id: plain, deny: all, paths: [/d/**]}
"""


def test_notes_about_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Check and show tell which rules hide names, how far, and which only keep from opening."""
    path = tmp_path / "hiding.yaml"
    path.write_text(HIDING)
    assert main(["policy", "check", str(path)]) == 0
    _, shown, hidden = capfd.readouterr().out.splitlines()
    assert shown == (
        "  note: shown, partly: opens get ENOENT, but stat and listings show the names"
    )
    assert hidden.startswith("  note: hidden: hidden names; chdir, an open with O_PATH")
    assert main(["policy", "show", "--merged", str(path)]) == 0
    assert f"#{shown[1:]}" in capfd.readouterr().out
    assert main(["policy", "show", "--json", str(path)]) == 0
    told = json.loads(capfd.readouterr().out)
    assert [rule["hide"] for rule in told["files"]] == [True, False, False, False]
    assert [note.split(":")[0] for note in told["notes"]] == ["shown, partly", "hidden"]
    path.write_text(HIDING.replace("name:", "mode: observe\nname:"))
    assert main(["policy", "check", "--json", str(path)]) == 0
    notes = json.loads(capfd.readouterr().out)[0]["notes"]
    assert notes[1] == "hidden: while observing, names are not hidden"
