"""``blocks``: what loads, what is an error, how files add up, what explain says."""

from __future__ import annotations

from functools import partial

import pytest
from policy_world import Errors, Load

from supervisor import native
from supervisor.errors import PolicyError
from supervisor.policy import blob
from supervisor.policy.compile import compile_policy
from supervisor.policy.context import Context
from supervisor.policy.explain import Explanation, explain
from supervisor.policy.merge import load_policy

TWO = """\
files:
  - {id: all, allow: all, paths: [/**]}
blocks:
  - id: git
    for: {program: [git, "/usr/lib/git/**"]}
    files:
      - {id: repo, allow: [read, write], paths: ["${CWD}/**"], except: ["**/.env"]}
    exec:
      - {allow: sh}
  - for: {program: npm}
    default: allow
    files:
      - {deny: write, paths: [/etc/**], as: EROFS, say: not there}
"""


def test_records(load: Load) -> None:
    """Programs, rules with ids of their own, and defaults."""
    first, second = load(TWO).blocks
    assert (first.id, first.names, first.patterns) == ("git", (b"git",), (b"/usr/lib/git/**",))
    assert [rule.id for rule in first.files] == ["repo"]
    assert first.files[0].patterns == (b"/home/u/project/**",)
    assert [rule.id for rule in first.execs] == ["git.exec.1"]
    assert not first.open
    assert (second.id, second.open, second.execs) == ("blocks.2", True, ())
    assert [rule.id for rule in second.files] == ["blocks.2.files.1"]


def test_compiled(load: Load) -> None:
    """Every rule says whose it is; the default of a closed block is a rule, too."""
    compiled = compile_policy(load(TWO), program=b"")
    assert [(rule.id, rule.block) for rule in compiled.rules] == [
        ("supervise.self.root", 0),
        ("all", 0),
        ("git", 1),
        ("supervise.blocks.memory", 1),
        ("repo", 1),
        ("git.exec.1", 1),
        ("supervise.blocks.memory", 2),
        ("blocks.2.files.1", 2),
    ][-len(compiled.rules) :]
    first, second = compiled.blocks
    assert first.default is not None
    assert compiled.rules[first.default].id == "git"
    assert second.default is None
    assert first.start_names == (b"git",)
    assert blob.read_starts(blob.encode(compiled)) == (b"git", b"npm")


BAD = [
    ("{for: {program: git}, files: 3}", "3:34", "'files' must be a list"),
    ("just words", "3:5", "a block is a mapping such as"),
    ("{files: []}", "3:5", "the block has no 'for'"),
    ("{for: {}}", "3:6", "'for' needs 'program'"),
    ("{for: git}", "3:11", "expected a mapping, found a single value"),
    ("{for: {program: []}}", "3:21", "'program' is empty"),
    ("{for: {program: 'g*t'}}", "3:21", "'g*t': a bare program name is literal"),
    ("{for: {program: ./git}}", "3:21", "bad pattern './git'"),
    ("{for: {user: me}}", "3:12", "'user' is not supported by this version"),
    ("{for: {program: git}, limits: {}}", "3:27", "'limits' is not supported by this version"),
    (
        "{for: {program: git}, network: [{steer: connect, to: ['127.0.0.1']}]}",
        "3:38",
        "'steer' in network is not supported by this version",
    ),
    (
        "{for: {program: git}, default: allow, network: [{allow: all, to: ['*']}]}",
        "3:53",
        "an 'allow' in a block with 'default: allow' says nothing",
    ),
    (
        "{for: {program: a}, network: [{id: x, deny: all, to: ['*']}], exec: [{id: x, deny: b}]}",
        "3:74",
        "repeated rule id 'x'",
    ),
    (
        "{for: {program: a}, network: [{id: x, allow: all, to: ['*']}, {deny: all, to: ['*']}]}",
        "3:35",
        "rule 'x' can never win",
    ),
    ("{for: {program: git}, mode: x}", "3:27", "unknown key 'mode'"),
    ("{for: {program: git}, default: ask}", "3:36", "unknown default 'ask'; known: deny, allow"),
    ("{for: {program: git}, id: A}", "3:31", "bad rule id 'A'"),
    (
        "{for: {program: git}, files: [{steer: read, paths: [/a], to: /b}]}",
        "3:35",
        "'steer' in a block is not supported by this version",
    ),
    (
        "{for: {program: git}, exec: [{steer: a, to: /b}]}",
        "3:34",
        "'steer' in a block is not supported by this version",
    ),
    (
        "{for: {program: git}, exec: [{allow: a, sha256: " + "a" * 64 + "}]}",
        "3:34",
        "'sha256' in a block is not supported by this version",
    ),
    (
        "{for: {program: git}, files: [{approve: read, paths: [/a]}]}",
        "3:36",
        "'approve' is not supported by this version",
    ),
    (
        "{for: {program: git}, default: allow, files: [{allow: read, paths: [/a]}]}",
        "3:51",
        "an 'allow' in a block with 'default: allow' says nothing",
    ),
    (
        "{for: {program: a}, files: [{id: x, deny: all, paths: [/a]}], exec: [{id: x, deny: b}]}",
        "3:74",
        "repeated rule id 'x'",
    ),
    (
        "{for: {program: a}, files: [{id: x, allow: read, paths: [/a]}, {deny: all, paths: [/a]}]}",
        "3:33",
        "rule 'x' can never win",
    ),
]


