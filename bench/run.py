"""Measures supervise against native and the minimal broker in one interleaved run.

Usage: ``python bench/run.py [--rounds N] [--out DIR] [--quick]`` with the interpreter of
the environment that supervise is installed in. Every round runs every variant once, in an
order of its own; a figure is the median of the rounds' ratios with their spread, never a
lone time. The supervised runs prove that a filter was active: the loop program prints
``Seccomp:`` of its own status, and the audit's last record counts the notifications.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NATIVE = ["base", "match", "policy"]
Sample = dict[str, float]


def build(folder: Path) -> None:
    """Compile the C programs of the benchmark into ``folder``.

    Raises:
        subprocess.CalledProcessError: the compiler refused one.
    """
    core = [str(p) for part in NATIVE for p in sorted((ROOT / "native" / part).glob("*.c"))]
    flags = ["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I", str(ROOT / "native"), "-pthread"]
    for source in sorted((HERE / "latency").glob("*.c")):
        subprocess.run([*flags, "-o", str(folder / source.stem), str(source)], check=True)
    for source in sorted((HERE / "micro").glob("*.c")):
        subprocess.run([*flags, "-o", str(folder / source.stem), str(source), *core], check=True)


def last_number(text: str) -> float:
    """Return the number that ends the first line of a program's output."""
    return float(text.splitlines()[0].split()[-1])


