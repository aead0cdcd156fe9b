"""What the live tests share: real commands under the real command line, against the kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_world import POLICY, Supervised  # noqa: F401
from privilege import lacking

HERE = Path(__file__).parent
ROOT_MARK = "root"
WHOLE_MARK = "whole_root"


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers that this folder adds."""
    config.addinivalue_line("markers", f"{ROOT_MARK}: needs root; the root job runs these")
    config.addinivalue_line("markers", f"{WHOLE_MARK}: run as root, it needs all that root may do")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs root where we have none: deselected, never skipped.

    Where root itself lacks something, as in a container, that is the reason of a skip.
    """
    here = [item for item in items if item.path.is_relative_to(HERE)]
    reason = lacking()
    for item in here:
        item.add_marker(pytest.mark.live)
        if reason and any(map(item.get_closest_marker, (ROOT_MARK, WHOLE_MARK))):
            item.add_marker(pytest.mark.skip(reason=reason))
    if os.geteuid() == 0:
        return
    left_out = [item for item in here if item.get_closest_marker(ROOT_MARK)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of compiled policies, between tests."""
    return tmp_path_factory.mktemp("cache") / "supervise"


@pytest.fixture
def supervised(compiled: Path, tmp_path: Path) -> Iterator[Supervised]:
    """A runner with a private workspace.

    It has the same name in every test, and our cache goes from home to home: what takes
    long at a start is to compile a policy, and most are equal. What is left lies in tmp_path.
    """
    world = compiled.with_name("world")
    root, home = world / "work", world / "home"
    root.mkdir(parents=True)
    used = home / ".cache/supervise"
    used.parent.mkdir(parents=True)
    if compiled.exists():
        compiled.rename(used)
    yield Supervised(root, home)
    if used.is_dir() and not used.is_symlink():
        used.rename(compiled)
    world.rename(tmp_path / "world")


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
