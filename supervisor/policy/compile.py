"""A merged policy to the tuples of the blob, plus what is built in.

The order of the fields is that of the blob (see ``blob``), so that the two are
compared by eye.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from supervisor.policy import debuggers, limits, patterns, schema
from supervisor.policy.variables import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.policy.schema import (
        Block,
        EnvRule,
        ExecRule,
        FileRule,
        NetRule,
        Policy,
        Ruled,
        SignalRule,
    )

FLAG_OBSERVE = 1
FLAG_TMP = 2
FLAG_TRASH = 4
FLAG_DEBUG = 8
FLAG_NET = 16
KIND_FILES, KIND_EXEC, KIND_NETWORK, KIND_SIGNAL = range(4)
MATCH, EXCEPT = range(2)
FLOOR_EXEC = 1
_EACCES = 13
_SELF = "supervise.self"
_BUILT_IN = "built-in"
_SELF_SAY = "supervise keeps its own code, policies and records out of reach"
_ROOT_SAY = "the folder itself stays where it is; what lies in it may change"
_MEMORY = (b"/proc/[0-9]*/mem", b"/proc/[0-9]*/task/[0-9]*/mem")
_MEMORY_SAY = "a process in a block does not reach into others, which may be outside of it"
_BELOW = b"/**"

Protected = tuple[bytes, bool, bool]
"""A path to protect: (absolute true path, is it a folder, hide it altogether)."""
Ways = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Names that lead to what is protected (see ``ways``): those there, those missing."""
Net = tuple[int, int, bytes, int, int, int]
"""(rule, enum sv_net_kind, bytes, prefix length, lowest and highest port)."""
CompiledLimit = tuple[int, int | None, int | None, int, int]
"""(enum sv_limit_kind, hard, soft, whether it ends the run, the rule it is told by)."""
Signal = tuple[int, int, int, int]
"""(rule, mask of signals, mask of enum sv_who, what a steer sends)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it stands in the blob."""

    id: str
    kind: int
    action: int
    ops: int
    err: int
    say: str
    src: str
    dest_kind: int
    dest: bytes | tuple[bytes, ...] | None
    digest: bytes | None = None
    hide: bool = False
    block: int = 0


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """One block as it stands in the blob.

    Attributes:
        default: The rule that denies what no other rule of it speaks of; None = allowed.
        paths: As in ``Compiled``, so are names, argvs and network; all of them its own.
        start_paths: Patterns of the programs that it is for.
        start_names: Their bare names.
    """

    default: int | None
    paths: tuple[tuple[int, int, bytes], ...]
    names: tuple[tuple[int, bytes], ...]
    argvs: tuple[tuple[int, int, tuple[bytes, ...] | None], ...]
    start_paths: tuple[bytes, ...]
    start_names: tuple[bytes, ...]
    network: tuple[Net, ...] = ()


@dataclass(frozen=True, slots=True)
class Compiled:
    """All parts of the blob, in its order.

    Attributes:
        flags: Bits: ``FLAG_OBSERVE``, ``FLAG_TMP``, ``FLAG_TRASH``, ``FLAG_DEBUG``, ``FLAG_NET``.
        record: enum sv_record.
        filter: The seccomp program, 8 bytes an instruction.
        rules: The rules; the other parts refer to them by index.
        paths: (rule, ``MATCH`` or ``EXCEPT``, pattern).
        names: (rule, bare program name).
        argvs: (rule, append the caller's arguments, patterns or None for any).
        floor: (path, rights) that the kernel itself may grant.
        no_debug: What keeps debuggers out of the run, or "".
        env: (names to keep, names to drop, names and values by turns), for steered execs.
        blocks: Rules for some programs only; a rule's ``block`` is its place here from 1.
        network: What the network rules speak of.
        limits: How much a run may use.
        signals: What the signal rules speak of.
    """

    flags: int
    record: int
    filter: bytes
    rules: tuple[Rule, ...]
    paths: tuple[tuple[int, int, bytes], ...]
    names: tuple[tuple[int, bytes], ...]
    argvs: tuple[tuple[int, int, tuple[bytes, ...] | None], ...]
    floor: tuple[tuple[bytes, int], ...]
    no_debug: str
    env: tuple[tuple[bytes, ...], ...] = ((), (), ())
    blocks: tuple[CompiledBlock, ...] = ()
    network: tuple[Net, ...] = ()
    limits: tuple[CompiledLimit, ...] = ()
    signals: tuple[Signal, ...] = ()


