"""Compiled policies: built-in protection, the floor, flags, and the bytes that C reads."""

from __future__ import annotations

import msgpack
import pytest
from policy_world import Load

from supervisor import native
from supervisor.policy import blob, schema
from supervisor.policy.compile import (
    FLAG_DEBUG,
    FLAG_NET,
    FLAG_OBSERVE,
    FLAG_TMP,
    Compiled,
    compile_policy,
)

TMP = b"/tmp/private"


def ask(compiled: Compiled, op: str, path: bytes, **more: object) -> tuple[str, str, int]:
    """Ask the native matcher; return action, rule id and errno."""
    data = blob.encode(compiled)
    verdict = native.decide(data, schema.OP_BITS[op], path, tmp=TMP, **more)  # type: ignore[arg-type]
    rule = compiled.rules[verdict.rule].id if verdict.rule >= 0 else ""
    return schema.ACTION_NAMES[verdict.action], rule, verdict.err


BLOCK = "blocks:\n  - {for: {program: a}, "
EXAMPLE = """
vars: {workspace: "${CWD}"}
files:
  - {id: system, allow: [read, exec], paths: [/usr/**, /bin/**]}
  - {id: work, allow: all, paths: ["${workspace}/**"], except: ["${workspace}/.git/hooks/**"]}
  - {id: secrets, deny: all, paths: ["${HOME}/.ssh/**", "**/.env"], as: ENOENT, say: ask}
  - {id: scratch, steer: [write, create], paths: ["/home/**"], to: "${workspace}/.scratch"}
  - {id: tmp, allow: all, paths: ["${TMPDIR}/**"]}
exec:
  - {id: fetch, steer: [curl], to: ["${workspace}/bin/fetch", "--audited"], args: append}
  - {id: push, deny: git, argv: ["push", "**"], as: EPERM}
"""


def test_c_reads_what_python_writes(load: Load) -> None:
    """The native matcher decides an example as its text says."""
    compiled = compile_policy(load(EXAMPLE), program=b"", protected=[(b"/usr/lib/sup", True, True)])
    assert ask(compiled, "read", b"/usr/bin/ls")[:2] == ("allow", "system")
    assert ask(compiled, "write", b"/usr/bin/ls") == ("deny", "", 13)
    assert ask(compiled, "read", b"/home/u/.ssh/id")[::2] == ("deny", 2)
    assert ask(compiled, "read", b"/home/u/project/.env")[:2] == ("deny", "secrets")
    assert ask(compiled, "read", b"/home/u/project/a")[:2] == ("allow", "work")
    assert ask(compiled, "read", b"/home/u/project/.git/hooks/a") == ("deny", "", 13)
    assert ask(compiled, "write", b"/home/x")[:2] == ("steer", "scratch")
    assert ask(compiled, "write", TMP + b"/x")[:2] == ("allow", "tmp")
    assert ask(compiled, "read", b"/usr/lib/sup/a")[:2] == ("deny", "supervise.self.hide")
    push = {"name": b"git", "argv": [b"git", b"push", b"-f"]}
    assert ask(compiled, "exec", b"/usr/bin/git", **push) == ("deny", "push", 1)
    pull = {"name": b"git", "argv": [b"git", b"pull"]}
    assert ask(compiled, "exec", b"/usr/bin/git", **pull)[:2] == ("allow", "system")
    curl = {"name": b"curl", "argv": [b"curl", b"x"]}
    assert ask(compiled, "exec", b"/usr/bin/curl", **curl)[:2] == ("steer", "fetch")


