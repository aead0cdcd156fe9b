"""The policy as records, and the words that it is written in.

A record exists in two states. Fresh from a file its patterns and targets are
``Text`` with variables in them; ``merge`` fills ``patterns``, ``excluded``, ``dest``
and so on with bytes, and nothing reads those fields before.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from supervisor.policy.limits import Limit

ALLOW, STEER, APPROVE, DENY = range(4)
"""enum sv_action; the larger of two wins."""
ACTIONS = {"allow": ALLOW, "steer": STEER, "approve": APPROVE, "deny": DENY}
ACTION_NAMES = tuple(ACTIONS)

READ, WRITE, CREATE, DELETE, RENAME, METADATA, LIST, EXEC = (1 << i for i in range(8))
"""enum sv_op."""
OP_BITS = {
    "read": READ,
    "write": WRITE,
    "create": CREATE,
    "delete": DELETE,
    "rename": RENAME,
    "metadata": METADATA,
    "list": LIST,
    "exec": EXEC,
}
ALL_OPS = 255
CHANGES = WRITE | CREATE | DELETE | RENAME | METADATA
RULE_OPS = {**OP_BITS, "read": READ | LIST, "all": ALL_OPS}
"""What a word in a files rule stands for: ``read`` speaks of folders too."""
CONNECT, BIND = 0x200, 0x400
"""enum sv_net_op."""
NET_BITS = {"connect": CONNECT, "bind": BIND}
ALL_NET = CONNECT | BIND
NET_OPS = {**NET_BITS, "all": ALL_NET}
"""What a word in a network rule stands for."""
NET_ADDRESS, NET_PATH, NET_ABSTRACT = range(3)
"""enum sv_net_kind."""
SIGNAL = 0x1000
"""enum sv_signal_op."""
WHO = {"self": 1, "child": 2, "others": 4, "tree": 7}
"""enum sv_who."""
STEERABLE = {"read", "write", "create", "metadata"}
"""``metadata`` to whole trees only: a file that stands for others keeps its own."""
TRASH = "trash"
"""What a steer of deletes goes to, and nothing else."""

RECORDS = {"denials": 0, "changes": 1, "all": 2}
"""enum sv_record."""
MODES = ("enforce", "observe")
DEST_NONE, DEST_FILE, DEST_TREE, DEST_ARGV, DEST_TRASH = range(5)
"""enum sv_dest_kind."""

MAX_ID, MAX_SAY, MAX_SRC = 128, 1024, 512
RESERVED_ID = "supervise."

TOP_KEYS = (
    *("version", "name", "extends", "mode", "vars", "files", "network", "exec", "blocks", "env"),
    *("signals", "limits", "audit"),
)
TOP_LATER = ("approvals",)
FILE_KEYS = ("id", *ACTIONS, "paths", "except", "to", "as", "hide", "say")
FILE_LATER = ("timeout",)
EXEC_KEYS = ("id", *ACTIONS, "argv", "sha256", "to", "args", "as", "say")
EXEC_LATER = ("timeout",)
NET_KEYS = ("id", *ACTIONS, "to", "as", "say")
NET_LATER = ("via", "timeout")
SIGNAL_KEYS = ("id", *ACTIONS, "target", "to", "as", "say")
SIGNAL_LATER = ("timeout",)
BLOCK_KEYS = ("id", "for", "files", "network", "exec", "default")
BLOCK_LATER = ("signals", "limits")
FOR_KEYS = ("program",)
FOR_LATER = ("user", "args")
MAX_BLOCKS = 16
"""SV_BLOCKS: a process's blocks are kept in as many bits."""
DEFAULTS = ("deny", "allow")
ENV_KEYS = ("keep", "drop", "set")
AUDIT_KEYS = ("record",)
LATER = "is not supported by this version"


def errno_number(name: str) -> int | None:
    """Return the number of an errno name such as "ENOENT", or None."""
    value = getattr(errno, name, None) if name.startswith("E") and name.isupper() else None
    return value if isinstance(value, int) else None


