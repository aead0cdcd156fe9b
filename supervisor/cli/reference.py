"""Writes docs/syscalls.md from the syscall table; ``python -m supervisor.cli.reference [FILE]``.

Numbers stay out: they differ from one architecture to the next, the rest does not.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

from supervisor import native
from supervisor.run.events import CLASSES, name_of, treated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.model import Row, When

_ALLOW, _REFUSE = 0, 3
_SIGNALS = "inside the tree only"  # the note of rows whose class the kernel's Landlock decides
_HEAD = """\
# System calls

<!-- made by `python -m supervisor.cli.reference docs/syscalls.md`; do not edit -->

Every system call of the kernel has one row in `native/syscalls/table.def`. A call that has no row
fails with `ENOSYS`; a 32-bit or x32 call ends the program. `supervise policy syscalls` prints the
same list with the numbers of the machine at hand.

| treated | means |
|---|---|
| allow | stays in the kernel: the call names no object, or one that the caller already holds, or only reads metadata |
| broker | comes to the supervisor, which decides and does the call itself, on objects that it has opened |
| verify | comes to the supervisor, which looks at the registers and lets the call go on or refuses it |
| refuse | fails with the errno shown, whatever the policy says, and is told with the reason |
| absent | fails with the errno shown as in a kernel without it, and is not told: programs try these and do without |
| look | stays in the kernel; where a rule hides names (`hide` in the policy reference) or steers to a tree it comes to the supervisor like `broker` |
| net | stays in the kernel; where a network rule of the policy allows something it comes to the supervisor like `broker` |
| bounded | signals: a Landlock scope keeps them inside the tree; a kernel without one (before 6.12) makes them `verify`, and refuses `pidfd_send_signal`; where the policy has signal rules they come to the supervisor, which decides by the registers |

The Landlock domain of the program lies below all of this: a call that stays in the kernel can open
for reading only what programs may be started from, and nothing for writing.
"""  # noqa: E501 - table rows cannot be folded


def markdown() -> str:
    """Write the whole file."""
    rows = native.rows()
    looks = sorted(row.name for row in rows if _treated(row) == "look")
    noted = [row for row in rows if _treated(row) not in ("allow", "look") or row.note]
    plain = sorted(row.name for row in rows if _treated(row) == "allow" and not row.note)
    out = [_HEAD, f"## {len(noted)} calls that need a word", ""]
    out += ["| call | treated | why |", "|---|---|---|"]
    out += [f"| `{row.name}` | {_treated(row)}{_errno(row)} | {row.note} |" for row in noted]
    out += ["", "## Arguments that change this", ""]
    out += ["The first test that holds decides; where none does, the row above counts.", ""]
    out += ["| call | when | treated |", "|---|---|---|", *_tests(native.whens(), rows)]
    out += ["", f"## {len(plain)} calls that stay in the kernel", ""]
    out += [", ".join(f"`{name}`" for name in plain) + "."]
    out += ["", f"## {len(looks)} calls that only look", ""]
    out += [", ".join(f"`{name}`" for name in looks) + "."]
    return "\n".join(out) + "\n"


def _treated(row: Row) -> str:
    return "bounded" if row.note == _SIGNALS else treated(row.klass, row.err)


def _errno(row: Row) -> str:
    return f" `{errno.errorcode[row.err]}`" if row.err else ""


def _tests(tests: Sequence[When], rows: Sequence[Row]) -> list[str]:
    names = {row.nr: row.name for row in rows}
    return [
        f"| `{names[test.nr]}` | argument {test.arg + 1} {_condition(test)} | {_outcome(test)} |"
        for test in tests
    ]


def _condition(test: When) -> str:
    whole = test.mask in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
    if whole:
        return f"is `{test.value:#x}`"
    return f"`& {test.mask:#x}` is `{test.value:#x}`"


def _outcome(test: When) -> str:
    if test.klass == _ALLOW:
        return "allow"
    if test.klass == _REFUSE:
        return f"absent `{errno.errorcode[test.err]}`" if test.err else "not done, returns 0"
    return name_of(CLASSES, test.klass)


def main() -> int:
    """Write to the file named on the command line, or to stdout."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
    else:
        sys.stdout.write(markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
