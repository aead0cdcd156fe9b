"""Every command and flag, once: --help, the man page and the completions read this.

Building a parser imports no command. A command is a leaf of :data:`LEAVES`; its
code is the function named like its last word in the module named there.
"""

from __future__ import annotations

import argparse

from supervisor import __version__
from supervisor.cli.flags import (
    OPS,
    WAIVABLE,
    allow_path,
    descriptor,
    duration,
    facility,
    setting,
    size,
)
from supervisor.cli.texts import DESCRIPTION, ENVIRONMENT, EXIT_CODES, OTHER_EXIT_CODES
from supervisor.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises instead of exiting."""

    def __init__(self, prog: str, *, usage: str | None, description: str, exit_code: int) -> None:
        """Make an empty parser.

        Args:
            prog: the command as typed.
            usage: usage line; None lets argparse write it.
            description: what the command does.
            exit_code: exit code of a usage error.
        """
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            allow_abbrev=False,
            add_help=False,
            formatter_class=_Formatter,
        )
        self._code = exit_code

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing and exiting."""
        from supervisor.cli.near import flag

        hint = flag(message, [text for action in actions(self) for text in action.option_strings])
        raise UsageError(message, exit_code=self._code, hint=hint or f"try `{self.prog} --help`")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Fixed width: asking the terminal would import shutil for every flag."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=96)


class Leaf:
    """One command: where its code is and how its flags are added."""

    __slots__ = ("add", "module", "summary")

    def __init__(self, module: str, summary: str, add: Callable[[Parser], None]) -> None:
        """Hold the module, a line of help and the function that adds the flags."""
        self.module = module
        self.summary = summary
        self.add = add


def _common(parser: Parser) -> None:
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour: auto (default), always or never",
    )
    parser.add_argument("-h", "--help", action="help", help="show this help")


def _json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")


def _policies(parser: Parser) -> None:
    parser.add_argument(
        "-p",
        "--policy",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="policy to use: a name of `supervise policy list` or a file; may be repeated, "
        "later ones add rules",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=setting,
        metavar="KEY=VALUE",
        help="set a variable of the policy; may be repeated",
    )
    parser.add_argument(
        "--allow-path",
        action="append",
        default=[],
        type=allow_path,
        metavar="PATH[:OPS]",
        help=f"allow one path for this run; OPS are some of {OPS} or all, joined by commas "
        "(default: read); may be repeated",
    )


def add_run(parser: Parser) -> None:
    """Add the options of ``supervise run``.

    Args:
        parser: where they go.
    """
    _policies(parser)
    _enforcement(parser)
    _life(parser)
    _telling(parser)


def _enforcement(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--mode",
        choices=("enforce", "observe"),
        help="enforce (default), or observe: what rules refuse is recorded and passes, but what no "
        "rule can allow stays refused: mounts, namespaces, io_uring, keyrings, processes outside",
    )
    add("--audit", metavar="FILE", help="record to FILE instead of a new log in the state folder")
    add("--json", action="store_true", help="tell denials on stderr as JSON lines")
    add(
        "--allow-degraded",
        action="append",
        default=[],
        type=facility,
        choices=WAIVABLE,
        help="run without this, where `supervise doctor` calls it missing; may be repeated",
    )
    add("--dry-run", action="store_true", help="print what would be enforced; run nothing")
    add(
        "--fail-on-deny",
        action="store_true",
        help="exit with 123 where COMMAND ended with 0 but something was denied",
    )


def _life(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--timeout",
        type=duration,
        metavar="DURATION",
        help="end COMMAND after 500ms, 30s, 5m, 1h ... and exit with 124",
    )
    add(
        "--status-fd",
        type=descriptor,
        metavar="FD",
        help="write JSON lines about the run's start and end to this file descriptor",
    )
    add(
        "--wait-all",
        action="store_true",
        help="wait for everything COMMAND started, instead of ending it with COMMAND",
    )


