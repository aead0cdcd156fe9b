"""The performance claim of README.md is what the committed raw data say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_claim_is_generated_from_the_data() -> None:
    """bench/publish.py would write nothing else than what stands there."""
    script = ROOT / "bench" / "publish.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run: python bench/publish.py"
