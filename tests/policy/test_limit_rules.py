"""``limits``: what loads, what is an error, what several files come to, what C reads."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest
from policy_world import Errors, Load

from supervisor import native
from supervisor.model import COUNTED
from supervisor.policy import blob
from supervisor.policy.build import build
from supervisor.policy.cache import lookup, store
from supervisor.policy.compile import compile_policy
from supervisor.policy.context import Context
from supervisor.policy.limits import LARGEST, NAMES
from supervisor.policy.merge import load_policy

Values = tuple[int | None, int | None, bool]


def values(load: Load, text: str) -> dict[str, Values]:
    """What a section comes to."""
    found = load(f"limits: {{{text}}}\n").limits
    return {limit.name: (limit.hard, limit.soft, limit.halt) for limit in found}


GOOD = [
    ("actions: 0", (0, None, False)),
    (f"execs: {LARGEST}", (LARGEST, None, False)),
    ("files_created: {hard: 5, soft: 5, on_exceed: halt}", (5, 5, True)),
    ("files_deleted: {soft: 0}", (None, 0, False)),
    ("connections: {hard: 7, on_exceed: deny}", (7, None, False)),
    ("denials: 3", (3, None, True)),
    ("denials: {hard: 3, on_exceed: halt}", (3, None, True)),
    ("open_files: 64", (64, None, False)),
    ("file_size: 5", (5, None, False)),
    ("file_size: 5B", (5, None, False)),
    ("file_size: 2kB", (2000, None, False)),
    ("file_size: 500MB", (500_000_000, None, False)),
    ("file_size: 2GiB", (2 << 30, None, False)),
    ("cpu: 90s", (90, None, True)),
    ("wall: 30m", (1800, None, True)),
    ("wall: 1h", (3600, None, True)),
    ("wall: 1h30m", (5400, None, True)),
    ("wall: 0", (0, None, True)),
    ("cpu: {hard: 1h2m3s, soft: 1h}", (3723, 3600, True)),
]


@pytest.mark.parametrize(("text", "value"), GOOD)
def test_good_limits(load: Load, text: str, value: Values) -> None:
    """Every form of a value."""
    assert values(load, text) == {text.partition(":")[0]: value}


BAD = [
    (f"execs: {LARGEST + 1}", "limit 'execs' is above 2^62"),
    (f"execs: {1 << 63}", "limit 'execs' is above 2^62"),
    (f"wall: {1 << 62}h", "limit 'wall' is above 2^62"),
    (f"file_size: {1 << 43}GiB", "limit 'file_size' is above 2^62"),
    ("execs: " + "9" * 40, "limit 'execs' must be a whole number, as 100"),
    ("execs: -1", "limit 'execs' is negative: 0 stands for none at all"),
    ("execs: 1.5", "limit 'execs' must be a whole number, as 100: found '1.5'"),
    ("execs: 1e3", "limit 'execs' must be a whole number"),
    ("execs: 0x10", "limit 'execs' must be a whole number"),
    ("execs: 10MB", "limit 'execs' must be a whole number"),
    ("execs: ~", "limit 'execs' must be a whole number"),
    ("execs: [1]", "limit 'execs' must be a single value, found a list"),
    ("execs: {}", "limit 'execs' needs 'hard' or 'soft'"),
    ("execs: {on_exceed: deny}", "limit 'execs' needs 'hard' or 'soft'"),
    ("execs: {hard: {a: b}}", "limit 'execs' must be a single value, found a mapping"),
    ("execs: {hard: 1, sotf: 1}", "unknown key 'sotf' (did you mean 'soft'?)"),
    ("execs: {hard: 1, soft: 2}", "the soft limit is above the hard one"),
    ("execs: {hard: 1, on_exceed: approve}", "'on_exceed: approve' is not supported by this"),
    (
        "execs: {hard: 1, on_exceed: hlat}",
        "deny or halt (did you mean 'halt'?)",
    ),
    ("execs: {hard: 1, on_exceed: [deny]}", "'on_exceed' must be deny or halt"),
    ("wall: {hard: 1s, on_exceed: deny}", "what is above 'wall' cannot be refused"),
    ("cpu: {hard: 1s, on_exceed: deny}", "what is above 'cpu' cannot be refused"),
    ("denials: {hard: 1, on_exceed: deny}", "what is above 'denials' cannot be refused"),
    ("open_files: {hard: 1, on_exceed: halt}", "the kernel refuses what is above 'open_files'"),
    ("file_size: {soft: 1, hard: 2}", "the kernel does not tell when 'file_size' is passed"),
    ("wall: 90", "limit 'wall' must be a time in whole seconds, as 90s, 30m or 1h30m"),
    ("wall: 1m1h", "limit 'wall' must be a time in whole seconds"),
    ("wall: ''", "limit 'wall' must be a time in whole seconds"),
    ("cpu: 500ms", "limit 'cpu' must be a time in whole seconds"),
    ("file_size: 2 GiB", "limit 'file_size' must be bytes, as 500MB, 2GiB or a plain number"),
    ("file_size: 1.5GiB", "limit 'file_size' must be bytes"),
    ("actoins: 1", "(did you mean 'actions'?)"),
    ("memory_max: 1", "(did you mean 'memory'?)"),
    ("memory: 2GiB", "'memory' is not supported by this version"),
    ("processes: 5", "'processes' is not supported by this version"),
    (
        "bytes_out: 20MB",
        "not supported by this version: bytes written to a connected",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_limits(errors: Errors, text: str, message: str) -> None:
    """Every mistake is named, with its line."""
    shown = errors(f"limits:\n  {text}\n")
    assert message in shown
    assert shown.startswith("agent.yaml:3:")
    assert "1 error" not in shown
    assert shown.count(": error: ") == 1


def test_no_mapping(errors: Errors) -> None:
    """A list of limits is none."""
    assert "'limits' must be a mapping, found a list" in errors("limits: [execs]\n")


def test_the_smallest_counts(context: Context) -> None:
    """A file can only narrow what another says, whichever comes last."""
    texts = [
        "execs: 5, connections: {hard: 9, soft: 2}, files_created: {soft: 3}, actions: 1",
        "execs: {hard: 7, on_exceed: halt}, connections: {hard: 4, soft: 3}, files_created: 8",
    ]
    for order in (texts, texts[::-1]):
        inline = [
            (f"{i}.yaml", f"version: 1\nlimits: {{{text}}}\n".encode())
            for i, text in enumerate(order)
        ]
        policy = load_policy([], context=context, inline=inline)
        found = {limit.name: (limit.hard, limit.soft, limit.halt) for limit in policy.limits}
        assert found == {
            "actions": (1, None, False),
            "files_created": (8, 3, False),
            "execs": (5, None, True),
            "connections": (4, 2, False),
        }
        source = next(limit.source.file for limit in policy.limits if limit.name == "execs")
        assert order[int(source[0])] == texts[0]


def test_compiled(load: Load) -> None:
    """The blob has them by number, each with a rule that matches nothing and tells it."""
    policy = load("limits: {wall: 5s, execs: {soft: 2, hard: 3, on_exceed: halt}}\n")
    compiled = compile_policy(policy, program=b"")
    data = blob.encode(compiled)
    limits = msgpack.unpackb(data, use_list=False)[13]
    assert [limit[:4] for limit in limits] == [
        (NAMES.index("execs"), 3, 2, 1),
        (NAMES.index("wall"), 5, None, 1),
    ]
    rules = blob.read_rules(data)
    assert [rules[limit[4]].id for limit in limits] == ["limit:execs", "limit:wall"]
    assert rules[limits[0][4]].say == "execs: more than 3 ends the run"
    assert native.decide(data, 1, b"/any").rule == -1


def test_the_cache_keeps_them(context: Context, tmp_path: Path) -> None:
    """A warm start knows the same limits as the first."""
    inline = [("a.yaml", b"version: 1\nlimits: {wall: 5s, execs: {soft: 2}}\n")]
    entry = build([], context, rows=native.rows(), tests=native.whens(), inline=inline).entry
    assert [limit[:3] for limit in entry.limits] == [("execs", -1, 2), ("wall", 5, -1)]
    folder = bytes(tmp_path / "cache")
    tmp_path.chmod(0o700)
    assert store(folder, "key", entry, {}, ())
    again = lookup(folder, "key", {})
    assert again is not None
    assert again.limits == entry.limits


def test_counted_names_come_first() -> None:
    """The counters of a session are named in the order of the limits."""
    assert NAMES[: len(COUNTED)] == COUNTED
