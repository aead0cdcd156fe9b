"""Wrong rules: each mistake with its message and position."""

from __future__ import annotations

import pytest
from policy_world import Errors, Load


def first(text: str) -> str:
    """Return the first line of rendered problems."""
    return text.splitlines()[0]


def test_the_promised_format(errors: Errors) -> None:
    """An unknown key gives position, suggestion, source line and caret, and nothing else."""
    assert errors("files:\n  - {id: x, alow: all}\n") == (
        "agent.yaml:3:13: error: unknown key 'alow' (did you mean 'allow'?)\n"
        "  3 |   - {id: x, alow: all}\n"
        "    |             ^"
    )


def test_all_problems_at_once_in_order(errors: Errors) -> None:
    """Problems of different kinds are all reported, from the top of the file down."""
    text = errors(
        "nam: x\n"
        "mode: relaxed\n"
        "files:\n"
        "  - {id: A, allow: all, paths: [/a]}\n"
        "  - {id: b, allow: reed, paths: [/a]}\n"
        "  - {id: c, deny: all, paths: [], as: EWHAT}\n"
        "env: {keep: PATH}\n"
    )
    lines = [line for line in text.splitlines() if ": error: " in line]
    assert lines == [
        "agent.yaml:2:1: error: unknown key 'nam' (did you mean 'name'?)",
        "agent.yaml:3:7: error: unknown mode 'relaxed'; known: enforce, observe",
        "agent.yaml:5:10: error: bad rule id 'A': a-z and 0-9, then also '.', '_' and '-'",
        "agent.yaml:6:20: error: unknown operation 'reed' (did you mean 'read'?)",
        "agent.yaml:7:31: error: 'paths' is empty",
        "agent.yaml:7:39: error: unknown errno name 'EWHAT'",
        "agent.yaml:8:13: error: 'keep' must be a list, found a single value",
    ]


RULES = [
    ("{allow: all}", "4:", "the rule has no 'paths'"),
    ("{paths: [/a]}", "3:5", "the rule has no action: add allow, deny or steer"),
    ("{allow: all, deny: all, paths: [/a]}", "3:18", "the rule has two actions: 'allow' and"),
    ("{allow: [], paths: [/a]}", "3:13", "'allow' is empty"),
    ("{allow: {a: b}, paths: [/a]}", "3:13", "'allow' must be a list, found a mapping"),
    ("{allow: all, paths: /a}", "3:25", "'paths' must be a list, found a single value"),
    ("{allow: all, paths: [[/a]]}", "3:26", "'paths' must be text, found a list"),
    ("{allow: all, paths: [1]}", "3:26", "'paths' must be text: write \"1\" in quotes"),
    ("{allow: all, paths: [yes]}", "3:26", "'paths' must be text: write \"yes\" in quotes"),
    ("{allow: all, paths: [~]}", "3:26", "'paths' has no value"),
    ("{allow: all, paths: ['']}", "3:26", "'paths' is empty"),
    ('{allow: all, paths: ["/a\\0"]}', "3:26", "'paths' contains a NUL or 0x01 byte"),
    ('{allow: all, paths: ["\\x01/a"]}', "3:26", "'paths' contains a NUL or 0x01 byte"),
    ("{allow: all, paths: [a/b]}", "3:26", "bad pattern 'a/b': must start with '/', '**/' or"),
    ("{allow: all, paths: [/a//b]}", "3:26", "bad pattern '/a//b': has an empty component"),
    ("{allow: all, paths: [/a/../b]}", "3:26", "bad pattern '/a/../b': has a '.' or '..'"),
    ("{allow: all, paths: ['/[a']}", "3:26", "bad pattern '/[a': '[' without ']'"),
    ("{allow: all, paths: [/a**]}", "3:26", "bad pattern '/a**': '**' must be a whole"),
    ("{allow: all, paths: [/a], except: []}", "3:39", "'except' is empty"),
    ("{allow: all, paths: [/a], to: /b}", "3:31", "'to' goes with 'steer' only, not with 'allow'"),
    ("{allow: all, paths: [/a], as: EPERM}", "3:31", "'as' is the errno of a refusal"),
    ("{deny: all, paths: [/a], as: [EPERM]}", "3:34", "'as' must be text, found a list"),
    ("{deny: all, paths: [/a], as: EPREM}", "3:34", "unknown errno name 'EPREM' (did you mean"),
    ("{deny: all, paths: [/a], as: errorcode}", "3:34", "unknown errno name 'errorcode'"),
    ("{steer: read, paths: [/a]}", "3:6", "a steer needs 'to': where the call goes instead"),
    ("{steer: all, paths: [/a], to: /b}", "3:13", "'steer' of 'all' in files is not supported"),
    ("{steer: exec, paths: [/a], to: /b}", "3:13", "'steer' of 'exec' in files is not supported"),
    ("{steer: [delete], paths: [/a], to: /b}", "3:14", "a steer of 'delete' has one target"),
    ("{steer: metadata, paths: [/a], to: /b}", "3:5", "a steer of 'metadata' needs whole trees"),
    ("{steer: rename, paths: [/a/**], to: /b}", "3:13", "'steer' of 'rename' in files is not"),
    ("{steer: list, paths: [/a], to: /b}", "3:13", "'steer' of 'list' in files is not"),
    (
        "{steer: read, paths: [/a], to: trash}",
        "3:13",
        "'to: trash' keeps what is deleted: it takes",
    ),
    (
        "{steer: [delete, write], paths: [/a], to: trash}",
        "3:22",
        "'to: trash' keeps what is deleted",
    ),
    (
        "{steer: read, paths: [/a], to: b}",
        "3:36",
        "bad target 'b': must start with '/' or a variable",
    ),
    ("{steer: read, paths: [/a], to: /b/../c}", "3:36", "bad target '/b/../c': has a '.'"),
    ("{steer: read, paths: [/a/**, /b], to: /c}", "3:5", "one steer mixes whole trees"),
    ("{steer: read, paths: ['/a*/**'], to: /c}", "3:27", "the folder before '/**' of a steer"),
    ("{deny: all, paths: [/a], hide: true}", "3:30", "'hide' goes with 'deny' and 'as: E"),
    ("{allow: all, paths: [/a], hide: false}", "3:31", "'hide' goes with 'deny' and 'as: ENOENT'"),
    ("{deny: all, paths: [/a], as: ENOENT, hide: 'true'}", "3:48", "'hide' is true or false"),
    ("{deny: all, paths: [/a], as: ENOENT, hide: [true]}", "3:48", "'hide' is true or false"),
    (
        "{deny: [read, write], paths: [/a], as: ENOENT, hide: true}",
        "3:52",
        "'hide: true' needs 'deny: all': a name that may be written, made or looked into cannot be",
    ),
    ("{approve: all, paths: [/a]}", "3:6", "'approve' is not supported by this version"),
    ("{allow: all, paths: [/a], timeout: 2m}", "3:31", "'timeout' is not supported by this"),
    ("{id: supervise.x, allow: all, paths: [/a]}", "3:10", "rule ids that start with"),
    ("{id: " + "a" * 129 + ", allow: all, paths: [/a]}", "3:10", "a rule id has at most 128"),
    ("{id: [x], allow: all, paths: [/a]}", "3:10", "bad rule id: a-z and 0-9"),
    ("{deny: all, paths: [/a], say: " + "é" * 513 + "}", "3:35", "'say' is longer than 1024"),
    ("just words", "3:5", "a rule is a mapping such as"),
]