def op_names(ops: int) -> str:
    """Return the operations of a mask as words, for people."""
    if ops & ALL_OPS == ALL_OPS:
        return "all"
    return ", ".join(name for name, bit in (OP_BITS | NET_BITS).items() if ops & bit)


@dataclass(frozen=True, slots=True)
class Source:
    """Where something was written: file as shown, line and column from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Text:
    """A string of a policy file, variables not yet replaced."""

    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class FileRule:
    """One entry of ``files``.

    Attributes:
        id: Unique over all merged files.
        action: enum sv_action.
        ops: Mask of enum sv_op.
        paths: Patterns as written.
        excepts: Exceptions as written.
        err: errno shown for a refusal; 0 unless the action is deny.
        say: A sentence for whoever was refused, or "".
        to: Target of a steer as written.
        source: Where the rule stands.
        named: Whether the file gave the id.
        patterns: ``paths`` as bytes, in the same order.
        excluded: ``excepts`` as bytes, in the same order.
        dest_kind: enum sv_dest_kind.
        dest: ``to`` as bytes.
        hide: Whether names that the rule denies are not there for looking either.
    """

    id: str
    action: int
    ops: int
    paths: tuple[Text, ...]
    excepts: tuple[Text, ...]
    err: int
    say: str
    to: Text | None
    source: Source
    named: bool = True
    patterns: tuple[bytes, ...] = ()
    excluded: tuple[bytes, ...] = ()
    dest_kind: int = DEST_NONE
    dest: bytes = b""
    hide: bool = False

    @property
    def shows(self) -> bool:
        """Return whether opens are told that nothing is there, while names stay visible."""
        return self.action == DENY and self.err == errno.ENOENT and not self.hide


@dataclass(frozen=True, slots=True)
class ExecRule:
    """One entry of ``exec``.

    Attributes:
        id: Unique over all merged files.
        action: enum sv_action.
        programs: Bare names and path patterns as written.
        argv: Patterns over the arguments behind the name as written; None = any.
        to: New argument list of a steer as written.
        append: Whether the caller's arguments follow those of ``to``.
        err: errno shown for a refusal; 0 unless the action is deny.
        say: A sentence for whoever was refused, or "".
        source: Where the rule stands.
        named: Whether the file gave the id.
        digest: SHA-256 that the programs must have, or b"" for any.
        names: The bare names as bytes.
        patterns: The path patterns as bytes.
        argv_patterns: ``argv`` as bytes.
        dest: ``to`` as bytes.
    """

    id: str
    action: int
    programs: tuple[Text, ...]
    argv: tuple[Text, ...] | None
    to: tuple[Text, ...]
    append: bool
    err: int
    say: str
    source: Source
    named: bool = True
    digest: bytes = b""
    names: tuple[bytes, ...] = ()
    patterns: tuple[bytes, ...] = ()
    argv_patterns: tuple[bytes, ...] | None = None
    dest: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class NetRule:
    """One entry of ``network``.

    Attributes:
        id: Unique over all merged files.
        action: enum sv_action: allow or deny.
        ops: Mask of enum sv_net_op.
        to: Addresses and local sockets as written.
        err: errno shown for a refusal; 0 unless the action is deny.
        say: A sentence for whoever was refused, or "".
        source: Where the rule stands.
        named: Whether the file gave the id.
        entries: ``to`` as (enum sv_net_kind, bytes, prefix length, lowest and highest port).
    """

    id: str
    action: int
    ops: int
    to: tuple[Text, ...]
    err: int
    say: str
    source: Source
    named: bool = True
    entries: tuple[tuple[int, bytes, int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SignalRule:
    """One entry of ``signals``.

    Attributes:
        id: Unique over all merged files.
        action: enum sv_action: steer or deny.
        signals: Mask: bit n - 1 for signal n.
        who: Mask of enum sv_who.
        to: Number of the signal that a steer sends; 0 = none.
        err: errno shown for a refusal; 0 unless the action is deny.
        say: A sentence for whoever was refused, or "".
        source: Where the rule stands.
        named: Whether the file gave the id.
    """

    id: str
    action: int
    signals: int
    who: int
    to: int
    err: int
    say: str
    source: Source
    named: bool = True


@dataclass(frozen=True, slots=True)
class Block:
    """Rules that narrow what some programs, and all that they start, may do.

    Attributes:
        id: Unique among all rules, too: what its default denies is told by it.
        programs: Bare names and path patterns as written.
        files: Its files rules.
        network: Its network rules.
        execs: Its exec rules.
        open: Whether what no rule speaks of is allowed, as far as the policy goes.
        source: Where the block stands.
        named: Whether the file gave the id.
        names: The bare names as bytes.
        patterns: The path patterns as bytes.
    """

    id: str
    programs: tuple[Text, ...]
    files: tuple[FileRule, ...]
    network: tuple[NetRule, ...]
    execs: tuple[ExecRule, ...]
    open: bool
    source: Source
    named: bool = True
    names: tuple[bytes, ...] = ()
    patterns: tuple[bytes, ...] = ()


Ruled = FileRule | NetRule | ExecRule | SignalRule | Block
"""Whatever has an id."""


@dataclass(frozen=True, slots=True)
class EnvRule:
    """What the target sees of the environment: names or patterns such as ``LC_*``.

    Attributes:
        keep: Names to keep; empty keeps all.
        drop: Names to drop from what was kept.
        set: Names and values as written.
        values: Names and values as bytes.
    """

    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    set: tuple[tuple[str, Text], ...] = ()
    values: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class AuditRule:
    """What the audit trail holds: enum sv_record."""

    record: int


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One checked file, before anything is merged or replaced."""

    name: str
    extends: tuple[Text, ...]
    mode: str
    vars: tuple[tuple[str, Text], ...]
    files: tuple[FileRule, ...]
    network: tuple[NetRule, ...]
    execs: tuple[ExecRule, ...]
    blocks: tuple[Block, ...]
    env: EnvRule
    audit: AuditRule | None
    limits: tuple[Limit, ...] = ()
    signals: tuple[SignalRule, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that went into a policy.

    Attributes:
        file: The name shown to people.
        path: Absolute path; "" for text that came from no file.
        sha256: Hex digest of the bytes that were read.
        lines: The source lines, for messages.
    """

    file: str
    path: str
    sha256: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """All files merged, all variables replaced, all checks passed.

    Attributes:
        name: Name of the policy.
        observe: Decide and record, but let pass what a rule could allow.
        record: enum sv_record.
        files: The files rules, in the order they were met.
        execs: The exec rules, in the order they were met.
        env: What the target sees of the environment.
        vars: The variables that were used, with their values.
        used_env: Names of environment variables that the result depends on.
        sources: Every file that was read.
        blocks: Rules for some programs only, in the order they were met.
        network: The network rules, in the order they were met.
        limits: How much a run may use, one limit of each name.
        signals: The signal rules, in the order they were met.
    """

    name: str
    observe: bool
    record: int
    files: tuple[FileRule, ...]
    execs: tuple[ExecRule, ...]
    env: EnvRule
    vars: tuple[tuple[str, bytes], ...]
    used_env: tuple[str, ...]
    sources: tuple[SourceFile, ...]
    blocks: tuple[Block, ...] = ()
    network: tuple[NetRule, ...] = ()
    limits: tuple[Limit, ...] = ()
    signals: tuple[SignalRule, ...] = ()

    @property
    def hides(self) -> bool:
        """Return whether names are hidden, so that calls that only look are asked about, too."""
        return not self.observe and any(rule.hide for rule in self.files)

    @property
    def looks(self) -> bool:
        """Return whether calls that only look are asked about: names are hidden or elsewhere."""
        return self.hides or self.trees

    @property
    def trees(self) -> bool:
        """Return whether names may lie in another tree than where they are asked for."""
        return not self.observe and any(rule.dest_kind == DEST_TREE for rule in self.files)

    @property
    def nets(self) -> bool:
        """Return whether some of the network is allowed, so that all ways to it are asked about."""
        return any(rule.action == ALLOW for rule in self.network)