def compile_policy(
    policy: Policy,
    *,
    program: bytes,
    protected: Sequence[Protected] = (),
    ways: Ways = ((), ()),
) -> Compiled:
    """Turn a policy into the parts of the blob.

    Args:
        policy: A merged policy.
        program: The seccomp program from ``bpf.build_filter``.
        protected: Paths of our own that no rule may open: code, policies, records.
        ways: Names that lead to them, there and missing.
    """
    parts = _Parts()
    parts.protect(protected)
    there, missing = (tuple(map(patterns.escape, names)) for names in ways)
    parts.keep_names("root", sorted({*_roots(policy), *there}), schema.DELETE | schema.RENAME)
    parts.keep_names("way", missing, schema.CREATE | schema.DELETE | schema.RENAME)
    parts.rules_of(policy)
    blocks = tuple(_block(parts, block, i) for i, block in enumerate(policy.blocks, 1))
    bounds = parts.limits(policy)
    floor = _floor(policy)
    late = _late(policy, floor, blocks)
    flags = _flags(policy, tmp=parts.uses_tmp() or any(text[:1] == MARK for text in late))
    no_debug = debuggers.obstacle(policy, [path for path, _ in floor], parts.barred())
    if not no_debug:
        flags |= FLAG_DEBUG
    return Compiled(
        flags=flags,
        record=policy.record,
        filter=program,
        rules=tuple(parts.rules),
        paths=tuple(parts.paths),
        names=tuple(parts.names),
        argvs=tuple(parts.argvs),
        floor=floor,
        no_debug=no_debug,
        env=_env(policy.env, private=bool(flags & FLAG_TMP)),
        blocks=blocks,
        network=tuple(parts.network),
        limits=bounds,
        signals=tuple(parts.signals),
    )


def _flags(policy: Policy, *, tmp: bool) -> int:
    """Return the flags but that of debuggers; ``tmp``: a private folder is used."""
    flags = FLAG_TMP if tmp else 0
    if policy.observe:
        flags |= FLAG_OBSERVE
    if any(rule.dest_kind == schema.DEST_TRASH for rule in policy.files):
        flags |= FLAG_TRASH
    if policy.nets:
        flags |= FLAG_NET
    return flags


def _late(
    policy: Policy, floor: Sequence[tuple[bytes, int]], blocks: Sequence[CompiledBlock]
) -> list[bytes]:
    """Return texts, besides those of rules, that may start with the private folder."""
    late = [path for path, _ in floor] + [value for _, value in policy.env.values]
    for block in blocks:
        late += [*(path for _, _, path in block.paths), *block.start_paths]
        late += [net[2] for net in block.network if net[1] == schema.NET_PATH]
    return late


def _block(parts: _Parts, block: Block, number: int) -> CompiledBlock:
    """Return one block; its rules are put behind those of the policy."""
    inner = _Parts()
    inner.rules = parts.rules  # one list, and so one index, for all
    first = len(parts.rules)
    default = None
    if not block.open:
        default = first
        say, src = f"in block '{block.id}' nothing allows it", _src(block)
        parts.rules.append(
            Rule(
                block.id,
                KIND_FILES,
                schema.DENY,
                schema.ALL_OPS,
                _EACCES,
                say,
                src,
                0,
                None,
            )
        )
    inner.keep_out()
    for rule in block.files:
        inner.file_rule(rule)
    for net in block.network:
        inner.net_rule(net)
    for entry in block.execs:
        inner.exec_rule(entry)
    parts.rules[first:] = [replace(rule, block=number, hide=False) for rule in parts.rules[first:]]
    return CompiledBlock(
        default,
        tuple(inner.paths),
        tuple(inner.names),
        tuple(inner.argvs),
        block.patterns,
        block.names,
        tuple(inner.network),
    )


