"""Positioned nodes to the records of one file; every problem is collected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from supervisor.policy import blocks, limits, rules, schema
from supervisor.policy.fields import KINDS, Keys, Reader
from supervisor.policy.load import Document, Map, Node, Scalar
from supervisor.policy.problems import Problem, quote
from supervisor.policy.schema import AuditRule, EnvRule, PolicyFile, Ruled, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = re.compile(r"[a-z0-9][a-z0-9._/-]*")
_VAR = re.compile(r"[a-z][a-z0-9_]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV_GLOB = re.compile(r"[A-Za-z0-9_*?]+")


def check(document: Document, problems: list[Problem]) -> PolicyFile:
    """Turn one document into the records of ``schema``.

    Args:
        document: A parsed file.
        problems: Where problems are added; all of the file's are.

    Returns:
        The checked file, without whatever had a problem; use it only to go on looking
        for more when there was one.
    """
    return _policy(Reader(document, problems), document.root)


def _policy(reader: Reader, root: Map) -> PolicyFile:
    keys = reader.keys(root, schema.TOP_KEYS, schema.TOP_LATER)
    _version(reader, root, keys)
    files = rules.file_rules(reader, keys["files"][1]) if "files" in keys else ()
    network = rules.net_rules(reader, keys["network"][1]) if "network" in keys else ()
    execs = rules.exec_rules(reader, keys["exec"][1]) if "exec" in keys else ()
    narrowed = blocks.blocks(reader, keys["blocks"][1]) if "blocks" in keys else ()
    signals = rules.signal_rules(reader, keys["signals"][1]) if "signals" in keys else ()
    found: list[Ruled] = [*files, *network, *execs, *signals]
    for block in narrowed:
        found += [block, *block.files, *block.network, *block.execs]
    _unique_ids(reader, found)
    return PolicyFile(
        name=_name(reader, keys),
        extends=reader.texts(keys["extends"][1], "'extends'") if "extends" in keys else (),
        mode=reader.word(keys["mode"][1], "mode", schema.MODES) if "mode" in keys else "",
        vars=_variables(reader, keys),
        files=files,
        network=network,
        execs=execs,
        blocks=narrowed,
        env=_env(reader, keys),
        audit=_audit(reader, keys),
        limits=limits.read(reader, keys["limits"][1]) if "limits" in keys else (),
        signals=signals,
    )


def _version(reader: Reader, root: Map, keys: Keys) -> None:
    if "version" not in keys:
        reader.fail(root, "'version: 1' is missing")
        return
    value = keys["version"][1]
    if not isinstance(value, Scalar) or not value.plain or value.value != "1":
        reader.fail(value, "the version must be 1: there is no other yet")


def _unique_ids(reader: Reader, found: Iterable[Ruled]) -> None:
    first: dict[str, Ruled] = {}
    for rule in found:
        other = first.setdefault(rule.id, rule)
        if other is not rule:
            at = rule.source
            note = f"previous definition here: {other.source}"
            message = f"repeated rule id {quote(rule.id)}"
            reader.problems.append(
                reader.document.problem(at.line, at.column, message, notes=(note,))
            )


def _name(reader: Reader, keys: Keys) -> str:
    if "name" not in keys:
        return ""
    text = reader.text(keys["name"][1], "'name'")
    if text is not None and not _NAME.fullmatch(text.value):
        reader.fail(keys["name"][1], "a name is made of a-z, 0-9, '.', '_', '-' and '/'")
    return text.value if text else ""


def _variables(reader: Reader, keys: Keys) -> tuple[tuple[str, Text], ...]:
    found = []
    for key, value in _pairs(reader, keys, "vars"):
        if not _VAR.fullmatch(key.value):
            reader.fail(key, f"bad variable name {quote(key.value)}: a-z, then 0-9 and '_'")
        elif (text := reader.text(value, f"variable {quote(key.value)}")) is not None:
            found.append((key.value, text))
    return tuple(found)


def _pairs(reader: Reader, keys: Keys, name: str) -> tuple[tuple[Scalar, Node], ...]:
    node = keys[name][1] if name in keys else None
    if isinstance(node, Map):
        return node.items
    if node is not None:
        reader.fail(node, f"'{name}' must be a mapping, found {KINDS[type(node)]}")
    return ()


def _env(reader: Reader, keys: Keys) -> EnvRule:
    if "env" not in keys:
        return EnvRule()
    inner = reader.keys(keys["env"][1], schema.ENV_KEYS)
    values = []
    for key, value in _pairs(reader, inner, "set"):
        if not _ENV_NAME.fullmatch(key.value):
            reader.fail(key, f"bad environment variable name {quote(key.value)}")
        elif (text := reader.text(value, quote(key.value), empty=True)) is not None:
            values.append((key.value, text))
    return EnvRule(
        _env_names(reader, inner, "keep"), _env_names(reader, inner, "drop"), tuple(values)
    )


def _env_names(reader: Reader, inner: Keys, name: str) -> tuple[str, ...]:
    if name not in inner:
        return ()
    texts = reader.texts(inner[name][1], f"'{name}'")
    for text in texts:
        if not _ENV_GLOB.fullmatch(text.value):
            at = text.source
            message = f"bad name {quote(text.value)} in '{name}': letters, digits, '_', '*', '?'"
            reader.problems.append(reader.document.problem(at.line, at.column, message))
    return tuple(text.value for text in texts)


def _audit(reader: Reader, keys: Keys) -> AuditRule | None:
    if "audit" not in keys:
        return None
    key, node = keys["audit"]
    inner = reader.keys(node, schema.AUDIT_KEYS)
    if "record" not in inner:
        if isinstance(node, Map) and not node.items:
            reader.fail(key, "'audit' needs 'record'")
        return None
    word = reader.word(inner["record"][1], "record", tuple(schema.RECORDS))
    return AuditRule(schema.RECORDS.get(word, schema.RECORDS["changes"]))
