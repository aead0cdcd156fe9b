"""Names behind the numbers of events."""

from __future__ import annotations

from supervisor.errors import SupervisorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.policy.blob import Programs, RuleInfo
    from supervisor.run.events import Event
    from supervisor.run.session import Running

NO_TMP = b"/tmp/supervise-session"
"""Stands for the private folder of a run, where a policy is asked outside of one."""


class Lookup:
    """Names behind the numbers of events, looked up when the first event comes."""

    def __init__(self, blob: bytes) -> None:
        """Remember the compiled policy.

        Args:
            blob: its bytes.
        """
        self._blob = blob
        self._rules: tuple[RuleInfo, ...] | None = None
        self._programs: Programs | None = None
        self._calls: dict[int, str] = {}
        self._live: Callable[[int], tuple[str, str]] | None = None

    def bind(self, session: Running) -> None:
        """Ask a running session for names: it has them at hand, decoded.

        Args:
            session: the session that runs the compiled policy.
        """
        self._live = session.rule

    def rule(self, index: int) -> RuleInfo | None:
        """Find a rule.

        Args:
            index: its number; -1 is the default.
        """
        if self._rules is None:
            from supervisor.policy.blob import read_rules

            self._rules = read_rules(self._blob)
        return self._rules[index] if 0 <= index < len(self._rules) else None

    def id_and_source(self, index: int) -> tuple[str, str]:
        """Find a rule's id and source; empty strings for the default.

        Args:
            index: its number.
        """
        if self._live is not None:
            return self._live(index)
        rule = self.rule(index)
        return (rule.id, rule.src) if rule else ("", "")

    def starts(self, index: int) -> bytes:
        """Tell a program whose block a rule belongs to; empty for none, or where none is known.

        Args:
            index: the rule's number.
        """
        rule = self.rule(index)
        if rule is None or not rule.block:
            return b""
        from supervisor.policy.blob import read_starts

        return read_starts(self._blob)[rule.block - 1]

    def programs(self) -> Programs:
        """Tell what the exec rules look at."""
        if self._programs is None:
            from supervisor.policy.blob import read_programs

            self._programs = read_programs(self._blob)
        return self._programs

    def denied_path(self, event: Event) -> bytes:
        """Tell which path of a denied call its rule denies: a rename or link has two.

        Args:
            event: the denial.
        """
        if not event.path2.startswith(b"/"):
            return event.path
        from supervisor import native

        for path in (event.path, event.path2):
            try:
                found = native.decide(self._blob, event.ops, path, tmp=NO_TMP)
            except SupervisorError:  # a hint is not worth a run
                continue
            if (found.action, found.rule) == (event.action, event.rule):
                return path
        return event.path

    def call(self, nr: int) -> str:
        """Name a syscall.

        Args:
            nr: its number; a negative one stands for none.
        """
        name = self._calls.get(nr)
        if name is None:
            from supervisor import native

            name = self._calls[nr] = native.call_name(nr)
        return name
