"""``network``: what loads, what is an error, what never wins, what the matcher makes of it."""

from __future__ import annotations

import itertools
import os
import time
from functools import partial
from pathlib import Path

import pytest
from policy_world import Errors, Load

from supervisor import native
from supervisor.errors import PolicyError, SupervisorError
from supervisor.policy import addresses, blob, schema
from supervisor.policy.addresses import Endpoint
from supervisor.policy.build import build
from supervisor.policy.compile import KIND_NETWORK, compile_policy
from supervisor.policy.context import Context
from supervisor.policy.explain import Explanation, explain_net
from supervisor.policy.merge import load_policy
from supervisor.policy.schema import ALL_NET, BIND, CONNECT, Policy

LOOPBACK = """\
network:
  - {id: lo, allow: [connect, bind], to: ["127.0.0.0/8", "[::1]"]}
  - {id: db, deny: connect, to: ["127.0.0.1:5432", "[::1]:5432"], as: ECONNREFUSED, say: "no db"}
  - {id: web, allow: connect, to: ["*:80", "192.0.2.0/24:8000-8099"]}
  - {id: serve, allow: bind, to: ["0.0.0.0:8080"]}
  - {id: run, allow: all, to: ["unix:/run/me/**", "unix:${TMPDIR}/*"]}
  - {id: docker, deny: all, to: ["unix:/run/**/docker.sock", "unix:@*"]}
  - {id: late, allow: all, to: ["unix:@x"]}
"""
GOOD = "".join(line for line in LOOPBACK.splitlines(keepends=True) if "late" not in line)


def decide(data: bytes, op: int, where: Endpoint, blocks: int = 0) -> native.Verdict:
    """Ask the native matcher."""
    found = native.decide_net(
        data, op, where.kind, where.raw, where.port, tmp=b"/tmp/private", blocks=blocks
    )
    assert isinstance(found, native.Verdict)
    return found


def place(text: str) -> Endpoint:
    """An address or a socket as text."""
    if text.startswith("unix:@"):
        return Endpoint(schema.NET_ABSTRACT, os.fsencode(text[6:]), 0)
    if text.startswith("unix:"):
        return Endpoint(schema.NET_PATH, os.fsencode(text[5:]), 0)
    return addresses.endpoint(text)


def ask(policy: Policy, op: int, text: str, blocks: int = 0) -> tuple[str, str, int]:
    """Action, rule and errno for one question."""
    compiled = compile_policy(policy, program=b"")
    found = decide(blob.encode(compiled), op, place(text), blocks)
    rule = compiled.rules[found.rule].id if found.rule >= 0 else ""
    return schema.ACTION_NAMES[found.action], rule, found.err if found.action else 0


def test_records(load: Load) -> None:
    """Operations, errno, sentence and targets as bytes; ids as elsewhere."""
    policy = load(
        "vars: {net: 10.0.0.0, port: '80'}\nnetwork:\n"
        '  - {allow: all, to: ["${net}/8:${port}", "[2001:db8::/32]:1-65535", "*"]}\n'
        '  - {id: d, deny: bind, to: ["unix:${TMPDIR}/x", "unix:@a*"], as: EPERM, say: never}\n'
    )
    one, two = policy.network
    assert (one.id, one.action, one.ops, one.err) == ("network.1", schema.ALLOW, ALL_NET, 0)
    assert one.entries == (
        (0, bytes([10, 0, 0, 0]), 8, 80, 80),
        (0, bytes.fromhex("20010db8") + bytes(12), 32, 1, 65535),
        (0, bytes(4), 0, 0, 65535),
        (0, bytes(16), 0, 0, 65535),
    )
    assert (two.id, two.ops, two.err, two.say) == ("d", BIND, 1, "never")
    assert two.entries == ((1, b"\x01/x", 0, 0, 0), (2, b"a*", 0, 0, 0))
    assert policy.nets
    assert not load("network: [{deny: all, to: ['*']}]\n").nets


