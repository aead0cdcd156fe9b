"""Time limits of a policy: what a run has used up, looked at once a second.

Measured here, and ended by the session; nothing waits for a number of ours. Processor
time is that of all processes of the tree, the ended ones included; a child that its
parent leaves to the kernel (SIGCHLD ignored) counts only while it lives.
"""

from __future__ import annotations

import os
import time

from supervisor.run.events import ALLOW, DENY, EFFECT_KILL, LIMIT, Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    TimeLimit = tuple[str, int, int, int]
    """Name, hard, soft (-1 = none) and the rule it is told by."""

EVERY_S = 1.0


class Watch:
    """The limits ``cpu`` and ``wall`` of one run.

    Attributes:
        over: The limit that ends the run, or "".
    """

    def __init__(
        self,
        limits: Sequence[TimeLimit],
        clock: Callable[[], float] = time.monotonic,
        measure: Callable[[], float] | None = None,
    ) -> None:
        """Begin to watch.

        Args:
            limits: those of a compiled policy; only the two are looked at.
            clock: seconds that only grow.
            measure: tells the processor time of the tree; tests bring their own.
        """
        self._limits = [limit for limit in limits if limit[0] in ("cpu", "wall")]
        self._clock = clock
        self._start = clock()
        self._next = self._start
        self._measure = measure or tree_cpu
        self._told: set[str] = set()
        self.over = ""

    def look(self, now: float) -> list[Event]:
        """Tell what was passed since the last look.

        Args:
            now: the clock's time.
        """
        if not self._limits or self.over or now < self._next:
            return []
        ends = [self._start + end for limit in self._limits for end in limit[1:3]]
        self._next = min([now + EVERY_S, *(end for end in ends if end > now)])
        events = []
        for name, hard, soft, rule in self._limits:
            used = now - self._start if name == "wall" else self._measure()
            if 0 <= hard <= used and not self.over:
                self.over = name
                events.append(_event(rule, f"more than {hard} s", over=True))
            elif 0 <= soft <= used and name not in self._told:
                self._told.add(name)
                events.append(_event(rule, f"soft limit: more than {soft} s", over=False))
        return events


def _event(rule: int, detail: str, *, over: bool) -> Event:
    return Event(
        *(LIMIT, 0, time.time_ns(), time.monotonic_ns(), os.getpid(), -1, 0),
        *(DENY if over else ALLOW, EFFECT_KILL if over else 0, rule, 0),
        *(b"", b"", b"supervise", detail.encode()),
    )


def tree_cpu() -> float:
    """Measure the processor time, in seconds, of all that descends from this process."""
    import psutil

    own = psutil.Process()
    times = own.cpu_times()
    total = times.children_user + times.children_system
    for child in own.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue  # it ended just now, and counts as its parent's
        total += times.user + times.system + times.children_user + times.children_system
    return float(total)
