"""Man page and completions: made from the parser, nothing left out."""

from __future__ import annotations

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


@pytest.mark.parametrize(("shell", "script"), [("zsh", zsh), ("fish", fish)])
def test_other_shells_parse_their_scripts(shell: str, script: object, tmp_path: Path) -> None:
    """The scripts for zsh and fish are accepted by their shells."""
    assert callable(script)
    file = tmp_path / "script"
    file.write_text(str(script()))
    try:
        done = subprocess.run([shell, "-n", str(file)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    assert done.returncode == 0
