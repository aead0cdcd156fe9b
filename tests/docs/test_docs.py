"""The documents tell the truth: commands are run, policies loaded, names looked up.

How a document is written so that it can be checked:

- A fence of ``console`` holds commands (lines that start with ``$ ``) and what they print. Each
  document has a scratch home, /home/you, and is run in /home/you/project. A line of ``...`` stands
  for any lines, ``...`` within a line for any text; without a line of dots all that is printed
  must be shown. The exit code is 0 unless a last line says ``(exit code N)``.
- ``console no-run`` is not run here; the line before the fence says why: ``<!-- no-run: ... -->``.
- A fence of ``yaml`` is a policy or some of its top keys; ``yaml NAME`` is kept under that name for
  the commands that follow, ``yaml NAME broken`` is one that must be refused, and ``yaml NAME data``
  is kept only.
"""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("policies/*.md")],
    key=lambda path: str(path.relative_to(ROOT)),
)
FENCE = re.compile(r"^```([a-z]*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REASON = re.compile(r"<!-- no-run: .+ -->\n$")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
SPAN = re.compile(r"`([^`\n]+)`")
NAMED = re.compile(r"(?:native|supervisor|policies|tests|docs|bench|\.ci)/[\w./*-]*")
OURS = re.compile(r"supervise: [^\n]*\n(?:  (?:rule|why|hint:) [^\n]*\n)*")
# What a build or a run makes, not what is kept.
MADE = re.compile(r"supervisor/_native\.|bench/runs|/supervise\.1$")
LIMITS = {"ARCHITECTURE.md": 150, "CONTRIBUTING.md": 120}
WANTED = {
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("docs/policy-reference.md", "docs/cli.md", "docs/threat-model.md", "docs/syscalls.md"),
    *("docs/glossary.md", "docs/testing.md", "policies/README.md"),
}


@dataclass(frozen=True, slots=True)
class Block:
    """A fence of a document: its language, the words behind it, its text, its line."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int
    reason: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a console fence and what it must show."""

    command: str
    shown: tuple[str, ...]
    code: int


def name_of(path: Path) -> str:
    """A document's name, for people."""
    return str(path.relative_to(ROOT))


def blocks(text: str) -> list[Block]:
    """Every fence of a document."""
    return [
        Block(
            found[1],
            tuple(found[2].split()),
            found[3],
            text.count("\n", 0, found.start()) + 1,
            REASON.search(text, 0, found.start()) is not None,
        )
        for found in FENCE.finditer(text)
    ]


def steps(block: Block) -> list[Step]:
    """The commands of a console fence."""
    found: list[Step] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        while command.endswith("\\"):
            command = f"{command}\n{shown.pop(0)}"
        code = re.fullmatch(r"\(exit code (\d+)\)", shown[-1]) if shown else None
        if code:
            shown.pop()
        found.append(Step(command, tuple(shown), int(code[1]) if code else 0))
    return found


def matches(shown: str, line: str) -> bool:
    """Whether a printed line is the one shown; dots stand for any text."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("..."))), line) is not None


def lines_of(printed: str) -> list[str]:
    """The lines of two writers: ours come whole, and may come in the middle of another's line."""
    text = "".join([*OURS.findall(printed), OURS.sub("", printed)])
    return [line.rstrip() for line in text.splitlines()]


def compare(step: Step, printed: str) -> None:
    """Every line shown was printed, and without a line of dots every line printed is shown."""
    lines = lines_of(printed)
    told = [line.rstrip() for line in step.shown if line.strip() not in ("", "...")]
    for line in told:
        assert any(matches(line, real) for real in lines), f"not printed: {line!r} in\n{printed}"
    if "..." not in map(str.strip, step.shown):
        for real in filter(None, lines):
            assert any(matches(line, real) for line in told), f"not shown: {real!r}"


class Reader:
    """Somebody who does what a document says, in a home of their own."""

    def __init__(self, scratch: Path) -> None:
        """Make the home, the project and the command."""
        self.home = scratch / "home"
        self.project = self.home / "project"
        self.bin = scratch / "bin"
        for folder in (self.project, self.bin, self.home / ".ssh"):
            folder.mkdir(parents=True)
        (self.home / ".ssh" / "id_ed25519").write_text("a private key\n")
        (self.project / "src").mkdir()
        (self.project / "src" / "main.c").write_text("int main(void) { return 0; }\n")
        command = self.bin / "supervise"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m supervisor "$@"\n')
        command.chmod(0o755)

    def run(self, command: str) -> tuple[int, str]:
        """Run a line of shell; the home's real name is put back to /home/you."""
        keep = {key: value for key, value in os.environ.items() if key.startswith("LC_")}
        done = subprocess.run(
            ["sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.project,
            env={
                **keep,
                "HOME": str(self.home),
                "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
                "LC_ALL": "C.UTF-8",
            },
            timeout=100,
            check=False,
        )
        text = done.stdout.decode(errors="backslashreplace")
        return done.returncode, text.replace(str(self.home), "/home/you")

    def follow(self, block: Block) -> None:
        """Run the commands of a console fence and compare what they print."""
        for step in steps(block):
            code, printed = self.run(step.command)
            where = f"line {block.line}: $ {step.command}"
            assert code == step.code, f"{where}: exit code {code}\n{printed}"
            compare(step, printed)

    def load(self, block: Block) -> None:
        """Keep a policy and check it."""
        name = block.words[0] if block.words else f"line-{block.line}.yaml"
        head = "" if re.search(r"^version:", block.text, re.MULTILINE) else "version: 1\n"
        data = "data" in block.words
        (self.project / name).write_text(block.text if data else head + block.text)
        if not data:
            code, printed = self.run(f"supervise policy check ./{name}")
            assert code == (1 if "broken" in block.words else 0), f"line {block.line}: {printed}"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """A fresh home for one document."""
    return Reader(Path(os.path.realpath(tmp_path)))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_commands_print_what_is_shown(path: Path, reader: Reader) -> None:
    """Every command of a document works as shown, and every policy of it loads."""
    actions: dict[str, Callable[[Block], None]] = {"console": reader.follow, "yaml": reader.load}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language in actions and "no-run" not in block.words:
            actions[block.language](block)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_what_is_not_run_says_why(path: Path) -> None:
    """A command that is run elsewhere, or nowhere, has its reason beside it."""
    for block in blocks(path.read_text(encoding="utf-8")):
        if "no-run" in block.words:
            assert block.reason, f"line {block.line}: no reason stands before the fence"
        if block.language == "console":
            assert block.text.startswith("$ "), f"line {block.line}: no command"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    """A link to a file of this repository names a file that is there."""
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_named_files_exist(path: Path) -> None:
    """A file or folder that is named between backticks is there."""
    for span in SPAN.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        for name in NAMED.findall(span) if NAMED.match(span) else ():
            if not MADE.search(name) and "X" not in name and "NAME" not in name:
                assert list(ROOT.glob(name.rstrip("/"))), name


def test_demonstration_prints_what_the_readme_shows(reader: Reader) -> None:
    """`make run` ends as the README says; its build is left out."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [step] = [
        step
        for block in blocks(text)
        for step in steps(block)
        if block.language == "console" and step.command == "make run"
    ]
    code, printed = reader.run(f"sh '{ROOT / 'docs/demo/run.sh'}'")
    assert code == 0, printed
    compare(step, printed)


def test_named_attacks_exist() -> None:
    """Every attack and race that the threat model names is one of tests/escape."""
    escape = ROOT / "tests" / "escape"
    known = set(re.findall(r"^ATTACK\((\w+)", (escape / "attacks.def").read_text(), re.MULTILINE))
    races = (escape / "test_races.py").read_text(encoding="utf-8")
    known |= set(re.findall(r'Race\(\s*"([a-z-]+)"', races))
    known |= {f"parent-{op}" for op in ("mkdir", "unlink")} | {"exec-link", "exec-script"}
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    cells = [line.rstrip("| ").rpartition("|")[2] for line in text.splitlines() if "|" in line]
    named = [name for cell in cells for name in SPAN.findall(cell) if "/" not in name]
    assert len(named) > 50
    for name in named:
        assert fnmatch.filter(known, name) or name == "LIMIT", name


def test_every_document_is_here() -> None:
    """None of the documents that the others point to is missing."""
    assert {name_of(path) for path in DOCUMENTS} >= WANTED


@pytest.mark.parametrize(("name", "limit"), LIMITS.items())
def test_documents_stay_short(name: str, limit: int) -> None:
    """What every contributor must read stays readable."""
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= limit


@pytest.mark.parametrize(
    ("shown", "printed", "good"),
    [
        (("a ... c",), "a b c\n", True),
        (("a",), "a\nb\n", False),
        (("a", "..."), "a\nb\n", True),
        (("b", "..."), "a\n", False),
        ((), "a\n", False),
    ],
)
def test_comparison_can_fail(shown: tuple[str, ...], printed: str, good: bool) -> None:
    """The comparison takes what is shown and nothing else."""
    step = Step("true", shown, 0)
    if good:
        compare(step, printed)
    else:
        with pytest.raises(AssertionError):
            compare(step, printed)


def test_mixed_lines_are_told_apart() -> None:
    """A message of ours in the middle of a program's line splits neither."""
    mixed = "cat: a" + "supervise: denied x\n  rule  y\n  hint: z\n" + ": gone\nb\n"
    told = ["supervise: denied x", "  rule  y", "  hint: z", "cat: a: gone", "b"]
    assert lines_of(mixed) == told


def test_steps_are_found() -> None:
    """Commands, folded lines, output and exit codes are told apart."""
    text = "$ one \\\n  two\nout\n(exit code 3)\n$ three\n"
    assert steps(Block("console", (), text, 1, reason=False)) == [
        Step("one \\\n  two", ("out",), 3),
        Step("three", (), 0),
    ]
