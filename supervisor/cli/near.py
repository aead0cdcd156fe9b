"""What a mistyped word was probably meant to be; loaded only after a failure."""

from __future__ import annotations

from supervisor.cli import COMMANDS
from supervisor.policy.problems import suggest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def program(name: str) -> str:
    """Ask whether a program that was not found was meant as a command of ours; "" for no.

    Args:
        name: the program as typed.
    """
    from supervisor.cli.parser import LEAVES

    known = {leaf[-1]: " ".join(leaf) for leaf in LEAVES}
    known |= {"help": "--help", "version": "--version"} | {word: word for word in COMMANDS}
    found = name if name in known else suggest(name, COMMANDS)
    return f"did you mean `supervise {known[found]}`?" if found else ""


def one_of(word: str, known: Iterable[str]) -> str:
    """Name what ``word`` was probably meant to be, or all that it may be.

    Args:
        word: as typed.
        known: the words that it may be.
    """
    listed = tuple(known)
    found = suggest(word, listed)
    return f"did you mean `{found}`?" if found else f"one of: {', '.join(listed)}"


def flag(message: str, known: Iterable[str]) -> str:
    """Ask whether another flag was meant by the first that argparse did not know; "" for no.

    Args:
        message: argparse's complaint.
        known: the flags of the command.
    """
    _, unknown, rest = message.partition("unrecognized arguments: ")
    found = suggest(rest.split()[0].partition("=")[0], known) if unknown and rest.split() else ""
    return f"did you mean `{found}`?" if found else ""
