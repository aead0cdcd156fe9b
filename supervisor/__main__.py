"""``python -m supervisor`` is the ``supervise`` command."""

from __future__ import annotations

from supervisor.cli import entry

if __name__ == "__main__":
    entry()
