"""Questions about signals, as typed and as rules see them."""

from __future__ import annotations

from functools import partial

from supervisor.cli.lookup import NO_TMP
from supervisor.errors import UsageError
from supervisor.policy import schema, signals
from supervisor.policy.problems import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.model import Verdict
    from supervisor.policy.build import Built
    from supervisor.policy.explain import Explanation


def explain(built: Built, word: str, target: str) -> Explanation:
    """Explain a decision about a signal.

    Args:
        built: the compiled policy.
        word: the signal by name.
        target: self, child, others or tree; tree asks as for a group that may hold them all.

    Raises:
        UsageError: there is no such signal or target.
    """
    from supervisor.policy.explain import explain_signal

    number = signals.NUMBERS.get(word, 0)
    if not number:
        plain = word.upper().removeprefix("SIG")
        near = plain if plain in signals.NUMBERS else suggest(plain, signals.NUMBERS)
        hint = f"did you mean '{near}'?" if near else ""
        raise UsageError(f"there is no signal {word!r}", exit_code=2, hint=hint)
    if target not in schema.WHO:
        raise UsageError(f"there is no target {target!r}", exit_code=2, hint=", ".join(schema.WHO))
    ask = partial(_decide, built.entry.blob)
    return explain_signal(built.policy, built.compiled, ask, number, target)


def _decide(blob: bytes, number: int, who: int) -> Verdict:
    from supervisor import native

    return native.decide_signal(blob, number, who, tmp=NO_TMP)