def _env(env: EnvRule, *, private: bool) -> tuple[tuple[bytes, ...], ...]:
    """Return what a steered program gets, the same as the command (see ``environ``)."""
    values = {name.encode(): value for name, value in env.values}
    if not (env.keep or env.drop or values):
        return ((), (), ())
    if private:
        values[b"TMPDIR"] = MARK
    keep, drop = (tuple(name.encode() for name in names) for names in (env.keep, env.drop))
    return (keep, drop, tuple(part for pair in values.items() for part in pair))


class _Parts:
    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.paths: list[tuple[int, int, bytes]] = []
        self.names: list[tuple[int, bytes]] = []
        self.argvs: list[tuple[int, int, tuple[bytes, ...] | None]] = []
        self.network: list[Net] = []
        self.signals: list[Signal] = []

    def protect(self, protected: Sequence[Protected]) -> None:
        kinds = (("keep", False, schema.CHANGES), ("hide", True, schema.ALL_OPS))
        for suffix, hidden, ops in kinds:
            chosen = sorted({(path, is_dir) for path, is_dir, hide in protected if hide == hidden})
            if not chosen:
                continue
            index = len(self.rules)
            name = f"{_SELF}.{suffix}"
            self.rules.append(
                Rule(name, KIND_FILES, schema.DENY, ops, _EACCES, _SELF_SAY, _BUILT_IN, 0, None)
            )
            for path, is_dir in chosen:
                literal = patterns.escape(path.rstrip(b"/"))
                pattern = literal + b"/**" if is_dir else literal or b"/"
                self.paths.append((index, MATCH, pattern))

    def keep_names(self, suffix: str, names: Sequence[bytes], ops: int) -> None:
        """Deny changing what the names mean that the next start goes by."""
        if not names:
            return
        index = len(self.rules)
        self.rules.append(
            Rule(
                f"{_SELF}.{suffix}",
                KIND_FILES,
                schema.DENY,
                ops,
                _EACCES,
                _ROOT_SAY,
                _BUILT_IN,
                0,
                None,
            )
        )
        self.paths.extend((index, MATCH, pattern) for pattern in names)

    def keep_out(self) -> None:
        """Deny other processes' memory: through it a block could be left."""
        index = len(self.rules)
        self.rules.append(
            Rule(
                f"{schema.RESERVED_ID}blocks.memory",
                KIND_FILES,
                schema.DENY,
                schema.ALL_OPS,
                _EACCES,
                _MEMORY_SAY,
                "built-in",
                0,
                None,
            )
        )
        self.paths.extend((index, MATCH, pattern) for pattern in _MEMORY)

    def rules_of(self, policy: Policy) -> None:
        for rule in policy.files:
            self.file_rule(rule)
        for net in policy.network:
            self.net_rule(net)
        for entry in policy.execs:
            self.exec_rule(entry)
        for signal in policy.signals:
            self.signal_rule(signal)

    def file_rule(self, rule: FileRule) -> None:
        index = len(self.rules)
        self.rules.append(
            Rule(
                rule.id,
                KIND_FILES,
                rule.action,
                rule.ops,
                rule.err,
                rule.say,
                _src(rule),
                rule.dest_kind,
                rule.dest or None,
                hide=rule.hide,
            )
        )
        self.paths.extend((index, MATCH, pattern) for pattern in rule.patterns)
        self.paths.extend((index, EXCEPT, pattern) for pattern in rule.excluded)

    def net_rule(self, rule: NetRule) -> None:
        index = len(self.rules)
        self.rules.append(
            Rule(
                rule.id,
                KIND_NETWORK,
                rule.action,
                rule.ops,
                rule.err,
                rule.say,
                _src(rule),
                schema.DEST_NONE,
                None,
            )
        )
        self.network.extend((index, *entry) for entry in rule.entries)

    def exec_rule(self, rule: ExecRule) -> None:
        index = len(self.rules)
        kind = schema.DEST_ARGV if rule.dest else schema.DEST_NONE
        self.rules.append(
            Rule(
                rule.id,
                KIND_EXEC,
                rule.action,
                schema.EXEC,
                rule.err,
                rule.say,
                _src(rule),
                kind,
                rule.dest or None,
                rule.digest or None,
            )
        )
        self.paths.extend((index, MATCH, pattern) for pattern in rule.patterns)
        self.names.extend((index, name) for name in rule.names)
        self.argvs.append((index, int(rule.append), rule.argv_patterns))

    def limits(self, policy: Policy) -> tuple[CompiledLimit, ...]:
        """Add a rule for each limit, which matches nothing: refusals are told by it."""
        found = []
        for limit in policy.limits:
            kind, index = limits.NAMES.index(limit.name), len(self.rules)
            found.append((kind, limit.hard, limit.soft, int(limit.halt), index))
            self.rules.append(
                Rule(
                    limit.id,
                    KIND_FILES,
                    schema.DENY,
                    schema.ALL_OPS,
                    _EACCES,
                    limit.say,
                    _src(limit),
                    schema.DEST_NONE,
                    None,
                )
            )
        return tuple(found)

    def signal_rule(self, rule: SignalRule) -> None:
        self.signals.append((len(self.rules), rule.signals, rule.who, rule.to))
        self.rules.append(
            Rule(
                rule.id,
                KIND_SIGNAL,
                rule.action,
                schema.SIGNAL,
                rule.err,
                rule.say,
                _src(rule),
                schema.DEST_NONE,
                None,
            )
        )

    def barred(self) -> list[bytes]:
        """Return the built-in patterns from which nothing may be started."""
        return [
            pattern
            for index, _, pattern in self.paths
            if self.rules[index].src == _BUILT_IN and self.rules[index].ops & schema.EXEC
        ]

    def uses_tmp(self) -> bool:
        if any(pattern[:1] == MARK for _, _, pattern in self.paths):
            return True
        if any(net[1] == schema.NET_PATH and net[2][:1] == MARK for net in self.network):
            return True
        for rule in self.rules:
            words = rule.dest if isinstance(rule.dest, tuple) else (rule.dest or b"",)
            if any(word[:1] == MARK for word in words):
                return True
        return False


