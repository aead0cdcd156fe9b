"""What a warm start loads, and what it must not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "argparse",
    "asyncio",
    "dataclasses",
    "hashlib",
    "importlib.metadata",
    "inspect",
    "json",
    "logging",
    "pathlib",
    "pyseccomp",
    "shutil",
    "subprocess",
    "tempfile",
    "threading",
    "typing",
    "yaml",
}
# Everything up to the guard, which is the last step before the kernel's part.
SCRIPT = """
import sys
before = set(sys.modules)
import supervisor.native as native
def stop():
    print("\\n".join(sorted(set(sys.modules) - before)))
    sys.stdout.flush()
    import os
    os._exit(0)
native.guard = stop
from supervisor.cli import main
main(sys.argv[1:])
"""


def _loaded(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-S", "-c", SCRIPT, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])},
    )
    assert done.stdout, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("--", "true"), set()),
        (("-q", "-p", "agent-dev", "--", "true"), set()),
        (("--fail-on-deny", "--", "true"), {"argparse"}),
    ],
)
def test_warm_start_is_light(words: tuple[str, ...], allowed: set[str]) -> None:
    """With the policy in the cache no heavy module is loaded; and for simple lines no argparse."""
    _loaded(*words)
    found = _loaded(*words)
    assert found & HEAVY - allowed == set()
    assert not any(name.startswith("supervisor.policy.merge") for name in found)


def test_version_needs_no_native_module() -> None:
    """--version works where nothing is built."""
    code = (
        "import sys; sys.modules['supervisor._native'] = None\n"
        "from supervisor.cli import main; sys.exit(main(['--version']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout[:10]) == (0, "supervise ")


def test_missing_native_module_is_a_sentence() -> None:
    """A run says what to build, and is no traceback."""
    code = (
        "import sys; sys.modules['supervisor._native'] = None\n"
        "from supervisor.cli import main; sys.exit(main(['--', 'true']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 125
    assert "supervisor._native cannot be loaded" in done.stderr
    assert "Traceback" not in done.stderr


def test_supervisord_beside_us_is_told(tmp_path: Path) -> None:
    """A supervisord in the same folder is an ImportError with a sentence."""
    package = tmp_path / "supervisor"
    package.mkdir()
    (package / "__init__.py").write_text((ROOT / "supervisor" / "__init__.py").read_text())
    (package / "supervisord.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import supervisor"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={},
    )
    assert done.returncode == 1
    assert "separate virtual environments" in done.stderr
