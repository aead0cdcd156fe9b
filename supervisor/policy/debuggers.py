"""May programs of a run debug each other?

A traced task has one tracer, so supervise cannot stop an exec that happens under a
debugger to look at it: the kernel starts whatever it finds. That is sound only where
the kernel's own floor (the Landlock domain) holds exactly the programs that rules let
run: then there is nothing to look for. Here it is shown, or denied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.model import Row
from supervisor.policy import patterns, schema
from supervisor.policy.bpf import CLASS_ALLOW, CLASS_VERIFY
from supervisor.policy.variables import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from supervisor.policy.bpf import RowLike, WhenLike
    from supervisor.policy.schema import Policy

CALL = "ptrace"
NO_FLOOR = "a run without Landlock"
_BELOW = b"/**"
_ALL = "rules allow only some of the programs in "


def obstacle(policy: Policy, floor: Iterable[bytes], protected: Iterable[bytes]) -> str:
    """Say what keeps debuggers out of a run, or "" where they may work.

    Args:
        policy: A merged policy.
        floor: Folders whose programs the kernel may run unasked, as in the blob.
        protected: Patterns that no program may be started from whatever rules say.
    """
    if policy.observe:
        return ""
    if policy.blocks:  # it is at the exec stop that a program is put into its blocks
        return f"block {policy.blocks[0].id} ({policy.blocks[0].source})"
    for entry in policy.execs:
        bare = entry.action == schema.ALLOW and not entry.names and not entry.digest
        if not bare or entry.argv_patterns is not None:
            return f"rule {entry.id} ({entry.source})"
    whole = set(_whole(policy))
    for folder in floor:
        if folder not in whole:
            return _ALL + folder.decode("utf-8", "replace")
        for pattern, creates, name in _holes(policy, protected):
            if _meets(pattern, folder, creates=creates):
                return name
    return ""


def bounded(rows: Iterable[RowLike]) -> bool:
    """Return whether the kernel bounds debuggers and programs: not in a run without Landlock.

    Somebody outside may hold the tree under a debugger all the same.
    """
    return all(row.klass == CLASS_ALLOW for row in rows if row.name == CALL)


def calls(
    rows: Iterable[RowLike], tests: Iterable[WhenLike], *, allowed: bool
) -> tuple[list[RowLike], list[WhenLike]]:
    """Return the table for the filter: without debuggers every ptrace is told, and refused."""
    rows, tests = list(rows), list(tests)
    if allowed and bounded(rows):
        return rows, tests
    ours = {row.nr for row in rows if row.name == CALL}
    held = {row.nr for row in rows if row.nr in ours and row.klass == CLASS_ALLOW}
    told = [Row(r.nr, CLASS_VERIFY, r.err, r.name, r.note) if r.nr in held else r for r in rows]
    return told, [test for test in tests if test.nr not in ours]


def _whole(policy: Policy) -> Iterator[bytes]:
    """Yield the folders in which a rule lets every program run."""
    allowed = [r for r in policy.files if r.action == schema.ALLOW and r.ops & schema.EXEC]
    for pattern in (*_patterns(allowed), *_patterns(policy.execs)):
        folder = patterns.literal_folder(pattern)
        if pattern == patterns.escape(folder.rstrip(b"/")) + _BELOW:
            yield folder


def _patterns(rules: Sequence[schema.FileRule] | Sequence[schema.ExecRule]) -> Iterator[bytes]:
    for rule in rules:
        yield from rule.patterns


def _holes(policy: Policy, protected: Iterable[bytes]) -> Iterator[tuple[bytes, bool, str]]:
    """Yield what rules keep from running: pattern, may it be created, who says so."""
    steered = any(rule.dest[:1] == MARK for rule in policy.files)
    named = schema.CREATE | schema.RENAME
    for rule in policy.files:
        if not rule.ops & schema.EXEC:
            continue
        held = rule.excluded if rule.action == schema.ALLOW else rule.patterns
        denied = rule.action == schema.DENY and rule.ops & named == named and not steered
        for pattern in held:
            yield pattern, not denied, f"rule {rule.id} ({rule.source})"
    for pattern in protected:
        yield pattern, False, "supervise's own folders lie where programs may run"


def _meets(pattern: bytes, folder: bytes, *, creates: bool) -> bool:
    """Return whether the pattern may match a path in the folder."""
    if (folder[:1] == MARK) != (pattern[:1] == MARK):
        # The private folder starts empty, wherever it lies: only what may be made there runs.
        # It may lie in the folder, and the pattern in it; its own name is nobody's guess.
        return creates and (pattern[:1] == MARK or not patterns.is_literal(pattern))
    start = patterns.literal_folder(pattern)
    if _inside(start, folder):
        return True
    if patterns.is_literal(pattern) or not _inside(folder, start):
        return False
    below = patterns.escape(folder.rstrip(b"/")) + _BELOW
    machines = [patterns.path_automaton(one) for one in (pattern, below)]
    try:
        return patterns.search(machines, all, needed=2) is not None
    except patterns.Undecided:
        return True


def _inside(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")
