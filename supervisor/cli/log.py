"""``supervise log``: the record of a run, for people."""

from __future__ import annotations

import os
import time

from supervisor.audit.folder import default_logs, state_folder
from supervisor.audit.reader import records
from supervisor.cli.output import out, visible
from supervisor.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from supervisor.audit.reader import Record


def log(args: argparse.Namespace) -> int:
    """Print what a run did.

    Args:
        args: parsed command line.

    Raises:
        SupervisorError: there is no log, or it cannot be read.
    """
    path = args.file if args.file != "last" else last_log()
    session = "" if args.all_sessions else _last_session(path)
    for record in records(path):
        if session and record.get("session") != session:
            continue
        if args.denied and record.get("decision") != "deny" and record.get("type") != "fault":
            continue
        if args.json:
            from json import dumps

            out(dumps(record, sort_keys=True, separators=(",", ":")) + "\n")
        else:
            out(visible(line(record)) + "\n")
    return 0


def last_log() -> str:
    """Find the newest default log.

    Raises:
        UsageError: there is none.
    """
    folder = state_folder(os.environb)
    names = default_logs(folder) if folder else []
    if not names:
        raise UsageError("there is no log of an earlier run", exit_code=2, hint="name a file")
    return os.path.join(folder, names[-1])


def line(record: Record) -> str:
    """Write a record as one line.

    Args:
        record: a line of an audit log; nothing in it is trusted.
    """
    action = record.get("action")
    what = dict(action) if isinstance(action, dict) else {}
    kind = str(record.get("type"))
    head = f"{_clock(record.get('ts'))}  "
    if kind == "session_start":
        return f"{head}start   {_words(what.get('argv'))}  policy {_policy(record)}"
    if kind == "session_end":
        counts = f"{what.get('calls', '?')} calls, {what.get('denied', '?')} denied"
        return f"{head}end     exit {what.get('exit', '?')}, {counts}"
    if kind == "fault":
        verb = "killed" if record.get("effect") == "kill" else "fault"
        call = f'{what.get("call", "?")} "{what.get("path", "")}"'
        return f"{head}{verb:<7} {call}: {what.get('detail', '')}  {_who(record)}"
    if kind == "limit":
        verb = "ended" if record.get("decision") == "deny" else "warning"
        return f"{head}{verb:<7} {record.get('rule')}: {what.get('detail', '')}"
    text = f"{head}{record.get('decision')!s:<7} {what.get('call', '?')}"
    if what.get("argv"):
        text += f" {_words(what['argv'])}"
    else:
        text += f' "{what.get("path", "")}"'
    if what.get("path2"):
        text += f' -> "{what["path2"]}"'
    text += f" for {what.get('ops', '?')}"
    if record.get("errno"):
        text += f" = {_errno(record.get('errno'))}"
    rule = record.get("rule") or "default"
    return f"{text}  {_who(record)}  {rule}"


def _who(record: Record) -> str:
    return f"[{record.get('comm')} {record.get('pid')}]"


def _last_session(path: str) -> str:
    last = ""
    for record in records(path):
        last = str(record.get("session", ""))
    return last


def _words(value: object) -> str:
    return " ".join(_shown(value))


def _shown(value: object) -> Iterator[str]:
    for word in value if isinstance(value, list) else ():
        text = str(word)
        yield text if text and " " not in text else f'"{text}"'


def _policy(record: Record) -> str:
    policy = record.get("policy")
    return str(policy.get("name", "?")) if isinstance(policy, dict) else "?"


def _clock(value: object) -> str:
    if not isinstance(value, int) or not 0 <= value < 1 << 62:
        return "?"
    whole, rest = divmod(value, 1_000_000_000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(whole)) + f".{rest // 1_000_000:03d}"


def _errno(value: object) -> str:
    from supervisor.cli.denials import errno_name

    return errno_name(value) if isinstance(value, int) else "?"
