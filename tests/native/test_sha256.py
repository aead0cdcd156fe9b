"""Our SHA-256 against Python's, on random bytes of many lengths."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = HERE.parent.parent / "native"


def test_digests_are_those_of_hashlib(tmp_path: Path) -> None:
    """Every length around the block size, and some long ones, give the same digest."""
    compiler = shutil.which(os.environ.get("CC", "gcc")) or "cc"
    program = tmp_path / "sha256"
    flags = ["-std=gnu11", "-D_GNU_SOURCE=", "-O2", "-I", str(NATIVE), "-I", str(HERE)]
    sources = [str(HERE / "test_sha256.c"), str(NATIVE / "base/sha256.c")]
    subprocess.run([compiler, *flags, "-o", str(program), *sources], check=True, timeout=60)
    seed = random.randrange(1 << 32)  # noqa: S311
    source = random.Random(seed)  # noqa: S311
    lengths = [*range(200), *(source.randrange(1 << 20) for _ in range(20)), 5 << 20]
    for length in lengths:
        data = source.randbytes(length)
        done = subprocess.run(
            [program, "-"], input=data, capture_output=True, check=True, timeout=60
        )
        wanted = hashlib.sha256(data).hexdigest()
        assert done.stdout.decode().strip() == wanted, f"seed {seed}, {length} bytes"
