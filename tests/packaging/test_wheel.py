"""The sdist builds, and the wheel works in an empty environment, from elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PARTS = ("native", "policies", "supervisor")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md")
IGNORED = shutil.ignore_patterns("__pycache__", "*.so", "*.o", "_native.c", "*.egg-info")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without our tree on any path; its output, or a failed test."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        command, cwd=cwd, env=keep, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, made from a copy so that the tree stays as it is."""
    folder = tmp_path_factory.mktemp("sdist")
    copy = folder / "tree"
    copy.mkdir()
    for name in PARTS:
        shutil.copytree(ROOT / name, copy / name, ignore=IGNORED)
    for name in FILES:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, copy, cwd=folder)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """A wheel, made from the sdist as an installer would."""
    folder = sdist.parent / "wheel"
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
        *("--wheel-dir", folder, sdist),
        cwd=sdist.parent,
    )
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The bin folder of a new environment with the wheel in it."""
    home = wheel.parent / "environment"
    run(sys.executable, "-m", "venv", home, cwd=wheel.parent)
    run(home / "bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=wheel.parent)
    return home / "bin"


def test_sdist_has_the_native_sources(sdist: Path) -> None:
    """Headers, the table and the policies are easily forgotten in an sdist."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = [
        str(path.relative_to(ROOT))
        for folder in ("native", "policies")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".c", ".h", ".def", ".yaml"}
    ]
    assert wanted
    assert not set(wanted) - names


def test_wheel_is_for_every_later_python(wheel: Path) -> None:
    """One stable-ABI wheel serves Python 3.11 and later."""
    assert "-cp311-abi3-linux_" in wheel.name


def test_wheel_holds_types_and_policies(wheel: Path) -> None:
    """py.typed and every policy are inside, and no C source is."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"supervisor/py.typed", "supervisor/_native.pyi"} <= names
    policies = {f"supervisor/{p.relative_to(ROOT)}" for p in ROOT.glob("policies/**/*.yaml")}
    assert policies
    assert not policies - names
    assert not [name for name in names if name.endswith((".c", ".h"))]


def test_installed_command_says_its_version(installed: Path, tmp_path: Path) -> None:
    """The command of the wheel runs, and knows the wheel's version."""
    said = run(installed / "supervise", "--version", cwd=tmp_path)
    asked = "from importlib.metadata import version; print(version('syscall-supervisor'))"
    assert said.split()[-1] == run(installed / "python", "-c", asked, cwd=tmp_path).strip()


def test_installed_command_finds_its_policies(installed: Path, tmp_path: Path) -> None:
    """The packs come from the wheel, not from a source tree beside it."""
    listed = run(installed / "supervise", "policy", "list", cwd=tmp_path)
    assert "agent-dev" in listed
    where = "from supervisor.policy.packs import packs_folder; print(packs_folder())"
    assert "site-packages" in run(installed / "python", "-c", where, cwd=tmp_path)


def test_installed_module_loads(installed: Path, tmp_path: Path) -> None:
    """The native module of the wheel imports and has the ABI that Python expects."""
    run(installed / "python", "-c", "import supervisor.native", cwd=tmp_path)