def test_variables_are_literal(load: Load) -> None:
    """A value is no wildcard of a pattern; it may hold a whole target, quoted characters too."""
    sets = {"s": "unix:/a*b", "v": "[::1]:80", "n": "a[*"}
    text = (
        'vars: {s: x, v: x, n: x}\nnetwork: [{allow: all, to: ["${s}", "${v}", "unix:@${n}*"]}]\n'
    )
    assert load(text, sets=sets).network[0].entries == (
        (1, rb"/a\*b", 0, 0, 0),
        (0, bytes(15) + b"\x01", 128, 80, 80),
        (2, rb"a\[\**", 0, 0, 0),
    )


RULES = [
    ("{to: ['*']}", "3:5", "the rule has no action: add allow or deny"),
    ("{allow: all}", "3:5", "the rule has no 'to'"),
    ("{allow: all, to: []}", "3:22", "'to' is empty"),
    ("{allow: all, to: 127.0.0.1}", "3:22", "'to' must be a list, found a single value"),
    ("{allow: all, to: [[fe80::1]]}", "3:23", "'to' must be text: write \"[fe80::1]\" in quotes"),
    ("{allow: all, to: [[a, b]]}", "3:23", "'to' must be text, found a list"),
    ("{allow: all, to: [127.1]}", "3:23", "'to' must be text: write \"127.1\" in quotes"),
    ("{allow: read, to: ['*']}", "3:13", "unknown network operation 'read'"),
    (
        "{allow: conneckt, to: ['*']}",
        "3:13",
        "unknown network operation 'conneckt' (did you mean 'c",
    ),
    ("{allow: [], to: ['*']}", "3:13", "'allow' is empty"),
    ("{allow: all, deny: all, to: ['*']}", "3:18", "the rule has two actions"),
    ("{steer: connect, to: ['127.0.0.1:1']}", "3:6", "'steer' in network is not supported by this"),
    ("{approve: connect, to: ['*']}", "3:6", "'approve' is not supported by this version"),
    ("{allow: all, to: ['*'], via: x}", "3:29", "'via' is not supported by this version"),
    ("{allow: all, to: ['*'], timeout: 2m}", "3:29", "'timeout' is not supported by this version"),
    ("{allow: all, to: ['*'], except: [x]}", "3:29", "unknown key 'except'"),
    ("{allow: all, to: ['*'], as: EPERM}", "3:29", "'as' is the errno of a refusal"),
    ("{allow: all, paths: [/a]}", "3:18", "unknown key 'paths'"),
    ("just words", "3:5", "a rule is a mapping such as"),
    ("{allow: all, to: ['10.0.0.1/8']}", "3:23", "bad target '10.0.0.1/8': bits are set behind"),
    ("{allow: all, to: ['::1']}", "3:23", "bad target '::1': an IPv6 address stands in brackets ("),
    (
        "{allow: all, to: ['index.example:443']}",
        "3:23",
        "bad target 'index.example:443': names are not supported by this version: give addresses",
    ),
    (
        "{allow: connect, to: ['0.0.0.0:80']}",
        "3:27",
        "connecting to 0.0.0.0 reaches this machine: write 127.0.0.1",
    ),
    ("{deny: all, to: ['0.0.0.0/32']}", "3:22", "connecting to 0.0.0.0 reaches this machine"),
    (
        "{allow: all, to: ['[::]']}",
        "3:23",
        "connecting to [::] reaches this machine: write [::1]",
    ),
    ("{allow: all, to: ['unix:']}", "3:23", "bad pattern '': must start with '/'"),
    ("{allow: all, to: ['unix:a/b']}", "3:23", "bad pattern 'a/b': must start with '/'"),
    ("{allow: all, to: ['unix:/a//b']}", "3:23", "bad pattern '/a//b': has an empty component"),
    ("{allow: all, to: ['unix:@']}", "3:23", "bad abstract name '@': has 1 to 4095 bytes"),
    ("{allow: all, to: ['unix:@[a']}", "3:23", "bad abstract name '@[a': '[' without ']'"),
    (
        "{allow: all, to: ['unix:@a**']}",
        "3:23",
        "bad abstract name '@a**': '*' stands for any bytes (did you mean 'unix:@a*'?)",
    ),
    ("{allow: all, to: ['unix:@${TMPDIR}/x']}", "3:23", "${TMPDIR} must start the text"),
    (
        "{allow: all, to: ['${TMPDIR}/x']}",
        "3:23",
        "bad target '${TMPDIR}/x' (here '\\x01/x'): a local socket starts with 'unix:' (did you",
    ),
    ("{allow: all, to: ['${nothing}:80']}", "3:23", "undefined variable 'nothing'"),
    ("{allow: all, to: ['127.0.0.1:${HOME}']}", "3:23", "bad target '127.0.0.1:${HOME}' (here '"),
]


