"""What the native library tells, as plain values.

The classes have ``__slots__`` and are no dataclasses, which would cost a third of
a warm start; treat their instances as constants.
"""

from __future__ import annotations

COUNTED = ("actions", "files_created", "files_deleted", "execs", "connections", "denials")
"""What native/broker/budget.c counts, by enum sv_limit_kind."""


class Row:
    """One row of the syscall table: how the filter treats one syscall."""

    __slots__ = ("err", "klass", "name", "note", "nr")

    def __init__(self, nr: int, klass: int, err: int, name: str, note: str) -> None:
        """Hold number, class (enum sv_class), errno, name and the reason."""
        self.nr = nr
        self.klass = klass
        self.err = err
        self.name = name
        self.note = note


class When:
    """An argument test of the filter: ``args[arg] & mask == value`` gives ``klass``."""

    __slots__ = ("arg", "err", "klass", "mask", "nr", "value")

    def __init__(self, nr: int, arg: int, mask: int, value: int, klass: int, err: int) -> None:
        """Hold the test of one argument of syscall ``nr``."""
        self.nr = nr
        self.arg = arg
        self.mask = mask
        self.value = value
        self.klass = klass
        self.err = err


class Facility:
    """One thing that the kernel offers or not, found by trying it."""

    __slots__ = ("buys", "detail", "err", "index", "name", "need", "ok", "value")

    def __init__(
        self,
        index: int,
        name: str,
        buys: str,
        detail: str,
        *,
        ok: bool,
        need: bool,
        err: int = 0,
        value: int = 0,
    ) -> None:
        """Hold the outcome of one probe; ``index`` is its bit in ``degraded``."""
        self.index = index
        self.name = name
        self.ok = ok
        self.need = need
        self.err = err
        self.value = value
        self.buys = buys
        self.detail = detail


class Verdict:
    """The matcher's answer to one question."""

    __slots__ = ("action", "err", "matched", "rule", "rules")

    def __init__(
        self, action: int, rule: int, err: int, matched: int, rules: tuple[int, ...]
    ) -> None:
        """Hold the action (enum sv_action), the winning rule (-1 = default) and the losers."""
        self.action = action
        self.rule = rule
        self.err = err
        self.matched = matched
        self.rules = rules


class Status:
    """State of a session: see struct sv_status."""

    __slots__ = (
        "calls",
        "code",
        "denied",
        "exec_err",
        "exited",
        "halted",
        "limit",
        "running",
        "steered",
        "tasks",
        "used",
    )

    def __init__(  # noqa: PLR0913 - the fields of struct sv_status
        self,
        *,
        running: bool = False,
        tasks: int = 0,
        exited: int = 0,
        code: int = 0,
        exec_err: int = 0,
        halted: bool = False,
        calls: int = 0,
        denied: int = 0,
        steered: int = 0,
        limit: int = 0,
        used: tuple[int, ...] = (0,) * len(COUNTED),
    ) -> None:
        """Hold what sv_status reported; ``exited`` is 1 for a code, 2 for a signal."""
        self.running = running
        self.tasks = tasks
        self.exited = exited
        self.code = code
        self.exec_err = exec_err
        self.halted = halted
        self.calls = calls
        self.denied = denied
        self.steered = steered
        self.limit = limit
        self.used = used

    def counters(self) -> dict[str, int]:
        """Tell how much of what is counted was used, by name."""
        return dict(zip(COUNTED, self.used, strict=True))
