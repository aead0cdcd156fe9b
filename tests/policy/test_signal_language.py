"""``signals``: what loads, what is an error, what never wins, what the matcher makes of it."""

from __future__ import annotations

import itertools
import re
from functools import partial
from pathlib import Path

import pytest
from policy_world import Errors, Load

from supervisor import native
from supervisor.policy import blob, schema, signals
from supervisor.policy.compile import KIND_SIGNAL, compile_policy
from supervisor.policy.explain import explain_signal

SIGNAL_C = Path(__file__).parents[2] / "native/match/signal.c"
RULES = """\
signals:
  - {id: soft, steer: [KILL, QUIT], to: TERM, target: others}
  - {id: not, steer: USR2, to: none}
  - {id: no, deny: [STOP, RTMIN+3], target: child, say: "go on"}
  - {id: odd, deny: [STOP], target: self, as: ESRCH}
"""


def test_records(load: Load) -> None:
    """Masks, targets, what is sent and errno; ids as elsewhere."""
    policy = load(
        "signals: [{deny: all, target: self}, {steer: [RTMAX-30], to: POLL, target: child}]\n"
    )
    one, two = policy.signals
    assert (one.id, one.signals, one.who, one.to, one.err) == ("signals.1", 2**64 - 1, 1, 0, 1)
    assert (two.signals, two.who, two.to, two.err) == (1 << 33, 2, 29, 0)
    assert load("signals: []\n").signals == ()


def test_names_are_those_that_events_use() -> None:
    """Python and C call signals alike, and every name can be written in a rule."""
    text = SIGNAL_C.read_text()
    listed = re.search(r"names\[RTMIN\] = \{(.*?)\};", text, re.DOTALL)
    assert listed
    named = re.findall(r'"([^"]+)"', listed[1])
    assert named == [signals.name_of(number) for number in range(34)]
    for number in {*range(1, 65)} - {32, 33}:
        assert signals.NUMBERS[signals.name_of(number)] == number
    assert signals.names_of(1 | 1 << 33 | 1 << 63) == ["HUP", "RTMIN", "RTMIN+30"]


def test_the_matcher(load: Load) -> None:
    """Each signal and target as the rules say; what none speaks of is allowed."""
    compiled = compile_policy(load(RULES), program=b"")
    data = blob.encode(compiled)
    expected = {
        **{(n, who): "soft" for n in (9, 3) for who in (4, 5, 6, 7)},
        **{(12, who): "not" for who in range(1, 8)},
        **{(n, who): "no" for n in (19, 37) for who in (2, 3, 6, 7)},
        **{(19, who): "odd" for who in (1, 5)},
    }
    for number, who in itertools.product(range(1, 65), range(1, 8)):
        found = native.decide_signal(data, number, who)
        rule = compiled.rules[found.rule].id if found.rule >= 0 else ""
        assert rule == expected.get((number, who), ""), (number, who)
        action = {"soft": 1, "not": 1, "no": 3, "odd": 3, "": 0}[rule]
        assert found.action == action
    assert native.decide_signal(data, 19, 1).err == 3
    assert all(rule.ops == schema.SIGNAL for rule in compiled.rules if rule.kind == KIND_SIGNAL)
    for number, who in ((0, 1), (65, 1), (9, 0), (9, 8)):
        with pytest.raises(Exception, match="no such signal or target"):
            native.decide_signal(data, number, who)