@pytest.mark.parametrize(("rule", "where", "message"), RULES)
def test_mistakes(errors: Errors, rule: str, where: str, message: str) -> None:
    """Every mistake in a network rule is named where it stands, once."""
    shown = errors(f"network:\n  - {rule}\n")
    assert shown.startswith(f"agent.yaml:{where}: error: {message}")
    assert shown.count(": error: ") == 1


def test_values_that_are_too_wide(errors: Errors) -> None:
    """A variable that turns out to be a star or the whole file system is an error."""
    text = "vars: {v: x}\nnetwork: [{allow: all, to: ['${v}:80']}]\n"
    assert "the value of a variable is no wildcard" in errors(text, sets={"v": "*"})
    text = "vars: {v: x}\nnetwork: [{allow: all, to: ['unix:${v}/**']}]\n"
    assert "is the whole file system here" in errors(text, sets={"v": "/"})


def test_ids_are_unique_over_all_sections(errors: Errors, load: Load) -> None:
    """A network rule has an id as all others."""
    text = "files: [{id: a, allow: all, paths: [/a]}]\nnetwork: [{id: a, allow: all, to: ['*']}]\n"
    assert "repeated rule id 'a'" in errors(text)
    text = "network: [{allow: all, to: ['*']}, {allow: bind, to: ['10.0.0.1']}]\n"
    assert [rule.id for rule in load(text).network] == ["network.1", "network.2"]


def test_files_add_up(context: Context) -> None:
    """Rules of all files count; ids that no file gave are made unique."""
    text = b"version: 1\nnetwork: [{allow: all, to: ['*']}]\n"
    policy = load_policy([], context=context, inline=[("a.yaml", text), ("b.yaml", text)])
    assert [rule.id for rule in policy.network] == ["network.1", "b.network.1"]


LO = "{id: x, allow: connect, to: ['127.0.0.1:80']}"
DEAD = [
    [LO, "{id: d, deny: all, to: ['*']}"],
    [LO, "{id: d, deny: connect, to: ['127.0.0.0/8:80-90']}"],
    [LO, "{id: d, deny: connect, to: ['127.0.0.1:80']}"],
    ["{id: x, allow: all, to: ['[::1]']}", "{id: d, deny: all, to: ['[::/0]']}"],
    ["{id: x, allow: all, to: ['*']}", "{id: d, deny: all, to: ['[::/0]', '0.0.0.0/0']}"],
    [
        "{id: x, allow: all, to: ['10.0.0.0/9', 'unix:/a/b']}",
        "{id: d, deny: connect, to: ['*', 'unix:/a/**']}",
        "{id: e, deny: bind, to: ['10.0.0.0/8', 'unix:/**/b']}",
    ],
    ["{id: x, allow: all, to: ['unix:/a/*.s']}", "{id: d, deny: all, to: ['unix:/a/*']}"],
    ["{id: x, allow: all, to: ['unix:${TMPDIR}/a']}", "{id: d, deny: all, to: ['unix:**/a']}"],
    ["{id: x, allow: all, to: ['unix:@a?']}", "{id: d, deny: all, to: ['unix:@a*']}"],
]
ALIVE = [
    [LO, "{id: d, deny: bind, to: ['*']}"],
    [LO, "{id: d, deny: connect, to: ['*:81-65535', '*:1-79']}"],
    [LO, "{id: d, allow: all, to: ['*']}"],
    ["{id: x, deny: connect, to: ['127.0.0.1:80']}", "{id: d, allow: all, to: ['*']}"],
    ["{id: x, allow: all, to: ['10.0.0.1']}", "{id: d, deny: all, to: ['*:1-65535']}"],
    ["{id: x, allow: all, to: ['10.0.0.0/8']}", "{id: d, deny: all, to: ['10.0.0.0/9']}"],
    ["{id: x, allow: all, to: ['10.0.0.1', '1.2.3.4']}", "{id: d, deny: all, to: ['10.0.0.1']}"],
    ["{id: x, allow: all, to: ['[::1]']}", "{id: d, deny: all, to: ['0.0.0.0/0']}"],
    ["{id: x, allow: all, to: ['unix:/a/*']}", "{id: d, deny: all, to: ['unix:/a/*.s']}"],
    ["{id: x, allow: all, to: ['unix:@a']}", "{id: d, deny: all, to: ['unix:/**']}"],
    ["{id: x, allow: all, to: ['unix:@*']}", "{id: d, deny: all, to: ['unix:@a*']}"],
]


