"""Measures what network rules cost, in interleaved rounds.

Usage: ``python bench/network.py [--rounds N] [--out FILE]`` with the interpreter of the
environment that supervise is installed in. Every round runs each variant once, in an order
of its own: natively, under a policy with ten network rules, and under one with 100,000. A
round trip is what one empty notification adds: making a socket is one.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from run import HERE, last_number, machine

if TYPE_CHECKING:
    from collections.abc import Callable

VARIANTS = ("native", "few", "many")
COUNTS = {
    "socket": 20_000,
    "connect": 5_000,
    "eager": 5_000,
    "sendto": 20_000,
    "send": 50_000,
    "stream": 10_000,
}
RULES = {"few": 10, "many": 100_000}
POLICY = """\
version: 1
files:
  - {id: all, allow: all, paths: ["/**"]}
network:
  - {id: here, allow: [connect, bind], to: ["127.0.0.0/8"]}
"""
Sample = dict[str, float]


def command(work: Path, variant: str, what: str) -> list[str]:
    """Return one variant of one loop."""
    loop = ["taskset", "-c", "0", str(work / "netloop"), what, str(COUNTS[what])]
    if variant == "native":
        return loop
    own = str(Path(sys.executable).parent / "supervise")
    return [own, "-q", "-p", str(work / f"{variant}.yaml"), "--", *loop]


def measure(work: Path, variant: str, what: str) -> float:
    """Run it once; ns per call.

    Raises:
        SystemExit: The filter was not as the variant says.
    """
    pinned = ["taskset", "-c", "0", *command(work, variant, what)]
    done = subprocess.run(pinned, capture_output=True, text=True, check=True, cwd=work)
    if ("Seccomp:\t2" in done.stdout) == (variant == "native"):
        raise SystemExit(f"{what} {variant}: the filter is not as expected")
    return last_number(done.stdout)


def prepare(work: Path) -> None:
    """Put the program and the policies into the scratch folder."""
    source = HERE / "latency/netloop.c"
    flags = ["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-pthread"]
    subprocess.run(["gcc", *flags, "-o", work / "netloop", source], check=True)
    for variant, count in RULES.items():
        # A policy file has at most a megabyte.
        parts = [f"./{variant}-{at}.yaml" for at in range(0, count, 25_000)]
        own = POLICY.replace("files:", f"extends: [{', '.join(parts)}]\nfiles:", 1)
        (work / f"{variant}.yaml").write_text(own)
        numbers = random.Random(1).sample(range(1 << 22), count)  # noqa: S311 - made-up networks
        for i, part in enumerate(parts):
            lines = [_network(n) for n in numbers[i * 25_000 : (i + 1) * 25_000]]
            rule = f"network:\n  - id: others-{i}\n    deny: connect\n    to:\n"
            (work / part).write_text(f"version: 1\n{rule}" + "\n".join(lines) + "\n")


def _network(n: int) -> str:
    """Return one of four million networks of four addresses, none of them this machine's."""
    return f'      - "{10 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.{n * 4 & 252}/30"'


def show(name: str, samples: list[Sample], value: Callable[[Sample], float], goal: str) -> None:
    """Print the median of one figure over the rounds, and its spread."""
    each = [value(sample) for sample in samples]
    spread = f"{min(each):.2f} to {max(each):.2f}"
    sys.stdout.write(f"{name}: {statistics.median(each):.2f} ({spread}){goal}\n")


def report(samples: list[Sample]) -> None:
    """Print all figures."""

    def trip(s: Sample) -> float:
        return s["socket|few"] - s["socket|native"]

    for what in COUNTS:
        show(f"{what} x native", samples, lambda s, w=what: s[f"{w}|few"] / s[f"{w}|native"], "")
    for what in ("connect", "eager"):
        show(
            f"{what} less a socket and a round trip x native",
            samples,
            lambda s, w=what: (s[f"{w}|few"] - 2 * trip(s)) / s[f"{w}|native"],
            ", goal 3",
        )
    show(
        "sendto in round trips",
        samples,
        lambda s: (s["sendto|few"] - s["sendto|native"]) / trip(s),
        ", goal 2",
    )
    for what in ("connect", "sendto"):
        show(
            f"{what} with 100,000 networks x with ten",
            samples,
            lambda s, w=what: s[f"{w}|many"] / s[f"{w}|few"],
            ", goal 1",
        )


def main() -> int:
    """Run, print the figures, keep the raw data where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="file for the raw data")
    options = parser.parse_args()
    jobs = [(what, variant) for what in COUNTS for variant in VARIANTS]
    with tempfile.TemporaryDirectory(prefix="supervise-net-") as folder:
        work = Path(folder)
        prepare(work)
        for variant in RULES:
            measure(work, variant, "socket")
        samples = []
        for _ in range(options.rounds):
            random.shuffle(jobs)
            samples.append({f"{what}|{v}": measure(work, v, what) for what, v in jobs})
    report(samples)
    if options.out:
        result = {"machine": machine(), "samples": samples}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
