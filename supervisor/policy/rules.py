"""One rule of ``files``, ``network``, ``exec`` or ``signals``: positioned nodes to a record."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supervisor.policy import schema, signals
from supervisor.policy.load import Map, Node, Scalar, Seq
from supervisor.policy.problems import quote, suggest
from supervisor.policy.schema import ExecRule, FileRule, NetRule, SignalRule, Text

if TYPE_CHECKING:
    from supervisor.policy.fields import Keys, Reader

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def file_rules(reader: Reader, node: Node, within: str = "") -> tuple[FileRule, ...]:
    """Return the entries of ``files``; a broken one is reported and left out.

    Args:
        reader: Notes problems.
        node: The section.
        within: What the ids of rules start with that have none.
    """
    found = []
    for number, item in enumerate(_entries(reader, node, "files"), 1):
        keys = reader.keys(item, schema.FILE_KEYS, schema.FILE_LATER)
        rule = _file_rule(reader, item, keys, f"{within}files.{number}")
        if rule is not None:
            found.append(rule)
    return tuple(found)


def net_rules(reader: Reader, node: Node, within: str = "") -> tuple[NetRule, ...]:
    """Return the entries of ``network``; a broken one is reported and left out.

    Args:
        reader: Notes problems.
        node: The section.
        within: As for ``file_rules``.
    """
    found = []
    for number, item in enumerate(_entries(reader, node, "network"), 1):
        keys = reader.keys(item, schema.NET_KEYS, schema.NET_LATER)
        rule = _net_rule(reader, item, keys, f"{within}network.{number}")
        if rule is not None:
            found.append(rule)
    return tuple(found)


def exec_rules(reader: Reader, node: Node, within: str = "") -> tuple[ExecRule, ...]:
    """Return the entries of ``exec``; a broken one is reported and left out.

    Args:
        reader: Notes problems.
        node: The section.
        within: As for ``file_rules``.
    """
    found = []
    for number, item in enumerate(_entries(reader, node, "exec"), 1):
        keys = reader.keys(item, schema.EXEC_KEYS, schema.EXEC_LATER)
        rule = _exec_rule(reader, item, keys, f"{within}exec.{number}")
        if rule is not None:
            found.append(rule)
    return tuple(found)


def signal_rules(reader: Reader, node: Node) -> tuple[SignalRule, ...]:
    """Return the entries of ``signals``; a broken one is reported and left out.

    Args:
        reader: Notes problems.
        node: The section.
    """
    found = []
    for number, item in enumerate(_entries(reader, node, "signals"), 1):
        keys = reader.keys(item, schema.SIGNAL_KEYS, schema.SIGNAL_LATER)
        rule = _signal_rule(reader, item, keys, f"signals.{number}")
        if rule is not None:
            found.append(rule)
    return tuple(found)


def _entries(reader: Reader, node: Node, section: str) -> list[Map]:
    if not isinstance(node, Seq):
        reader.items(node, f"'{section}'")
        return []
    # An empty section is fine: a pack may be cut down to nothing.
    out = []
    for item in node.items:
        if isinstance(item, Map):
            out.append(item)
        else:
            reader.fail(item, "a rule is a mapping such as {id: work, allow: all, paths: [/w/**]}")
    return out


@dataclass(frozen=True, slots=True)
class _Common:
    id: str
    named: bool
    action: int
    verb: str
    subject: Node
    err: int
    say: str


def _common(
    reader: Reader, rule: Map, keys: Keys, default_id: str, known: str = "allow, deny or steer"
) -> _Common | None:
    """Read what all sections share; None when the rule has no usable action."""
    ident, named = _id(reader, keys, default_id)
    verbs = [verb for verb in schema.ACTIONS if verb in keys]
    say = _say(reader, keys)
    err = _errno(reader, keys, verbs)
    if not verbs:
        if len(keys) == len(rule.items):  # else the unknown key was meant to be the action
            reader.fail(rule, f"the rule has no action: add {known}")
        return None
    if len(verbs) > 1:
        second = keys[verbs[1]][0]
        reader.fail(second, f"the rule has two actions: '{verbs[0]}' and '{verbs[1]}'")
        return None
    verb = verbs[0]
    if verb == "approve":
        reader.fail(keys[verb][0], f"'approve' {schema.LATER}")
        return None
    return _Common(ident, named, schema.ACTIONS[verb], verb, keys[verb][1], err, say)


def _id(reader: Reader, keys: Keys, default: str) -> tuple[str, bool]:
    if "id" not in keys:
        return default, False
    node = keys["id"][1]
    # A number is a fine id, so it is not held against the rules of text.
    if not isinstance(node, Scalar) or not _ID.fullmatch(node.value):
        shown = f" {quote(node.value)}" if isinstance(node, Scalar) else ""
        reader.fail(node, f"bad rule id{shown}: a-z and 0-9, then also '.', '_' and '-'")
    elif len(node.value) > schema.MAX_ID:
        reader.fail(node, f"a rule id has at most {schema.MAX_ID} characters")
    elif node.value.startswith(schema.RESERVED_ID):
        reader.fail(node, f"rule ids that start with '{schema.RESERVED_ID}' are built in")
    else:
        return node.value, True
    return default, False


def _say(reader: Reader, keys: Keys) -> str:
    if "say" not in keys:
        return ""
    text = reader.text(keys["say"][1], "'say'")
    if text is not None and len(text.value.encode()) > schema.MAX_SAY:
        reader.fail(keys["say"][1], f"'say' is longer than {schema.MAX_SAY} bytes")
    return text.value if text else ""


def _errno(reader: Reader, keys: Keys, verbs: list[str]) -> int:
    default = schema.errno_number("EACCES") or 13
    if "as" not in keys:
        return default if verbs == ["deny"] else 0
    key, node = keys["as"]
    if "deny" not in verbs:
        reader.fail(key, "'as' is the errno of a refusal: it goes with 'deny' only")
        return 0
    text = reader.text(node, "'as'")
    if text is None:
        return default
    number = schema.errno_number(text.value)
    if number is None:
        reader.fail(
            node,
            f"unknown errno name {quote(text.value)}",
            hint=suggest(text.value.upper(), errno.errorcode.values()),
        )
    return number or default


def _target(reader: Reader, keys: Keys, common: _Common) -> Node | None:
    """Return the node of ``to``, which a steer needs and nothing else may have."""
    if common.action == schema.STEER and "to" not in keys:
        reader.fail(keys[common.verb][0], "a steer needs 'to': where the call goes instead")
        return None
    if common.action != schema.STEER and "to" in keys:
        reader.fail(keys["to"][0], f"'to' goes with 'steer' only, not with '{common.verb}'")
        return None
    return keys["to"][1] if "to" in keys else None


def _no_steer(word: str, *, trash: bool) -> str:
    """Say why an operation cannot be steered there."""
    if trash:
        return f"'to: trash' keeps what is deleted: it takes 'delete' alone, not {quote(word)}"
    if word == "delete":
        return "a steer of 'delete' has one target: 'to: trash'"
    use = "use the exec section" if word == "exec" else "use read, write, create, metadata"
    return f"'steer' of '{word}' in files {schema.LATER}; {use}"


def _ops(reader: Reader, common: _Common, *, trash: bool) -> int:
    """Return the mask of a files rule's operations; 0 when a problem was noted."""
    allowed = {"delete"} if trash else schema.STEERABLE
    ops, bad = 0, False
    words = reader.texts(common.subject, f"'{common.verb}'", single=True)
    nodes = common.subject.items if isinstance(common.subject, Seq) else (common.subject,)
    for text, node in zip(words, nodes, strict=False):
        bits = schema.RULE_OPS.get(text.value)
        if bits is None:
            hint = suggest(text.value, schema.RULE_OPS)
            reader.fail(node, f"unknown operation {quote(text.value)}", hint=hint)
            bad = True
        elif common.action == schema.STEER and text.value not in allowed:
            reader.fail(node, _no_steer(text.value, trash=trash))
            bad = True
        else:
            ops |= bits
    return 0 if bad else ops


