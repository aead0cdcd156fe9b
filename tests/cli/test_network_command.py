"""``supervise policy`` about the network: explain, test, check and show."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from supervisor.cli import main

POLICY = """\
version: 1
name: net
network:
  - {id: lo, allow: all, to: ["127.0.0.0/8", "[::1]"]}
  - {id: db, deny: connect, to: ["*:5432"], as: ECONNREFUSED, say: "no database"}
  - {id: here, allow: all, to: ["unix:${CWD}/**", "unix:@me-*"]}
blocks:
  - id: narrow
    for: {program: narrow}
    network: [{id: http, allow: connect, to: ["127.0.0.1:80"]}]
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a policy, in a project of its own."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    path = tmp_path / "net.yaml"
    path.write_text(POLICY)
    return str(path)


def test_explain(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The same lines as for a path: verdict, rule, losers, mechanism and change."""
    assert main(["policy", "explain", "-p", policy, "--connect", "127.0.0.1:5432"]) == 1
    assert capfd.readouterr().out == (
        'DENY connect "127.0.0.1:5432" = -1 ECONNREFUSED\n'
        f"  rule       db ({policy}:5): no database\n"
        f"             {POLICY.splitlines()[4].strip()}\n"
        f"  outvoted   allow lo ({policy}:4)\n"
        "  mechanism  refused\n"
        f"  change     take \"127.0.0.1:5432\" out of rule 'db' ({policy}:5)\n"
    )
    assert main(["policy", "explain", "-p", policy, "--bind", "[::1]:0", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert (answer["path"], answer["op"], answer["decision"]) == ("[::1]:0", "bind", "allow")
    assert (answer["rule"]["id"], answer["mechanism"], answer["blocks"]) == ("lo", "broker", [])


@pytest.mark.parametrize(
    ("flag", "text", "code", "told"),
    [
        ("--connect", "0.0.0.0:80", 0, "0.0.0.0:80"),
        ("--connect", "[::ffff:127.0.0.1]:80", 0, "127.0.0.1:80"),
        ("--bind", "0.0.0.0:80", 1, "0.0.0.0:80"),
        ("--connect", "unix:@me-1", 0, "unix:@me-1"),
        ("--bind", "unix:@you", 1, "unix:@you"),
        ("--connect", "192.0.2.1:443", 1, "192.0.2.1:443"),
    ],
)
def test_what_is_asked(
    policy: str, capfd: pytest.CaptureFixture[str], flag: str, text: str, code: int, told: str
) -> None:
    """Addresses as events tell them."""
    assert main(["policy", "explain", "-p", policy, flag, text, "--json"]) == code
    assert json.loads(capfd.readouterr().out)["path"] == told


def test_paths_are_true_ones(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A socket's path may be relative, and links are followed, as a run would."""
    os.symlink("/run", "link")
    for text, code, told in (
        ("unix:s", 0, f"unix:{os.path.realpath('.')}/s"),
        ("unix:link/docker.sock", 1, f"unix:{os.path.realpath('/run')}/docker.sock"),
    ):
        assert main(["policy", "explain", "-p", policy, "--connect", text, "--json"]) == code
        assert json.loads(capfd.readouterr().out)["path"] == told


def test_sockets_at_paths(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Binding one makes a file; connecting to one that is not allowed finds nobody."""
    line = ["policy", "explain", "-p", policy, "--json"]
    assert main([*line, "--bind", "unix:s"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert (told["op"], told["path"]) == ("bind", f"unix:{os.path.realpath('s')}")
    assert told["change"].startswith("add under files: - {id: my-create, allow: create,")
    assert "files and create" in told["note"]
    assert main([*line, "--connect", "unix:/elsewhere"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert (told["errno"], told["rule"]) == (111, None)
    assert "files and write" in told["note"]
    with open(policy, "a", encoding="utf-8") as file:
        file.write('files: [{id: all, allow: all, paths: ["/**"]}]\n')
    assert main([*line, "--bind", "unix:s"]) == 0
    Path(policy).write_text(
        Path(policy).read_text().replace('allow: all, to: ["unix', 'deny: all, to: ["unix')
    )
    capfd.readouterr()
    assert main([*line, "--bind", "unix:s"]) == 1
    assert json.loads(capfd.readouterr().out)["rule"]["id"] == "here"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--connect", "1.2.3.4"], "one address and one port are needed"),
        (["--connect", "example:80"], "names are not supported by this version"),
        (["--connect", "127.1:80"], "did you mean '127.0.0.1:80'?"),
        (["--bind", "::1"], "did you mean '[::1]'?"),
        (["--bind", "unix:"], "names no socket"),
        (["--bind", "1.2.3.4:1", "--connect", "1.2.3.4:1"], "exactly one of --path, --exec"),
        (["--bind", "1.2.3.4:1", "--path", "/a"], "exactly one of --path, --exec"),
    ],
)
def test_what_cannot_be_asked(
    policy: str, capfd: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    """What is no single address is an error with the way out."""
    assert main(["policy", "explain", "-p", policy, *words]) == 2
    assert told in capfd.readouterr().err


def test_within_blocks(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A block's rules and its default count for the programs that it is for."""
    line = ["policy", "explain", "-p", policy, "--program", "narrow", "--connect"]
    assert main([*line, "127.0.0.1:80"]) == 0
    assert "  blocks     narrow\n" in capfd.readouterr().out
    assert main([*line, "127.0.0.1:81"]) == 1
    assert "add under network of block 'narrow'" in capfd.readouterr().out


def _test(policy: str, text: str) -> int:
    Path("expect.yaml").write_text(text)
    return main(["policy", "test", "expect.yaml", "-p", policy, "--json"])


def test_expectations(
    policy: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connects and binds are decided by the matcher and compared."""
    text = """\
- {connect: "127.0.0.1:80", expect: allow, rule: lo}
- {connect: "127.0.0.1:5432", expect: deny, rule: db}
- {bind: "127.0.0.1:5432", expect: allow, rule: lo}
- {connect: "unix:$PWD/s", expect: allow, rule: here}
- {connect: "127.0.0.1:81", program: narrow, expect: deny, rule: narrow}
- {path: /etc/hosts, expect: deny}
"""
    monkeypatch.setenv("PWD", str(Path.cwd()))
    assert _test(policy, text) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["op"] for row in rows] == [
        "connect",
        "connect",
        "bind",
        "connect",
        "connect",
        "read",
    ]
    assert _test(policy, '- {connect: "127.0.0.1:80", expect: deny}\n') == 1


@pytest.mark.parametrize(
    "text",
    [
        '- {connect: "127.0.0.1:80", path: /a, expect: allow}',
        '- {connect: "127.0.0.1:80", bind: "127.0.0.1:80", expect: allow}',
        "- {connect: 127.0.0.1, expect: allow}",
        '- {connect: ["127.0.0.1:80"], expect: allow}',
        "- {path: /a, op: connect, expect: allow}",
    ],
)
def test_expectations_that_cannot_be_meant(policy: str, text: str) -> None:
    """A list that says something else is an error, never a pass."""
    assert _test(policy, text + "\n") == 2


def test_check_and_show(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Network rules are counted and shown with what their variables became."""
    assert main(["policy", "check", policy]) == 0
    assert capfd.readouterr().out == f"{policy}: 4 rules, no errors\n"
    assert main(["policy", "show", "--merged", policy]) == 0
    shown = capfd.readouterr().out
    assert (
        f"network:\n  # {policy}:4\n  - id: lo\n    allow: [connect, bind]\n"
        '    to:\n      - "127.0.0.0/8"\n      - "[::1]"\n'
    ) in shown
    assert f'      - "unix:{Path.cwd()}/**"\n      - "unix:@me-*"\n' in shown
    assert "    network:\n      # " in shown
    assert main(["policy", "show", "--json", policy]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["network"][1] == {
        "id": "db",
        "action": "deny",
        "ops": "connect",
        "to": ["0.0.0.0/0:5432", "[::/0]:5432"],
        "say": "no database",
        "src": f"{policy}:5",
    }
    assert told["blocks"][0]["network"][0]["to"] == ["127.0.0.1:80"]


def test_dry_run_names_the_operations(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The compiled rules are listed with what they speak of."""
    assert main(["run", "-p", policy, "--dry-run", "--", "true"]) == 0
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert ["allow", "lo", "connect+bind", f"{policy}:4"] in lines