@pytest.mark.parametrize(("rule", "where", "message"), RULES[1:])
def test_file_rules(errors: Errors, rule: str, where: str, message: str) -> None:
    """Every mistake in a files rule is named where it stands."""
    shown = first(errors(f"files:\n  - {rule}\n"))
    assert shown.startswith(f"agent.yaml:{where}: error: {message}")


EXEC = [
    ("{allow: [git, 'g*t']}", "3:13", "'g*t': a bare program name is literal"),
    ("{allow: git, argv: push}", "3:24", "'argv' must be a list, found a single value"),
    ("{allow: git, argv: ['[a']}", "3:25", "bad argument pattern '[a'"),
    ("{allow: git, argv: ['${TMPDIR}/x']}", "3:25", "${TMPDIR} in 'argv' is not supported"),
    ("{steer: curl}", "3:6", "a steer needs 'to'"),
    ("{steer: curl, to: [wget]}", "3:24", "bad target 'wget': must start with '/' or a variable"),
    ("{steer: curl, to: /bin/x, args: some}", "3:37", "unknown args 'some'; known: append"),
    ("{allow: curl, args: append}", "3:19", "'args' goes with 'steer' only"),
    ("{allow: curl, to: /bin/x}", "3:19", "'to' goes with 'steer' only"),
    ("{allow: curl, sha256: x}", "3:27", "a sha256 has 64 hex digits, as sha256sum prints"),
    ("{allow: curl, sha256: [" + "a" * 64 + "]}", "3:27", "a sha256 has 64 hex digits"),
    ("{allow: curl, sha256: " + "a" * 63 + "}", "3:27", "a sha256 has 64 hex digits"),
    ("{deny: curl, sha256: " + "a" * 64 + "}", "3:18", "'sha256' goes with 'allow' only"),
    ("{allow: curl, argv: [x], sha256: " + "a" * 64 + "}", "3:30", "'sha256' is about the"),
    ("{allow: curl, timeout: 2m}", "3:19", "'timeout' is not supported by this version"),
    ("{approve: git}", "3:6", "'approve' is not supported by this version"),
    ("{allow: ./git}", "3:13", "bad pattern './git'"),
    ("{allow: all, paths: [/a]}", "3:18", "unknown key 'paths'"),
]


