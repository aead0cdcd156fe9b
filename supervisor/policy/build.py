"""The whole cold path in one call: policy files to a cache entry."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from supervisor.errors import SupervisorError
from supervisor.model import Row
from supervisor.policy import blob, debuggers
from supervisor.policy.bpf import CLASS_ALLOW, CLASS_SIGNAL, CLASS_VERIFY, build_filter
from supervisor.policy.cache import Entry
from supervisor.policy.compile import (
    FLAG_DEBUG,
    FLAG_TMP,
    FLAG_TRASH,
    Compiled,
    Protected,
    Ways,
    compile_policy,
)
from supervisor.policy.merge import load_policy
from supervisor.policy.ways import all_ways

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from supervisor.policy.bpf import RowLike, WhenLike
    from supervisor.policy.context import Context
    from supervisor.policy.schema import Policy


@dataclass(frozen=True, slots=True)
class Built:
    """A policy in all its forms.

    Attributes:
        policy: Merged, with positions; for ``explain`` and ``show``.
        compiled: The parts of the blob.
        entry: What a run needs and the cache keeps.
    """

    policy: Policy
    compiled: Compiled
    entry: Entry


def build(  # noqa: PLR0913 - all but two by name
    names: Sequence[str],
    context: Context,
    *,
    rows: Iterable[RowLike],
    tests: Iterable[WhenLike],
    sets: Mapping[str, str] | None = None,
    mode: str = "",
    inline: Sequence[tuple[str, bytes]] = (),
    protected: Iterable[Protected] = (),
    ways: Ways = ((), ()),
) -> Built:
    """Load, merge, check and compile; the policy files themselves are protected too.

    Args:
        names: As for ``merge.load_policy``; so are context, sets, mode and inline.
        context: Values of the built-in variables.
        rows: The syscall table.
        tests: Its argument tests.
        sets: ``--set`` values by name.
        mode: "enforce", "observe" or "".
        inline: Further policy texts.
        protected: Paths of our own that no rule may open.
        ways: Names that lead to them.

    Raises:
        PolicyError: With every problem of every file.
        UsageError: A ``--set`` is unknown.
        EnvironmentFault: libseccomp or its binding is missing.
        SupervisorError: The policy is too large for the format.
    """
    policy = load_policy(names, context=context, sets=sets, mode=mode, inline=inline)
    compiled = compile_policy(
        policy,
        program=b"",
        protected=[*protected, *_files_of(policy)],
        ways=_with_files_of(policy, ways),
    )
    rows = [_asked(row, policy) for row in rows]
    tests = _asked_tests(rows, tests, policy)
    if not debuggers.bounded(rows):
        flags = compiled.flags & ~FLAG_DEBUG
        compiled = replace(compiled, flags=flags, no_debug=compiled.no_debug or debuggers.NO_FLOOR)
    told, checks = debuggers.calls(rows, tests, allowed=bool(compiled.flags & FLAG_DEBUG))
    compiled = replace(compiled, filter=build_filter(told, checks, **_kinds_asked(policy)))
    return Built(policy, compiled, _entry(policy, compiled, _encode(compiled)))


def _kinds_asked(policy: Policy) -> dict[str, bool]:
    """Return which calls that mostly stay in the kernel are asked about (see ``bpf``)."""
    return {
        "looks": policy.looks,
        "nets": policy.nets or policy.observe,
        "signals": bool(policy.signals),
    }


def _encode(compiled: Compiled) -> bytes:
    try:
        return blob.encode(compiled)
    except ValueError as error:
        raise SupervisorError(f"the policy is too large: {error}") from error


def _asked(row: RowLike, policy: Policy) -> RowLike:
    """Return the row of a run: whoever is in a block reaches into no other process.

    A working folder may lie in another tree than where it was asked for.
    """
    inward = row.name in ("process_vm_readv", "pidfd_getfd") and bool(policy.blocks)
    elsewhere = row.name == "chdir" and policy.trees
    if not (inward or elsewhere) or row.klass != CLASS_ALLOW:
        return row
    return Row(row.nr, CLASS_VERIFY, row.err, row.name, row.note)


def _asked_tests(
    rows: Sequence[RowLike], tests: Iterable[WhenLike], policy: Policy
) -> list[WhenLike]:
    """Return the argument tests of a run: an open with O_PATH may lie in another tree, too.

    What only signal rules ask is left out without them: each test costs every such call.
    """
    opens = {row.nr for row in rows if row.name in ("open", "openat") and policy.trees}
    return [
        test
        for test in tests
        if test.nr not in opens and (test.klass != CLASS_SIGNAL or policy.signals)
    ]


def _entry(policy: Policy, compiled: Compiled, data: bytes) -> Entry:
    return Entry(
        blob=data,
        name=policy.name,
        env=(policy.env.keep, policy.env.drop, policy.env.values),
        sources=tuple((s.file, s.path, s.sha256) for s in policy.sources),
        needs_tmp=bool(compiled.flags & FLAG_TMP),
        needs_trash=bool(compiled.flags & FLAG_TRASH),
        observe=policy.observe,
        limits=tuple(
            (limit.name, _or_none(limit.hard), _or_none(limit.soft), built[4])
            for limit, built in zip(policy.limits, compiled.limits, strict=True)
        ),
    )


def _or_none(value: int | None) -> int:
    return -1 if value is None else value


def _with_files_of(policy: Policy, ways: Ways) -> Ways:
    """Add the names that lead to the policy's own files."""
    there, missing = all_ways([os.fsencode(s.path) for s in policy.sources if s.path])
    return (*ways[0], *there), (*ways[1], *missing)


def _files_of(policy: Policy) -> list[Protected]:
    """Return the policy's own files, to be protected wherever they lie."""
    paths = [os.fsencode(source.path) for source in policy.sources if source.path]
    return [(os.path.realpath(path), False, False) for path in paths]
