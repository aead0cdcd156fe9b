"""Files to one policy: extends, ids, variables, targets.

Rules only add up, so the order of files decides nothing about access. For single
values a file beats what it extends, and what the user gave beats all files. A pack
cannot switch enforcement off: ``mode`` counts only in files that the user named.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from supervisor.errors import PolicyError, UsageError
from supervisor.policy import deadrules, schema
from supervisor.policy.check import check
from supervisor.policy.limits import smallest
from supervisor.policy.load import Document, load_bytes, load_file
from supervisor.policy.packs import is_file_name, list_packs, pack_path
from supervisor.policy.problems import Problem, quote, suggest
from supervisor.policy.schema import (
    Block,
    EnvRule,
    ExecRule,
    FileRule,
    NetRule,
    Policy,
    PolicyFile,
    Ruled,
    SignalRule,
    SourceFile,
    Text,
)
from supervisor.policy.targets import Targets
from supervisor.policy.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from supervisor.policy.context import Context
    from supervisor.policy.limits import Limit

_AnyRule = TypeVar("_AnyRule", FileRule, NetRule, ExecRule, SignalRule, Block)

MAX_EXTENDS = 8
"""Deepest chain of ``extends``."""


def load_policy(
    names: Sequence[str],
    *,
    context: Context,
    sets: Mapping[str, str] | None = None,
    mode: str = "",
    inline: Sequence[tuple[str, bytes]] = (),
) -> Policy:
    """Load, check and merge policies.

    Args:
        names: Packs or files, as the user named them; all of them together apply.
        context: Values of the built-in variables.
        sets: ``--set`` values by name; they beat the files.
        mode: "enforce" or "observe" to beat the files, or "".
        inline: Further policy texts as (name for messages, bytes).

    Raises:
        PolicyError: With every problem of every file.
        UsageError: A ``--set`` names a variable that nothing knows.
    """
    merger = _Merger()
    for name in names:
        merger.root(name, context)
    for name, data in inline:
        merger.inline(name, data)
    merger.stop_on_problems()
    return merger.merge(context, dict(sets or {}), mode)


@dataclass(frozen=True, slots=True)
class _Part:
    """One checked file and the shown names of all files that it extends, itself included."""

    document: Document
    checked: PolicyFile
    is_root: bool
    reach: frozenset[str]


class _Merger:
    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.parts: dict[str, _Part | None] = {}
        self.documents: dict[str, Document] = {}

    def stop_on_problems(self) -> None:
        if self.problems:
            order = {file: i for i, file in enumerate(dict.fromkeys(p.file for p in self.problems))}
            raise PolicyError(
                sorted(
                    dict.fromkeys(self.problems), key=lambda p: (order[p.file], p.line, p.column)
                )
            )

    def fail(self, text: Text, message: str, suggestion: str = "") -> None:
        self.fail_at(text.source, message, suggestion)

    def fail_at(
        self, at: schema.Source, message: str, suggestion: str = "", notes: Iterable[str] = ()
    ) -> None:
        document = self.documents[at.file]
        self.problems.append(
            document.problem(at.line, at.column, message, suggestion=suggestion, notes=tuple(notes))
        )

    # -- reading -------------------------------------------------------------

    def root(self, name: str, context: Context) -> None:
        if is_file_name(name):
            self._file(os.path.join(os.fsdecode(context.cwd), name), name, (), is_root=True)
        elif (path := pack_path(name)) is not None:
            self._file(path, f"pack:{name}", (), is_root=True)
        else:
            self.problems.append(no_such_policy(name))

    def inline(self, name: str, data: bytes) -> None:
        document = load_bytes(data, name, self.problems)
        if document is not None:
            self._part(name, document, (), is_root=True)

    def _file(self, path: str, file: str, chain: tuple[str, ...], *, is_root: bool) -> str:
        key = os.path.realpath(path)
        part = self.parts.get(key)
        if key not in self.parts:
            self.parts[key] = None
            document = load_file(os.path.abspath(path), file, self.problems)
            if document is not None:
                self._part(key, document, chain, is_root=is_root)
        elif part is not None and is_root and not part.is_root:
            self.parts[key] = replace(part, is_root=True)
        return key

    def _part(self, key: str, document: Document, chain: tuple[str, ...], *, is_root: bool) -> None:
        self.documents[document.file] = document
        checked = check(document, self.problems)
        reach = {document.file}
        for text in checked.extends:
            reach |= self._extend(text, document, (*chain, key))
        # Entered anew, so that a file stands behind all that it extends.
        self.parts.pop(key, None)
        self.parts[key] = _Part(document, checked, is_root, frozenset(reach))

    def _extend(self, text: Text, document: Document, chain: tuple[str, ...]) -> frozenset[str]:
        name = text.value
        if is_file_name(name):
            folder = os.path.dirname(document.path)
            path: str | None = os.path.join(folder, name)
            shown = os.path.normpath(os.path.join(os.path.dirname(document.file), name))
        else:
            path, shown = pack_path(name), f"pack:{name}"
        if path is None:
            self.fail(text, f"there is no pack {quote(name)}", _near_pack(name))
            return frozenset()
        key = os.path.realpath(path)
        if key in chain:
            self.fail(text, f"{quote(name)} extends itself in a circle")
            return frozenset()
        if len(chain) > MAX_EXTENDS:
            self.fail(text, f"extends is nested deeper than {MAX_EXTENDS} levels")
            return frozenset()
        known = len(self.problems)
        self._file(path, shown, chain, is_root=False)
        part = self.parts.get(key)
        if part is None and len(self.problems) > known and self.problems[known].line == 0:
            self.fail(text, f"{quote(name)} cannot be extended")
        return part.reach if part is not None else frozenset()

    # -- merging -------------------------------------------------------------

    def merge(self, context: Context, sets: dict[str, str], mode: str) -> Policy:
        parts = [part for part in self.parts.values() if part is not None]
        declared = {name: text for part in parts for name, text in part.checked.vars}
        variables = Variables(context, declared, sets, self.fail)
        targets = Targets(variables, self.fail, self.fail_at)
        rules = self._named(parts)
        files = [targets.file_rule(rule) for rule in rules if isinstance(rule, FileRule)]
        network = [targets.net_rule(rule) for rule in rules if isinstance(rule, NetRule)]
        execs = [targets.exec_rule(rule) for rule in rules if isinstance(rule, ExecRule)]
        blocks = [targets.block(rule) for rule in rules if isinstance(rule, Block)]
        env = self._env(parts, variables)
        for text in declared.values():
            variables.expand(text, glob=False)
        _check_sets(sets, {*declared, *variables.asked})
        self.stop_on_problems()
        policy = Policy(
            name=self._name(parts),
            observe=_observe(parts, mode),
            record=self._record(parts),
            files=tuple(filter(None, files)),
            execs=tuple(filter(None, execs)),
            env=env,
            vars=tuple(sorted(variables.used.items())),
            used_env=tuple(sorted(variables.used_env)),
            sources=tuple(_source(part.document) for part in parts),
            blocks=tuple(filter(None, blocks)),
            network=tuple(filter(None, network)),
            limits=_limits(parts),
            signals=_signals(rules),
        )
        self._look_for_dead_rules(policy, parts)
        self.stop_on_problems()
        return policy

    def _look_for_dead_rules(self, policy: Policy, parts: Sequence[_Part]) -> None:
        reach = {part.document.file: part.reach for part in parts}
        deadrules.report(policy, reach, self.fail_at)
        for block in policy.blocks:
            inner = replace(
                policy,
                files=block.files,
                network=block.network,
                execs=block.execs,
                blocks=(),
                signals=(),
            )
            deadrules.report(inner, reach, self.fail_at)

    def _named(self, parts: Sequence[_Part]) -> list[Ruled]:
        """Return all rules and blocks, ids made unique where the file gave none."""
        seen: dict[str, Ruled] = {}
        found: list[Ruled] = []
        for part in parts:
            stem = os.path.basename(part.document.file).partition(".")[0].lower()
            for rule in part.checked.files:
                found += self._own_id(rule, stem, seen)
            for net in part.checked.network:
                found += self._own_id(net, stem, seen)
            for entry in part.checked.execs:
                found += self._own_id(entry, stem, seen)
            for signal in part.checked.signals:
                found += self._own_id(signal, stem, seen)
            for block in part.checked.blocks:
                found += self._own_ids(block, stem, seen)
        blocks = [rule for rule in found if isinstance(rule, Block)]
        for block in blocks[schema.MAX_BLOCKS :]:
            self.fail_at(block.source, f"there are more than {schema.MAX_BLOCKS} blocks")
        return found

    def _own_ids(self, block: Block, stem: str, seen: dict[str, Ruled]) -> list[Block]:
        """Do for a block and its rules what ``_own_id`` does for a rule."""
        return [
            replace(
                named,
                files=tuple(r for rule in block.files for r in self._own_id(rule, stem, seen)),
                network=tuple(r for rule in block.network for r in self._own_id(rule, stem, seen)),
                execs=tuple(r for rule in block.execs for r in self._own_id(rule, stem, seen)),
            )
            for named in self._own_id(block, stem, seen)
        ]

    def _own_id(self, rule: _AnyRule, stem: str, seen: dict[str, Ruled]) -> list[_AnyRule]:
        """Return the rule with an id of its own, or nothing when a problem was noted."""
        ident = rule.id
        if not rule.named and ident in seen:
            ident = f"{stem}.{ident}"
        if ident in seen and rule.named:
            note = f"previous definition here: {seen[ident].source}"
            self.fail_at(rule.source, f"repeated rule id {quote(ident)}", "", (note,))
            return []
        while ident in seen:
            ident += "x"
        seen[ident] = replace(rule, id=ident)
        return [replace(rule, id=ident)]

    def _env(self, parts: Sequence[_Part], variables: Variables) -> EnvRule:
        keep = dict.fromkeys(name for part in parts for name in part.checked.env.keep)
        drop = dict.fromkeys(name for part in parts for name in part.checked.env.drop)
        texts = {name: text for part in parts for name, text in part.checked.env.set}
        values = []
        for name, text in texts.items():
            value = variables.expand(text, glob=False) if text.value else b""
            if value is not None:
                values.append((name, value))
        return EnvRule(tuple(keep), tuple(drop), tuple(texts.items()), tuple(values))

    def _name(self, parts: Sequence[_Part]) -> str:
        """Return the names of what the user asked for, joined by '+'."""
        names = []
        for part in parts:
            if part.is_root:
                stem = os.path.basename(part.document.file).removeprefix("pack:")
                names.append(part.checked.name or stem.partition(".")[0])
        return "+".join(names)

    def _record(self, parts: Sequence[_Part]) -> int:
        record = schema.RECORDS["changes"]
        for part in parts:
            if part.checked.audit is not None:
                record = part.checked.audit.record
        return record


def _limits(parts: Sequence[_Part]) -> tuple[Limit, ...]:
    return smallest([part.checked.limits for part in parts])


def _signals(rules: Iterable[Ruled]) -> tuple[SignalRule, ...]:
    return tuple(rule for rule in rules if isinstance(rule, SignalRule))


def _check_sets(sets: Iterable[str], known: set[str]) -> None:
    """Refuse a ``--set`` that no file would look at: a typing mistake loosens or breaks."""
    for name in sets:
        if name not in known:
            hint = suggest(name, known)
            raise UsageError(
                f"--set {name}: no policy has a variable of that name",
                hint=f"did you mean '{hint}'?" if hint else "",
            )


def _observe(parts: Sequence[_Part], mode: str) -> bool:
    """Return the mode: the user's, else that of the named files, the strict one first."""
    if mode:
        return mode == "observe"
    modes = {part.checked.mode for part in parts if part.is_root}
    return "observe" in modes and "enforce" not in modes


def no_such_policy(name: str) -> Problem:
    """Return the problem of a policy that is neither a pack nor a file.

    Args:
        name: What the user named; it may be a file with a name that we do not take for one.
    """
    known = ", ".join(pack for pack, _ in list_packs())
    note = f"known: {known}; a file ends in .yaml, or starts with / or ./"
    message = f"there is no policy called {quote(name)}"
    return Problem("", 0, 0, message, suggestion=_near_pack(name), notes=(note,))


def _near_pack(name: str) -> str:
    return suggest(name, [known for known, _ in list_packs()])


def _source(document: Document) -> SourceFile:
    return SourceFile(document.file, document.path, document.sha256, document.lines)
