"""Debuggers may work exactly where the kernel's floor and the rules about programs agree."""

from __future__ import annotations

import itertools
import random

import pytest
from policy_world import Load

from supervisor import native
from supervisor.errors import PolicyError
from supervisor.model import Row, When
from supervisor.policy import blob, debuggers, schema
from supervisor.policy.bpf import CLASS_ALLOW, CLASS_REFUSE, CLASS_VERIFY
from supervisor.policy.compile import FLAG_DEBUG, compile_policy

PATTERNS = (
    *("/a/**", "/a/b/**", "/a/*", "/a/b", "/a/c*/**", "/**", "**/x", "**/b/*", "/d/**", "/a/b/x"),
    *("/a/[!b]/**", "/a/\\\\*/**", "/a/[x-z]", "/a/\\\\b/**", "**/[bx]", "/[ad]/**"),
    *("/d", "${vars}/**"),
    *("${TMPDIR}/**", "${TMPDIR}/b/**", "${TMPDIR}/x", "${TMPDIR}", "/tmp/**"),
)
TMPS = (b"/tmp/p", b"/a/p")  # outside of what rules name, and in it
NAMES = (b"b", b"c1", b"x", b"z", b"*")
FOLDERS = (b"/a", b"/d", b"/e", *TMPS)
PATHS = [
    b"/".join((folder, *names))
    for folder in FOLDERS
    for depth in range(4)
    for names in itertools.product(NAMES, repeat=depth)
]


def random_policy(rng: random.Random) -> str:
    """Write a policy whose rules are mostly about starting programs."""
    lines = [f"vars: {{vars: {rng.choice(['/a', '/a/*', '/d', '${TMPDIR}'])!r}}}", "files:"]
    kinds = ["all", "[exec]", "[read, exec]", "[read]", "[exec, create]", "[exec, create, rename]"]
    for number in range(rng.randint(1, 4)):
        verb = rng.choice(["allow", "allow", "deny"])
        ops = rng.choice(kinds)
        paths = ", ".join(f'"{path}"' for path in rng.sample(PATTERNS, rng.randint(1, 2)))
        excepts = ", ".join(f'"{path}"' for path in rng.sample(PATTERNS, 1))
        tail = f", except: [{excepts}]" if rng.random() < 0.2 else ""
        lines.append(f"  - {{id: r{number}, {verb}: {ops}, paths: [{paths}]{tail}}}")
    if rng.random() < 0.1:
        lines += ["exec:", "  - {id: e, deny: x}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(8))
def test_where_debuggers_work_the_floor_is_exact(load: Load, seed: int) -> None:
    """No program of the floor is one that rules refuse, but for names that cannot be made."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    shown = refused = 0
    for _ in range(60):
        try:
            policy = load(random_policy(rng))
        except PolicyError:  # a rule that can never win
            continue
        compiled = compile_policy(policy, program=b"")
        if not compiled.flags & FLAG_DEBUG:
            refused += 1
            assert compiled.no_debug
            continue
        data = blob.encode(compiled)
        for path, tmp in itertools.product(PATHS, TMPS):
            floor = [folder.replace(b"\x01", tmp) for folder, _ in compiled.floor]
            if not any(path.startswith(folder.rstrip(b"/") + b"/") for folder in floor):
                continue
            if native.decide(data, schema.EXEC, path, tmp=tmp).action != schema.ALLOW:
                assert path.startswith(tmp), (policy.files, path)
                for op in (schema.CREATE, schema.RENAME):
                    made = native.decide(data, op, path, tmp=tmp)
                    assert made.action == schema.DENY, (policy.files, path, op)
            shown += 1
    assert shown > 100
    assert refused > 5


@pytest.mark.parametrize(
    ("free", "rule"),
    [
        ("/tmp", 'deny: exec, paths: ["${TMPDIR}/**"]'),
        ("/tmp", 'deny: [exec, create], paths: ["${TMPDIR}/x"]'),
        ("${TMPDIR}", "deny: [exec, create], paths: [/tmp/*/b/**]"),
        ("${TMPDIR}", 'deny: [exec, create], paths: ["**/x"]'),
    ],
)
def test_private_folder(load: Load, free: str, rule: str) -> None:
    """It may lie in a folder of the floor, and names come there by rename, too."""
    text = f'files:\n  - {{id: free, allow: all, paths: ["{free}/**"]}}\n  - {{id: no, {rule}}}\n'
    assert "rule no " in compile_policy(load(text), program=b"").no_debug


def test_private_folder_that_calls_are_steered_to(load: Load) -> None:
    """What is made there by another name was not asked for by its own."""
    text = (
        'files:\n  - {id: free, allow: all, paths: ["${TMPDIR}/**"]}\n'
        "  - {id: no, deny: all, paths: [/tmp/*/b/**]}\n"
    )
    steer = '  - {id: to, steer: create, paths: [/w/**], to: "${TMPDIR}/b"}\n'
    assert compile_policy(load(text), program=b"").flags & FLAG_DEBUG
    assert "rule no " in compile_policy(load(text + steer), program=b"").no_debug


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "own folders"),
        ('files:\n  - {id: work, allow: exec, paths: ["/a/**"], except: ["/a/x"]}\n', "rule work "),
        ('files:\n  - {id: work, allow: exec, paths: ["/a/*/bin/**"]}\n', "only some of the"),
        (
            (
                'files:\n  - {id: work, allow: exec, paths: ["/a/**"]}\n'
                "exec:\n  - {id: e, allow: git, argv: [status]}\n"
            ),
            "rule e ",
        ),
        (
            (
                'files:\n  - {id: work, allow: exec, paths: ["/a/**"]}\n'
                f"exec:\n  - {{id: pin, allow: /a/git, sha256: {'a' * 64}}}\n"
            ),
            "rule pin ",
        ),
    ],
)
def test_what_stands_in_the_way_is_named(load: Load, text: str, says: str) -> None:
    """The reason is a rule by its id, or a folder."""
    hidden = [(b"/a/own", True, True)]
    if text:
        assert says in compile_policy(load(text), program=b"").no_debug
        return
    policy = load('files:\n  - {id: work, allow: all, paths: ["/a/**"]}\n')
    assert compile_policy(policy, program=b"").no_debug == ""
    assert "own folders" in compile_policy(policy, program=b"", protected=hidden).no_debug


def test_observing_refuses_no_debugger(load: Load) -> None:
    """What passes anyway needs no look."""
    text = 'files:\n  - {id: e, allow: exec, paths: ["/a/x*"]}\n'
    assert compile_policy(load(text, mode="observe"), program=b"").no_debug == ""


def test_the_call_in_the_filter() -> None:
    """Without debuggers every ptrace is told; without a domain it is absent, TRACEME too."""
    tests = [When(1, 0, 1, 0, CLASS_VERIFY, 0), When(2, 0, 1, 0, CLASS_VERIFY, 0)]
    bounded = [Row(1, CLASS_ALLOW, 0, "ptrace", ""), Row(2, CLASS_ALLOW, 0, "read", "")]
    assert debuggers.calls(bounded, tests, allowed=True) == (bounded, tests)
    rows, kept = debuggers.calls(bounded, tests, allowed=False)
    assert [row.klass for row in rows] == [CLASS_VERIFY, CLASS_ALLOW]
    assert kept == tests[1:]
    absent = [Row(1, CLASS_REFUSE, 1, "ptrace", "")]
    for allowed in (True, False):
        assert debuggers.calls(absent, tests, allowed=allowed) == (absent, tests[1:])
