"""Writes completion scripts for bash, zsh and fish from the parser."""

from __future__ import annotations

from supervisor.cli.output import out
from supervisor.cli.parser import LEAVES, actions, build

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def completion(args: argparse.Namespace) -> int:
    """Print a completion script, or the man page.

    Args:
        args: parsed command line.
    """
    if args.shell == "man":
        from supervisor.cli.man import page

        out(page())
    else:
        out({"bash": bash, "zsh": zsh, "fish": fish}[args.shell]())
    return 0


class Choice:
    """One option as a completion script sees it."""

    __slots__ = ("files", "flag", "help", "takes", "values")

    def __init__(self, flag: str, action: argparse.Action) -> None:
        """Take one spelling of an option.

        Args:
            flag: the spelling, such as --mode.
            action: the option.
        """
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        self.flag = flag
        self.help = str(action.help or "")
        self.takes = action.nargs != 0
        self.values = tuple(map(str, action.choices or ()))
        self.files = "FILE" in metavar or "PATH" in metavar


def choices(name: tuple[str, ...]) -> list[Choice]:
    """List every spelling of every option of a command.

    Args:
        name: a key of parser.LEAVES.
    """
    return [Choice(f, action) for action in actions(build(name)) for f in action.option_strings]


def words_after(prefix: tuple[str, ...]) -> list[tuple[str, str]]:
    """List the subcommands that may follow, with their help.

    Args:
        prefix: subcommand words typed so far.
    """
    n = len(prefix)
    found: dict[str, str] = {}
    for name, leaf in LEAVES.items():
        if name[:n] == prefix and len(name) > n:
            group = len(name) > n + 1
            found.setdefault(name[n], f"{name[n]} subcommands" if group else leaf.summary)
    return list(found.items())


def operand_values(name: tuple[str, ...]) -> tuple[str, ...]:
    """List the fixed words that a command's operand may be.

    Args:
        name: a key of parser.LEAVES.
    """
    return tuple(
        str(value)
        for action in actions(build(name))
        if not action.option_strings
        for value in action.choices or ()
    )


_BASH = """\
# bash completion for supervise; made by `supervise completion bash`.
_supervise() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} leaf='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            fi
            return
        fi
    done
    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
@LEAVES@
    *) leaf=run ;;
    esac
    case "$leaf $prev" in
@VALUES@
    esac
    case "$leaf" in
@FLAGS@
    esac
}
complete -o default -F _supervise supervise
"""


def bash() -> str:
    """Write the script for bash."""
    leaves, flags, values = [], [], []
    for name in LEAVES:
        key = "-".join(name)
        if name != ("run",):
            leaves.append(f"    {_bash_pattern(name)}) leaf={key} ;;")
        values += [
            f'    "{key} {choice.flag}") {_bash_value(choice)}; return ;;'
            for choice in choices(name)
            if choice.takes
        ]
        known = [choice.flag for choice in choices(name)] + list(operand_values(name))
        known += [word for word, _ in words_after(()) if name == ("run",)]
        flags.append(f'    {key}) COMPREPLY=($(compgen -W "{" ".join(known)}" -- "$cur")) ;;')
    for group in dict.fromkeys(name[0] for name in LEAVES if len(name) > 1):
        words = " ".join(word for word, _ in words_after((group,)))
        leaves.append(f'    "{group} "*) leaf={group} ;;')
        flags.append(f'    {group}) COMPREPLY=($(compgen -W "{words}" -- "$cur")) ;;')
    text = _BASH.replace("@LEAVES@", "\n".join(leaves)).replace("@VALUES@", "\n".join(values))
    return text.replace("@FLAGS@", "\n".join(flags))


def _bash_pattern(name: tuple[str, ...]) -> str:
    return f'"{name[0]} {name[1]}"' if len(name) > 1 else f'"{name[0]} "*'


def _bash_value(choice: Choice) -> str:
    if choice.values:
        return f'COMPREPLY=($(compgen -W "{" ".join(choice.values)}" -- "$cur"))'
    return 'COMPREPLY=($(compgen -f -- "$cur"))' if choice.files else ":"


def zsh() -> str:
    """Write the script for zsh."""
    lines = ["#compdef supervise", "# zsh completion; made by `supervise completion zsh`.", ""]
    for name in LEAVES:
        lines += [f"_supervise_{'_'.join(name)}() {{", "  _arguments -S \\"]
        lines += [f"    {_zsh_flag(choice)} \\" for choice in choices(name)]
        values = operand_values(name)
        operand = f"'*:word:({' '.join(values)})'" if values else "'*::command or file:_normal'"
        lines += [f"    {operand}", "}", ""]
    lines += ["_supervise() {", '  case "$words[2]" in']
    groups = dict.fromkeys(name[0] for name in LEAVES)
    for group in groups:
        if (group,) in LEAVES:
            lines.append(f"    {group}) shift words; (( CURRENT-- )); _supervise_{group} ;;")
            continue
        lines.append(f'    {group}) shift words; (( CURRENT-- )); case "$words[2]" in')
        for word, _ in words_after((group,)):
            shift = "shift words; (( CURRENT-- ))"
            lines.append(f"      {word}) {shift}; _supervise_{group}_{word} ;;")
        words = " ".join(word for word, _ in words_after((group,)))
        lines.append(f"      *) compadd {words} ;;")
        lines.append("    esac ;;")
    lines.append(f"    *) (( CURRENT == 2 )) && compadd {' '.join(groups)}; _supervise_run ;;")
    lines += ["  esac", "}", "", '_supervise "$@"']
    return "\n".join(lines) + "\n"


def fish() -> str:
    """Write the script for fish."""
    lines = ["# fish completion; made by `supervise completion fish`."]
    lines.append("complete -c supervise -f -n __fish_use_subcommand -a '(__fish_complete_command)'")
    for word, summary in words_after(()):
        text = _quote(summary)
        lines.append(f"complete -c supervise -n __fish_use_subcommand -a {word} -d {text}")
    for name in LEAVES:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name)
        when = "__fish_use_subcommand" if name == ("run",) else seen
        if len(name) > 1:
            above = f"__fish_seen_subcommand_from {name[0]}"
            text = _quote(LEAVES[name].summary)
            lines.append(f"complete -c supervise -f -n '{above}' -a {name[1]} -d {text}")
        lines += [f"complete -c supervise -n '{when}' {_fish_flag(c)}" for c in choices(name)]
        if values := operand_values(name):
            lines.append(f"complete -c supervise -f -n '{when}' -a '{' '.join(values)}'")
    return "\n".join(lines) + "\n"


def _zsh_flag(choice: Choice) -> str:
    text = choice.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    spec = f"*{choice.flag}[{text.replace(':', chr(92) + ':')}]"
    if choice.values:
        spec += f":value:({' '.join(choice.values)})"
    elif choice.takes:
        spec += ":value:_files" if choice.files else ":value: "
    return _quote(spec)


def _fish_flag(choice: Choice) -> str:
    name = choice.flag.lstrip("-")
    spec = f"-l {name}" if choice.flag.startswith("--") else f"-s {name}"
    if choice.values:
        spec += f" -x -a '{' '.join(choice.values)}'"
    elif choice.takes:
        spec += " -r" if choice.files else " -x"
    return f"{spec} -d {_quote(choice.help)}"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
