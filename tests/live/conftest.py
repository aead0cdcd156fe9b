"""What the live tests share: real commands under the real command line, against the kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised  # noqa: F401

HERE = Path(__file__).parent
ROOT_MARK = "root"


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker that this folder adds."""
    config.addinivalue_line("markers", f"{ROOT_MARK}: needs root; the root job runs these")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs root where we have none: deselected, never skipped."""
    here = [item for item in items if item.path.is_relative_to(HERE)]
    for item in here:
        item.add_marker(pytest.mark.live)
    if os.geteuid() == 0:
        return
    left_out = [item for item in here if item.get_closest_marker(ROOT_MARK)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def supervised(tmp_path: Path) -> Supervised:
    """A runner with a private workspace."""
    root = tmp_path / "work"
    home = tmp_path / "home"
    root.mkdir()
    home.mkdir()
    return Supervised(root, home)


Compiler = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    """Compiles a C file of this folder, each once; the programs are not in any workspace.

    They are called through a hard copy in the workspace, see ``put``.
    """
    folder = tmp_path_factory.mktemp("programs")
    compiler = shutil.which(os.environ.get("CC", "gcc")) or "cc"

    def build(name: str, *flags: str) -> Path:
        target = folder / "-".join([name, *(flag.strip("-/").replace("/", "_") for flag in flags)])
        if not target.exists():
            warnings = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
            source = str(HERE / f"{name}.c")
            command = [compiler, *warnings, *flags, "-o", str(target), source]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return target

    return build


@pytest.fixture
def program(compile_c: Compiler, supervised: Supervised) -> Callable[..., Path]:
    """Puts a compiled program of this folder into the workspace's bin, where it may run."""

    def put(name: str, *flags: str) -> Path:
        place = supervised.root / "bin"
        place.mkdir(exist_ok=True)
        return Path(shutil.copy(compile_c(name, *flags), place / name))

    return put
