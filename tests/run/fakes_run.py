"""A session without a kernel: it plays batches of events, then ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supervisor.model import Status
from supervisor.run.events import CALL, DENY, Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def denial(
    path: bytes = b"/p", *, rule: int = -1, nr: int = 257, ops: int = 1, err: int = 13, **more: int
) -> Event:
    """Make the event of a denied call."""
    return Event(
        more.get("kind", CALL),
        1,
        10**18,
        5,
        42,
        nr,
        ops,
        DENY,
        2,
        rule,
        err,
        path,
        b"",
        b"cat",
        b"",
    )


class FakeSession:
    """Plays a script; one poll, one batch."""

    def __init__(
        self,
        batches: Sequence[Sequence[Event]] = (),
        *,
        end: Status | None = None,
        tasks_after: int = 0,
        lives: int = 0,
        spawn_error: Exception | None = None,
    ) -> None:
        """Take the batches, the status after the last of them and how many polls more it runs."""
        self.batches = [list(batch) for batch in batches]
        self.end = end or Status(exited=1, code=0)
        self.tasks = tasks_after
        self.lives = lives
        self.spawn_error = spawn_error
        self.calls: list[tuple[object, ...]] = []
        self.ignores: set[int] = set()

    def spawn(
        self,
        argv: Sequence[bytes],
        env: Mapping[bytes, bytes],
        *,
        cwd: bytes | None = None,  # noqa: ARG002
        path: bytes | None = None,  # noqa: ARG002
        degraded: int = 0,
        trash: tuple[bytes, int] | None = None,  # noqa: ARG002
    ) -> int:
        """Note the call."""
        self.calls.append(("spawn", tuple(argv), dict(env), degraded))
        if self.spawn_error:
            raise self.spawn_error
        return 4242

    def poll(self, timeout_ms: int) -> list[Event]:
        """Give the next batch."""
        self.calls.append(("poll", timeout_ms))
        if self.batches:
            return self.batches.pop(0)
        self.lives = max(0, self.lives - 1)
        return []

    def status(self) -> Status:
        """Run until the script is over."""
        if self.batches or self.lives:
            return Status(running=True, tasks=self.tasks + 1)
        self.end.tasks = self.tasks
        return self.end

    def rule(self, index: int) -> tuple[str, str]:
        """Name any rule after its number."""
        return (f"rule-{index}", "fake.yaml:1") if index >= 0 else ("", "")

    def kill(self, sig: int = 0) -> None:
        """Note the call; 0 and signals that are not ignored end the script."""
        self.calls.append(("kill", sig))
        if sig not in self.ignores:
            self.lives = 0
            self.batches.clear()
        if sig == 0:
            self.tasks = 0

    def close(self) -> None:
        """Note the call."""
        self.calls.append(("close",))

    def names(self) -> list[object]:
        """Names of the calls that were made, polls left out."""
        return [call[0] for call in self.calls if call[0] != "poll"]
