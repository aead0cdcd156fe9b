"""Writes docs/man/supervise.1 and docs/cli.md from the parser.

``python -m supervisor.cli.man [FILE]``: a name that ends in ``.md`` gets Markdown.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from supervisor import __version__
from supervisor.cli.parser import LEAVES, actions, build
from supervisor.cli.texts import DESCRIPTION, ENVIRONMENT, EXIT_CODES, OTHER_EXIT_CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

DATE = "2026-11-21"
"""Date on the page; set by hand with a release, so that the page is reproducible."""

_MARKUP = re.compile(r"[<>*_\[\]]")

EXAMPLES = (
    ("supervise -- make test", "run the tests of a project under the default policy"),
    (
        "supervise -p read-only --allow-path ./out:write,create -- python3 build.py",
        "start from a stricter policy and allow one folder",
    ),
    ("supervise --mode observe -- ./install.sh", "see what rules would deny, and let it pass"),
    ("supervise policy explain --path ~/.ssh/id_rsa --op read", "ask why"),
    ("supervise log --denied", "read what the last run was denied"),
)


def roff(text: str) -> str:
    """Escape text for roff.

    Args:
        text: plain text; a line of it never becomes a request.
    """
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("'", "\\(aq")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def page() -> str:
    """Write the whole page."""
    out = [
        f'.TH SUPERVISE 1 "{DATE}" "supervise {__version__}" "User Commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        "supervise \\- run a program tree under one policy",
        ".SH SYNOPSIS",
        ".B supervise",
        f"{roff('[run] [OPTIONS] [--] COMMAND [ARG...]')}",
    ]
    for name in LEAVES:
        if name != ("run",):
            out += [".br", f".B {roff(' '.join(('supervise', *name)))}", roff(_operands(name))]
    out += [".SH DESCRIPTION", roff(DESCRIPTION), ".SH OPTIONS", *_flags(("run",))]
    out.append(".SH SUBCOMMANDS")
    for name, leaf in LEAVES.items():
        if name != ("run",):
            out += [f".SS {roff(' '.join((*name, _operands(name))).rstrip())}"]
            out += [roff(leaf.summary[0].upper() + leaf.summary[1:] + "."), *_flags(name)]
    out += [".SH EXIT STATUS", "Of a run:", *_terms(EXIT_CODES)]
    out += [".PP", "Of the other subcommands:", *_terms(OTHER_EXIT_CODES)]
    out += [".SH ENVIRONMENT", *_terms(ENVIRONMENT)]
    out.append(".SH EXAMPLES")
    out += _terms(EXAMPLES)
    return "\n".join(line for line in out if line) + "\n"


def markdown() -> str:
    """Write docs/cli.md: the same as the page, as Markdown."""
    out = [
        "# Command line",
        "",
        "<!-- made by `python -m supervisor.cli.man docs/cli.md`; do not edit -->",
        "",
        "`supervise [run] [OPTIONS] [--] COMMAND [ARG...]`",
        "",
        _literal(DESCRIPTION),
        "",
        "## Options of run",
        "",
        *_rows("option", "meaning", _options(("run",))),
    ]
    for name, leaf in LEAVES.items():
        if name != ("run",):
            words = " ".join(("supervise", *name, _operands(name))).rstrip()
            summary = leaf.summary[0].upper() + leaf.summary[1:] + "."
            out += ["", f"## {' '.join(name)}", "", f"`{words}`", "", _literal(summary), ""]
            out += _rows("option", "meaning", _options(name))
    out += ["", "## Exit codes of run", "", *_rows("code", "meaning", EXIT_CODES)]
    out += ["", "## Exit codes of the others", "", *_rows("code", "meaning", OTHER_EXIT_CODES)]
    out += ["", "## Environment", "", *_rows("variable", "meaning", ENVIRONMENT)]
    out += ["", "## Examples", "", *_rows("command", "what it does", EXAMPLES)]
    return "\n".join(out) + "\n"


def _rows(left: str, right: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """Make a table; a bar would end a cell, so it is escaped."""
    cells = [(name.replace("|", "\\|"), _literal(text)) for name, text in rows]
    return [f"| {left} | {right} |", "|---|---|", *(f"| `{a}` | {b} |" for a, b in cells)]


def _literal(text: str) -> str:
    """Escape what Markdown would take for markup; spans between backticks stay as they are."""
    parts = text.replace("|", "\\|").split("`")
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def invocation(action: argparse.Action) -> str:
    """Write how an option is given, such as ``-p, --policy NAME|FILE``.

    Args:
        action: an option of a parser.
    """
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    if action.choices is not None:
        return f"{names} {'|'.join(map(str, action.choices))}"
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"{names} {shown}"


def _operands(name: tuple[str, ...]) -> str:
    words = []
    for action in actions(build(name)):
        if not action.option_strings:
            shown = action.metavar if isinstance(action.metavar, str) else ""
            shown = shown or "|".join(map(str, action.choices or (action.dest,)))
            shown += "..." if action.nargs == "+" else ""
            words.append(f"[{shown}]" if action.nargs == "?" else shown)
    return " ".join(words)


def _flags(name: tuple[str, ...]) -> list[str]:
    return _terms(_options(name))


def _options(name: tuple[str, ...]) -> list[tuple[str, str]]:
    return [
        (invocation(action), str(action.help or ""))
        for action in actions(build(name))
        if action.option_strings
    ]


def _terms(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for left, right in rows for line in (".TP", f".B {roff(left)}", roff(right))]


def main() -> int:
    """Write to the file named on the command line, or the page to stdout."""
    if len(sys.argv) > 1:
        text = markdown() if sys.argv[1].endswith(".md") else page()
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
