"""``blocks``: rules for some programs and all that they start; positioned nodes to records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.policy import rules, schema
from supervisor.policy.load import Map, Node, Seq
from supervisor.policy.schema import Block, ExecRule, FileRule, NetRule, Text

if TYPE_CHECKING:
    from supervisor.policy.fields import Keys, Reader

_SHAPE = "a block is a mapping such as {for: {program: git}, files: [...]}"


def blocks(reader: Reader, node: Node) -> tuple[Block, ...]:
    """Return the entries of ``blocks``; a broken one is reported and left out."""
    if not isinstance(node, Seq):
        reader.items(node, "'blocks'")
        return ()
    found = []
    for number, item in enumerate(node.items, 1):
        if not isinstance(item, Map):
            reader.fail(item, _SHAPE)
            continue
        block = _block(reader, item, f"blocks.{number}")
        if block is not None:
            found.append(block)
    return tuple(found)


def _block(reader: Reader, item: Map, default_id: str) -> Block | None:
    keys = reader.keys(item, schema.BLOCK_KEYS, schema.BLOCK_LATER)
    ident, named = rules.read_id(reader, keys, default_id)
    programs = _programs(reader, item, keys)
    open_ = "default" in keys and (
        reader.word(keys["default"][1], "default", schema.DEFAULTS) == "allow"
    )
    within = f"{ident}."
    files = rules.file_rules(reader, keys["files"][1], within) if "files" in keys else ()
    if "files" in keys:
        _check_hide(reader, keys["files"][1])
    network = rules.net_rules(reader, keys["network"][1], within) if "network" in keys else ()
    execs = rules.exec_rules(reader, keys["exec"][1], within) if "exec" in keys else ()
    every: list[FileRule | NetRule | ExecRule] = [*files, *network, *execs]
    for rule in every:
        _check_rule(reader, rule, open_=open_)
    if not programs:
        return None
    return Block(ident, programs, files, network, execs, open_, reader.source(item), named)


def _programs(reader: Reader, item: Map, keys: Keys) -> tuple[Text, ...]:
    if "for" not in keys:
        reader.fail(item, "the block has no 'for': which program it is about")
        return ()
    key, node = keys["for"]
    inner = reader.keys(node, schema.FOR_KEYS, schema.FOR_LATER)
    if "program" not in inner:
        if isinstance(node, Map) and not node.items:
            reader.fail(key, "'for' needs 'program'")
        return ()
    return rules.read_programs(reader, inner["program"][1], "'program'")


def _check_hide(reader: Reader, node: Node) -> None:
    """Names are hidden from everybody or from nobody."""
    for item in node.items if isinstance(node, Seq) else ():
        for key, _ in item.items if isinstance(item, Map) else ():
            if key.value == "hide":
                reader.fail(key, f"'hide' in a block {schema.LATER}")


def _check_rule(reader: Reader, rule: FileRule | NetRule | ExecRule, *, open_: bool) -> None:
    """A block narrows what the policy says, and what it cannot honour is an error."""
    message = ""
    if rule.action == schema.STEER:
        message = f"'steer' in a block {schema.LATER}"
    elif isinstance(rule, ExecRule) and rule.digest:
        message = f"'sha256' in a block {schema.LATER}; write it under exec:"
    elif open_ and rule.action == schema.ALLOW:
        message = "an 'allow' in a block with 'default: allow' says nothing"
    if message:
        at = rule.source
        reader.problems.append(reader.document.problem(at.line, at.column, message))
