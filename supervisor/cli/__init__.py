"""The ``supervise`` command: finds the subcommand, loads its module, ends with its code."""

from __future__ import annotations

import os
import sys

from supervisor.errors import PolicyError, SupervisorError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from supervisor.cli.output import Stderr

FAULT, INTERRUPTED = 125, 130
COMMANDS = ("run", "policy", "audit", "log", "trash", "doctor", "completion")
"""First words that are ours; a test holds them against parser.LEAVES, which costs a start 10 ms."""
_BUG = "this is a fault of supervise itself: please report it"


def entry() -> NoReturn:
    """Run the command line of this process and exit.

    Exits without the interpreter's own clean-up, which would cost a tenth of a
    short run and has nothing left to do.
    """
    from supervisor.cli.output import open_standard_files

    open_standard_files()
    code = main(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(code)


def main(argv: Sequence[str]) -> int:
    """Run one command line.

    Args:
        argv: the words after ``supervise``.

    Returns:
        The exit code.
    """
    name, words = find(argv)
    fault = FAULT if name == ("run",) else 2
    try:
        return _dispatch(name, words, named=argv[:1] == ["run"])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else fault
    except KeyboardInterrupt:
        return INTERRUPTED
    except SupervisorError as error:
        code = error.exit_code if isinstance(error, UsageError) or fault == FAULT else fault
        if isinstance(error, PolicyError):
            _stderr().say(error.message)  # each problem of it says "error" itself
        else:
            _complain(error.message, error.hint)
        return code
    except RecursionError:
        _complain("the input is nested too deeply")
        return fault
    except Exception as error:  # noqa: BLE001 - the last door: a bug ends in a sentence
        _complain(f"{type(error).__name__}: {error}", _BUG)
        if os.environ.get("SUPERVISE_TRACEBACK"):
            import traceback

            traceback.print_exc()
        return fault


def find(argv: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Tell which command is meant: its name in parser.LEAVES, and the words behind it.

    Args:
        argv: the words after ``supervise``.

    Returns:
        The name and the rest; a group without a known subcommand comes back as
        its name alone.
    """
    words = list(argv)
    first = words[0] if words else ""
    if first not in COMMANDS:
        return ("run",), words
    from supervisor.cli.parser import LEAVES

    if (first,) in LEAVES:
        return (first,), words[1:]
    if len(words) > 1 and (first, words[1]) in LEAVES:
        return (first, words[1]), words[2:]
    return (first,), words[1:]


def _dispatch(name: tuple[str, ...], words: list[str], *, named: bool) -> int:
    if name == ("run",):
        from supervisor.cli.run import run

        return run(words, named=named)
    from supervisor.cli.parser import LEAVES, build

    if name not in LEAVES:
        return _group(name[0], words)
    args = build(name).parse_args(words)
    from importlib import import_module

    module = import_module(LEAVES[name].module)
    command: Callable[[argparse.Namespace], int] = vars(module)[name[-1]]
    return command(args)


def _group(first: str, words: list[str]) -> int:
    """Help for ``supervise policy`` and the like, where a subcommand must follow."""
    from supervisor.cli.output import out
    from supervisor.cli.parser import LEAVES

    below = {name[1]: leaf.summary for name, leaf in LEAVES.items() if name[0] == first}
    text = f"usage: supervise {first} {{{','.join(below)}}} ...\n\n"
    text += "".join(f"  {word:<12}  {summary}\n" for word, summary in below.items())
    if words and words[0] in ("-h", "--help"):
        out(text)
        return 0
    from supervisor.cli.near import one_of

    wrong = f"there is no `{first} {words[0]}`" if words else "a subcommand is missing"
    raise UsageError(wrong, exit_code=2, hint=one_of(words[0] if words else "", below))


def _complain(message: str, hint: str = "") -> None:
    _stderr().error(message, hint)


def _stderr() -> Stderr:
    from supervisor.cli.output import Stderr, want_colour

    return Stderr(colour=want_colour("auto", os.environ, 2))