def test_built_in_protection(load: Load) -> None:
    """Protected paths refuse changes, hidden ones everything, whatever the policy allows."""
    policy = load('files:\n  - {id: all, allow: all, paths: ["/**"]}\n')
    compiled = compile_policy(
        policy,
        program=b"",
        protected=[(b"/opt/p*g", True, False), (b"/etc/s.yaml", False, False), (b"/s", True, True)],
    )
    assert [rule.id for rule in compiled.rules[:2]] == [
        "supervise.self.keep",
        "supervise.self.hide",
    ]
    assert {rule.src for rule in compiled.rules[:2]} == {"built-in"}
    for op in ("write", "create", "delete", "rename", "metadata"):
        for path in (b"/opt/p*g", b"/opt/p*g/a/b", b"/etc/s.yaml", b"/s/x"):
            assert ask(compiled, op, path)[0] == "deny", (op, path)
    for op in ("read", "list", "exec"):
        assert ask(compiled, op, b"/opt/p*g/a")[:2] == ("allow", "all")
        assert ask(compiled, op, b"/s/x")[:2] == ("deny", "supervise.self.hide")
    assert ask(compiled, "write", b"/opt/pxg/a")[0] == "allow"
    assert ask(compiled, "write", b"/etc/s.yaml.d")[0] == "allow"


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("files:\n  - {allow: read, paths: [/usr/**]}\n", []),
        ("files:\n  - {deny: exec, paths: [/usr/**]}\n", []),
        ("files:\n  - {allow: exec, paths: [/usr/**, /usr/bin/**, /usrx]}\n", [b"/usr", b"/usrx"]),
        ("files:\n  - {allow: all, paths: ['/opt/*/bin/**', /a/b]}\n", [b"/a/b", b"/opt"]),
        ("files:\n  - {allow: exec, paths: ['**/x', /a]}\n", [b"/"]),
        ("files:\n  - {allow: exec, paths: ['/a\\*b/**']}\n", [b"/a*b"]),
        ("files:\n  - {allow: exec, paths: ['${TMPDIR}/**', /a]}\n", [b"\x01", b"/a"]),
        ("exec:\n  - {allow: [/usr/bin/git]}\n", [b"/usr/bin/git"]),
        ("exec:\n  - {allow: git}\n", [b"/"]),
        ("exec:\n  - {deny: git}\n", []),
        ("exec:\n  - {steer: git, to: /opt/safe-git}\n", [b"/opt/safe-git"]),
    ],
)
def test_floor(load: Load, text: str, floor: list[bytes]) -> None:
    """The floor holds the literal folders of all that may run, each once."""
    compiled = compile_policy(load(text), program=b"")
    assert [path for path, _ in compiled.floor] == floor
    assert {rights for _, rights in compiled.floor} <= {1}


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("files: []\n", 0),
        ("mode: observe\n", FLAG_OBSERVE),
        ("files:\n  - {allow: read, paths: ['${TMPDIR}/x']}\n", FLAG_TMP),
        ("files:\n  - {allow: read, paths: [/a/**], except: ['${TMPDIR}']}\n", FLAG_TMP),
        ("files:\n  - {steer: read, paths: [/a], to: '${TMPDIR}/x'}\n", FLAG_TMP),
        ("exec:\n  - {steer: a, to: [/b, '${TMPDIR}/x']}\n", FLAG_TMP),
        ("env: {set: {TMPDIR: '${TMPDIR}'}}\n", FLAG_TMP),
        ("network: []\n", 0),
        ("network: [{deny: all, to: ['*']}]\n", 0),
        ("network: [{allow: bind, to: ['10.0.0.1']}]\n", FLAG_NET),
        ("mode: observe\nnetwork: [{allow: all, to: ['*']}]\n", FLAG_OBSERVE | FLAG_NET),
        ("network: [{deny: all, to: ['unix:${TMPDIR}/x']}]\n", FLAG_TMP),
        (BLOCK + "network: [{allow: all, to: ['*']}]}\n", 0),
        (BLOCK + "network: [{deny: all, to: ['unix:${TMPDIR}/x']}]}\n", FLAG_TMP),
    ],
)
def test_flags(load: Load, text: str, flags: int) -> None:
    """A private folder is asked for, and the network asked about, exactly where one is used."""
    compiled = compile_policy(load(text), program=b"")
    assert compiled.flags & ~FLAG_DEBUG == flags
    assert blob.read_flags(blob.encode(compiled)) == compiled.flags


def test_round_trip(load: Load) -> None:
    """Python reads back from the blob what it says about rules."""
    compiled = compile_policy(load(EXAMPLE), program=b"\0" * 8)
    data = blob.encode(compiled)
    assert [(r.id, r.action, r.ops, r.err, r.say, r.src) for r in blob.read_rules(data)] == [
        (r.id, r.action, r.ops, r.err, r.say, r.src) for r in compiled.rules
    ]
    assert next(r.src for r in blob.read_rules(data) if r.src != "built-in") == "agent.yaml:5"
    parts = msgpack.unpackb(data, use_list=False)
    assert parts[:5] == ("SVB", 6, FLAG_TMP, 1, b"\0" * 8)
    assert parts[6:11] == (
        compiled.paths,
        compiled.names,
        compiled.argvs,
        compiled.floor,
        compiled.env,
    )
    assert parts[11:] == ((), (), (), ())
    assert len(parts[5][0]) == 11


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xc1", msgpack.packb(["SVB", 3] + [0] * 10)])
def test_foreign_bytes(data: bytes) -> None:
    """Bytes that are no blob are refused with ValueError and nothing else."""
    with pytest.raises(ValueError, match="not a compiled policy"):
        blob.read_rules(data)


def test_long_file_names() -> None:
    """A source name longer than the format allows keeps its end and its line."""
    from supervisor.policy.context import Context
    from supervisor.policy.merge import load_policy

    name = "/" + "é" * 400 + "/agent.yaml"
    text = b"version: 1\nfiles:\n  - {allow: read, paths: [/a]}\n"
    context = Context(cwd=b"/", home=b"/h", uid=0, environ={})
    policy = load_policy([], context=context, inline=[(name, text)])
    src = compile_policy(policy, program=b"").rules[0].src
    assert len(src.encode()) <= 512
    assert src.endswith("é/agent.yaml:3")


def test_free_folders_keep_their_names(load: Load) -> None:
    """A folder that the next run goes by is neither moved nor removed; one inside it is."""
    text = """

files:
  - {id: work, allow: all, paths: ["/ws/**", "/ws/build/**", "/var/**/cache/**"]}
  - {id: read, allow: read, paths: ["/usr/**"]}
  - {id: conf, steer: [write, create], paths: ["/etc/**"], to: /ws/shadow}
"""
    compiled = compile_policy(load(text), program=b"")
    root = next(i for i, rule in enumerate(compiled.rules) if rule.id == "supervise.self.root")
    assert compiled.rules[root].ops == schema.DELETE | schema.RENAME
    kept = {pattern for rule, _, pattern in compiled.paths if rule == root}
    assert kept == {b"/ws", b"/ws/shadow", b"/var/**/cache"}
