"""The private folder goes, whatever lies in it."""

from __future__ import annotations

import os
from pathlib import Path

from supervisor.run.remove import remove_tree


def test_deep_tree(tmp_path: Path) -> None:
    """Three thousand folders inside each other are no recursion."""
    top = tmp_path / "private"
    top.mkdir()
    fd = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    remove_tree(os.fsencode(top))
    assert not top.exists()


def test_closed_folders_and_links(tmp_path: Path) -> None:
    """Modes of 0 are no obstacle, and what links lead to stays."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    top = tmp_path / "private"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").write_text("x")
    (top / "link").symlink_to(outside)
    (top / "a" / "link").symlink_to(outside)
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0)
    remove_tree(os.fsencode(top))
    assert not top.exists()
    assert (outside / "keep").exists()


def test_missing_folder(tmp_path: Path) -> None:
    """A folder that is gone is fine."""
    remove_tree(os.fsencode(tmp_path / "none"))
