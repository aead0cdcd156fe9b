"""Why a path is decided as it is, and the smallest change that would turn it.

The decision itself comes from the native matcher through ``decide``; nothing is
matched here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from supervisor.policy import patterns, schema
from supervisor.policy.schema import ACTION_NAMES, ALLOW, DENY, EXEC, LIST, READ, STEER, Policy

if TYPE_CHECKING:
    from supervisor.policy.compile import Compiled
    from supervisor.policy.compile import Rule as BlobRule


class VerdictLike(Protocol):
    """The matcher's answer (struct sv_verdict)."""

    @property
    def action(self) -> int:
        """Enum sv_action."""

    @property
    def rule(self) -> int:
        """Index of the winning rule; -1 is the default."""

    @property
    def err(self) -> int:
        """Errno shown for a refusal."""

    @property
    def rules(self) -> Sequence[int]:
        """Indexes of the rules that matched, strictest first."""


Decide = Callable[[int, bytes, bytes, Sequence[bytes]], VerdictLike]
"""(mask of operations, true path, program as called, argv) to the matcher's answer."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule as people find it: id, action, "file:line" and the source line."""

    id: str
    action: str
    src: str
    text: str
    say: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """One decision with its reasons.

    Attributes:
        path: The path that was asked about.
        op: The operation, as a word.
        decision: "allow", "steer", "approve" or "deny".
        err: errno shown for a refusal, 0 otherwise.
        winner: The rule that decided; None = the default did.
        losers: Other rules that matched, strictest first.
        mechanism: "floor", "broker", "exec stop" or "refused".
        change: The smallest change that would turn the decision.
        observe: Whether the policy only records and lets everything pass.
    """

    path: bytes
    op: str
    decision: str
    err: int
    winner: RuleText | None
    losers: tuple[RuleText, ...]
    mechanism: str
    change: str
    observe: bool

    @property
    def by_default(self) -> bool:
        """Return whether no rule matched."""
        return self.winner is None


def explain(
    policy: Policy,
    compiled: Compiled,
    decide: Decide,
    path: bytes,
    op: str,
    *,
    name: bytes = b"",
    argv: Sequence[bytes] = (),
) -> Explanation:
    """Explain one decision.

    Args:
        policy: The merged policy.
        compiled: What it was compiled to; rule indexes refer to it.
        decide: The native matcher, bound to the blob of ``compiled``.
        path: True absolute path of the object.
        op: One of the operation words.
        name: For ``exec``: the program as called.
        argv: For ``exec``: its arguments, the name first.

    Raises:
        ValueError: ``op`` is no operation.
    """
    bit = schema.OP_BITS.get(op)
    if bit is None:
        raise ValueError(f"unknown operation {op!r}")
    verdict = decide(bit, path, name, argv)
    texts = {i: _text(policy, compiled.rules[i]) for i in {verdict.rule, *verdict.rules} if i >= 0}
    losers = tuple(texts[i] for i in verdict.rules if i != verdict.rule)
    return Explanation(
        path=path,
        op=op,
        decision=ACTION_NAMES[verdict.action],
        err=verdict.err if verdict.action == DENY else 0,
        winner=texts.get(verdict.rule),
        losers=losers,
        mechanism=_mechanism(compiled, verdict.action, bit, path),
        change=_change(compiled, verdict, path, op),
        observe=policy.observe,
    )


def _text(policy: Policy, rule: BlobRule) -> RuleText:
    text = ""
    file, _, line = rule.src.rpartition(":")
    for source in policy.sources:
        if source.file == file and line.isdigit() and int(line) <= len(source.lines):
            text = source.lines[int(line) - 1].strip()
    return RuleText(rule.id, ACTION_NAMES[rule.action], rule.src, text, rule.say)


def _mechanism(compiled: Compiled, action: int, bit: int, path: bytes) -> str:
    if action == DENY:
        return "refused"
    if bit == EXEC:
        return "exec stop"
    if action == ALLOW and bit in (READ, LIST) and _in_floor(compiled, path):
        return "floor"
    return "broker"


def _in_floor(compiled: Compiled, path: bytes) -> bool:
    return any(
        path == folder or path.startswith(folder.rstrip(b"/") + b"/")
        for folder, _ in compiled.floor
    )


def _quoted(path: bytes) -> str:
    return json.dumps(patterns.escape(path).decode("utf-8", "replace"), ensure_ascii=False)


def _change(compiled: Compiled, verdict: VerdictLike, path: bytes, op: str) -> str:
    shown = _quoted(path)
    if verdict.action in (ALLOW, STEER):
        return f"to refuse it, add under files: - {{id: no-{op}, deny: {op}, paths: [{shown}]}}"
    blockers = [compiled.rules[i] for i in verdict.rules if compiled.rules[i].action == DENY]
    allowed = any(compiled.rules[i].action < DENY for i in verdict.rules)
    steps = []
    for rule in blockers:
        if rule.src == "built-in":
            return f"none: '{rule.id}' is built in and protects the supervisor itself"
        steps.append(_loosen(rule, shown))
    if not allowed:
        steps.append(f"add under files: - {{id: my-{op}, allow: {op}, paths: [{shown}]}}")
    return "; then ".join(steps)


def _loosen(rule: BlobRule, shown: str) -> str:
    if rule.src.startswith("pack:"):
        pack = rule.src.rpartition(":")[0]
        return f"use your own copy of {pack}, with {shown} excepted in '{rule.id}'"
    if rule.kind:
        return f"take the program out of rule '{rule.id}' ({rule.src})"
    return f"add except: [{shown}] to rule '{rule.id}' ({rule.src})"
