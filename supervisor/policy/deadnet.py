"""Network rules that can never win (see ``deadrules``).

Each target is held against single targets of stricter rules: a network lies within a
larger one and its ports within those, a pattern within another. Several that only
together cover one are not looked for.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from supervisor.policy import patterns
from supervisor.policy.schema import ALLOW, DENY, NET_ABSTRACT, NET_ADDRESS, NET_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from supervisor.policy.addresses import Entry
    from supervisor.policy.patterns import Automaton
    from supervisor.policy.schema import NetRule

_Question = tuple["NetRule", "Callable[[], bool]"]
"""A rule that could cover a target, and whether it does, asked last as it may cost."""
_At = tuple[int, int, int]
"""Length of the address in bytes, of its prefix in bits, and that prefix as a number."""


class Index:
    """Finds the rules that could cover a target."""

    def __init__(self, rules: Sequence[NetRule]) -> None:
        self._networks: dict[_At, list[tuple[NetRule, Entry]]] = defaultdict(list)
        self._patterns: dict[int, list[tuple[NetRule, bytes]]] = defaultdict(list)
        self._machines: dict[tuple[int, bytes], Automaton] = {}
        self._budget = patterns.Budget()  # for all questions together
        for rule in rules:
            for entry in rule.entries if rule.action == DENY else ():
                if entry[0] == NET_ADDRESS:
                    self._networks[_at(entry, entry[2])].append((rule, entry))
                else:
                    self._patterns[entry[0]].append((rule, entry[1]))

    def covers_of(self, rule: NetRule, reach: frozenset[str]) -> list[NetRule]:
        """Return the rules that cover ``rule``, or none.

        Args:
            rule: One of the rules.
            reach: The files whose stricter rules count.
        """
        found: dict[str, NetRule] = {}
        for entry in rule.entries if rule.action == ALLOW else ():
            for bit in NET_BITS.values():
                if not rule.ops & bit:
                    continue
                cover = self._cover_of(entry, bit, reach)
                if cover is None:
                    return []
                found[cover.id] = cover
        return list(found.values())

    def _cover_of(self, entry: Entry, bit: int, reach: frozenset[str]) -> NetRule | None:
        holding = self._holding if entry[0] == NET_ADDRESS else self._matching
        for rule, holds in holding(entry):
            if rule.ops & bit and rule.source.file in reach and holds():
                return rule
        return None

    def _holding(self, entry: Entry) -> Iterator[_Question]:
        for length in range(entry[2] + 1):
            for rule, other in self._networks.get(_at(entry, length), ()):
                yield rule, partial(_has_ports, other, entry)

    def _matching(self, entry: Entry) -> Iterator[_Question]:
        kind, pattern = entry[:2]
        for rule, other in self._patterns[kind]:
            yield rule, partial(self._has_pattern, kind, other, pattern)

    def _has_pattern(self, kind: int, outer: bytes, inner: bytes) -> bool:
        if outer == inner:
            return True
        if self._budget.left < 0:
            return False
        machines = [self._machine(kind, one) for one in (inner, outer)]
        try:
            found = patterns.search(
                machines,
                lambda hit: hit[0] and not hit[1],
                separator=0 if kind == NET_ABSTRACT else ord("/"),
                budget=self._budget,
            )
        except patterns.Undecided:
            return False
        return found is None

    def _machine(self, kind: int, pattern: bytes) -> Automaton:
        found = self._machines.get((kind, pattern))
        if found is None:
            if kind == NET_ABSTRACT:
                found = patterns.argv_automaton([pattern])
            else:
                found = patterns.path_automaton(pattern)
            self._machines[kind, pattern] = found
        return found


def _has_ports(outer: Entry, inner: Entry) -> bool:
    return outer[3] <= inner[3] and inner[4] <= outer[4]


def _at(entry: Entry, length: int) -> _At:
    raw = entry[1]
    return len(raw), length, int.from_bytes(raw, "big") >> (8 * len(raw) - length)
