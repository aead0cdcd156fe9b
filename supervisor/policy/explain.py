"""Why a path, an address or a signal is decided so, and the smallest change that turns it.

The decision itself comes from the native matcher through ``decide``; nothing is
matched here.
"""

from __future__ import annotations

import errno
import functools
import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from supervisor.policy import patterns, pins, schema, signals
from supervisor.policy.addresses import Endpoint, carried, reached, targets_for
from supervisor.policy.compile import KIND_FILES, KIND_NETWORK
from supervisor.policy.schema import ACTION_NAMES, ALLOW, DENY, EXEC, STEER, Policy

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
DecideNet = Callable[[int, Endpoint], VerdictLike]
"""(enum sv_net_op, who is at the other end) to the matcher's answer."""
DecideSignal = Callable[[int, int], VerdictLike]
"""(signal, mask of enum sv_who) to the matcher's answer."""


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
        path: The path, or as events tell it the address or signal, that was asked about.
        op: The operations, words joined by commas.
        decision: "allow", "steer", "approve" or "deny".
        err: errno shown for a refusal, 0 otherwise.
        winner: The rule that decided; None = the default did.
        losers: Other rules that matched, strictest first.
        mechanism: "broker", "exec stop", "kernel", "issued again", "refused" or, in observe
            mode, "recorded only".
        change: The smallest change that would turn the decision.
        observe: Whether the policy only records what its rules refuse.
        why: What the bytes of a program have to do with it, or "".
        note: What else was asked, or how it is decided in a run, or "".
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
    why: str = ""
    note: str = ""

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
        op: Operation words, joined by commas: one call may ask for several.
        name: For ``exec``: the program as called.
        argv: For ``exec``: its arguments, the name first.

    Raises:
        ValueError: A word of ``op`` is no operation.
    """
    bits = [_bit(word) for word in op.split(",")]
    asked = functools.reduce(operator.or_, bits)
    verdict = decide(asked, path, name, argv)
    shown = _quoted(path)
    about = _About(op.split(","), "files", "paths", shown)
    single = [decide(b, path, name, argv) for b in bits]
    answer = replace(
        _answer(policy, compiled, verdict, path, _change(compiled, verdict, single, about)),
        op=op,
        mechanism=_mechanism(verdict.action, asked, observe=policy.observe),
    )
    pinned = [i for i in verdict.rules if compiled.rules[i].digest] if asked & EXEC else []
    if not pinned or verdict.action != ALLOW:
        return answer
    rule = compiled.rules[pinned[0]]
    return _with_bytes(answer, rule, _text(policy, rule))


def explain_net(
    policy: Policy, compiled: Compiled, decide: DecideNet, asked: Endpoint, op: str
) -> Explanation:
    """Explain one decision about the network.

    Args:
        policy: The merged policy.
        compiled: What it was compiled to; rule indexes refer to it.
        decide: The native matcher, bound to the blob of ``compiled``.
        asked: Who is at the other end.
        op: ``connect`` or ``bind``.
    """
    bit, told = schema.NET_BITS[op], asked.shown()
    places = reached(asked, op)
    note = ""
    if places != (asked,):
        shown = " and ".join(place.shown().decode() for place in places)
        note = f"{told.decode()} stands for {shown}"
    verdicts = [decide(bit, place) for place in places]
    inner = carried(asked)
    if inner and _is_denied_by_rule(compiled, further := decide(bit, inner)):
        verdicts.append(further)
        note = f"{told.decode()} carries {inner.shown().decode()}"
    verdict = max(verdicts, key=lambda one: one.action)
    about = _About([op], "network", "to", targets_for(told, op))
    change = _change(compiled, verdict, [verdict], about)
    answer = _answer(policy, compiled, verdict, told, change)
    mechanism = _mechanism(verdict.action, 0, observe=policy.observe)
    return replace(answer, op=op, mechanism=mechanism, note=note)


def explain_signal(
    policy: Policy, compiled: Compiled, decide: DecideSignal, number: int, target: str
) -> Explanation:
    """Explain one decision about a signal.

    Args:
        policy: The merged policy.
        compiled: What it was compiled to; rule indexes refer to it.
        decide: The native matcher, bound to the blob of ``compiled``.
        number: The signal.
        target: A word of ``schema.WHO``; ``tree``: as for a group that may hold anybody.
    """
    verdict = decide(number, schema.WHO[target])
    name, mechanism, note = signals.name_of(number), "kernel", ""
    whom = "" if target == "tree" else f", target: {target}"
    change = f"to refuse it, add under signals: - {{id: no-{name.lower()}, deny: {name}{whom}}}"
    if verdict.action == DENY:
        denials = [r for r in (compiled.rules[i] for i in verdict.rules) if r.action == DENY]
        steps = [f"take {name} out of rule '{rule.id}' ({rule.src})" for rule in denials]
        change = "; then ".join(steps)
        mechanism = "refused"
    elif verdict.action == STEER:
        to = next(entry[3] for entry in compiled.signals if entry[0] == verdict.rule)
        note = f"{signals.name_of(to)} is sent instead" if to else "nothing is sent"
        mechanism = "issued again"
    answer = _answer(policy, compiled, verdict, f"{name} {target}".encode(), change)
    if policy.observe:
        mechanism = "recorded only"
    return replace(answer, op="signal", mechanism=mechanism, note=note)


def _is_denied_by_rule(compiled: Compiled, verdict: VerdictLike) -> bool:
    """Return whether a network rule denies, rather than that none allows."""
    by_rule = verdict.rule >= 0 and compiled.rules[verdict.rule].kind == KIND_NETWORK
    return by_rule and verdict.action == DENY


def _answer(
    policy: Policy, compiled: Compiled, verdict: VerdictLike, path: bytes, change: str
) -> Explanation:
    texts = {i: _text(policy, compiled.rules[i]) for i in {verdict.rule, *verdict.rules} if i >= 0}
    return Explanation(
        path=path,
        op="",
        decision=ACTION_NAMES[verdict.action],
        err=verdict.err if verdict.action == DENY else 0,
        winner=texts.get(verdict.rule),
        losers=tuple(texts[i] for i in verdict.rules if i != verdict.rule),
        mechanism="",
        change=change,
        observe=policy.observe,
    )


def _with_bytes(answer: Explanation, rule: BlobRule, text: RuleText) -> Explanation:
    """Add what a rule says of the program's bytes to what the rules say of its path."""
    seen = pins.look(answer.path, rule.digest or b"")
    if seen.good:
        return replace(answer, why=seen.why)
    change = f"take the program out of rule '{rule.id}' ({rule.src})"
    if seen.found:
        change = f"put sha256: {seen.found} into rule '{rule.id}' ({rule.src})"
    others = [answer.winner, *answer.losers] if answer.winner else answer.losers
    return replace(
        answer,
        decision=ACTION_NAMES[DENY],
        err=errno.EACCES,
        winner=text,
        losers=tuple(other for other in others if other != text),
        mechanism=_mechanism(DENY, EXEC, observe=answer.observe),
        change=change,
        why=seen.why,
    )


