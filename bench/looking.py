"""Measures what a rule that hides names costs the calls that look, in interleaved rounds.

Usage: ``python bench/looking.py [--rounds N] [--out FILE]`` with the interpreter of the
environment that supervise is installed in. Every round runs each variant once, in an order
of its own: natively, under a policy that hides nothing, and under one that does.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import HERE, last_number, machine

VARIANTS = ("native", "plain", "hiding")
START = ["/usr/bin/python3", "-I", "-c", "import json, asyncio, unittest"]
POLICY = """\
version: 1
files:
  - {id: all, allow: all, paths: ["/**"]}
  - {id: hidden, deny: all, as: ENOENT, hide: %s, paths: [/nowhere/**]}
"""


def around(work: Path, variant: str) -> list[str]:
    """Return what stands before a command."""
    if variant == "native":
        return []
    own = str(Path(sys.executable).parent / "supervise")
    return [own, "-q", "-p", str(work / f"{variant}.yaml"), "--"]


def measure(work: Path, variant: str, what: str) -> float:
    """Run one variant once; ns per call, or ms of a start."""
    if what == "start":
        begin = time.perf_counter()
        subprocess.run([*around(work, variant), *START], check=True, cwd=work)
        return (time.perf_counter() - begin) * 1e3
    n, path = ("20000", work / "file") if what == "stat" else ("2000", work / "folder")
    command = [*around(work, variant), str(work / "loop"), what, n, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=work)
    return last_number(done.stdout)


def prepare(work: Path) -> None:
    """Put the program, the policies and what is looked at into the scratch folder."""
    source = str(HERE / "latency/loop.c")
    subprocess.run(
        ["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-o", work / "loop", source], check=True
    )
    (work / "plain.yaml").write_text(POLICY % "false")
    (work / "hiding.yaml").write_text(POLICY % "true")
    (work / "file").touch()
    (work / "folder").mkdir()
    for number in range(200):
        (work / f"folder/file-{number}").touch()


def main() -> int:
    """Run, print the medians of the rounds' ratios, keep the raw data where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="file for the raw data")
    options = parser.parse_args()
    jobs = [(what, variant) for what in ("stat", "list", "start") for variant in VARIANTS]
    with tempfile.TemporaryDirectory(prefix="supervise-look-") as folder:
        work = Path(folder)
        prepare(work)
        measure(work, "hiding", "start")
        samples = []
        for _ in range(options.rounds):
            random.shuffle(jobs)
            samples.append({f"{what}|{v}": measure(work, v, what) for what, v in jobs})
    for what in ("stat", "list", "start"):
        for variant in ("plain", "hiding"):
            each = [s[f"{what}|{variant}"] / s[f"{what}|native"] for s in samples]
            spread = f"{min(each):.2f} to {max(each):.2f}"
            sys.stdout.write(f"{what} {variant}: {statistics.median(each):.2f} ({spread})\n")
    if options.out:
        result = {"machine": machine(), "samples": samples}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