@pytest.mark.parametrize(("block", "where", "message"), BAD)
def test_mistakes(errors: Errors, block: str, where: str, message: str) -> None:
    """Every mistake in a block is named where it stands."""
    shown = errors(f"blocks:\n  - {block}\n").splitlines()[0]
    assert shown.startswith(f"agent.yaml:{where}: error: {message}")


def test_rules_of_the_policy_cover_nothing_in_a_block(load: Load) -> None:
    """A block's rule is dead by stricter rules of its own block alone."""
    policy = load(
        "files:\n  - {deny: all, paths: [/a/**]}\n"
        "blocks:\n  - for: {program: x}\n    files:\n      - {allow: read, paths: [/a/b]}\n"
        "  - for: {program: y}\n    files:\n      - {deny: read, paths: [/a/**]}\n"
    )
    assert len(policy.blocks) == 2


def test_files_add_up(context: Context) -> None:
    """Blocks of all files count; ids are made unique; there may be sixteen."""

    def files(n: int) -> list[tuple[str, bytes]]:
        text = "version: 1\nblocks:\n  - for: {program: a}\n    files:\n"
        text += "      - {deny: read, paths: [/a]}\n"
        return [(f"f{i}.yaml", text.encode()) for i in range(n)]

    policy = load_policy([], context=context, inline=files(16))
    ids = [block.id for block in policy.blocks]
    assert ids[:2] == ["blocks.1", "f1.blocks.1"]
    assert len(set(ids)) == 16
    with pytest.raises(PolicyError, match="there are more than 16 blocks"):
        load_policy([], context=context, inline=files(17))


def ask(load: Load, op: str, path: bytes, blocks: int) -> Explanation:
    """Explain a question from within blocks."""
    policy = load(TWO)
    compiled = compile_policy(policy, program=b"")

    def decide(data: bytes, op: int, at: bytes, name: bytes, argv: object) -> native.Verdict:
        return native.decide(  # type: ignore[arg-type]
            data, op, at, name=name, argv=argv, tmp=b"/t", blocks=blocks
        )

    return explain(policy, compiled, partial(decide, blob.encode(compiled)), path, op)


def test_explain(load: Load) -> None:
    """The winner is the block's rule, and the change is one of the block."""
    inside = ask(load, "read", b"/home/u/project/a", 1)
    assert (inside.decision, inside.winner and inside.winner.id) == ("allow", "all")
    outside = ask(load, "read,write", b"/etc/a", 1)
    assert (outside.decision, outside.winner and outside.winner.id) == ("deny", "git")
    assert outside.change.startswith("add under files of block 'git' (agent.yaml:5): - ")
    assert "allow: [read, write]" in outside.change
    denied = ask(load, "write", b"/etc/a", 2)
    assert (denied.err, denied.winner and denied.winner.say) == (30, "not there")
    assert denied.change == "add except: [\"/etc/a\"] to rule 'blocks.2.files.1' (agent.yaml:14)"
    assert ask(load, "write", b"/etc/a", 0).decision == "allow"
    assert ask(load, "write", b"/etc/a", 3).winner


def test_which_programs_start_them(load: Load) -> None:
    """Names as called and as they truly are, and paths."""
    data = blob.encode(compile_policy(load(TWO), program=b""))
    assert native.starts(data, b"/usr/bin/git", name=b"x", tmp=b"/t") == 1
    assert native.starts(data, b"/usr/bin/x", name=b"a/npm", tmp=b"/t") == 2
    assert native.starts(data, b"/usr/lib/git/npm", name=b"npm", tmp=b"/t") == 3
    assert native.starts(data, b"/usr/bin/cat", name=b"cat", tmp=b"/t") == 0