def _text(policy: Policy, rule: BlobRule) -> RuleText:
    text = ""
    file, _, line = rule.src.rpartition(":")
    for source in policy.sources:
        if source.file == file and line.isdigit() and int(line) <= len(source.lines):
            text = source.lines[int(line) - 1].strip()
    return RuleText(rule.id, ACTION_NAMES[rule.action], rule.src, text, rule.say)


def _bit(word: str) -> int:
    bit = schema.OP_BITS.get(word)
    if bit is None:
        raise ValueError(f"unknown operation {word!r}")
    return bit


def _mechanism(action: int, asked: int, *, observe: bool) -> str:
    if observe:
        return "recorded only"
    if action == DENY:
        return "refused"
    return "exec stop" if asked & EXEC else "broker"


def _quoted(path: bytes) -> str:
    return json.dumps(patterns.escape(path).decode("utf-8", "replace"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _About:
    """What a change is about: operations, the section and key of rules, the text for the key."""

    words: Sequence[str]
    section: str
    key: str
    shown: str

    def rule(self, prefix: str, action: str, ops: Sequence[str]) -> str:
        """Return a rule to add."""
        listed = f"[{', '.join(ops)}]" if len(ops) > 1 else ops[0]
        ident = f"{prefix}-{'-'.join(ops)}"
        return f"- {{id: {ident}, {action}: {listed}, {self.key}: [{self.shown}]}}"


def _change(
    compiled: Compiled, verdict: VerdictLike, single: Sequence[VerdictLike], about: _About
) -> str:
    """Name the change that turns the verdict; ``single`` are those of its operations alone."""
    if verdict.action in (ALLOW, STEER):
        return f"to refuse it, add under {about.section}: {about.rule('no', 'deny', about.words)}"
    matched = [[compiled.rules[i] for i in one.rules] for one in single]
    steps = _open_blocks(compiled, single, about)
    for rule in dict.fromkeys(r for rules in matched for r in rules if r.action == DENY):
        if rule.src == "built-in":
            what = "keeps blocks closed" if rule.block else "protects the supervisor itself"
            return f"none: '{rule.id}' is built in and {what}"
        steps.append(_loosen(rule, about.shown))
    missing = [
        word
        for word, rules in zip(about.words, matched, strict=True)
        if all(rule.action == DENY or rule.block for rule in rules)
    ]
    if missing:
        steps.append(f"add under {about.section}: {about.rule('my', 'allow', missing)}")
    return "; then ".join(steps)


def _open_blocks(compiled: Compiled, single: Sequence[VerdictLike], about: _About) -> list[str]:
    """Name what to add to the blocks that deny some operations by default."""
    steps = []
    defaults = {block.default for block in compiled.blocks}
    for i in dict.fromkeys(one.rule for one in single if one.rule in defaults):
        closed = [word for word, one in zip(about.words, single, strict=True) if one.rule == i]
        block = compiled.rules[i]
        where = f"{about.section} of block '{block.id}' ({block.src})"
        steps.append(f"add under {where}: {about.rule('my', 'allow', closed)}")
    return steps


def _loosen(rule: BlobRule, shown: str) -> str:
    if rule.src.startswith("pack:"):
        pack = rule.src.rpartition(":")[0]
        return f"use your own copy of {pack}, with {shown} excepted in '{rule.id}'"
    if rule.kind == KIND_FILES:
        return f"add except: [{shown}] to rule '{rule.id}' ({rule.src})"
    what = shown if rule.kind == KIND_NETWORK else "the program"
    return f"take {what} out of rule '{rule.id}' ({rule.src})"
