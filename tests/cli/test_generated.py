"""Man page and completions: made from the parser, nothing left out."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from supervisor.cli.completion import bash, fish, zsh
from supervisor.cli.man import page, roff
from supervisor.cli.parser import LEAVES, actions, build

MAN = Path(__file__).parents[2] / "docs" / "man" / "supervise.1"
FLAGS = sorted({flag for name in LEAVES for a in actions(build(name)) for flag in a.option_strings})


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_is_everywhere(flag: str) -> None:
    """Each flag is in the man page and in all three completions."""
    assert roff(flag) in page()
    assert flag in bash()
    assert flag in zsh()
    name = flag.lstrip("-")
    assert f"-l {name} " in fish() or f"-s {name} " in fish()


@pytest.mark.parametrize("name", LEAVES)
def test_every_subcommand_is_everywhere(name: tuple[str, ...]) -> None:
    """Each subcommand is in the man page and in all three completions."""
    if name != ("run",):
        assert f".SS {roff(' '.join(name))}" in page()
    for script in (bash(), zsh(), fish()):
        assert name[-1] in script


def test_man_page_is_up_to_date() -> None:
    """The page in docs/ is the one that the parser gives."""
    assert MAN.read_text() == page(), "run: python -m supervisor.cli.man docs/man/supervise.1"


def test_man_page_is_deterministic() -> None:
    """Two pages are equal, and no request is made of text."""
    assert page() == page()
    requests = {line.split()[0] for line in page().splitlines() if line.startswith(".")}
    assert requests <= {".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".br", ".nh", ".ad"}


def test_man_page_has_no_warning() -> None:
    """groff reads the page without a complaint."""
    try:
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z"],
            input=page(),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("groff is not installed")
    assert (done.returncode, done.stderr) == (0, "")


def _complete(*words: str) -> list[str]:
    line = " ".join(f"'{word}'" for word in words)
    script = f"""{bash()}
COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _supervise
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("supervise", "--mo"), ["--mode"]),
        (("supervise", "--mode", ""), ["enforce", "observe"]),
        (("supervise", "pol"), ["policy"]),
        (("supervise", "policy", "ch"), ["check"]),
        (("supervise", "policy", "show", "--m"), ["--merged"]),
        (("supervise", "log", "--d"), ["--denied"]),
        (("supervise", "completion", "z"), ["zsh"]),
        (("supervise", "--color", "al"), ["always"]),
        (("supervise", "--", "--mo"), []),
    ],
)
def test_bash_completes(words: tuple[str, ...], expected: list[str]) -> None:
    """A real bash completes flags, values and subcommands, and nothing of ours behind --."""
    assert _complete(*words) == expected


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
# In CI everything is installed, so a missing shell is a failure; elsewhere its row is left out.
SHELLS = [shell for shell in SCRIPTS if shutil.which(shell) or os.environ.get("CI") == "true"]


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_parse_their_scripts(shell: str, tmp_path: Path) -> None:
    """The scripts are accepted by their shells, without a word."""
    file = tmp_path / "script"
    file.write_text(SCRIPTS[shell]())
    done = subprocess.run([shell, "-n", str(file)], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", LEAVES)
def test_zsh_script_has_a_function_for_every_command(name: tuple[str, ...]) -> None:
    """Each is defined once, reached from its words, and offers every option as one quoted word."""
    script = zsh()
    function = f"_supervise_{'_'.join(name)}"
    body = script.partition(f"\n{function}() {{\n")[2].partition("\n}\n")[0]
    assert script.count(f"{function}()") == 1
    assert re.search(rf"(?<!{function})\b{function} ;;", script)
    words = shlex.split(body)
    assert words[:2] == ["_arguments", "-S"]
    specs = [word for word in words[2:-1] if word.strip()]
    flags = [flag for action in actions(build(name)) for flag in action.option_strings]
    assert [spec.lstrip("*").partition("[")[0] for spec in specs] == flags
    for spec in specs:  # a bare bracket or colon would end the description
        assert re.fullmatch(r"\*[-\w]+\[(\\.|[^]\[\\:])*\](:value:.*)?", spec), spec


@pytest.mark.parametrize("name", LEAVES)
def test_fish_script_has_a_line_for_every_option(name: tuple[str, ...]) -> None:
    """Each line is one command of whole words, with its condition and its description."""
    lines = [shlex.split(line) for line in fish().splitlines() if not line.startswith("#")]
    assert all(line[:3] == ["complete", "-c", "supervise"] for line in lines)
    seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name)
    when = "__fish_use_subcommand" if name == ("run",) else seen
    own = [line[5:] for line in lines if line[3:5] == ["-n", when]]
    for action in actions(build(name)):
        for flag in action.option_strings:
            kind = "-l" if flag.startswith("--") else "-s"
            [found] = [words for words in own if words[:2] == [kind, flag.lstrip("-")]]
            assert found[-2:] == ["-d", str(action.help)]
            assert ("-x" in found or "-r" in found) == (action.nargs != 0)
            if action.choices:
                assert found[found.index("-a") + 1].split() == list(map(str, action.choices))