def _telling(parser: Parser) -> None:
    add = parser.add_argument
    add("-q", "--quiet", action="store_true", help="do not tell denials and warnings")
    add("-v", "--verbose", action="store_true", help="tell more, steered calls included")
    add(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour: auto (default), always or never",
    )
    add("--version", action="store_true", help="print the version")
    add("-h", action="store_true", dest="short_help", help="show the short help")
    add("--help", action="store_true", help="show this help")


def _check(parser: Parser) -> None:
    parser.add_argument("file", metavar="NAME|FILE", nargs="+", help="policies to check")
    _json(parser)
    _common(parser)


def _show(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME|FILE", help="policy to show")
    parser.add_argument(
        "--merged", action="store_true", help="show what comes out after extends and variables"
    )
    _json(parser)
    _common(parser)


def _list(parser: Parser) -> None:
    _json(parser)
    _common(parser)


def _program(parser: Parser) -> None:
    parser.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="PROGRAM",
        help="ask as what this program starts would: its blocks count, too; may be repeated",
    )


def _explain(parser: Parser) -> None:
    _policies(parser)
    _program(parser)
    add = parser.add_argument
    add("--path", metavar="PATH", help="what may be done with this path?")
    add(
        "--op",
        default="read",
        metavar="OPS",
        help=f"operations, joined by commas: {OPS} (default: read)",
    )
    for flag, what in (("--connect", "connect to"), ("--bind", "bind")):
        add(
            flag,
            metavar="HOST:PORT",
            help=f"may a program {what} this? An address and a port, unix:/PATH or unix:@NAME",
        )
    add("--signal", metavar="NAME", help="may this signal be sent? TERM, USR1, RTMIN+3")
    add(
        "--target",
        default="tree",
        metavar="WHO",
        help="whom the signal is for: self, child, others, or tree for any of them (default: tree)",
    )
    add(
        "--exec",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="may this command be executed? All words after it are its arguments",
    )
    _json(parser)
    _common(parser)


def _test(parser: Parser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="YAML list of {path, exec, connect, bind or signal; op, target, expect: "
        "allow|deny|steer, rule, program}",
    )
    _policies(parser)
    _program(parser)
    _json(parser)
    _common(parser)


def _trust(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="policy of a project to trust as it is now")
    parser.add_argument("--remove", action="store_true", help="trust it no longer")
    _common(parser)


def _verify(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="audit log to check")
    _json(parser)
    _common(parser)


def _log(parser: Parser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", default="last", help="audit log (default: the last run)")
    add("--denied", action="store_true", help="only what was denied")
    add("--all-sessions", action="store_true", help="every session of the file, not only its last")
    _json(parser)
    _common(parser)


def _trash_list(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="?", help="only what was here or below")
    _json(parser)
    _common(parser)


def _trash_restore(parser: Parser) -> None:
    add = parser.add_argument
    what = "an ID, or a path: what was there and below, each as it was deleted last"
    add("what", metavar="ID|PATH", nargs="+", help=what)
    add("--to", metavar="DIR", help="put it below DIR instead, with its path")
    add("--replace", action="store_true", help="replace what is there now")
    _common(parser)


def _trash_purge(parser: Parser) -> None:
    add = parser.add_argument
    add("what", metavar="ID|PATH", nargs="*", help="what is to go (see restore)")
    add("--all", action="store_true", help="everything")
    add("--older-than", type=duration, metavar="DURATION", help="what was deleted before that")
    _common(parser)


def _trash_quota(parser: Parser) -> None:
    what = "bytes that it may take: 500M, 2GiB (the default) ...; tells them without SIZE"
    parser.add_argument("size", metavar="SIZE", nargs="?", type=size, help=what)
    _json(parser)
    _common(parser)


def _completion(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "man"), help="what to print")
    _common(parser)


