"""Names behind the numbers of events."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.policy.blob import RuleInfo


class Lookup:
    """Names behind the numbers of events, looked up when the first event comes."""

    def __init__(self, blob: bytes) -> None:
        """Remember the compiled policy.

        Args:
            blob: its bytes.
        """
        self._blob = blob
        self._rules: tuple[RuleInfo, ...] | None = None
        self._calls: dict[int, str] = {}

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
        rule = self.rule(index)
        return (rule.id, rule.src) if rule else ("", "")

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
