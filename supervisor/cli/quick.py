"""Reads the commonest options of ``run`` without argparse, which would take 10 ms.

A test holds it against the parser: it answers the same or nothing.
"""

from __future__ import annotations

from supervisor.cli import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.cli.run import Options

_SWITCHES = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose"}


def read(words: Sequence[str], options: Options, *, named: bool) -> list[str] | None:
    """Fill in the options of a line, where all of them are simple.

    Args:
        words: what stands behind ``supervise [run]``.
        options: where they go; undefined where the answer is None.
        named: the word ``run`` was given.

    Returns:
        The command, or None for a line that the parser must read.
    """
    rest = iter(words)
    for word in rest:
        if word == "--":
            return list(rest)
        if word in _SWITCHES:
            setattr(options, _SWITCHES[word], True)
        elif word in ("-p", "--policy", "--audit"):
            value = next(rest, "-")
            if value.startswith("-"):
                return None
            if word == "--audit":
                options.audit = value
            else:
                options.policy.append(value)
        elif word.startswith("-") or (word in COMMANDS and not named):
            return None
        else:
            return [word, *rest]
    return []
