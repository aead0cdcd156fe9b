"""Patterns and targets of rules: variables replaced, then checked as bytes."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from supervisor.policy import patterns, schema
from supervisor.policy.problems import escape, quote
from supervisor.policy.variables import MARK, Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from supervisor.policy.schema import Block, ExecRule, FileRule, Source, Text

_WIDE = b"/**"


class Targets:
    """Fills in the byte fields of rules.

    Args:
        variables: The variables of the policy.
        fail: Notes a problem of a text.
        fail_at: Notes a problem at a position.
    """

    def __init__(
        self,
        variables: Variables,
        fail: Callable[[Text, str], None],
        fail_at: Callable[[Source, str], None],
    ) -> None:
        self._variables = variables
        self._fail = fail
        self._fail_at = fail_at

    def file_rule(self, rule: FileRule) -> FileRule | None:
        """Return the rule with its bytes, or None when a problem was noted."""
        found = _all(map(self._pattern, rule.paths))
        excluded = _all(map(self._pattern, rule.excepts))
        trash = rule.to is not None and rule.to.value == schema.TRASH
        dest = b"" if rule.to is None or trash else self._folder(rule.to)
        if found is None or excluded is None or dest is None:
            return None
        self._check_width(rule, found)
        kind = schema.DEST_TRASH if trash else schema.DEST_NONE
        if rule.to is not None and not trash:
            kind = self._dest_kind(rule, found)
        return replace(rule, patterns=found, excluded=excluded, dest_kind=kind, dest=dest)

    def exec_rule(self, rule: ExecRule) -> ExecRule | None:
        """Return the rule with its bytes, or None when a problem was noted."""
        programs = _all(map(self._program, rule.programs))
        if rule.digest and programs is not None:
            self._check_no_link(rule, programs)
        argv = None if rule.argv is None else _all(map(self._argument, rule.argv))
        dest = _all(self._word(text, first=i == 0) for i, text in enumerate(rule.to))
        if programs is None or dest is None or (argv is None and rule.argv is not None):
            return None
        return replace(
            rule,
            names=tuple(patterns.unescape(raw) or raw for raw in programs if _is_bare(raw)),
            patterns=tuple(raw for raw in programs if not _is_bare(raw)),
            argv_patterns=argv,
            dest=dest,
        )

    def block(self, block: Block) -> Block | None:
        """Return the block with its bytes and those of its rules, or None."""
        programs = _all(map(self._program, block.programs))
        files = [self.file_rule(rule) for rule in block.files]
        execs = [self.exec_rule(rule) for rule in block.execs]
        if programs is None:
            return None
        return replace(
            block,
            files=tuple(filter(None, files)),
            execs=tuple(filter(None, execs)),
            names=tuple(patterns.unescape(raw) or raw for raw in programs if _is_bare(raw)),
            patterns=tuple(raw for raw in programs if not _is_bare(raw)),
        )

    def _check_no_link(self, rule: ExecRule, programs: tuple[bytes, ...]) -> None:
        """A digest for a link's name would hold for nothing: refuse it while we can see."""
        for text, raw in zip(rule.programs, programs, strict=True):
            path = patterns.unescape(raw)
            if _is_bare(raw) or path is None or path[:1] != b"/":
                continue
            true = os.path.realpath(path)
            if true != path:
                self._fail(
                    text,
                    f"{quote(text.value)} is a link: rules are about true paths, "
                    f"here {quote(os.fsdecode(true))}",
                )

    def _program(self, text: Text) -> bytes | None:
        raw = self._variables.expand(text, glob=True)
        return raw if raw is None or _is_bare(raw) else self._pattern(text)

    def _check_width(self, rule: FileRule, found: tuple[bytes, ...]) -> None:
        if rule.action == schema.ALLOW and rule.ops & schema.CHANGES:
            for text, raw in zip(rule.paths, found, strict=True):
                if raw == _WIDE and text.value.startswith("${"):
                    self._too_wide(text)

    def _pattern(self, text: Text) -> bytes | None:
        raw = self._variables.expand(text, glob=True)
        if raw is None:
            return None
        try:
            patterns.split(raw)
        except patterns.PatternError as error:
            shown = quote(text.value)
            became = raw.decode("utf-8", "backslashreplace")
            if became != text.value:
                shown += f" (here {quote(became)})"
            self._fail(text, f"bad pattern {shown}: {escape(str(error))}")
            return None
        return raw

    def _too_wide(self, text: Text) -> None:
        name = text.value[2:].partition("}")[0]
        fix = f"--set {name}=FOLDER" if name.islower() else "a policy that names a folder"
        self._fail(
            text,
            f"{quote(text.value)} is the whole file system here: "
            f"start in a project folder, or use {fix}",
        )

    def _folder(self, text: Text) -> bytes | None:
        """Return an absolute literal path without a slash at its end."""
        raw = self._variables.expand(text, glob=False)
        if raw is None:
            return None
        trimmed = raw.rstrip(b"/") or b"/"
        reason = ""
        if trimmed[:1] not in (b"/", MARK):
            reason = "must start with '/' or a variable"
        else:
            try:
                patterns.split(patterns.escape(trimmed))
            except patterns.PatternError as error:
                reason = escape(str(error))
        if reason:
            self._fail(text, f"bad target {quote(text.value)}: {reason}")
            return None
        return trimmed

    def _dest_kind(self, rule: FileRule, found: tuple[bytes, ...]) -> int:
        trees = [raw.endswith(b"/**") or raw == b"**" for raw in found]
        if any(trees) and not all(trees):
            self._fail_at(
                rule.source,
                "one steer mixes whole trees (/**) and single files: make two rules of it",
            )
        for text, raw, tree in zip(rule.paths, found, trees, strict=True):
            folder = raw[:-3] or b"/"
            if tree and (raw == b"**" or not patterns.is_literal(folder)):
                self._fail(text, "the folder before '/**' of a steer must have no wildcard")
        if not all(trees) and rule.ops & schema.METADATA:
            self._fail_at(
                rule.source, "a steer of 'metadata' needs whole trees: patterns that end in '/**'"
            )
        return schema.DEST_TREE if all(trees) else schema.DEST_FILE

    def _argument(self, text: Text) -> bytes | None:
        raw = self._variables.expand(text, glob=True)
        if raw is None:
            return None
        if raw[:1] == MARK:
            self._fail(text, f"${{TMPDIR}} in 'argv' {schema.LATER}")
            return None
        try:
            if raw != b"**":
                patterns.parse_glob(raw, patterns.ALL_BYTES)
        except patterns.PatternError as error:
            self._fail(text, f"bad argument pattern {quote(text.value)}: {escape(str(error))}")
            return None
        return raw

    def _word(self, text: Text, *, first: bool) -> bytes | None:
        return self._folder(text) if first else self._variables.expand(text, glob=False)


def _all(found: Iterable[bytes | None]) -> tuple[bytes, ...] | None:
    """Return all of ``found``, each of them looked at, or None when one is missing."""
    items = list(found)
    kept = tuple(item for item in items if item is not None)
    return kept if len(kept) == len(items) else None


def _is_bare(raw: bytes) -> bool:
    """Return whether a program is a bare name rather than a path pattern."""
    return raw != b"**" and b"/" not in raw and raw[:1] != MARK