class Bench:
    """One interleaved run in a scratch folder."""

    def __init__(self, work: Path, *, quick: bool) -> None:
        """Prepare the scratch folder ``work``; ``quick`` makes short loops for a smoke test."""
        self.work = work
        self.scale = 10 if quick else 1
        self.supervise = [str(Path(sys.executable).parent / "supervise"), "-q", "-p", "agent-dev"]
        self.proof: dict[str, str] = {}
        (work / "file").write_text("x\n")

    def loop(self, variant: str, op: str, n: int, path: str, pinned: tuple[str, ...] = ()) -> float:
        """Run loop.c natively, under a yardstick or under supervise; ns per call."""
        command = [str(self.work / "loop"), op, str(n // self.scale), path]
        if variant == "minimal broker":
            command = [str(self.work / "minbroker"), *command]
        if variant == "empty filter":
            command = [str(self.work / "emptyfilter"), *command]
        if variant == "supervise":
            command = [*self.supervise, "--", *command]
        command = [*pinned, *command]
        done = subprocess.run(command, cwd=self.work, capture_output=True, text=True, check=True)
        self.proof.setdefault(f"{op} {variant}", done.stdout.splitlines()[-1])
        return last_number(done.stdout)

    def start(self, variant: str) -> float:
        """Run one start-up, warm; milliseconds."""
        command = [sys.executable, "-I", "-c", "pass"]
        if variant == "supervise":
            command = [self.supervise[0], "--", "true"]
        begin = time.perf_counter()
        subprocess.run(command, cwd=self.work, check=True)
        return (time.perf_counter() - begin) * 1e3

    def round(self) -> Sample:
        """Run every variant once, in random order."""
        file = str(self.work / "file")
        jobs = {
            ("no rule speaks", v): (lambda v=v: self.loop(v, "getppid", 500_000, file))
            for v in ("native", "empty filter", "supervise")
        }
        jobs |= {
            ("open+close", v): (lambda v=v: self.loop(v, "openclose", 20_000, file))
            for v in ("native", "minimal broker", "supervise")
        }
        jobs |= {
            ("open+close on one CPU", v): (
                lambda v=v: self.loop(v, "openclose", 20_000, file, ("taskset", "-c", "0"))
            )
            for v in ("native", "minimal broker", "supervise")
        }
        jobs |= {
            ("create+unlink", v): (lambda v=v: self.loop(v, "creat", 5_000, file + v[:3]))
            for v in ("native", "supervise")
        }
        jobs |= {
            ("stat", v): (lambda v=v: self.loop(v, "stat", 200_000, file))
            for v in ("native", "supervise")
        }
        jobs |= {("start-up", v): (lambda v=v: self.start(v)) for v in ("native", "supervise")}
        order = list(jobs)
        random.shuffle(order)
        return {f"{name}|{variant}": jobs[name, variant]() for name, variant in order}

    def matchers(self) -> list[str]:
        """Run the matcher benchmarks; their own output lines."""
        lines: list[str] = []
        for name in ("trie_bench", "cidr_bench"):
            done = subprocess.run(
                [str(self.work / name)], capture_output=True, text=True, check=True
            )
            lines += [line for line in done.stdout.splitlines() if line.strip()]
        return lines

    def memory(self, rules: int = 10_000) -> float:
        """Return the resident memory in MB of a supervisor with ``rules`` rules."""
        import psutil

        policy = self.work / "many.yaml"
        body = "".join(
            f'  - {{id: r{i}, allow: [read], paths: ["/data/{i % 97}/p{i}/**"]}}\n'
            for i in range(rules)
        )
        policy.write_text(f"version: 1\nname: many\nextends: [agent-dev]\nfiles:\n{body}")
        command = [self.supervise[0], "-q", "-p", str(policy), "--", "cat"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=self.work, stdin=pipe, stdout=pipe) as process:
            process.stdin.write(b"up\n")
            process.stdin.flush()
            process.stdout.readline()
            family = psutil.Process(process.pid)
            own = [family, *[c for c in family.children(recursive=True) if c.name() != "cat"]]
            used = max(p.memory_info().rss for p in own) / 1e6
            process.stdin.close()
            process.wait()
        return used


def ratio(samples: list[Sample], name: str, over: str) -> tuple[float, float, float]:
    """Return (median, lowest, highest) of supervise/``over`` round by round."""
    each = [s[f"{name}|supervise"] / s[f"{name}|{over}"] for s in samples]
    return statistics.median(each), min(each), max(each)


TARGETS = [
    ("no rule speaks", "native", 1.03),
    ("no rule speaks", "empty filter", 1.03),
    ("open+close", "minimal broker", 1.5),
    ("open+close", "native", None),
    ("open+close on one CPU", "minimal broker", 1.5),
    ("open+close on one CPU", "native", None),
    ("create+unlink", "native", None),
    ("stat", "native", None),
    ("start-up", "native", 2.5),
]


def summary(result: dict) -> str:  # type: ignore[type-arg]
    """Return the Markdown table that the README shows."""
    rows = ["| what | against | ratio (median of rounds) | lowest to highest | goal |"]
    rows.append("|---|---|---|---|---|")
    for name, over, goal in TARGETS:
        mid, low, high = ratio(result["samples"], name, over)
        wanted = f"<= {goal}" if goal else ""
        rows.append(f"| {name} | {over} | {mid:.2f} | {low:.2f} to {high:.2f} | {wanted} |")
    rows.append(f"| memory, 10,000 rules | | {result['memory_mb']:.0f} MB | | <= 60 MB |")
    on = result["machine"]
    where = f"{on['kernel']}, {on['cpus']} CPUs, Python {on['python']}"
    count = len(result["samples"])
    rows.append("")
    rows.append(
        f"{count} interleaved rounds, {on['date']}, {where}. Matchers (lookups per second):"
    )
    rows.append("")
    rows += [f"    {line}" for line in result["matchers"]]
    return "\n".join(rows) + "\n"


def machine() -> dict[str, object]:
    """Describe the machine, for the raw data."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "date": time.strftime("%Y-%m-%d"),
        "kernel": f"Linux {platform.release()}",
        "arch": platform.machine(),
        "cpu": cpu.group(1) if cpu else "",
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg(),
    }


def main() -> int:
    """Run, write raw.json and summary.md, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="folder for raw.json and summary.md")
    parser.add_argument("--quick", action="store_true", help="short loops: a smoke test")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="supervise-bench-") as folder:
        work = Path(folder)
        build(work)
        bench = Bench(work, quick=options.quick)
        bench.start("supervise")
        samples = [bench.round() for _ in range(options.rounds)]
        result = {
            "machine": machine(),
            "samples": samples,
            "proof": bench.proof,
            "matchers": bench.matchers(),
            "memory_mb": bench.memory(),
        }
    text = summary(result)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "raw.json").write_text(json.dumps(result, indent=1) + "\n")
        (options.out / "summary.md").write_text(text)
    sys.stdout.write(text)
    wrong = [k for k, v in bench.proof.items() if ("Seccomp:\t2" in v) == k.endswith("native")]
    if wrong:
        sys.stderr.write(f"filter not as expected: {wrong}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