def _src(rule: Ruled | limits.Limit) -> str:
    """Return "file:line", the front of the name cut off where it is too long."""
    line = f":{rule.source.line}"
    name = rule.source.file.encode("utf-8", "backslashreplace")
    return name[-(schema.MAX_SRC - len(line)) :].decode("utf-8", "ignore") + line


def _roots(policy: Policy) -> list[bytes]:
    """Return patterns of the folders that must stay what they are.

    ``/ws/**`` matches ``/ws`` too; a target that put a link there would give the next
    run, started by the same name, whatever the link leads to. A folder inside another
    free one is no such name. The same goes for where calls are steered to.
    """
    free = {
        pattern[: -len(_BELOW)]
        for rule in policy.files
        if rule.action == schema.ALLOW and rule.ops & (schema.DELETE | schema.RENAME)
        for pattern in rule.patterns
        if pattern.endswith(_BELOW) and not pattern.startswith(b"**")
    } - {b""}
    folders = {patterns.literal_folder(root + _BELOW): root for root in free}
    roots = {root for folder, root in folders.items() if not _inside_any(folder, set(folders))}
    roots |= {patterns.escape(rule.dest) for rule in policy.files if rule.dest_kind and rule.dest}
    return sorted(roots)


def _floor(policy: Policy) -> tuple[tuple[bytes, int], ...]:
    """Return the folders whose programs the kernel may run and read unasked.

    The floor must hold every path that a rule lets run, or the kernel would refuse
    it; what lies in the floor but is denied is refused by us before.
    """
    wanted: set[bytes] = set()
    for rule in policy.files:
        if rule.action == schema.ALLOW and rule.ops & schema.EXEC:
            wanted.update(map(patterns.literal_folder, rule.patterns))
    for entry in policy.execs:
        if entry.action == schema.ALLOW:
            wanted.update(map(patterns.literal_folder, entry.patterns))
            if entry.names:
                wanted.add(b"/")  # a bare name may stand anywhere
        elif entry.dest:
            wanted.add(entry.dest[0])
    kept = [path for path in sorted(wanted) if not _inside_any(path, wanted)]
    return tuple((path, FLOOR_EXEC) for path in kept)


def _inside_any(path: bytes, folders: set[bytes]) -> bool:
    parent = os.path.dirname(path)
    while path not in (b"/", b""):
        if parent in folders:
            return True
        path, parent = parent, os.path.dirname(parent)
    return False
