"""Every way to open times every kind of object: the same natively and supervised."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from live_world import Supervised

O_NOFOLLOW = 0o400000


def normal(line: str, root: Path) -> list[str]:
    """The fields of a line without what must differ: the twin's own name.

    The status flag O_NOFOLLOW stays visible in F_GETFL natively; a descriptor that was
    opened again from a pinned one cannot carry it.
    """
    fields = line.replace(str(root), "ROOT").split("\t")

    def without(found: re.Match[str]) -> str:
        return f"flags={int(found[1], 8) & ~O_NOFOLLOW:o}"

    return [re.sub(r"flags=([0-7]+)", without, field) for field in fields]


def excuse(native: list[str], ours: list[str]) -> str:
    """Why a line may differ; empty where it may not."""
    how, what, expected = native[:3]
    if what == "/" and ours[2] == "EACCES":
        return "the policy, which lets nobody write to /, speaks before the kernel"
    if "RESOLVE_" in how and "O_PATH" in how and ours[2] == "ENOSYS":
        return "openat2 with O_PATH and resolve flags is refused; callers fall back"
    if re.search(r"RESOLVE_(BENEATH|IN_ROOT|NO_SYMLINKS) create", how) and ours[2] == "ELOOP":
        return "a dangling link is not created through where openat2 limits the walk"
    if "RESOLVE_" in how and "EAGAIN" in (expected, ours[2]):
        return "the kernel itself says EAGAIN where a rename ran meanwhile"
    return ""


@pytest.mark.timeout(240)
def test_open_behaves_as_natively(supervised: Supervised, program: Callable[..., Path]) -> None:
    """Result, type, mode, flags and what is left behind are equal line by line."""
    table = program("open_table")
    twins = supervised.root / "native", supervised.root / "supervised"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(supervised.natively, [table, twins[0]], timeout=200)
        ours = supervised([table, twins[1]], None, "-q", timeout=200)
        native = future.result()
    assert native.code == 0, native.err
    assert ours.code == 0, ours.err
    pairs = list(zip(native.lines(), ours.lines(), strict=True))
    assert len(pairs) > 4000
    wrong = []
    for left, right in pairs:
        a, b = normal(left, twins[0]), normal(right, twins[1])
        if a != b and not excuse(a, b):
            wrong.append(f"natively   {a}\nsupervised {b}")
    assert not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(wrong[:40])