@pytest.mark.parametrize("rules", DEAD)
def test_dead(errors: Errors, rules: list[str]) -> None:
    """A rule whose targets all lie within single ones of stricter rules is an error."""
    text = errors("network:\n" + "".join(f"  - {rule}\n" for rule in rules))
    assert "agent.yaml:3:5: error: rule 'x' can never win: stricter rules cover all that" in text
    assert "note: this 'allow' is covered by 'd' (agent.yaml:4)" in text


@pytest.mark.parametrize("rules", ALIVE)
def test_alive(load: Load, rules: list[str]) -> None:
    """A rule with a target of its own, or without a stricter rule, is none."""
    assert load("network:\n" + "".join(f"  - {rule}\n" for rule in rules))


def test_a_users_rule_may_make_a_packs_rule_idle(tmp_path: Path, context: Context) -> None:
    """Only stricter rules of the same file, or of what it extends, make a rule dead."""
    (tmp_path / "pack.yaml").write_text(f"version: 1\nnetwork: [{LO}]\n")
    own = tmp_path / "own.yaml"
    own.write_text("version: 1\nextends: [./pack.yaml]\nnetwork: [{deny: all, to: ['*']}]\n")
    assert len(load_policy([str(own)], context=context).network) == 2
    (tmp_path / "pack.yaml").write_text("version: 1\nnetwork: [{deny: all, to: ['*']}]\n")
    own.write_text(f"version: 1\nextends: [./pack.yaml]\nnetwork: [{LO}]\n")
    with pytest.raises(PolicyError, match="can never win"):
        load_policy([str(own)], context=context)


def test_large_policies_stay_fast(load: Load) -> None:
    """Thousands of rules are held against each other in seconds."""
    rules = [
        f"  - {{allow: all, to: ['10.{i >> 8}.{i & 255}.0/24:80', 'unix:/a/{i}/*']}}\n"
        for i in range(1000)
    ]
    rules += [
        f"  - {{deny: all, to: ['11.{i & 255}.0.0/16', 'unix:/b/{i}/**']}}\n" for i in range(500)
    ]
    start = time.monotonic()
    load("network:\n" + "".join(rules))
    assert time.monotonic() - start < 20


ANSWERS = [
    (CONNECT, "127.1.2.3:1", ("allow", "lo", 0)),
    (BIND, "[::1]:0", ("allow", "lo", 0)),
    (CONNECT, "127.0.0.1:5432", ("deny", "db", 111)),
    (BIND, "127.0.0.1:5432", ("allow", "lo", 0)),
    (CONNECT, "8.8.8.8:80", ("allow", "web", 0)),
    (CONNECT, "[2001:db8::1]:80", ("allow", "web", 0)),
    (CONNECT, "8.8.8.8:81", ("deny", "", 13)),
    (CONNECT, "192.0.2.9:8099", ("allow", "web", 0)),
    (CONNECT, "192.0.2.9:8100", ("deny", "", 13)),
    (BIND, "8.8.8.8:80", ("deny", "", 13)),
    (BIND, "0.0.0.0:8080", ("allow", "serve", 0)),
    (BIND, "[::]:8080", ("deny", "", 13)),
    (CONNECT, "unix:/run/me/a/b", ("allow", "run", 0)),
    (CONNECT, "unix:/run/me/docker.sock", ("deny", "docker", 13)),
    (BIND, "unix:/tmp/private/x", ("allow", "run", 0)),
    (BIND, "unix:/tmp/private/x/y", ("deny", "", 13)),
    (CONNECT, "unix:@x", ("deny", "docker", 13)),
    (CONNECT, "unix:@x\0y", ("deny", "docker", 13)),
]


