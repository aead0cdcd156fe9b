"""Writes the claim in README.md, and the plot, from the newest committed run.

Usage: ``python bench/publish.py [--check]``. Reads ``bench/runs/*/raw.json`` (the last by
name), puts its ``summary`` between the two bench markers of README.md and draws
``plot.svg`` beside the raw data. ``--check`` writes nothing and exits 1 where README.md
says something else than the data.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from pathlib import Path

from run import TARGETS, ratio, summary

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
WIDTH, ROW, LEFT, RIGHT = 820, 44, 330, 70


def newest() -> Path:
    """Return the folder of the newest run.

    Raises:
        SystemExit: there is none.
    """
    runs = sorted(path.parent for path in (HERE / "runs").glob("*/raw.json"))
    if not runs:
        raise SystemExit("bench/runs holds no raw.json: run bench/run.py --out bench/runs/NAME")
    return runs[-1]


def claim(folder: Path) -> str:
    """Return what README.md says between its markers for one run."""
    result = json.loads((folder / "raw.json").read_text())
    name = folder.relative_to(HERE.parent)
    proof = (
        f"Raw data, the proof that a filter was active, and the plot: `{name}/`. "
        "Ratios of one interleaved run, smaller is better; the machine is a noisy virtual one.\n\n"
    )
    return f"{BEGIN}\n{proof}{summary(result).rstrip()}\n{END}"


def plot(result: dict) -> str:  # type: ignore[type-arg]
    """Return an SVG: one bar a ratio, its spread as a line, its goal as a mark."""
    rows = []
    ratios = [ratio(result["samples"], name, over) for name, over, _ in TARGETS]
    unit = (WIDTH - LEFT - RIGHT) / max(high for _, _, high in ratios)
    for i, (name, over, goal) in enumerate(TARGETS):
        mid, low, high = ratios[i]
        y = 30 + i * ROW
        text = html.escape(f"{name} / {over}")
        rows.append(f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{text}</text>')
        rows.append(f'<rect x="{LEFT}" y="{y}" width="{mid * unit:.1f}" height="20"/>')
        rows.append(
            f'<path d="M{LEFT + low * unit:.1f} {y + 10}H{LEFT + high * unit:.1f}"/>'
            f'<text x="{LEFT + max(mid, high) * unit + 8:.1f}" y="{y + 15}">{mid:.2f}</text>'
        )
        if goal:
            rows.append(f'<path class="goal" d="M{LEFT + goal * unit:.1f} {y - 4}v28"/>')
    height = 40 + len(TARGETS) * ROW
    style = (
        "text{font:13px sans-serif;fill:#222}rect{fill:#4a7ebb}"
        "path{stroke:#222;stroke-width:2}.goal{stroke:#c0392b}"
    )
    title = "supervise against what it is compared with (ratio of times; red: goal)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">'
        f'<rect width="{WIDTH}" height="{height}" style="fill:#fff"/><style>{style}</style>'
        f'<text x="10" y="18">{title}</text>{"".join(rows)}</svg>\n'
    )


def main() -> int:
    """Publish, or check that README.md and the data agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    folder = newest()
    text = README.read_text()
    before, rest = text.split(BEGIN, 1)
    wanted = before + claim(folder) + rest.split(END, 1)[1]
    if check:
        return 0 if wanted == text else 1
    README.write_text(wanted)
    (folder / "plot.svg").write_text(plot(json.loads((folder / "raw.json").read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
