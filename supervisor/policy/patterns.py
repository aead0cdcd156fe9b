"""Path and argument patterns as automata: what can two of them both match?

This is not the matcher (that one is in C and the only one). It answers questions
about patterns as sets: is one inside others, do two meet, and with which witness.

A path is spelled as its components, each behind a "/" ("/" itself is the empty
string), an argument list as its arguments, each behind a NUL. A pattern becomes a
non-deterministic automaton over bytes; a question is a search through the product
of the automata, made deterministic as the search goes. The search returns a
shortest witness, None when there is provably none, and raises ``Undecided`` when
it would cost too much: callers must then take the careful side.

The late-bound ``${TMPDIR}`` is the component 0x01. As the folder behind it has an
unknown depth, ``*``, ``?`` and ``[...]`` never match it here and ``**`` does: what
is reported as covered is covered wherever the folder lies. It is always the first
component.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALL_BYTES = (1 << 256) - 1
TMPDIR_MARK = 0x01
SEARCH_BUDGET = 2_000_000
"""Automaton steps that one question may take, about a second."""

_SLASH = 0x2F
_BACKSLASH, _STAR, _QUESTION, _OPEN, _CLOSE, _DASH = b"\\*?[]-"
MAX_PATTERN = 4095


class Undecided(Exception):
    """The question would cost too much to answer exactly."""


class Budget:
    """Automaton steps that are left, shared by several questions."""

    __slots__ = ("left",)

    def __init__(self, steps: int = SEARCH_BUDGET) -> None:
        """Start with ``steps``."""
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take ``steps`` away.

        Raises:
            Undecided: There were not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise Undecided


class PatternError(ValueError):
    """A pattern that means nothing; the text says why."""


Step = tuple[int, bool]
"""One step of a glob: the set of bytes (as bits) it takes, and whether it repeats."""


def parse_glob(glob: bytes, allowed: int) -> list[Step]:
    r"""Split one glob into steps.

    Args:
        glob: Bytes with ``*``, ``?``, ``[...]`` and ``\\``.
        allowed: The bytes that wildcards may match, as bits.

    Raises:
        PatternError: The glob is malformed.
    """
    steps: list[Step] = []
    i = 0
    while i < len(glob):
        byte = glob[i]
        i += 1
        if byte == _STAR:
            if steps and steps[-1] == (allowed, True):
                raise PatternError("'**' must be a whole component")
            steps.append((allowed, True))
        elif byte == _QUESTION:
            steps.append((allowed, False))
        elif byte == _OPEN:
            members, i = _parse_class(glob, i)
            steps.append((members & allowed, False))
        elif byte == _BACKSLASH:
            if i == len(glob):
                raise PatternError("ends in a lone '\\'")
            steps.append((1 << glob[i], False))
            i += 1
        else:
            steps.append((1 << byte, False))
    return steps


def _parse_class(glob: bytes, i: int) -> tuple[int, int]:
    negate = i < len(glob) and glob[i] in b"!^"
    i += negate
    members, first = 0, True
    while True:
        if i >= len(glob):
            raise PatternError("'[' without ']'; write '\\[' for the character itself")
        if glob[i] == _CLOSE and not first:
            return (ALL_BYTES & ~members if negate else members), i + 1
        first = False
        low, i = _class_byte(glob, i)
        high = low
        if i + 1 < len(glob) and glob[i] == _DASH and glob[i + 1] != _CLOSE:
            high, i = _class_byte(glob, i + 1)
            if high < low:
                raise PatternError("a range in '[...]' runs backwards")
        members |= (1 << (high + 1)) - (1 << low)


def _class_byte(glob: bytes, i: int) -> tuple[int, int]:
    if glob[i] == _BACKSLASH:
        i += 1
        if i >= len(glob):
            raise PatternError("ends in a lone '\\'")
    return glob[i], i + 1


def unescape(glob: bytes) -> bytes | None:
    """Return the one string that ``glob`` matches, or None when it has wildcards."""
    out = bytearray()
    i = 0
    while i < len(glob):
        if glob[i] in b"*?[":
            return None
        if glob[i] == _BACKSLASH:
            i += 1
        out += glob[i : i + 1]
        i += 1
    return bytes(out)


def escape(text: bytes) -> bytes:
    """Return a glob that matches exactly ``text``."""
    out = bytearray()
    for byte in text:
        if byte in b"\\*?[]":
            out.append(_BACKSLASH)
        out.append(byte)
    return bytes(out)


def split(pattern: bytes) -> list[bytes]:
    """Return the components of a path pattern.

    Raises:
        PatternError: The pattern is no valid path pattern.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"is longer than {MAX_PATTERN} bytes")
    if b"\0" in pattern:
        raise PatternError("contains a NUL byte")
    if pattern == b"/":
        return []
    if pattern[:1] == b"/":
        parts = pattern[1:].split(b"/")
    elif pattern == b"**" or pattern[:3] == b"**/" or pattern[:1] == bytes([TMPDIR_MARK]):
        parts = pattern.split(b"/")
    else:
        raise PatternError("must start with '/', '**/' or a variable")
    for part in parts:
        if not part:
            raise PatternError("has an empty component ('//' or a '/' at the end)")
        if unescape(part) in (b".", b".."):
            raise PatternError("has a '.' or '..' component; patterns match true paths")
        if part != b"**":
            parse_glob(part, ALL_BYTES)
    return parts