def _file_rule(reader: Reader, item: Map, keys: Keys, default_id: str) -> FileRule | None:
    common = _common(reader, item, keys, default_id)
    paths: tuple[Text, ...] = ()
    if "paths" in keys:
        paths = reader.texts(keys["paths"][1], "'paths'")
    elif len(keys) == len(item.items):
        reader.fail(item, "the rule has no 'paths'")
    excepts = reader.texts(keys["except"][1], "'except'") if "except" in keys else ()
    if common is None:
        return None
    node = _target(reader, keys, common)
    to = reader.text(node, "'to'") if node is not None else None
    ops = _ops(reader, common, trash=to is not None and to.value == schema.TRASH)
    hide = _hide(reader, keys, common, ops)
    if not ops or not paths:
        return None
    return FileRule(
        id=common.id,
        action=common.action,
        ops=ops,
        paths=paths,
        excepts=excepts,
        err=common.err,
        say=common.say,
        to=to,
        source=reader.source(item),
        named=common.named,
        hide=hide,
    )


def _net_rule(reader: Reader, item: Map, keys: Keys, default_id: str) -> NetRule | None:
    common = _common(reader, item, keys, default_id, "allow or deny")
    to: tuple[Text, ...] = ()
    if "to" in keys:
        to = _net_targets(reader, keys["to"][1])
    elif len(keys) == len(item.items):
        reader.fail(item, "the rule has no 'to': what may be reached, or not")
    if common is None:
        return None
    if common.action == schema.STEER:
        reader.fail(keys[common.verb][0], f"'steer' in network {schema.LATER}")
        return None
    ops = _net_ops(reader, common)
    if not ops or not to:
        return None
    return NetRule(
        id=common.id,
        action=common.action,
        ops=ops,
        to=to,
        err=common.err,
        say=common.say,
        source=reader.source(item),
        named=common.named,
    )