@pytest.mark.parametrize(("op", "where", "wanted"), ANSWERS)
def test_c_reads_what_python_writes(
    load: Load, op: int, where: str, wanted: tuple[str, str, int]
) -> None:
    """The native matcher decides an example as its text says."""
    assert ask(load(GOOD), op, where) == wanted


def test_the_example_has_a_dead_rule(errors: Errors) -> None:
    """What the example leaves out would never win."""
    assert "rule 'late' can never win" in errors(LOOPBACK)


def test_order_decides_nothing(load: Load) -> None:
    """Whatever the order of the rules, every answer is the same, errno and winner too."""
    head, *rules = GOOD.splitlines(keepends=True)
    for order in itertools.islice(itertools.permutations(rules), 0, None, 37):
        policy = load(head + "".join(order))
        data = blob.encode(compiled := compile_policy(policy, program=b""))
        for op, where, wanted in ANSWERS:
            found = decide(data, op, place(where))
            rule = compiled.rules[found.rule].id if found.rule >= 0 else ""
            action = schema.ACTION_NAMES[found.action]
            assert (action, rule, found.err if found.action else 0) == wanted


def test_parts_of_the_blob(load: Load) -> None:
    """Rules of the network have their kind, and targets refer to them."""
    compiled = compile_policy(load(GOOD), program=b"")
    rules = [rule for rule in compiled.rules if rule.kind == KIND_NETWORK]
    assert [rule.id for rule in rules] == ["lo", "db", "web", "serve", "run", "docker"]
    assert {(rule.dest_kind, rule.dest, rule.block) for rule in rules} == {(0, None, 0)}
    assert {compiled.rules[net[0]].kind for net in compiled.network} == {KIND_NETWORK}
    infos = {info.id: info.ops for info in blob.read_rules(blob.encode(compiled))}
    assert (infos["lo"], infos["db"], infos["serve"]) == (ALL_NET, CONNECT, BIND)


def test_too_many_abstract_names(context: Context) -> None:
    """They are looked at one by one, so there is a limit, and it is told."""
    names = ", ".join(f"'unix:@{i}'" for i in range(1025))
    text = f"version: 1\nnetwork: [{{allow: all, to: [{names}]}}]\n".encode()
    with pytest.raises(SupervisorError, match="more than 1024 abstract names"):
        build([], context, rows=[], tests=[], inline=[("a.yaml", text)])


BLOCKS = """\
network:
  - {id: lo, allow: all, to: ["127.0.0.0/8"]}
blocks:
  - id: narrow
    for: {program: narrow}
    network: [{id: http, allow: connect, to: ["*:80"]}]
  - id: closed
    for: {program: closed}
  - id: wide
    for: {program: wide}
    default: allow
    network: [{id: no-db, deny: connect, to: ["*:5432"], as: EPERM, say: "not here"}]
"""


@pytest.mark.parametrize(
    ("op", "where", "blocks", "wanted"),
    [
        (CONNECT, "127.0.0.1:80", 1, ("allow", "lo", 0)),
        (CONNECT, "127.0.0.1:81", 1, ("deny", "narrow", 13)),
        (BIND, "127.0.0.1:80", 1, ("deny", "narrow", 13)),
        (CONNECT, "8.8.8.8:80", 1, ("deny", "", 13)),
        (CONNECT, "127.0.0.1:80", 2, ("deny", "closed", 13)),
        (CONNECT, "127.0.0.1:80", 4, ("allow", "lo", 0)),
        (CONNECT, "127.0.0.1:5432", 4, ("deny", "no-db", 1)),
        (CONNECT, "127.0.0.1:80", 5, ("allow", "lo", 0)),
        (CONNECT, "127.0.0.1:5432", 0, ("allow", "lo", 0)),
    ],
)
def test_blocks(load: Load, op: int, where: str, blocks: int, wanted: tuple[str, str, int]) -> None:
    """A block narrows, by its rules and by its default, and never widens."""
    found = ask(load(BLOCKS), op, where, blocks)
    assert (found[0], found[2]) == (wanted[0], wanted[2])
    if wanted[1]:
        assert found[1] == wanted[1]


