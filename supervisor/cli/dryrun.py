"""``supervise run --dry-run``: what would be enforced, with nothing run."""

from __future__ import annotations

from supervisor import native
from supervisor.cli.output import out, out_json, table
from supervisor.errors import SupervisorError
from supervisor.policy.blob import read_rules
from supervisor.policy.digest import hexdigest
from supervisor.run.events import ACTIONS, escape, name_of, op_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from supervisor.policy.blob import RuleInfo
    from supervisor.policy.cache import Entry


def show(entry: Entry, command: Sequence[bytes], *, as_json: bool) -> int:
    """Print the compiled policy and what the machine lacks for it.

    Args:
        entry: the compiled policy.
        command: what would be run.
        as_json: print JSON.

    Returns:
        0, or 125 where a run could not start on this machine.
    """
    missing = [item for item in native.facilities() if item.need and not item.ok]
    known = read_rules(entry.blob)
    limits = [rule for rule in known if rule.id.startswith("limit:")]
    rules = known[: len(known) - len(limits)]  # they stand last
    facts = {
        "command": [escape(word) for word in command],
        "policy": entry.name,
        "sha256": hexdigest(entry.blob),
        "mode": "observe" if entry.observe else "enforce",
        "private_tmp": entry.needs_tmp,
        "trash": entry.needs_trash,
        "sources": [f"{name} {digest}" for name, _, digest in entry.sources],
        "limits": [rule.say for rule in limits],
        "missing": [item.name for item in missing],
    }
    if as_json:
        rows = [{key: getattr(rule, key) for key in rule.__slots__} for rule in rules]
        out_json({**facts, "rules": rows})
    else:
        out(_text(facts, rules))
    return SupervisorError("").exit_code if missing else 0


def _text(facts: Mapping[str, object], rules: Sequence[RuleInfo]) -> str:
    text = ""
    for key, value in facts.items():
        shown = value if isinstance(value, list) else [value]
        text += "".join(f"{key:<12} {item}\n" for item in shown)
    rows = [(name_of(ACTIONS, r.action), r.id, op_names(r.ops), r.src) for r in rules]
    text += "\n" + table([("ACTION", "RULE", "OPERATIONS", "SOURCE"), *rows])
    return text + "everything else is denied\n"