_POLICY = "supervisor.cli.policy"
_TRASH = "supervisor.cli.trash"
LEAVES: dict[tuple[str, ...], Leaf] = {
    ("run",): Leaf("supervisor.cli.run", "run a command under a policy", add_run),
    ("policy", "check"): Leaf(_POLICY, "tell every error of policies", _check),
    ("policy", "show"): Leaf(_POLICY, "print a policy", _show),
    ("policy", "list"): Leaf(_POLICY, "list the policies that come with supervise", _list),
    ("policy", "explain"): Leaf(_POLICY, "tell what would be decided, and by which rule", _explain),
    ("policy", "test"): Leaf(_POLICY, "check expectations against a policy", _test),
    ("policy", "syscalls"): Leaf(_POLICY, "print how every system call is treated", _list),
    ("policy", "trust"): Leaf(_POLICY, "let runs in a folder use its own policy file", _trust),
    ("audit", "verify"): Leaf("supervisor.cli.audit", "check the chain of an audit log", _verify),
    ("log",): Leaf("supervisor.cli.log", "print the record of a run", _log),
    ("trash", "list"): Leaf(_TRASH, "list what steered deletes kept", _trash_list),
    ("trash", "restore"): Leaf(_TRASH, "put deleted things back", _trash_restore),
    ("trash", "purge"): Leaf(_TRASH, "remove deleted things for good", _trash_purge),
    ("trash", "quota"): Leaf(_TRASH, "tell or set how much the trash may take", _trash_quota),
    ("doctor",): Leaf("supervisor.cli.doctor", "tell what this machine offers", _list),
    ("completion",): Leaf(
        "supervisor.cli.completion", "print shell completions or the man page", _completion
    ),
}


def build(name: tuple[str, ...]) -> Parser:
    """Make the parser of one command.

    Args:
        name: a key of :data:`LEAVES`.
    """
    leaf = LEAVES[name]
    if name == ("run",):
        usage = "supervise [run] [OPTIONS] [--] COMMAND [ARG...]\n       supervise SUBCOMMAND ..."
        parser = Parser("supervise", usage=usage, description=DESCRIPTION, exit_code=125)
        parser.epilog = _epilog()
    else:
        summary = leaf.summary[0].upper() + leaf.summary[1:] + "."
        prog = " ".join(("supervise", *name))
        parser = Parser(prog, usage=None, description=summary, exit_code=2)
    leaf.add(parser)
    return parser


def actions(parser: Parser) -> list[argparse.Action]:
    """List what was added to a parser, in order.

    Args:
        parser: from :func:`build`.
    """
    return list(parser._actions)  # noqa: SLF001 - argparse tells it no other way


def split_command(parser: Parser, words: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Cut a command line where the command begins; argparse never sees the command.

    Args:
        parser: the parser of ``run``.
        words: arguments after ``supervise [run]``.

    Returns:
        Our options, the command, and whether ``--`` stood between them.
    """
    takes = {
        flag: action.nargs != 0 for action in actions(parser) for flag in action.option_strings
    }
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            return list(words[:i]), list(words[i + 1 :]), True
        if not word.startswith("-") or word == "-":
            break
        i += 2 if _wants_next(word, takes) else 1
    return list(words[:i]), list(words[i:]), False


def _wants_next(word: str, takes: dict[str, bool]) -> bool:
    if word.startswith("--"):
        return takes.get(word, False)
    for place, letter in enumerate(word[1:], 2):
        if takes.get("-" + letter, False):
            return place == len(word)
    return False


def _epilog() -> str:
    lines = ["subcommands:"]
    for name, leaf in LEAVES.items():
        lines.append(f"  {' '.join(name):<26}  {leaf.summary}")
    for title, rows in (
        ("exit codes of run:", EXIT_CODES),
        ("exit codes of the other subcommands:", OTHER_EXIT_CODES),
        ("environment:", ENVIRONMENT),
    ):
        lines += ["", title, *(f"  {left:<26}  {right}" for left, right in rows)]
    return "\n".join(lines)


def version() -> str:
    """The line of ``--version``."""
    return f"supervise {__version__}"