def explained(policy: Policy, op: str, where: str, blocks: int = 0) -> Explanation:
    """Explain one question."""
    compiled = compile_policy(policy, program=b"")
    bound = partial(decide, blob.encode(compiled), blocks=blocks)
    return explain_net(policy, compiled, bound, place(where), op)


def test_explain(load: Load) -> None:
    """Decision, winner with its line, losers, mechanism and the smallest change."""
    policy = load(GOOD)
    found = explained(policy, "connect", "127.0.0.1:5432")
    assert (found.path, found.op, found.decision) == (b"127.0.0.1:5432", "connect", "deny")
    assert (found.err, found.mechanism) == (111, "refused")
    assert found.winner
    assert (found.winner.id, found.winner.src, found.winner.say) == ("db", "agent.yaml:4", "no db")
    assert found.winner.text.startswith("- {id: db, deny: connect")
    assert [loser.id for loser in found.losers] == ["lo"]
    assert found.change == "take \"127.0.0.1:5432\" out of rule 'db' (agent.yaml:4)"

    found = explained(policy, "connect", "unix:@a*")
    assert found.change.endswith(
        '; then add under network: - {id: my-connect, allow: connect, to: ["unix:@a\\\\*"]}'
    )
    found = explained(policy, "bind", "8.8.8.8:0")
    assert found.by_default
    assert found.change == 'add under network: - {id: my-bind, allow: bind, to: ["8.8.8.8"]}'

    found = explained(policy, "bind", "[::1]:80")
    assert (found.decision, found.err, found.mechanism) == ("allow", 0, "broker")
    assert found.change.endswith(': - {id: no-bind, deny: bind, to: ["[::1]:80"]}')
    observed = explained(load("mode: observe\n" + GOOD), "bind", "8.8.8.8:1")
    assert (observed.decision, observed.mechanism) == ("deny", "recorded only")


@pytest.mark.parametrize(
    ("op", "where", "decision", "winner", "note"),
    [
        ("connect", "[::]:80", "allow", "lo", "[::]:80 stands for 127.0.0.1:80 and [::1]:80"),
        ("connect", "[::]:5432", "deny", "db", "[::]:5432 stands for 127.0.0.1:5432 and"),
        ("bind", "[::]:8080", "deny", "", "[::]:8080 stands for 0.0.0.0:8080 and [::]:8080"),
        ("bind", "0.0.0.0:8080", "allow", "serve", ""),
        ("connect", "[64:ff9b::7f00:1]:80", "allow", "web", ""),
        ("connect", "[2002:a00:1::]:80", "deny", "ten", "[2002:a00:1::]:80 carries 10.0.0.1:80"),
    ],
)
def test_explain_asks_about_all_that_is_reached(
    load: Load, op: str, where: str, decision: str, winner: str, note: str
) -> None:
    """As in a run: what the unspecified address stands for, and what IPv6 carries."""
    policy = load(GOOD + "  - {id: ten, deny: connect, to: [10.0.0.0/8]}\n")
    found = explained(policy, op, where)
    assert (found.decision, found.winner.id if found.winner else "") == (decision, winner)
    assert found.note.startswith(note)
    assert bool(found.note) == bool(note)


def test_explain_in_blocks(load: Load) -> None:
    """The change is one of the block."""
    found = explained(load(BLOCKS), "bind", "127.0.0.1:80", 1)
    assert found.winner
    assert found.winner.id == "narrow"
    assert found.change == (
        "add under network of block 'narrow' (agent.yaml:5): "
        '- {id: my-bind, allow: bind, to: ["127.0.0.1:80"]}'
    )


@pytest.mark.parametrize(
    ("op", "where"),
    [
        ("connect", "8.8.8.8:443"),
        ("bind", "[::]:0"),
        ("connect", "unix:/srv/a*b"),
        ("bind", "unix:@a?b"),
    ],
)
def test_the_change_turns_the_answer(load: Load, op: str, where: str) -> None:
    """What explain says to add is a rule that does it."""
    change = explained(load(GOOD.replace('"unix:@*"', '"unix:@b*"')), op, where).change
    assert change.startswith("add under network: - ")
    policy = load(GOOD.replace('"unix:@*"', '"unix:@b*"') + "  " + change.partition(": ")[2] + "\n")
    assert explained(policy, op, where).decision == "allow"
