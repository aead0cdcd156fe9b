"""Calls that make, remove, move or change names: the same natively and supervised."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from live_world import Supervised

ACL = "system.posix_acl_default"
PARTS = [
    ("make", "0", False),
    ("make", "22", False),
    ("make", "777", False),
    ("make", "0", True),
    ("make", "77", True),
    ("unmake", "22", False),
    ("two", "22", False),
    ("modes", "22", False),
    ("descriptors", "22", False),
    ("times", "22", False),
]


def default_acl() -> bytes:
    """u::rwx u:12345:rwx g::r-x m::rwx o::---, as the kernel keeps it."""
    nobody = 0xFFFFFFFF
    entries = [(1, 7, nobody), (2, 7, 12345), (4, 5, nobody), (16, 7, nobody), (32, 0, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def excuse(native: list[str], ours: list[str]) -> str:
    """Why a line may differ; empty where it may not."""
    what, expected, got = native[1], native[2].split(" ")[0], ours[2].split(" ")[0]
    if what == "/" and (expected, got) in {("EISDIR", "EACCES"), ("EBUSY", "EINVAL")}:
        return "the root itself: refused either way"
    return ""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("part", "umask", "acl"), PARTS)
def test_names_behave_as_natively(
    supervised: Supervised, program: Callable[..., Path], part: str, umask: str, acl: bool
) -> None:
    """Errno, modes, owners, links and times are equal line by line, under any umask."""
    table = program("names_table")
    twins = supervised.root / "native", supervised.root / "supervised"
    for twin in twins:
        (twin / "w").mkdir(parents=True)
        if acl:
            os.setxattr(twin / "w", ACL, default_acl())
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(supervised.natively, [table, twins[0], part, umask], timeout=200)
        ours = supervised([table, twins[1], part, umask], None, "-q", timeout=200)
        native = future.result()
    assert native.code == 0, native.err
    assert ours.code == 0, ours.err
    pairs = list(zip(native.lines(), ours.lines(), strict=True))
    assert len(pairs) > 50
    wrong = []
    for left, right in pairs:
        a = left.replace(str(twins[0]), "ROOT").split("\t")
        b = right.replace(str(twins[1]), "ROOT").split("\t")
        if a != b and not excuse(a, b):
            wrong.append(f"natively   {a}\nsupervised {b}")
    assert not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(wrong[:40])


NAMELESS = """\
import os
fd = os.open('/tmp', os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
os.write(fd, b'x')
print(os.pread(fd, 1, 0), os.fstat(fd).st_nlink)
for place in '/tmp', '.':
    fd = os.open('/tmp', os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        os.link(f'/proc/self/fd/{fd}', f'{place}/sv-named-{os.getpid()}', follow_symlinks=True)
    except OSError as e:
        print(type(e).__name__)
"""


def test_agent_dev_lets_tmpfile_work(supervised: Supervised) -> None:
    """make -O and others crash without a file in /tmp; it gets no name there."""
    done = supervised(["/usr/bin/python3", "-c", NAMELESS], "pack:agent-dev")
    assert done.lines()[:2] == ["b'x' 0", "PermissionError"]
