"""Explanations: the decision is the matcher's, the words are ours."""

from __future__ import annotations

from typing import Any

import pytest
from policy_world import Load

from supervisor import native
from supervisor.policy import blob
from supervisor.policy.compile import compile_policy
from supervisor.policy.explain import Explanation, explain

POLICY = """files:
  - {id: system, allow: [read, exec], paths: [/usr/**]}
  - {id: home, allow: all, paths: ["/home/**"]}
  - {id: keys, deny: all, paths: ["**/*.key"], as: ENOENT, say: no keys}
  - {id: hosts, steer: read, paths: [/etc/hosts], to: /home/hosts}
exec:
  - {id: nc, deny: nc}
"""


@pytest.fixture
def ask(load: Load) -> object:
    """Return a function that explains one question about POLICY."""
    policy = load(POLICY)
    compiled = compile_policy(policy, program=b"", protected=[(b"/opt/s", True, True)])
    data = blob.encode(compiled)

    def decide(op: int, path: bytes, name: bytes, argv: object) -> native.Verdict:
        return native.decide(data, op, path, name=name, argv=argv, tmp=b"/t")  # type: ignore[arg-type]

    def run(op: str, path: bytes, name: bytes = b"") -> Explanation:
        return explain(policy, compiled, decide, path, op, name=name)

    return run


def test_answers(ask: Any) -> None:
    """Decision, winner with its line, losers, mechanism and the smallest change."""
    found = ask("read", b"/home/a.key")
    assert (found.decision, found.err, found.mechanism) == ("deny", 2, "refused")
    assert found.winner.src == "agent.yaml:5"
    assert found.winner.text.startswith("- {id: keys, deny: all")
    assert found.winner.say == "no keys"
    assert [loser.id for loser in found.losers] == ["home"]
    assert found.change == "add except: [\"/home/a.key\"] to rule 'keys' (agent.yaml:5)"

    found = ask("read", b"/var/a.key")
    assert found.change.endswith(
        '; then add under files: - {id: my-read, allow: read, paths: ["/var/a.key"]}'
    )

    found = ask("write", b"/var/x[1]")
    assert found.by_default
    assert (found.decision, found.err) == ("deny", 13)
    assert found.change == (
        'add under files: - {id: my-write, allow: write, paths: ["/var/x\\\\[1\\\\]"]}'
    )

    found = ask("read", b"/usr/bin/x")
    assert (found.decision, found.err, found.mechanism) == ("allow", 0, "broker")
    assert "deny: read" in found.change
    assert ask("exec", b"/usr/bin/x").mechanism == "exec stop"
    assert ask("write", b"/home/x").mechanism == "broker"

    found = ask("read", b"/etc/hosts")
    assert (found.decision, found.winner.id, found.mechanism) == ("steer", "hosts", "broker")

    found = ask("exec", b"/usr/bin/nc", b"nc")
    assert found.change == "take the program out of rule 'nc' (agent.yaml:8)"

    found = ask("write", b"/opt/s/x")
    assert found.change.startswith("none: 'supervise.self.hide' is built in")
    assert found.winner.text == ""


@pytest.mark.parametrize("op", ["all", "read,all", "", "read,"])
def test_unknown_operation(ask: Any, op: str) -> None:
    """A word that is no operation is refused."""
    with pytest.raises(ValueError, match="unknown operation"):
        ask(op, b"/x")


@pytest.mark.parametrize(
    ("op", "path", "decision", "winner", "change"),
    [
        ("read,write", b"/home/x", "allow", "home", "deny: [read, write]"),
        ("read,write", b"/usr/x", "deny", None, "{id: my-write, allow: write,"),
        ("write,create", b"/usr/x", "deny", None, "{id: my-write-create, allow: [write, create],"),
        ("read,write", b"/etc/hosts", "deny", None, "{id: my-write, allow: write,"),
        ("read,write", b"/usr/a.key", "deny", "keys", "; then add under files: - {id: my-write,"),
        (
            "read,write",
            b"/home/a.key",
            "deny",
            "keys",
            "add except: [\"/home/a.key\"] to rule 'keys'",
        ),
        ("read,exec", b"/usr/x", "allow", "system", "deny: [read, exec]"),
    ],
)
def test_several_operations(
    ask: Any, op: str, path: bytes, decision: str, winner: str | None, change: str
) -> None:
    """The strictest answer counts, and the change names only what is missing."""
    found = ask(op, path)
    assert (found.op, found.decision) == (op, decision)
    assert (found.winner and found.winner.id) == winner
    assert change in found.change


@pytest.mark.parametrize(
    ("op", "path", "mechanism"),
    [
        ("read", b"/usr/bin/x", "broker"),
        ("list", b"/usr/bin", "broker"),
        ("write", b"/home/x", "broker"),
        ("exec", b"/usr/bin/x", "exec stop"),
        ("read,exec", b"/usr/bin/x", "exec stop"),
        ("read", b"/x", "refused"),
    ],
)
def test_mechanism(load: Load, op: str, path: bytes, mechanism: str) -> None:
    """Every open is brokered, an exec is checked at its stop, and observing only records."""
    for mode, expected in (("enforce", mechanism), ("observe", "recorded only")):
        policy = load(POLICY, mode=mode)
        compiled = compile_policy(policy, program=b"")
        data = blob.encode(compiled)

        def decide(op: int, path: bytes, name: bytes, argv: Any, data: bytes = data) -> Any:
            return native.decide(data, op, path, name=name, argv=argv, tmp=b"/t")

        assert explain(policy, compiled, decide, path, op).mechanism == expected
