"""Where SUPERVISE_MUST_WORK is set a skip fails, however it comes about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent.parent / "conftest.py"
MODULES = {
    "test_calls.py": """
import pytest

def test_calls_skip():
    pytest.skip("in the test")

@pytest.mark.skip(reason="marked")
def test_is_marked():
    pass

@pytest.mark.skipif(True, reason="marked with a condition")
def test_is_marked_with_a_condition():
    pass

@pytest.fixture
def missing():
    pytest.skip("in a fixture")

def test_needs_a_fixture(missing):
    pass

@pytest.mark.xfail
def test_is_expected_to_fail():
    assert False

def test_passes():
    pass
""",
    "test_module.py": """
import pytest

pytest.importorskip("no_such_module")
""",
}


@pytest.mark.parametrize(
    ("value", "code", "counts"),
    [
        ("1", 1, {"failed": 1, "error": 4, "passed": 1, "xfailed": 1}),
        ("0", 0, {"skipped": 5, "passed": 1, "xfailed": 1}),
        (None, 0, {"skipped": 5, "passed": 1, "xfailed": 1}),
    ],
)
def test_a_skip_is_a_failure(
    value: str | None, code: int, counts: dict[str, int], tmp_path: Path
) -> None:
    """Every kind of skip fails or is an error with the variable, and is a skip without."""
    shutil.copy(CONFTEST, tmp_path)
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    hidden = ("SUPERVISE_", "PYTEST_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    if value is not None:
        environ["SUPERVISE_MUST_WORK"] = value
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no"),
            *("--continue-on-collection-errors", "--rootdir", tmp_path, tmp_path),
        ],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    closing = done.stdout.splitlines()[-1]
    found = {what.rstrip("s"): int(n) for n, what in re.findall(r"(\d+) ([a-z]+)", closing)}
    found.pop("in", None)
    assert (done.returncode, found) == (code, counts), done.stdout
