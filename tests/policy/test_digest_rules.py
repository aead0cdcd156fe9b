"""``sha256`` in exec rules: what loads, what is an error, what explain says."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import pytest
from policy_world import Errors, Load

from supervisor import native
from supervisor.policy import blob
from supervisor.policy.compile import compile_policy
from supervisor.policy.explain import Explanation, explain

ONE, TWO = "1" * 64, "2" * 64


def rule(ident: str, program: str, sha256: str) -> str:
    """One line of an exec section."""
    return f'  - {{id: {ident}, allow: {program}, sha256: "{sha256}"}}\n'


def test_digest_reaches_the_blob(load: Load) -> None:
    """Upper case counts as lower case; rules without a digest have none."""
    text = f"exec:\n  - {{id: a, allow: x, sha256: {'Ab' * 32}}}\n  - {{id: b, allow: y}}\n"
    compiled = compile_policy(load(text), program=b"")
    assert {r.id: r.digest for r in compiled.rules} == {"a": b"\xab" * 32, "b": None}


def test_a_link_is_an_error(errors: Errors, load: Load, tmp_path: Path) -> None:
    """A digest for a path that is a link would hold for nothing; the message names the file."""
    true = tmp_path / "true"
    true.touch()
    (tmp_path / "link").symlink_to("true")
    said = errors("exec:\n" + rule("a", str(tmp_path / "link"), ONE))
    assert "is a link: rules are about true paths" in said
    assert str(true) in said
    assert load("exec:\n" + rule("a", str(true), ONE)).execs


@pytest.mark.parametrize(
    ("one", "two"),
    [("tool", "tool"), ("/nowhere/tool", "/nowhere/tool"), ("/nowhere/t*", "/nowhere/tool*")],
)
def test_different_bytes_are_an_error(errors: Errors, load: Load, one: str, two: str) -> None:
    """Two digests for one program: it could never run. The same digest twice is fine."""
    said = errors("exec:\n" + rule("a", one, ONE) + rule("b", two, TWO))
    assert "rules 'a' and 'b' want" in said
    assert "to have different bytes" in said
    assert load("exec:\n" + rule("a", one, ONE) + rule("b", two, ONE)).execs
    assert load("exec:\n" + rule("a", one, ONE) + rule("b", "/nowhere/else/x", TWO)).execs


def ask(load: Load, path: Path, sha256: str) -> Explanation:
    """Explain a start of a program that is allowed anyhow."""
    files = f"files:\n  - {{id: all, allow: all, paths: ['{path.parent}/**']}}\n"
    policy = load(files + "exec:\n" + rule("pin", path.name, sha256))
    compiled = compile_policy(policy, program=b"")

    def decide(data: bytes, op: int, at: bytes, name: bytes, argv: object) -> native.Verdict:
        return native.decide(data, op, at, name=name, argv=argv, tmp=b"/t")  # type: ignore[arg-type]

    bound = partial(decide, blob.encode(compiled))
    name = str(path).encode()
    return explain(policy, compiled, bound, name, "exec", name=name, argv=[name])


def test_explain_looks_at_the_bytes(load: Load, tmp_path: Path) -> None:
    """Right bytes are allowed by the rule; of others it names the digest and the change."""
    tool = tmp_path / "tool"
    tool.write_bytes(b"\x7fELF")
    found = hashlib.sha256(b"\x7fELF").hexdigest()
    good, bad = ask(load, tool, found), ask(load, tool, ONE)
    assert (good.decision, good.winner and good.winner.id) == ("allow", "pin")
    assert found in good.why
    assert (bad.decision, bad.err, bad.mechanism) == ("deny", 13, "refused")
    assert bad.winner
    assert bad.winner.id == "pin"
    assert [loser.id for loser in bad.losers] == ["all"]
    assert bad.change.startswith(f"put sha256: {found} into rule 'pin'")


def test_explain_of_scripts_and_missing_files(load: Load, tmp_path: Path) -> None:
    """A script is denied whatever its digest; of a missing file nothing is known."""
    script = tmp_path / "script"
    script.write_bytes(b"#!/bin/sh\n")
    found = ask(load, script, hashlib.sha256(b"#!/bin/sh\n").hexdigest())
    assert (found.decision, found.change.startswith("take the program out")) == ("deny", True)
    assert "a script is read again" in found.why
    missing = ask(load, tmp_path / "missing", ONE)
    assert missing.decision == "allow"
    assert "cannot be read" in missing.why
