"""Compiles native/ with our warnings as errors, and runs every test_*.c against it.

``SV_NATIVE`` picks the build: plain (the default), asan or tsan.
A C program passes with exit code 0 and is skipped with 77.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NATIVE = ROOT / "native"
SKIPPED = 77
RUN_SECONDS = 150
WARNINGS = [
    *("-std=gnu11", "-D_GNU_SOURCE=", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion"),
    *("-Wformat=2", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wvla", "-Wswitch-enum"),
]
BUILDS = {
    "plain": ["-O2"],
    "asan": ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    "tsan": ["-O1", "-fsanitize=thread"],
}
CHOSEN = os.environ.get("SV_NATIVE") or "plain"
SOURCES = sorted(
    path
    for path in NATIVE.rglob("*.c")
    if not path.name.startswith("arch_") or path.name == f"arch_{platform.machine()}.c"
)
PROGRAMS = sorted(HERE.glob("test_*.c"))


def compile_c(build: str, args: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Call the compiler with the flags of one build."""
    compiler = shutil.which(os.environ.get("CC", "gcc")) or "cc"
    flags = [*WARNINGS, *BUILDS[build], "-g", "-pthread", "-I", NATIVE, "-I", HERE]
    return subprocess.run(
        [compiler, *flags, *args], capture_output=True, text=True, timeout=120, check=False
    )


class Library:
    """All of native/ for one build: an archive, and what the compiler said."""

    def __init__(self, build: str, folder: Path) -> None:
        """Compile file by file, so that one broken file fails one test."""
        self.build = build
        self.folder = folder
        self.archive = folder / "libnative.a"
        self.complaints: dict[Path, str] = {}
        targets = [folder / f"{i}-{source.stem}.o" for i, source in enumerate(SOURCES)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [["-c", s, "-o", t] for s, t in zip(SOURCES, targets, strict=True)]
            results = list(pool.map(lambda job: compile_c(build, job), jobs))
        for source, done in zip(SOURCES, results, strict=True):
            if done.returncode:
                self.complaints[source] = done.stderr
        objects = [target for target in targets if target.exists()]
        subprocess.run(["ar", "rcs", self.archive, *objects], check=True, timeout=60)


@pytest.fixture(scope="module", params=[CHOSEN])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The build of native/ that was asked for: compiled once, linked to every program."""
    assert request.param in BUILDS, f"SV_NATIVE={request.param}: not one of {', '.join(BUILDS)}"
    return Library(request.param, tmp_path_factory.mktemp(request.param))


def runner(build: str) -> list[str]:
    """ThreadSanitizer's shadow does not bear every address layout; fix the layout."""
    setarch = shutil.which("setarch")
    return [setarch, "-R"] if build == "tsan" and setarch else []


@pytest.mark.timeout(600)
def test_native_compiles_without_a_warning(library: Library) -> None:
    """Every file of native/ is clean under our warnings."""
    assert SOURCES
    assert not library.complaints, "\n".join(library.complaints.values())


def test_native_links_as_one(library: Library) -> None:
    """No name is defined twice or missing: an archive alone would hide that."""
    whole = ["-Wl,--whole-archive", library.archive, "-Wl,--no-whole-archive"]
    done = compile_c(library.build, [*whole, "-o", library.folder / "whole", HERE / "whole.c"])
    assert done.returncode == 0, done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(library: Library, program: Path) -> None:
    """A C test compiles, links with native/ and ends with 0."""
    target = library.folder / program.stem
    done = compile_c(library.build, [program, library.archive, "-o", target])
    assert done.returncode == 0, done.stderr
    environ = os.environ | {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
        "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    code, said = run_group([*runner(library.build), target], environ, library.folder)
    if code == SKIPPED:
        pytest.skip(said.strip() or "the program skipped itself")
    assert code == 0, said


def run_group(command: list[str | Path], environ: dict[str, str], folder: Path) -> tuple[int, str]:
    """Run a program; when it is over, or takes too long, what it started ends with it."""
    log = folder / "said"
    with log.open("wb") as out:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )
        try:
            code = program.wait(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            code = -signal.SIGALRM
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    said = log.read_text(errors="replace")
    return code, said + (f"\nended after {RUN_SECONDS} s" if code == -signal.SIGALRM else "")
