"""inotify: watches are put as natively, and only where reading is allowed."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised, differing, twins, without

Put = Callable[..., Path]
PYTHON = "/usr/bin/python3"
# Watches what its arguments name; prints the watch's number or the errno of each.
WATCH = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
for name in sys.argv[1:]:
    wd = libc.inotify_add_watch(fd, os.fsencode(name), 0x2 | 0x100)
    print(wd if wd > 0 else errno.errorcode[ctypes.get_errno()])
"""


def younger(major: int, minor: int) -> bool:
    """Is this kernel that version, or a later one?"""
    numbers = platform.release().split("-")[0].split(".")
    return (int(numbers[0]), int(numbers[1])) >= (major, minor)


def same(pairs: list[tuple[str, str]]) -> None:
    """Hold the two runs against each other."""
    assert len(pairs) > 140
    # Before 6.9 a thread's own descriptors cannot be reached: refused, and told.
    compared = [pair for pair in pairs if younger(6, 9) or not pair[0].startswith("thread")]
    wrong = differing(compared)
    assert not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(wrong[:20])


def test_watches_behave_as_natively(supervised: Supervised, program: Put) -> None:
    """Errnos, numbers and events are equal line by line."""
    same(twins(supervised, program("watch_table")))


@pytest.mark.root
def test_changed_identity(supervised: Supervised, program: Put) -> None:
    """A child with other ids watches what it could watch natively, and no more."""
    same(twins(supervised, program("watch_table"), 54321))


def test_decided_as_reading_and_listing(supervised: Supervised) -> None:
    """A hidden file tells nothing of its changes, by whatever name; nor does a hidden folder."""
    for name in ("open", "hidden"):
        (supervised.root / name).mkdir()
        (supervised.root / name / "f").write_text("")
    (supervised.root / "link").symlink_to("hidden/f")
    policy = POLICY + (
        '  - {id: hidden, deny: [read], paths: ["${root}/hidden/**"]}\n'
        '  - {id: unlisted, deny: [list], paths: ["${root}/open"]}\n'
        '  - {id: sent, steer: read, paths: ["${root}/sent"], to: "${root}/open/f"}\n'
    )
    (supervised.root / "sent").write_text("")
    names = ["hidden", "hidden/f", "link", "open", "open/f", ".", "/proc/self/cwd/hidden/f", "sent"]
    done = supervised([PYTHON, "-ISc", WATCH, *names], policy)
    no = "EACCES"
    assert done.lines() == [no, no, no, no, "1", "2", no, "ENOTSUP"], done.err
    assert {call for call, _ in done.denied()} == {"inotify_add_watch"}
    assert (("inotify_add_watch", str(supervised.root / "hidden/f"))) in done.denied()


def test_told_where_descriptors_cannot_be_duplicated(supervised: Supervised) -> None:
    """Below a profile without pidfd_getfd a watch is refused and why is told; all else works."""
    (supervised.root / "f").write_text("")
    inner = [PYTHON, "-ISc", WATCH + "print(open('f').read() == '')", "f"]
    words = supervised.words(None)
    done = supervised.natively([*without("pidfd_getfd"), *words, *inner])
    assert done.lines() == ["EACCES", "True"], done.err
    assert b"pidfd_getfd" in done.err