@pytest.mark.parametrize(
    ("rule", "where", "message"),
    [
        ("{target: self}", "3:5", "the rule has no action: add deny or steer"),
        ("{allow: TERM}", "3:6", "'allow' in signals does nothing: signals inside the tree are al"),
        ("{approve: TERM}", "3:6", "'approve' is not supported by this version"),
        ("{deny: []}", "3:12", "'deny' is empty"),
        ("{deny: SIGTERM}", "3:12", "unknown signal 'SIGTERM' (did you mean 'TERM'?)"),
        ("{deny: [HUP, term]}", "3:18", "unknown signal 'term' (did you mean 'TERM'?)"),
        ("{deny: TREM}", "3:12", "unknown signal 'TREM' (did you mean 'TERM'?)"),
        ("{deny: ALL}", "3:12", "unknown signal 'ALL' (did you mean 'all'?)"),
        ("{deny: RTMIN+31}", "3:12", "unknown signal 'RTMIN+31'"),
        ("{deny: '9'}", "3:12", "unknown signal '9'"),
        ("{deny: TERM, target: parent}", "3:26", "unknown target 'parent'"),
        ("{deny: TERM, to: HUP}", "3:18", "'to' goes with 'steer' only"),
        ("{steer: TERM}", "3:6", "a steer needs 'to'"),
        ("{steer: TERM, to: HUB}", "3:23", "unknown signal 'HUB' (did you mean 'HUP'?)"),
        ("{steer: TERM, to: nonne}", "3:23", "unknown signal 'nonne'"),
        ("{steer: TERM, to: [HUP, INT]}", "3:23", "'to' must be text"),
        ("{steer: TERM, to: TERM}", "3:23", "the signal is steered to itself"),
        ("{steer: TERM, to: HUP, as: EPERM}", "3:28", "'as' is the errno of a refusal"),
        ("{deny: TERM, as: EPREM}", "3:22", "unknown errno name 'EPREM' (did you mean 'EPERM'?)"),
        ("{deny: TERM, timeout: 2m}", "3:18", "'timeout' is not supported by this version"),
        ("{deny: TERM, paths: [/a]}", "3:18", "unknown key 'paths'"),
        ("just words", "3:5", "a rule is a mapping such as"),
    ],
)
def test_errors(errors: Errors, rule: str, where: str, message: str) -> None:
    """Every mistake has its place and its sentence."""
    text = errors(f"signals:\n  - {rule}\n")
    assert f":{where}: error: {message}" in text


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "{id: a, steer: [HUP, TERM], to: INT}, {id: b, steer: all, to: none, target: self}",
            "rules 'a' and 'b' steer HUP, TERM to different signals",
        ),
        ("{id: a, steer: HUP, to: TERM}, {id: b, deny: TERM, target: self}", "which 'b' denies"),
        (
            "{id: a, steer: [HUP, INT], to: none, target: self}, {deny: [HUP]}, {deny: INT}",
            "rule 'a' can never win",
        ),
        (
            "{id: a, steer: IO, to: none, target: self}, {deny: [IO, HUP]}, {deny: HUP}",
            "rule 'a' can never win",
        ),
        ("{id: a, deny: HUP}, {id: a, deny: INT}", "repeated rule id 'a'"),
    ],
)
def test_rules_that_cannot_live_together(errors: Errors, rules: str, message: str) -> None:
    """Ties, steers to what is denied and rules that never win are errors."""
    assert message in errors(f"signals: [{rules}]\n")


def test_a_rule_that_only_together_others_cover(errors: Errors, load: Load) -> None:
    """Denials for each target leave a steer for all of them nothing; two of three do."""
    steer = "signals: [{id: a, steer: HUP, to: none}"
    parts = [f", {{deny: HUP, target: {who}}}" for who in ("self", "child", "others")]
    assert "rule 'a' can never win" in errors(steer + "".join(parts) + "]\n")
    load(steer + "".join(parts[:2]) + "]\n")


def test_rules_that_can(load: Load) -> None:
    """Equal steers, steers of apart targets, and a denial of a part are none."""
    load("signals: [{steer: all, to: HUP}, {steer: [HUP, INT], to: HUP, target: self}]\n")
    load("signals: [{steer: INT, to: HUP, target: child}, {steer: INT, to: none, target: self}]\n")
    load("signals: [{steer: INT, to: HUP}, {deny: INT, target: self}]\n")
    load("signals: [{steer: INT, to: HUP, target: child}, {deny: HUP, target: self}]\n")


def test_not_in_blocks(errors: Errors) -> None:
    """A block says nothing of signals yet."""
    text = errors("blocks: [{id: b, for: {program: x}, signals: []}]\n")
    assert "'signals' is not supported by this version" in text


def test_explain(load: Load) -> None:
    """The rule, what is sent, and the change that would turn it."""
    policy = load(RULES)
    compiled = compile_policy(policy, program=b"")
    decide = partial(native.decide_signal, blob.encode(compiled))
    steered = explain_signal(policy, compiled, decide, 9, "others")
    assert (steered.path, steered.op, steered.decision) == (b"KILL others", "signal", "steer")
    assert (steered.note, steered.mechanism) == ("TERM is sent instead", "issued again")
    assert steered.change == (
        "to refuse it, add under signals: - {id: no-kill, deny: KILL, target: others}"
    )
    absorbed = explain_signal(policy, compiled, decide, 12, "self")
    assert absorbed.note == "nothing is sent"
    denied = explain_signal(policy, compiled, decide, 19, "tree")
    assert denied.winner is not None
    assert (denied.decision, denied.err, denied.winner.id) == ("deny", 1, "no")
    assert [loser.id for loser in denied.losers] == ["odd"]
    assert denied.change.count("take STOP out of rule") == 2
    free = explain_signal(policy, compiled, decide, 19, "others")
    assert (free.decision, free.winner, free.mechanism) == ("allow", None, "kernel")
