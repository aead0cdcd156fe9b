"""Tells denials on stderr: at once, three lines each, repeats folded."""

from __future__ import annotations

import errno

from supervisor.cli.hints import Hints
from supervisor.run.events import (
    DENY,
    EFFECTS,
    FAULT,
    LIMIT,
    NETWORK,
    OP_SIGNAL,
    STEER,
    escape,
    name_of,
    op_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from supervisor.cli.output import Stderr
    from supervisor.policy.blob import RuleInfo
    from supervisor.run.events import Event
    from supervisor.run.session import Outcome

LIVE = 20
"""Distinct denials that are told as they come; the others are counted."""
_KEYS = 4096
_PASSED = ("continue", "broker", "rewrite")

Key = tuple[int, bytes, int, int]


class Denials:
    """A follower of a run that tells what was denied.

    Equal denials (rule, path, syscall, effect) are told once and counted; a summary
    follows at the end. It keeps some thousand of them, never more.
    """

    def __init__(
        self,
        stderr: Stderr,
        *,
        rule: Callable[[int], RuleInfo | None],
        call_name: Callable[[int], str],
        hints: Hints | None = None,
        as_json: bool = False,
        verbose: bool = False,
    ) -> None:
        """Prepare to tell.

        Args:
            stderr: where to.
            rule: what a rule's number stands for; None for the default.
            call_name: names a syscall.
            hints: writes what to type next.
            as_json: JSON lines instead of sentences.
            verbose: tell steered calls too.
        """
        self._stderr = stderr
        self._rule = rule
        self._call_name = call_name
        self._hints = hints or Hints()
        self._json = as_json
        self._verbose = verbose
        self._counts: dict[Key, int] = {}
        self._told: dict[Key, Event] = {}
        self._beyond = 0

    def events(self, batch: Sequence[Event]) -> None:
        """Tell what is new in a batch and count the rest."""
        for event in batch:
            if event.kind == LIMIT:
                self._limit(event)
            elif event.action == DENY or event.kind == FAULT:
                self._take(event)
            elif self._verbose and event.action == STEER:
                where = quoted(event.path2)
                self._stderr.say(f"steered {self._what(event)} to {where}  {_who(event)}")

    def tick(self) -> None:
        """Nothing waits here."""

    def started(self, pid: int) -> None:
        """Nothing to tell."""

    def ended(self, outcome: Outcome) -> None:  # noqa: ARG002 - a follower's signature
        """Sum up what was folded."""
        for key, event in self._told.items():
            count = self._counts[key]
            if count > 1 and self._json:
                self._stderr.write(self._line(event, count))
            elif count > 1:
                self._stderr.say(f"{_verb(event)} {self._what(event)} x{count}")
        hidden = {key: n for key, n in self._counts.items() if key not in self._told}
        calls = sum(hidden.values()) + self._beyond
        if calls and self._json:
            self._stderr.write(f'{{"event": "denied-more", "count": {calls}}}\n')
        elif calls:
            kinds = f"{len(hidden)}{'+' if self._beyond else ''}"
            text = f"and {calls} more denials of {kinds} other kinds"
            self._stderr.say(f"{text}{self._hints.more()}")

    def _take(self, event: Event) -> None:
        key = (event.rule, event.path, event.nr, event.effect)
        if key in self._counts:
            self._counts[key] += 1
            return
        if len(self._counts) >= _KEYS:
            self._beyond += 1
            return
        self._counts[key] = 1
        if len(self._told) < LIVE:
            self._told[key] = event
            self._stderr.write(self._line(event, 1) if self._json else self._sentences(event))

    def _limit(self, event: Event) -> None:
        """Tell that a soft limit was passed, or that a limit ended the run."""
        rule = self._rule(event.rule)
        name = rule.id if rule else "a limit"
        ended = event.action == DENY
        if self._json:
            import json

            kind = {"event": "limit", "rule": name, "src": rule.src if rule else ""}
            value = {**kind, "detail": escape(event.detail), "ended": ended}
            self._stderr.write(json.dumps(value, sort_keys=True) + "\n")
            return
        where = f" ({escape(rule.src.encode())})" if rule else ""
        head = self._stderr.paint("red" if ended else "yellow", "ended" if ended else "warning:")
        tail = ": the run was ended" if ended else ""
        self._stderr.say(f"{head} {name}{where}: {escape(event.detail)}{tail}")

    def _what(self, event: Event) -> str:
        what = f"{self._call_name(event.nr)} {quoted(event.path)}"
        if event.path2 and event.action == DENY:
            what += f" -> {quoted(event.path2)}"
        return f"{what} for {op_names(event.ops)}" if event.ops else what

    def _sentences(self, event: Event) -> str:
        paint = self._stderr.paint
        verb = _verb(event)
        result = f" = -1 {errno_name(event.err)}" if event.err and verb == "denied" else ""
        first = f"supervise: {paint('red', verb)} {self._what(event)}{result}  {_who(event)}\n"
        rule = self._rule(event.rule)
        if event.kind == FAULT:
            # what a rule could change is not named: what is told here is no path's fault
            told = f"{first}  why   {escape(event.detail)}\n"
            if rule is not None and event.action == DENY:
                told += f"  rule  {_named(rule)}\n"
            return told
        why = "default: nothing allows it" if rule is None else _named(rule)
        hint = ""
        known = event.path.startswith(b"/") or (event.path and event.ops & (NETWORK | OP_SIGNAL))
        # What is nowhere cannot be asked about; what protects us is not only in the policies.
        if known and not (rule and (rule.src == "built-in" or rule.id.startswith("limit:"))):
            hint = self._hint(event)
        return f"{first}  rule  {why}\n{hint}"

    def _hint(self, event: Event) -> str:
        return f"  {self._stderr.paint('cyan', 'hint:')} {self._hints.fix(event)}\n"

    def _line(self, event: Event, count: int) -> str:
        import json

        rule = self._rule(event.rule)
        value = {
            "event": "denied",
            "call": self._call_name(event.nr),
            "path": escape(event.path),
            "path2": escape(event.path2),
            "ops": op_names(event.ops),
            "errno": errno_name(event.err),
            "effect": name_of(EFFECTS, event.effect),
            "comm": escape(event.comm),
            "pid": event.tid,
            "rule": rule.id if rule else "",
            "src": rule.src if rule else "",
            "say": rule.say if rule else "",
            "detail": escape(event.detail) if event.kind == FAULT else "",
            "count": count,
        }
        return json.dumps(value, sort_keys=True) + "\n"


def quoted(data: bytes) -> str:
    """Show a path between double quotes, every byte of it visible.

    Args:
        data: the path.
    """
    return '"' + escape(data, '"') + '"'


def errno_name(number: int) -> str:
    """Name an errno, such as EACCES; an unknown one shows as a number.

    Args:
        number: the errno, 0 for none.
    """
    return errno.errorcode.get(number, str(number)) if number else ""


def _verb(event: Event) -> str:
    """What became of the call: in observe mode it went on, whatever its own outcome was."""
    effect = name_of(EFFECTS, event.effect)
    if effect == "kill":
        return "killed"
    return "would deny" if effect in _PASSED else "denied"


def _named(rule: RuleInfo) -> str:
    said = f": {escape(rule.say.encode())}" if rule.say else ""
    return f"{escape(rule.id.encode())} ({escape(rule.src.encode())}){said}"


def _who(event: Event) -> str:
    return f"[{escape(event.comm)} {event.tid}]"