def _net_targets(reader: Reader, node: Node) -> tuple[Text, ...]:
    """Return what ``to`` lists; an IPv6 address without quotes is a list to YAML."""
    for item in node.items if isinstance(node, Seq) else ():
        inner = item.items if isinstance(item, Seq) else ()
        if len(inner) == 1 and isinstance(inner[0], Scalar) and ":" in inner[0].value:
            reader.fail(item, f"'to' must be text: write \"[{inner[0].value}]\" in quotes")
            return ()
    return reader.texts(node, "'to'")


def _net_ops(reader: Reader, common: _Common) -> int:
    """Return the mask of a network rule's operations; 0 when a problem was noted."""
    ops, bad = 0, False
    words = reader.texts(common.subject, f"'{common.verb}'", single=True)
    nodes = common.subject.items if isinstance(common.subject, Seq) else (common.subject,)
    for text, node in zip(words, nodes, strict=False):
        bits = schema.NET_OPS.get(text.value, 0)
        if not bits:
            hint = suggest(text.value, schema.NET_OPS)
            reader.fail(node, f"unknown network operation {quote(text.value)}", hint=hint)
            bad = True
        ops |= bits
    return 0 if bad else ops


def _signal_rule(reader: Reader, item: Map, keys: Keys, default_id: str) -> SignalRule | None:
    common = _common(reader, item, keys, default_id, "deny or steer")
    who = "tree"
    if "target" in keys:
        who = reader.word(keys["target"][1], "target", tuple(schema.WHO))
    if common is None:
        return None
    if common.action == schema.ALLOW:
        reader.fail(
            keys[common.verb][0],
            "'allow' in signals does nothing: signals inside the tree are allowed anyway, "
            "and outside they never can be",
        )
        return None
    node = _target(reader, keys, common)
    mask = _signal_mask(reader, common)
    to = _one_signal(reader, node) if node is not None else 0
    if not mask or who not in schema.WHO or to is None:
        return None
    if common.action == schema.STEER and node is None:
        return None
    if to and mask == signals.bit(to):
        reader.fail(node or item, "the signal is steered to itself")
        return None
    return SignalRule(
        id=common.id,
        action=common.action,
        signals=mask,
        who=schema.WHO[who],
        to=to,
        # what kill(2) says where it may not; EACCES is none of its words
        err=common.err if "as" in keys or not common.err else errno.EPERM,
        say=common.say,
        source=reader.source(item),
        named=common.named,
    )


def _signal_mask(reader: Reader, common: _Common) -> int:
    """Return the mask of a rule's signals; 0 when a problem was noted."""
    mask, bad = 0, False
    words = reader.texts(common.subject, f"'{common.verb}'", single=True)
    nodes = common.subject.items if isinstance(common.subject, Seq) else (common.subject,)
    for text, node in zip(words, nodes, strict=False):
        if text.value == "all":
            mask = signals.ALL
        elif number := _signal(reader, node, text.value, ("all",)):
            mask |= signals.bit(number)
        else:
            bad = True
    return 0 if bad else mask


