"""Signals by name and as bits, whom they go to, and signal rules that can never win or tie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.policy.schema import DENY, STEER, WHO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from supervisor.policy.schema import SignalRule, Source

    FailAt = Callable[[Source, str, str, Iterable[str]], None]

_NAMES = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2"),
    *("PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG"),
    *("XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"),
)
RTMIN, RTMAX = 34, 64
"""The C libraries keep 32 and 33, between threads, for themselves."""
ALL = (1 << RTMAX) - 1
NONE = "none"
"""What a steer goes to that sends nothing."""
_ALIASES = {"IOT": 6, "POLL": 29, "CLD": 17, "RTMIN": RTMIN, "RTMAX": RTMAX}
NUMBERS = {
    **{name: number for number, name in enumerate(_NAMES, 1)},
    **_ALIASES,
    **{f"RTMIN+{i}": RTMIN + i for i in range(1, RTMAX - RTMIN + 1)},
    **{f"RTMAX-{i}": RTMAX - i for i in range(1, RTMAX - RTMIN + 1)},
}
"""Every way to write a signal."""


def name_of(number: int) -> str:
    """Name a signal as ``sv_signal_name`` does; 0 is none."""
    if number == 0:
        return NONE
    if number <= len(_NAMES):
        return _NAMES[number - 1]
    if number < RTMIN:
        return str(number)
    return f"RTMIN+{number - RTMIN}" if number > RTMIN else "RTMIN"


def bit(number: int) -> int:
    """Return the bit of a signal in a mask."""
    return 1 << (number - 1)


def names_of(mask: int) -> list[str]:
    """Name the signals of a mask."""
    if mask == ALL:
        return ["all"]
    return [name_of(number) for number in range(1, RTMAX + 1) if mask & bit(number)]


def who_of(mask: int) -> str:
    """Name a mask of enum sv_who as ``target`` does."""
    return next(name for name, bits in WHO.items() if bits == mask)


def report(
    rules: Sequence[SignalRule],
    reach: Mapping[str, frozenset[str]],
    fail_at: FailAt,
) -> None:
    """Report rules that can never win, steers that tie, and those that lead to what is denied.

    Args:
        rules: The signal rules of a policy.
        reach: For each file as shown, all files that it extends, itself included.
        fail_at: Notes a problem: source, message, suggestion, notes.
    """
    denials = [rule for rule in rules if rule.action == DENY]
    steers = [rule for rule in rules if rule.action == STEER]
    for i, rule in enumerate(steers):
        for other in steers[:i]:
            _report_tie(rule, other, fail_at)
        for denial in denials:
            if rule.to and denial.signals & bit(rule.to) and denial.who & rule.who:
                note = f"'{denial.id}' is here: {denial.source}"
                text = f"rule '{rule.id}' steers to {name_of(rule.to)}, which '{denial.id}' denies"
                fail_at(rule.source, text, "", (note,))
        known = reach.get(rule.source.file, frozenset())
        _report_dead(rule, [d for d in denials if d.source.file in known], fail_at)


def _report_tie(rule: SignalRule, other: SignalRule, fail_at: FailAt) -> None:
    both = rule.signals & other.signals
    if both and rule.who & other.who and rule.to != other.to:
        shown = ", ".join(names_of(both))
        text = f"rules '{other.id}' and '{rule.id}' steer {shown} to different signals"
        fail_at(rule.source, text, "", (f"the other one is here: {other.source}",))


def _report_dead(rule: SignalRule, denials: Sequence[SignalRule], fail_at: FailAt) -> None:
    for who in (bits for bits in WHO.values() if bits & rule.who and bits.bit_count() == 1):
        left = rule.signals
        for denial in denials:
            left &= ~denial.signals if denial.who & who else left
        if left:
            return
    fail_at(
        rule.source,
        f"rule '{rule.id}' can never win: stricter rules cover all that it says",
        "",
        tuple(f"'{denial.id}' ({denial.source})" for denial in denials[:4]),
    )