def literal_folder(pattern: bytes) -> bytes:
    """Return the longest leading folder of a valid pattern that has no wildcard.

    It is "/" when the pattern floats, and the path itself when the pattern is one
    literal path. A pattern below ``${TMPDIR}`` keeps its leading 0x01.
    """
    prefix = []
    for part in split(pattern):
        text = None if part == b"**" else unescape(part)
        if text is None:
            break
        prefix.append(text)
    if pattern[:1] == bytes([TMPDIR_MARK]):
        return b"/".join(prefix)
    return b"/" + b"/".join(prefix)


def is_literal(pattern: bytes) -> bool:
    """Return whether a valid pattern matches exactly one path."""
    return all(part != b"**" and unescape(part) is not None for part in split(pattern))


class Automaton:
    """A pattern as a non-deterministic automaton; sets of states are bit masks."""

    __slots__ = ("_edges", "_loops", "_memo", "accept", "classes", "start")

    def __init__(self) -> None:
        self._edges: list[list[tuple[int, int]]] = [[]]
        self._loops: list[int] = [0]  # a state that may also be taken for this one
        self._memo: dict[tuple[int, int], int] = {}
        self.start = 1
        self.accept = 0
        self.classes: set[int] = set()

    def add(self) -> int:
        """Add a state and return its index."""
        self._edges.append([])
        self._loops.append(0)
        return len(self._edges) - 1

    def edge(self, source: int, members: int, target: int) -> None:
        """Add a transition on every byte of ``members``."""
        self._edges[source].append((members, target))
        self.classes.add(members)

    def same(self, state: int, other: int) -> None:
        """Let whoever is in ``state`` be in ``other`` too."""
        self._loops[state] |= 1 << other

    def close(self, states: int) -> int:
        """Return ``states`` and all that they may be taken for."""
        pending = states
        while pending:
            low = pending & -pending
            pending ^= low
            more = self._loops[low.bit_length() - 1] & ~states
            states |= more
            pending |= more
        return states

    def step(self, states: int, byte: int) -> int:
        """Return the set of states after one more byte."""
        key = (states, byte)
        known = self._memo.get(key)
        if known is not None:
            return known
        after, bit = 0, 1 << byte
        rest = states
        while rest:
            low = rest & -rest
            rest ^= low
            for members, target in self._edges[low.bit_length() - 1]:
                if members & bit:
                    after |= 1 << target
        after = self.close(after)
        self._memo[key] = after
        return after

    def accepts(self, states: int) -> bool:
        """Return whether a string that led to ``states`` is matched."""
        return bool(states >> self.accept & 1)

    def matches(self, text: bytes) -> bool:
        """Return whether the whole of ``text`` (spelled with separators) is matched."""
        states = self.start
        for byte in text:
            states = self.step(states, byte)
            if not states:
                return False
        return self.accepts(states)


