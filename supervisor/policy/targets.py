"""Patterns and targets of rules: variables replaced, then checked as bytes."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from supervisor.policy import addresses, patterns, schema
from supervisor.policy.problems import escape, quote
from supervisor.policy.schema import Text
from supervisor.policy.variables import MARK, Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from supervisor.policy.addresses import Entry
    from supervisor.policy.schema import Block, ExecRule, FileRule, NetRule, Source
    from supervisor.policy.variables import Fail

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
        fail: Fail,
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

    def net_rule(self, rule: NetRule) -> NetRule | None:
        """Return the rule with its bytes, or None when a problem was noted."""
        found = [self._endpoint(rule, text) for text in rule.to]
        entries = tuple(entry for one in found if one is not None for entry in one)
        return None if None in found else replace(rule, entries=entries)

    def block(self, block: Block) -> Block | None:
        """Return the block with its bytes and those of its rules, or None."""
        programs = _all(map(self._program, block.programs))
        files = [self.file_rule(rule) for rule in block.files]
        network = [self.net_rule(rule) for rule in block.network]
        execs = [self.exec_rule(rule) for rule in block.execs]
        if programs is None:
            return None
        return replace(
            block,
            files=tuple(filter(None, files)),
            network=tuple(filter(None, network)),
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
                    "",
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
        return None if raw is None else self._checked(text, raw)

    def _checked(self, text: Text, raw: bytes) -> bytes | None:
        try:
            patterns.split(raw)
        except patterns.PatternError as error:
            self._fail(text, f"bad pattern {_became(text, raw)}: {escape(str(error))}", "")
            return None
        return raw

    def _endpoint(self, rule: NetRule, text: Text) -> tuple[Entry, ...] | None:
        """Return what one target of a network rule says."""
        if text.value.startswith(addresses.UNIX):
            # What stands behind is a text of its own: ${TMPDIR} may start it.
            rest = Text(text.value.removeprefix(addresses.UNIX), text.source)
            raw = self._variables.expand(rest, glob=True)
            return None if raw is None else self._local(rule, rest, raw)
        raw = self._variables.expand(text, glob=True)
        if raw is None:
            return None
        if raw.startswith(addresses.UNIX.encode()):
            return self._local(rule, text, raw.removeprefix(addresses.UNIX.encode()))
        return self._address(rule, text, raw)

    def _local(self, rule: NetRule, text: Text, raw: bytes) -> tuple[Entry, ...] | None:
        """Return a local socket: the pattern of its file, or the glob of its abstract name."""
        kind = schema.NET_PATH
        if raw[:1] == b"@":
            kind, raw = schema.NET_ABSTRACT, raw[1:]
            if not self._is_abstract(text, raw):
                return None
        elif self._checked(text, raw) is None:
            return None
        elif rule.action == schema.ALLOW and raw == _WIDE and text.value.startswith("${"):
            self._too_wide(text)
        return ((kind, raw, 0, 0, 0),)

    def _is_abstract(self, text: Text, raw: bytes) -> bool:
        reason, hint = "", ""
        if not raw or len(raw) > patterns.MAX_PATTERN:
            reason = f"has 1 to {patterns.MAX_PATTERN} bytes; '*' stands for any name"
        try:
            patterns.parse_glob(raw, patterns.ALL_BYTES)
        except patterns.PatternError as error:
            reason = escape(str(error))
            if b"**" in raw:
                reason, hint = "'*' stands for any bytes", text.value.replace("**", "*")
        if reason:
            hint = hint and addresses.UNIX + hint.removeprefix(addresses.UNIX)
            self._fail(text, f"bad abstract name {_became(text, b'@' + raw)}: {reason}", hint)
        return not reason

    def _address(self, rule: NetRule, text: Text, raw: bytes) -> tuple[Entry, ...] | None:
        plain = self._variables.expand(text, glob=False) or b""
        shown = _became(text, plain)
        if raw[:1] == MARK:
            hint = addresses.UNIX + text.value
            self._fail(text, f"bad target {shown}: a local socket starts with 'unix:'", hint)
            return None
        if plain[:1] == b"*" and raw[:1] != b"*":
            self._fail(text, f"bad target {shown}: the value of a variable is no wildcard", "")
            return None
        try:
            entries = addresses.parse(plain.decode("utf-8", "replace"))
        except addresses.AddressError as error:
            self._fail(text, f"bad target {shown}: {escape(str(error))}", error.suggestion)
            return None
        if rule.ops & schema.CONNECT and addresses.is_unspecified(entries[0]):
            there = entries[0][1]
            here = addresses.host(addresses.loopback(len(there)))
            what = f"connecting to {addresses.host(there)} reaches this machine"
            self._fail(text, f"{what}: write {here}", "")
            return None
        return entries

    def _too_wide(self, text: Text) -> None:
        name = text.value[2:].partition("}")[0]
        fix = f"--set {name}=FOLDER" if name.islower() else "a policy that names a folder"
        self._fail(
            text,
            f"{quote(text.value)} is the whole file system here: "
            f"start in a project folder, or use {fix}",
            "",
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
            self._fail(text, f"bad target {quote(text.value)}: {reason}", "")
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
                self._fail(text, "the folder before '/**' of a steer must have no wildcard", "")
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
            self._fail(text, f"${{TMPDIR}} in 'argv' {schema.LATER}", "")
            return None
        try:
            if raw != b"**":
                patterns.parse_glob(raw, patterns.ALL_BYTES)
        except patterns.PatternError as error:
            self._fail(text, f"bad argument pattern {quote(text.value)}: {escape(str(error))}", "")
            return None
        return raw

    def _word(self, text: Text, *, first: bool) -> bytes | None:
        return self._folder(text) if first else self._variables.expand(text, glob=False)


def _became(text: Text, raw: bytes) -> str:
    """Return a text for a message, with what its variables made of it."""
    became = raw.decode("utf-8", "backslashreplace")
    return quote(text.value) + (f" (here {quote(became)})" if became != text.value else "")


def _all(found: Iterable[bytes | None]) -> tuple[bytes, ...] | None:
    """Return all of ``found``, each of them looked at, or None when one is missing."""
    items = list(found)
    kept = tuple(item for item in items if item is not None)
    return kept if len(kept) == len(items) else None


def _is_bare(raw: bytes) -> bool:
    """Return whether a program is a bare name rather than a path pattern."""
    return raw != b"**" and b"/" not in raw and raw[:1] != MARK