@pytest.mark.parametrize(("rule", "where", "message"), EXEC)
def test_exec_rules(errors: Errors, rule: str, where: str, message: str) -> None:
    """Every mistake in an exec rule is named where it stands."""
    shown = first(errors(f"exec:\n  - {rule}\n"))
    assert shown.startswith(f"agent.yaml:{where}: error: {message}")


TOP = [
    ("version: 2\n", "the version must be 1: there is no other yet"),
    ("version: '1'\n", "the version must be 1: there is no other yet"),
    ("name: x\n", "'version: 1' is missing"),
    ("version: 1\nname: Big Name\n", "a name is made of a-z, 0-9"),
    ("version: 1\nextends: base\n", "'extends' must be a list, found a single value"),
    ("version: 1\nextends: []\n", "'extends' is empty"),
    ("version: 1\nvars: [a]\n", "'vars' must be a mapping, found a list"),
    ("version: 1\nvars: {CWD: /x}\n", "bad variable name 'CWD'"),
    ("version: 1\nvars: {port: 80}\n", "variable 'port' must be text: write \"80\" in quotes"),
    ("version: 1\nfiles: {a: b}\n", "'files' must be a list, found a mapping"),
    ("version: 1\nenv: {set: {1A: x}}\n", "bad environment variable name '1A'"),
    ("version: 1\nenv: {set: [A]}\n", "'set' must be a mapping, found a list"),
    ("version: 1\nenv: {drop: ['A-B']}\n", "bad name 'A-B' in 'drop'"),
    ("version: 1\nenv: {set: {CI: 1}}\n", "'CI' must be text: write \"1\" in quotes"),
    ("version: 1\naudit: {record: nothing}\n", "unknown record 'nothing'"),
    ("version: 1\naudit: {}\n", "'audit' needs 'record'"),
    ("version: 1\nnetwork: {}\n", "'network' must be a list, found a mapping"),
    ("version: 1\napprovals: {}\n", "'approvals' is not supported by this version"),
]


@pytest.mark.parametrize(("text", "message"), TOP)
def test_top_level(text: str, message: str) -> None:
    """Every mistake outside the rules is named."""
    from supervisor.policy.check import check
    from supervisor.policy.load import load_bytes
    from supervisor.policy.problems import Problem

    problems: list[Problem] = []
    document = load_bytes(text.encode(), "agent.yaml", problems)
    assert document is not None
    check(document, problems)
    assert [problem.message.startswith(message) for problem in problems] == [True]


def test_ids(load: Load, errors: Errors) -> None:
    """Rules without an id are numbered; a repeated id points to the first."""
    policy = load("files:\n  - {allow: all, paths: [/a]}\n  - {id: '7', deny: all, paths: [/b]}\n")
    assert [rule.id for rule in policy.files] == ["files.1", "7"]
    text = errors("files:\n  - {id: a, allow: all, paths: [/a]}\nexec:\n  - {id: a, deny: git}\n")
    assert first(text) == "agent.yaml:5:5: error: repeated rule id 'a'"
    assert text.endswith("note: previous definition here: agent.yaml:3")


def test_meaning_of_words(load: Load) -> None:
    """`read` speaks of folders too, `list` of folders alone, refusals have an errno."""
    policy = load(
        "files:\n"
        "  - {id: r, allow: read, paths: [/a]}\n"
        "  - {id: l, allow: [list, exec], paths: [/b]}\n"
        "  - {id: d, deny: all, paths: [/c], as: ENOENT}\n"
        "  - {id: e, deny: write, paths: [/d]}\n"
    )
    assert [(rule.ops, rule.err) for rule in policy.files] == [
        (65, 0),
        (192, 0),
        (255, 2),
        (2, 13),
    ]


def test_what_hides(load: Load) -> None:
    """Denying all as ENOENT hides unless the rule says no; denying some of it never does."""
    policy = load(
        "files:\n"
        "  - {id: a, deny: all, paths: [/a], as: ENOENT}\n"
        "  - {id: b, deny: all, paths: [/b], as: ENOENT, hide: true}\n"
        "  - {id: c, deny: all, paths: [/c], as: ENOENT, hide: false}\n"
        "  - {id: d, deny: [read, rename], paths: [/d], as: ENOENT}\n"
        "  - {id: e, deny: all, paths: [/e]}\n"
    )
    assert [(rule.id, rule.hide, rule.shows) for rule in policy.files] == [
        ("a", True, False),
        ("b", True, False),
        ("c", False, True),
        ("d", False, True),
        ("e", False, False),
    ]
    assert policy.hides
    assert not load("mode: observe\nfiles: [{deny: all, paths: [/a], as: ENOENT}]\n").hides
    assert not load("files: [{deny: all, paths: [/a], as: ENOENT, hide: false}]\n").hides