def _one_signal(reader: Reader, node: Node) -> int | None:
    text = reader.text(node, "'to'")
    if text is None:
        return None
    if text.value == signals.NONE:
        return 0
    return _signal(reader, node, text.value, (signals.NONE,)) or None


def _signal(reader: Reader, node: Node, word: str, others: tuple[str, ...]) -> int:
    """Return the number of a signal; 0 when a problem was noted."""
    number = signals.NUMBERS.get(word, 0)
    if not number:
        plain = word.upper().removeprefix("SIG")
        known = (*others, *signals.NUMBERS)
        meant = word.lower() if word.lower() in others else plain
        hint = meant if meant in known else suggest(meant, known)
        reader.fail(node, f"unknown signal {quote(word)}", hint=hint)
    return number


def read_programs(reader: Reader, node: Node, what: str) -> tuple[Text, ...]:
    """Return a program or a list of programs: bare names and patterns."""
    programs = reader.texts(node, what, single=True)
    for text in programs:
        bare = "/" not in text.value and text.value != "**"
        if bare and any(char in text.value for char in "*?[\\"):
            reader.fail(
                node,
                f"{quote(text.value)}: a bare program name is literal; "
                f"write **/{text.value} for a pattern",
            )
    return programs


def read_id(reader: Reader, keys: Keys, default: str) -> tuple[str, bool]:
    """Return the id of a rule or block, and whether the file gave it."""
    return _id(reader, keys, default)


def _digest(reader: Reader, keys: Keys, common: _Common) -> bytes:
    """Return what ``sha256`` says, or b""."""
    if "sha256" not in keys:
        return b""
    key, node = keys["sha256"]
    if common.action != schema.ALLOW:
        reader.fail(key, "'sha256' goes with 'allow' only: other bytes than these are denied")
    elif "argv" in keys:
        reader.fail(key, "'sha256' is about the program, whatever its arguments: not with 'argv'")
    # Not held against the rules of text: a digest may look like a number.
    elif not isinstance(node, Scalar) or not _SHA256.fullmatch(node.value):
        reader.fail(node, "a sha256 has 64 hex digits, as sha256sum prints them")
    else:
        return bytes.fromhex(node.value)
    return b""


def _hide(reader: Reader, keys: Keys, common: _Common, ops: int) -> bool:
    """Return whether the rule hides names: what denies all as ENOENT does unless it says no."""
    is_absent = common.action == schema.DENY and common.err == schema.errno_number("ENOENT")
    can = is_absent and ops == schema.ALL_OPS
    if "hide" not in keys:
        return can
    key, node = keys["hide"]
    word = node.value if isinstance(node, Scalar) and node.plain else ""
    if word not in ("true", "false"):
        reader.fail(node, "'hide' is true or false")
    elif not is_absent:
        reader.fail(key, "'hide' goes with 'deny' and 'as: ENOENT' only")
    elif word == "true" and ops and not can:
        reader.fail(
            key,
            "'hide: true' needs 'deny: all': a name that may be written, made or looked into "
            "cannot be hidden",
        )
    return can and word == "true"


def _exec_rule(reader: Reader, item: Map, keys: Keys, default_id: str) -> ExecRule | None:
    common = _common(reader, item, keys, default_id)
    argv = reader.texts(keys["argv"][1], "'argv'") if "argv" in keys else None
    if common is None:
        return None
    programs = read_programs(reader, common.subject, f"'{common.verb}'")
    node = _target(reader, keys, common)
    to = reader.texts(node, "'to'", single=True) if node is not None else ()
    append = False
    if "args" in keys:
        append = reader.word(keys["args"][1], "args", ("append",)) == "append"
        if common.action != schema.STEER:
            reader.fail(keys["args"][0], "'args' goes with 'steer' only")
    digest = _digest(reader, keys, common)
    if not programs:
        return None
    return ExecRule(
        id=common.id,
        action=common.action,
        programs=programs,
        argv=argv,
        to=to,
        append=append,
        err=common.err,
        say=common.say,
        source=reader.source(item),
        named=common.named,
        digest=digest,
    )