def _build(parts: Sequence[bytes], separator: int, wild: int, deep: int) -> Automaton:
    machine = Automaton()
    state = 0
    for part in parts:
        if part == b"**":
            inner = machine.add()
            machine.edge(state, 1 << separator, inner)
            machine.edge(inner, deep, inner)
            machine.same(inner, state)
            continue
        after = machine.add()
        machine.edge(state, 1 << separator, after)
        state = after
        for members, repeats in parse_glob(part, wild):
            after = machine.add()
            if repeats:
                machine.same(state, after)
                machine.edge(after, members, after)
            else:
                machine.edge(state, members, after)
            state = after
    machine.accept = state
    machine.start = machine.close(machine.start)
    return machine


def path_automaton(pattern: bytes) -> Automaton:
    """Return the automaton of a path pattern.

    Raises:
        PatternError: The pattern is no valid path pattern.
    """
    deep = ALL_BYTES & ~(1 << _SLASH) & ~1
    return _build(split(pattern), _SLASH, deep & ~(1 << TMPDIR_MARK), deep)


def argv_automaton(patterns: Sequence[bytes]) -> Automaton:
    """Return the automaton of a list of argument patterns.

    Raises:
        PatternError: One of them is malformed.
    """
    every = ALL_BYTES & ~1
    return _build(patterns, 0, every, every)


def spell(path: bytes) -> bytes:
    """Return an absolute path as path automata read it."""
    return b"" if path == b"/" else path


def _representatives(machines: Sequence[Automaton]) -> list[int]:
    """Return one byte for every class of bytes that no automaton tells apart."""
    blocks = [ALL_BYTES]
    for members in set().union(*(machine.classes for machine in machines)):
        halves = [(block & members, block & ~members) for block in blocks]
        blocks = [piece for both in halves for piece in both if piece]
    letters = (1 << 123) - (1 << 97)
    out = []
    for block in blocks:
        readable = block & letters or block
        out.append((readable & -readable).bit_length() - 1)
    return sorted(out)


def search(
    machines: Sequence[Automaton],
    wanted: Callable[[Sequence[bool]], bool],
    *,
    needed: int = 1,
    separator: int = _SLASH,
    budget: Budget | None = None,
) -> bytes | None:
    """Find a shortest string for which the automata give a wanted set of answers.

    Args:
        machines: The automata.
        wanted: Called with one bool per automaton.
        needed: The first so many must all match for ``wanted`` to be true, which
            cuts the search short where one of them is lost.
        separator: The byte between components; no path has an empty component.
        budget: Steps that may be taken; None gives this question ``SEARCH_BUDGET``.

    Returns:
        The witness in the automata's spelling, or None when there is none.

    Raises:
        Undecided: The budget is spent.
    """
    budget = budget or Budget()
    alphabet = _representatives(machines)
    price = len(machines) * len(alphabet)
    start: _Node = (tuple(machine.start for machine in machines), _BEGIN)
    parents: dict[_Node, tuple[_Node, int] | None] = {start: None}
    queue = [start]
    for node in queue:  # grows while it is read: a breadth-first search
        states, place = node
        whole = place not in (_FIRST, _OPENED) or separator != _SLASH
        if whole and wanted([m.accepts(s) for m, s in zip(machines, states, strict=True)]):
            return _trace(parents, node)
        budget.spend(price)
        for byte in alphabet:
            then = _place_after(place, byte, separator)
            if then is None:
                continue
            after = _step(machines, states, byte)
            if (after, then) not in parents and all(after[:needed]):
                parents[after, then] = (node, byte)
                queue.append((after, then))
    return None


_BEGIN, _FIRST, _OPENED, _INSIDE = range(4)
_Node = tuple[tuple[int, ...], int]


def _step(machines: Sequence[Automaton], states: Sequence[int], byte: int) -> tuple[int, ...]:
    return tuple(m.step(s, byte) for m, s in zip(machines, states, strict=True))


def _place_after(place: int, byte: int, separator: int) -> int | None:
    """Return where in a path a further byte leads, or None where it cannot stand."""
    is_path = separator == _SLASH
    if byte == separator:
        if is_path and place in (_FIRST, _OPENED):
            return None
        return _FIRST if place == _BEGIN else _OPENED
    if place == _BEGIN or (is_path and byte == TMPDIR_MARK and place != _FIRST):
        return None
    return _INSIDE


def _trace(parents: dict[_Node, tuple[_Node, int] | None], node: _Node) -> bytes:
    out = bytearray()
    while (step := parents[node]) is not None:
        node, byte = step
        out.append(byte)
    return bytes(reversed(out))
