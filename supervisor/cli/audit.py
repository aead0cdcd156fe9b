"""``supervise audit verify``: is an audit log whole?"""

from __future__ import annotations

from supervisor.audit.reader import verify as check
from supervisor.cli.output import out, out_json, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def verify(args: argparse.Namespace) -> int:
    """Check the chain of a log.

    Args:
        args: parsed command line.

    Returns:
        0 for a log that is whole and closed, 1 for any other.

    Raises:
        SessionError: the file cannot be read.
    """
    report = check(args.file)
    state = f"{report.state}({report.seq})" if report.state == "tampered" else report.state
    if args.json:
        out_json(
            {
                "state": report.state,
                "seq": report.seq,
                "detail": report.detail,
                "records": report.records,
                "sessions": report.sessions,
                "unfinished": report.unfinished,
                "h": report.prev,
            }
        )
    else:
        out(f"{visible(args.file)}: {state}: {report.detail}\n")
    return 0 if report.state == "valid" else 1
