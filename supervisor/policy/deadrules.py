"""Rules that can never win, and steers that tie: both are errors.

A rule is dead when every path and operation that it speaks about is decided by
stricter rules. Only stricter rules of the same file, or of files that it extends,
count: when a user's own rule makes a rule of a pack idle, the user meant that, and
the pack may still serve others.

Two steers of one operation tie when their patterns have the same literal folder
and can both match one path; the longer folder would win otherwise.

Both questions are answered on sets of paths (see ``patterns``), not by samples. A
question that costs too much is taken as "not dead" and as "may tie".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supervisor.policy import deadnet, patterns, signals
from supervisor.policy.schema import (
    ACTION_NAMES,
    EXEC,
    OP_BITS,
    STEER,
    ExecRule,
    FileRule,
    NetRule,
    Policy,
    Source,
    op_names,
)

if TYPE_CHECKING:
    from supervisor.policy.patterns import Automaton

_AnyRule = FileRule | NetRule | ExecRule
FailAt = Callable[[Source, str, str, Iterable[str]], None]
_FRESH = b"\x02x"
"""A component that no sensible pattern names, for cheap witnesses."""


def report(policy: Policy, reach: Mapping[str, frozenset[str]], fail_at: FailAt) -> None:
    """Report every dead rule and every tie of steers.

    Args:
        policy: The merged policy.
        reach: For each file as shown, all files that it extends, itself included.
        fail_at: Notes a problem: source, message, suggestion, notes.
    """
    _report_ties(policy, fail_at)
    _report_clashes(policy, fail_at)
    index = _Index(policy)
    for rule in _rules(policy):
        covers = index.covers_of(rule, reach.get(rule.source.file, frozenset()))
        _report_dead(rule, [cover.rule for cover in covers], fail_at)
    network = deadnet.Index(policy.network)
    for net in policy.network:
        found = network.covers_of(net, reach.get(net.source.file, frozenset()))
        _report_dead(net, found, fail_at)
    signals.report(policy.signals, reach, fail_at)


def _report_dead(rule: _AnyRule, covers: Sequence[_AnyRule], fail_at: FailAt) -> None:
    if not covers:
        return
    names = ", ".join(f"'{cover.id}' ({cover.source})" for cover in covers[:4])
    fail_at(
        rule.source,
        f"rule '{rule.id}' can never win: stricter rules cover all that it says",
        "",
        (f"this '{ACTION_NAMES[rule.action]}' is covered by {names}",),
    )


def _rules(policy: Policy) -> list[FileRule | ExecRule]:
    return [*policy.files, *policy.execs]


# -- dead rules ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """What one rule says about paths."""

    rule: FileRule | ExecRule
    ops: int
    included: tuple[bytes, ...]
    excluded: tuple[bytes, ...]


def _entry(rule: FileRule | ExecRule) -> _Entry:
    if isinstance(rule, FileRule):
        return _Entry(rule, rule.ops, rule.patterns, rule.excluded)
    return _Entry(rule, EXEC, rule.patterns, ())


class _Index:
    """Finds the rules that could cover a path, by the literal folders above it."""

    def __init__(self, policy: Policy) -> None:
        self._below: dict[bytes, list[_Entry]] = defaultdict(list)
        self._names: dict[bytes, list[_Entry]] = defaultdict(list)
        self._machines: dict[bytes, Automaton] = {}
        self._budget = patterns.Budget()  # for all questions together
        for rule in _rules(policy):
            if isinstance(rule, ExecRule) and rule.argv_patterns is not None:
                continue  # covers only some calls of its programs
            entry = _entry(rule)
            for folder in {_folder(pattern) for pattern in entry.included}:
                self._below[folder].append(entry)
            for name in rule.names if isinstance(rule, ExecRule) else ():
                self._names[name].append(entry)

    def machine(self, pattern: bytes) -> Automaton:
        """Return the automaton of a pattern, built once."""
        found = self._machines.get(pattern)
        if found is None:
            found = self._machines[pattern] = patterns.path_automaton(pattern)
        return found

    def covers_of(self, rule: FileRule | ExecRule, reach: frozenset[str]) -> list[_Entry]:
        """Return the rules that together cover ``rule``, or none."""
        entry = _entry(rule)
        found: dict[int, _Entry] = {}
        for name in rule.names if isinstance(rule, ExecRule) else ():
            stricter = self._stricter(self._names.get(name, ()), rule, reach)
            if not stricter:
                return []
            found[id(stricter[0])] = stricter[0]
        bits = [bit for bit in OP_BITS.values() if bit & entry.ops]
        if self._shows_life(entry, bits, reach):
            return []
        for pattern in entry.included:
            for near in self._candidate_sets(pattern, bits, rule, reach):
                if not near or not self._covered(pattern, entry.excluded, near):
                    return []
                found.update((id(cover), cover) for cover in near)
        return list(found.values())

    def _candidate_sets(
        self, pattern: bytes, bits: Sequence[int], rule: FileRule | ExecRule, reach: frozenset[str]
    ) -> Iterator[list[_Entry]]:
        """Yield, for each distinct set of operations, the rules that may cover a pattern."""
        above = self._above(_folder(pattern))
        inner = () if patterns.is_literal(pattern) else self._inside(pattern)
        near = self._stricter((*above, *inner), rule, reach)
        seen: set[tuple[int, ...]] = set()
        for bit in bits:
            chosen = [entry for entry in near if entry.ops & bit]
            key = tuple(id(entry) for entry in chosen)
            if key not in seen:
                seen.add(key)
                yield chosen

    def _above(self, folder: bytes) -> list[_Entry]:
        out = list(self._below.get(b"/", ()))
        position = 1
        while folder not in (b"/", b"") and position > 0:
            position = folder.find(b"/", position) + 1
            upto = folder[: position - 1] if position > 0 else folder
            out.extend(self._below.get(upto, ()))
        return out

    def _inside(self, pattern: bytes) -> list[_Entry]:
        folder = _folder(pattern)
        start = folder if folder == b"/" else folder + b"/"
        return [
            entry
            for below, entries in self._below.items()
            if below.startswith(start) and below != folder
            for entry in entries
        ]

    @staticmethod
    def _stricter(
        entries: Iterable[_Entry], rule: FileRule | ExecRule, reach: frozenset[str]
    ) -> list[_Entry]:
        unique = {id(entry): entry for entry in entries}
        return [
            entry
            for entry in unique.values()
            if entry.rule.action > rule.action and entry.rule.source.file in reach
        ]

    def _shows_life(self, entry: _Entry, bits: Sequence[int], reach: frozenset[str]) -> bool:
        """Return whether samples tell, cheaply, what they do for most rules: it is alive."""
        return any(
            self._sample_escapes(pattern, bit, entry, reach)
            for pattern in entry.included
            for bit in bits
        )

    def _sample_escapes(
        self, pattern: bytes, bit: int, entry: _Entry, reach: frozenset[str]
    ) -> bool:
        """Return whether an easy path of ``pattern`` shows that the rule is alive."""
        path = _sample(pattern)
        if path is None:
            return False
        if any(self.machine(out).matches(path) for out in entry.excluded):
            return False
        near = self._stricter(self._above(path), entry.rule, reach)
        return not any(cover.ops & bit and self._matches(cover, path) for cover in near)

    def _matches(self, entry: _Entry, path: bytes) -> bool:
        return any(self.machine(p).matches(path) for p in entry.included) and not any(
            self.machine(p).matches(path) for p in entry.excluded
        )

    def _covered(self, pattern: bytes, excluded: Sequence[bytes], near: Sequence[_Entry]) -> bool:
        """Return whether ``pattern`` less ``excluded`` lies inside the rules ``near``."""
        machines = [self.machine(pattern), *map(self.machine, excluded)]
        spans = []
        for entry in near:
            first = len(machines)
            machines.extend(map(self.machine, entry.included))
            middle = len(machines)
            machines.extend(map(self.machine, entry.excluded))
            spans.append((first, middle, len(machines)))
        own = len(excluded) + 1

        def escapes(hit: Sequence[bool]) -> bool:
            if not hit[0] or any(hit[1:own]):
                return False
            return not any(any(hit[a:b]) and not any(hit[b:c]) for a, b, c in spans)

        try:
            return patterns.search(machines, escapes, budget=self._budget) is None
        except patterns.Undecided:
            return False


def _folder(pattern: bytes) -> bytes:
    """Return the literal folder as the automata spell it, ``${TMPDIR}`` as a component."""
    folder = patterns.literal_folder(pattern)
    return folder if folder[:1] == b"/" else b"/" + folder


def _sample(pattern: bytes) -> bytes | None:
    """Return some path that a pattern matches, or None where that is not obvious."""
    out = []
    for part in patterns.split(pattern):
        text = None if part == b"**" else patterns.unescape(part)
        if text is not None:
            out.append(text)
        elif part in (b"*", b"**"):
            out.append(_FRESH)
        elif b"[" in part or b"\\" in part:
            return None
        else:
            out.append(part.replace(b"*", _FRESH).replace(b"?", b"\x02"))
    return b"/" + b"/".join(out) if out else b""


# -- ties of steers -----------------------------------------------------------


def _report_ties(policy: Policy, fail_at: FailAt) -> None:
    groups: dict[bytes, list[tuple[FileRule, bytes]]] = defaultdict(list)
    for rule in policy.files:
        if rule.action == STEER:
            for pattern in rule.patterns:
                groups[patterns.literal_folder(pattern)].append((rule, pattern))
    reported: set[tuple[str, str]] = set()
    for group in groups.values():
        for i, (one, left) in enumerate(group):
            for two, right in group[i + 1 :]:
                ops = one.ops & two.ops
                if not ops or one is two or (one.id, two.id) in reported:
                    continue
                witness = _meet(left, right, (*one.excluded, *two.excluded))
                if witness is not None:
                    reported.add((one.id, two.id))
                    _fail_tie(two, one, f"{op_names(ops)} of {witness}", fail_at)
    _report_exec_ties(policy, fail_at)


def _fail_tie(
    rule: FileRule | ExecRule, other: FileRule | ExecRule, what: str, fail_at: FailAt
) -> None:
    fail_at(
        rule.source,
        f"steers '{other.id}' and '{rule.id}' tie for {what}: neither names a longer folder",
        "",
        (f"the other steer is here: {other.source}",),
    )


def _meet(left: bytes, right: bytes, excluded: Sequence[bytes]) -> str | None:
    """Return, for people, a path of both patterns outside ``excluded``; None = there is none."""
    machines = [patterns.path_automaton(pattern) for pattern in (left, right, *excluded)]
    try:
        found = patterns.search(machines, lambda hit: all(hit[:2]) and not any(hit[2:]), needed=2)
    except patterns.Undecided:
        return "some path (too intricate to rule out)"
    if found is None:
        return None
    return ascii((found or b"/").replace(b"/\x01", b"${TMPDIR}").decode("utf-8", "replace"))


def _report_exec_ties(policy: Policy, fail_at: FailAt) -> None:
    steers = [rule for rule in policy.execs if rule.action == STEER]
    for i, one in enumerate(steers):
        for two in steers[i + 1 :]:
            what = _same_program(one, two)
            if what and _same_arguments(one.argv_patterns, two.argv_patterns):
                _fail_tie(two, one, what, fail_at)


def _report_clashes(policy: Policy, fail_at: FailAt) -> None:
    """Report programs that two rules want to have different bytes: they could never run."""
    pinned = [rule for rule in policy.execs if rule.digest]
    for i, one in enumerate(pinned):
        for two in pinned[i + 1 :]:
            what = _same_program(one, two) if one.digest != two.digest else ""
            if what:
                fail_at(
                    two.source,
                    f"rules '{one.id}' and '{two.id}' want {what} to have different bytes",
                    "",
                    (f"the other sha256 is here: {one.source}",),
                )


def _same_program(one: ExecRule, two: ExecRule) -> str:
    """Return, for people, a program that both speak of with equal weight, or ""."""
    for name in one.names:
        if name in two.names:
            return f"program {name.decode('utf-8', 'replace')!a}"
    # A bare name weighs as much as a pattern that names no folder.
    for names, others in ((one.names, two.patterns), (two.names, one.patterns)):
        for pattern in others:
            if names and patterns.literal_folder(pattern) == b"/":
                return f"program {names[0].decode('utf-8', 'replace')!a}"
    for left in one.patterns:
        for right in two.patterns:
            if patterns.literal_folder(left) == patterns.literal_folder(right):
                witness = _meet(left, right, ())
                if witness is not None:
                    return witness
    return ""


def _same_arguments(one: Sequence[bytes] | None, two: Sequence[bytes] | None) -> bool:
    if one is None or two is None:
        return True
    machines = [patterns.argv_automaton(one), patterns.argv_automaton(two)]
    try:
        return patterns.search(machines, all, needed=2, separator=0) is not None
    except patterns.Undecided:
        return True
