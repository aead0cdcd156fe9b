"""Documents that are made from code are the ones that the code makes now."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor import native
from supervisor.cli import man, reference
from supervisor.cli.parser import LEAVES, actions, build

DOCS = Path(__file__).parents[2] / "docs"


def test_command_line_is_up_to_date() -> None:
    """docs/cli.md is what the parser gives."""
    again = "run: python -m supervisor.cli.man docs/cli.md"
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == man.markdown(), again


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_has_a_row(name: tuple[str, ...]) -> None:
    """Each subcommand has a heading and each of its options a row."""
    text = man.markdown()
    if name != ("run",):
        assert f"\n## {' '.join(name)}\n" in text
    for action in actions(build(name)):
        if action.option_strings:
            assert f"| `{man.invocation(action)}` |".replace("|", "\\|")[1:-2] in text


def test_system_calls_are_up_to_date() -> None:
    """docs/syscalls.md is what the table of the native library gives."""
    again = "run: python -m supervisor.cli.reference docs/syscalls.md"
    assert (DOCS / "syscalls.md").read_text(encoding="utf-8") == reference.markdown(), again


def test_every_system_call_is_told() -> None:
    """No row of the table is missing."""
    text = reference.markdown()
    assert not [row.name for row in native.rows() if f"`{row.name}`" not in text]


def test_bars_do_not_end_cells() -> None:
    """Every row of a table has as many cells as its head."""
    for text in (man.markdown(), reference.markdown()):
        width = 0
        for line in text.splitlines():
            cells = line.replace("\\|", "").count("|")
            width = width or cells if cells else 0
            assert cells == width, line


def test_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two programs write the file that is named."""
    for module, text in ((man, man.markdown()), (reference, reference.markdown())):
        target = tmp_path / "out.md"
        monkeypatch.setattr("sys.argv", ["x", str(target)])
        assert module.main() == 0
        assert target.read_text(encoding="utf-8") == text
