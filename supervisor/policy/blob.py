"""The compiled policy as bytes: msgpack, read by native/policy/blob.c.

array(15): "SVB", version, flags, record, filter, rules, paths, names, argvs, floor, env,
blocks, network, limits, signals;
text is UTF-8 str, everything of the file system is bin.
"""

from __future__ import annotations

import msgpack

NET_ABSTRACT = 2
TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.policy.compile import Compiled

MAGIC = "SVB"
VERSION = 6
MAX_BLOB = 64 << 20
_PARTS = 15
OP_HIDE = 0x100
"""With a rule's operations: it hides names."""
MAX_RULES, MAX_PATHS, MAX_ABSTRACT, MAX_SIGNALS = 200_000, 1_000_000, 1024, 1024


class RuleInfo:
    """What the blob says of one rule, for messages and the audit trail.

    Attributes:
        id: The rule's id.
        action: enum sv_action.
        ops: Mask of enum sv_op or of enum sv_net_op.
        err: errno shown for a refusal, 0 for other actions.
        say: A sentence for whoever was refused, or "".
        src: "file:line", or "built-in".
        block: 0, or which block it belongs to, from 1.
    """

    __slots__ = ("action", "block", "err", "id", "ops", "say", "src")

    def __init__(
        self, ident: str, action: int, ops: int, err: int, say: str, src: str, block: int = 0
    ) -> None:
        """Hold the fields of one rule."""
        self.id = ident
        self.action = action
        self.ops = ops
        self.err = err
        self.say = say
        self.src = src
        self.block = block


class Programs:
    """What the exec rules of a blob look at; rules go by their index.

    Attributes:
        names: Bare program names of each rule that has some.
    """

    __slots__ = ("_any", "_asked", "names")

    def __init__(
        self, names: dict[int, tuple[bytes, ...]], by_path: set[int], argv: set[int]
    ) -> None:
        """Hold names, and the rules with path patterns and with argument patterns."""
        self.names = names
        self._any = not argv.isdisjoint(by_path)
        self._asked = {name for rule in argv for name in names.get(rule, ())}

    def looks_at_arguments(self, names: set[bytes]) -> bool:
        """Return whether a rule may look at the arguments of a program with these names."""
        return self._any or not self._asked.isdisjoint(names)


def encode(compiled: Compiled) -> bytes:
    """Return the blob of a compiled policy.

    Raises:
        ValueError: The policy is larger than the format allows.
    """
    if max(len(compiled.paths), len(compiled.network)) > MAX_PATHS:
        raise ValueError(f"more than {MAX_PATHS} patterns or addresses")
    if len(compiled.rules) > MAX_RULES:
        raise ValueError(f"more than {MAX_RULES} rules")
    for network in (compiled.network, *(block.network for block in compiled.blocks)):
        if sum(net[1] == NET_ABSTRACT for net in network) > MAX_ABSTRACT:
            raise ValueError(f"more than {MAX_ABSTRACT} abstract names of sockets")
    if len(compiled.signals) > MAX_SIGNALS:
        raise ValueError(f"more than {MAX_SIGNALS} signal rules")
    rules = [
        (
            *(r.id, r.kind, r.action, r.ops | OP_HIDE * r.hide),
            *(r.err, r.say, r.src, r.dest_kind, r.dest, r.digest, r.block),
        )
        for r in compiled.rules
    ]
    blob: bytes = msgpack.packb(
        (
            MAGIC,
            VERSION,
            compiled.flags,
            compiled.record,
            compiled.filter,
            rules,
            compiled.paths,
            compiled.names,
            compiled.argvs,
            compiled.floor,
            compiled.env,
            [
                (b.default, b.paths, b.names, b.argvs, b.start_paths, b.start_names, b.network)
                for b in compiled.blocks
            ],
            compiled.network,
            compiled.limits,
            compiled.signals,
        ),
        use_bin_type=True,
    )
    if len(blob) > MAX_BLOB:
        raise ValueError(f"larger than {MAX_BLOB} bytes")
    return blob


def read_flags(blob: bytes) -> int:
    """Return the flags of a blob (see ``compile``).

    Raises:
        ValueError: The bytes are no blob of this version.
    """
    return int(_unpack(blob)[2])


def read_rules(blob: bytes) -> tuple[RuleInfo, ...]:
    """Return the rules of a blob; a verdict's or event's rule is an index into them.

    Raises:
        ValueError: The bytes are no blob of this version.
    """
    return tuple(
        RuleInfo(ident, action, ops & ~OP_HIDE, err, say, src, block)
        for ident, _, action, ops, err, say, src, _, _, _, block in _unpack(blob)[5]
    )


def read_starts(blob: bytes) -> tuple[bytes, ...]:
    """Return, for each block of a blob, a program that it is for; b"" where only wildcards say.

    Raises:
        ValueError: The bytes are no blob of this version.
    """
    found = []
    for _, _, _, _, paths, names, _ in _unpack(blob)[11]:
        plain = [path for path in paths if path[:1] == b"/" and not set(path) & set(b"*?[\\")]
        found.append((*names, *plain, b"")[0])
    return tuple(found)


def read_programs(blob: bytes) -> Programs:
    """Return what the exec rules of a blob look at.

    Raises:
        ValueError: The bytes are no blob of this version.
    """
    parts = _unpack(blob)
    names: dict[int, tuple[bytes, ...]] = {}
    argv: set[int] = set()
    by_path: set[int] = set()
    for paths, called, argvs in (parts[6:9], *(block[1:4] for block in parts[11])):
        for rule, name in called:
            names[rule] = (*names.get(rule, ()), name)
        argv |= {rule for rule, _, patterns in argvs if patterns is not None}
        by_path |= {rule for rule, kind, _ in paths if kind == 0}
    return Programs(names, by_path, argv)


def _unpack(blob: bytes) -> tuple:  # type: ignore[type-arg]
    try:
        parts = msgpack.unpackb(blob, use_list=False, raw=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise ValueError(f"not a compiled policy: {error}") from error
    if not isinstance(parts, tuple) or len(parts) != _PARTS or parts[:2] != (MAGIC, VERSION):
        raise ValueError("not a compiled policy of this version")
    return parts
