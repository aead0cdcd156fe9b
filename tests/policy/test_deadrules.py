"""Rules that can never win, and steers that tie."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from policy_world import Errors, Load

from supervisor.errors import PolicyError
from supervisor.policy.context import Context
from supervisor.policy.merge import load_policy

DEAD = [
    ["{id: x, allow: read, paths: [/a/b]}", "{id: d, deny: all, paths: [/a/**]}"],
    ["{id: x, allow: read, paths: [/a/*]}", "{id: d, deny: read, paths: [/a/**]}"],
    ["{id: x, allow: read, paths: ['**/.env']}", "{id: d, deny: all, paths: [/**]}"],
    ["{id: x, allow: read, paths: [/a/*.py]}", "{id: d, deny: all, paths: ['/a/*.p?']}"],
    ["{id: x, allow: all, paths: ['/[ab]/c']}", "{id: d, deny: all, paths: [/a/c, /b/*]}"],
    [
        "{id: x, allow: [read, write], paths: [/a]}",
        "{id: d, deny: [read, list], paths: [/a]}",
        "{id: e, deny: write, paths: ['/*']}",
    ],
    ["{id: x, steer: read, paths: [/a], to: /b}", "{id: d, deny: read, paths: [/a]}"],
    ["{id: x, allow: read, paths: [/a]}", "{id: d, steer: read, paths: [/a], to: /b}"],
    [
        "{id: x, allow: read, paths: [/a/**], except: [/a/b/**]}",
        "{id: d, deny: all, paths: [/a/**], except: [/a/b/c]}",
    ],
    ["{id: x, allow: read, paths: ['${TMPDIR}/a']}", "{id: d, deny: all, paths: ['**/a']}"],
    ["{id: x, allow: read, paths: ['${TMPDIR}/a']}", "{id: d, deny: all, paths: ['${TMPDIR}/*']}"],
]
ALIVE = [
    ["{id: x, allow: read, paths: [/a/**]}", "{id: d, deny: all, paths: [/a/*]}"],
    ["{id: x, allow: [read, write], paths: [/a]}", "{id: d, deny: read, paths: [/a]}"],
    ["{id: x, allow: read, paths: [/a, /b]}", "{id: d, deny: all, paths: [/a]}"],
    ["{id: x, allow: read, paths: [/a]}", "{id: d, allow: all, paths: [/a]}"],
    ["{id: x, deny: read, paths: [/a]}", "{id: d, allow: all, paths: [/a]}"],
    [
        "{id: x, allow: read, paths: [/a/**]}",
        "{id: d, deny: all, paths: [/a/**], except: [/a/b/c]}",
    ],
    ["{id: x, allow: read, paths: ['/a/[!b]']}", "{id: d, deny: all, paths: ['/a/[a-z]']}"],
    ["{id: x, allow: read, paths: ['${TMPDIR}/a']}", "{id: d, deny: all, paths: ['/*/a']}"],
    ["{id: x, allow: read, paths: [/tmp/a]}", "{id: d, deny: all, paths: ['${TMPDIR}/**']}"],
]


def files(rules: list[str]) -> str:
    """Return a files section."""
    return "files:\n" + "".join(f"  - {rule}\n" for rule in rules)


@pytest.mark.parametrize("rules", DEAD)
def test_dead(errors: Errors, rules: list[str]) -> None:
    """A rule that stricter ones cover wholly is an error that names them, in any order."""
    for order in (rules, rules[::-1]):
        text = errors(files(order))
        assert ": error: rule 'x' can never win: stricter rules cover all that it says" in text
        assert "is covered by '" in text
        assert text.count(": error:") == 1


@pytest.mark.parametrize("rules", ALIVE)
def test_alive(load: Load, rules: list[str]) -> None:
    """A rule with a path or operation of its own is none."""
    assert len(load(files(rules)).files) == 2


def test_exec_rules(errors: Errors, load: Load) -> None:
    """Names are covered by names, paths by paths and by files rules that deny exec."""
    dead = [
        "exec:\n  - {id: x, allow: git}\n  - {id: d, deny: git}\n",
        "exec:\n  - {id: x, allow: git, argv: [push]}\n  - {id: d, deny: git}\n",
        "exec:\n  - {id: x, allow: /bin/git}\n  - {id: d, deny: /bin/*}\n",
        "exec:\n  - {id: x, allow: /bin/git}\nfiles:\n  - {id: d, deny: exec, paths: [/bin/**]}\n",
        "files:\n  - {id: x, allow: exec, paths: [/bin/nc]}\nexec:\n  - {id: d, deny: '**/nc'}\n",
    ]
    for text in dead:
        assert "rule 'x' can never win" in errors(text)
    alive = [
        "exec:\n  - {id: x, allow: git}\n  - {id: d, deny: git, argv: [push, '**']}\n",
        "exec:\n  - {id: x, allow: [git, hg]}\n  - {id: d, deny: git}\n",
        "exec:\n  - {id: x, allow: git}\n  - {id: d, deny: /bin/git}\n",
        "files:\n  - {id: x, allow: exec, paths: [/bin/nc]}\nexec:\n  - {id: d, deny: nc}\n",
    ]
    for text in alive:
        load(text)


def test_a_users_rule_may_make_a_packs_rule_idle(tmp_path: Path, context: Context) -> None:
    """Only rules of the same file or of extended files count as covers."""
    head = "version: 1\n"
    (tmp_path / "pack.yaml").write_text(head + files(["{id: p, allow: read, paths: [/a]}"]))
    user = tmp_path / "user.yaml"
    user.write_text(head + "extends: [pack.yaml]\n" + files(["{id: u, deny: all, paths: [/**]}"]))
    assert len(load_policy([str(user)], context=context).files) == 2
    (tmp_path / "pack.yaml").write_text(head + files(["{id: p, deny: all, paths: [/**]}"]))
    user.write_text(head + "extends: [pack.yaml]\n" + files(["{id: u, allow: read, paths: [/a]}"]))
    with pytest.raises(PolicyError, match="rule 'u' can never win"):
        load_policy([str(user)], context=context)


TIES = [
    ("steer: read, paths: [/a/**], to: /b", "steer: read, paths: [/a/**], to: /c", "/a"),
    ("steer: read, paths: [/a/*], to: /b", "steer: read, paths: ['/a/x*'], to: /c", "/a/x"),
    ("steer: write, paths: ['**/*.c'], to: /b", "steer: write, paths: [/*/x.*], to: /c", None),
]


@pytest.mark.parametrize(("one", "two", "witness"), TIES)
def test_ties(errors: Errors, one: str, two: str, witness: str | None) -> None:
    """Two steers that meet below one literal folder are an error with a witness."""
    text = errors(files([f"{{id: s, {one}}}", f"{{id: t, {two}}}"]))
    assert "agent.yaml:4:5: error: steers 's' and 't' tie for " in text
    assert "neither names a longer folder" in text
    assert "note: the other steer is here: agent.yaml:3" in text
    if witness:
        assert f" of '{witness}" in text


def test_no_ties(load: Load) -> None:
    """A longer folder, another operation, disjoint patterns or an exception decide."""
    for one, two in [
        ("steer: read, paths: [/a/**], to: /b", "steer: read, paths: [/a/b/**], to: /c"),
        ("steer: read, paths: [/a/**], to: /b", "steer: write, paths: [/a/**], to: /c"),
        ("steer: read, paths: ['/a/x*'], to: /b", "steer: read, paths: ['/a/y*'], to: /c"),
        (
            "steer: read, paths: [/a/*], except: [/a/x], to: /b",
            "steer: read, paths: ['/a/[x]'], to: /c",
        ),
    ]:
        assert len(load(files([f"{{id: s, {one}}}", f"{{id: t, {two}}}"])).files) == 2


def test_exec_ties(errors: Errors, load: Load) -> None:
    """Steers of one program tie unless their arguments cannot both match."""
    head = "exec:\n  - {id: s, steer: git, to: /b, argv: [push, '**']}\n"
    assert "tie for program 'git'" in errors(head + "  - {id: t, steer: git, to: /c}\n")
    assert "tie for program 'git'" in errors(head + "  - {id: t, steer: '**/g*', to: /c}\n")
    load(head + "  - {id: t, steer: git, to: /c, argv: [pull, '**']}\n")
    load(head + "  - {id: t, steer: /usr/bin/git, to: /c}\n")


def test_large_policies_stay_fast(load: Load) -> None:
    """Ten thousand rules are checked in seconds, and the one dead rule is still found."""
    rules = [f"{{id: r{i}, allow: read, paths: [/d{i % 100}/f{i}/**]}}" for i in range(5000)]
    rules += [f"{{id: s{i}, deny: all, paths: [/d{i % 100}/f{i}/k*]}}" for i in range(5000)]
    before = time.process_time()
    load(files(rules))
    assert time.process_time() - before < 20
