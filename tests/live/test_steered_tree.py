"""Writes that go to a tree of their own: what was written is seen where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_world import POLICY, Supervised

pytestmark = pytest.mark.live


def rules(supervised: Supervised, orig: Path, ops: str = "[write, create]") -> str:
    """A workspace, a tree that is only read, and the tree that its writes go to."""
    scratch = supervised.root / "scratch"
    seen = f'  - {{id: seen, allow: [read, list], paths: ["{orig}/**"]}}\n'
    return (
        POLICY
        + ("" if "read" in ops else seen)
        + f'  - {{id: away, steer: {ops}, paths: ["{orig}/**"], to: "{scratch}"}}\n'
    )


@pytest.fixture
def orig(tmp_path: Path) -> Path:
    """A tree outside of the workspace with one file and one folder."""
    top = tmp_path / "orig"
    (top / "sub").mkdir(parents=True)
    (top / "file").write_text("original\n")
    (top / "sub" / "deep").write_text("deep\n")
    return top


def test_read_after_write(supervised: Supervised, orig: Path) -> None:
    """What was made or changed is read, looked at and removed by its name."""
    script = f"""\
cd {orig.parent}
echo new >orig/n; cat orig/n; stat -c '%s %F' orig/n; test -e orig/n && echo there
echo more >>orig/file; cat orig/file; stat -c %s orig/file; wc -l <orig/file
mkdir orig/d; echo x >orig/d/y; cat orig/d/y; ls orig/d; test -d orig/d && echo folder
ln -s y orig/d/link; readlink orig/d/link
cat orig/sub/deep; echo deeper >orig/sub/deep; cat orig/sub/deep
rm orig/n; test -e orig/n || echo gone; cat orig/n
rm -r orig/d && ls -d orig/d
rm orig/file 2>{supervised.root}/said; cat {supervised.root}/said >&2; cat orig/file
ls orig
"""
    done = supervised(["sh", "-c", script], rules(supervised, orig))
    assert done.lines() == [
        *("new", "4 regular file", "there"),
        *("original", "more", "14", "2"),
        *("x", "y", "folder", "y"),
        *("deep", "deeper", "gone"),
        *("original", "more", "file", "sub"),
    ], done.err
    assert b"cannot remove 'orig/file': Operation not permitted" in done.err
    assert (orig / "file").read_text() == "original\n"
    assert (orig / "sub" / "deep").read_text() == "deep\n"
    assert sorted(path.name for path in orig.iterdir()) == ["file", "sub"]
    left = supervised.root / "scratch"
    assert (left / "file").read_text() == "original\nmore\n"
    assert not (left / "n").exists()
    assert not (left / "d").exists()


def test_temporary_files(supervised: Supervised, orig: Path) -> None:
    """Python makes, reads and removes its temporary files and folders there."""
    code = f"""\
import os, tempfile
with tempfile.TemporaryDirectory(dir={str(orig)!r}) as folder:
    name = os.path.join(folder, "a")
    with open(name, "x") as file:
        file.write("text")
    print(open(name).read(), os.path.getsize(name), os.path.isdir(folder))
    os.unlink(name)
    print(os.path.exists(name))
print(os.path.exists(folder))
with tempfile.NamedTemporaryFile(dir={str(orig)!r}) as file:
    print(os.path.samestat(os.stat(file.name), os.fstat(file.fileno())))
"""
    done = supervised(["/usr/bin/python3", "-c", code], rules(supervised, orig))
    assert done.lines() == ["text 4 True", "False", "False", "True"], done.err
    assert done.err == b""


def test_all_of_it_elsewhere(supervised: Supervised, orig: Path) -> None:
    """Where reading is steered too, what lies there is all there is."""
    script = (
        f"cat {orig}/file; stat {orig}/file; echo x >{orig}/n; cat {orig}/n; stat -c %s {orig}/n"
    )
    done = supervised(["sh", "-c", script], rules(supervised, orig, "[read, write, create]"))
    assert done.lines() == ["x", "2"]
    assert done.err.count(b"No such file") == 2


def test_a_denial_stays(supervised: Supervised, orig: Path) -> None:
    """What a rule denies is denied wherever it lies."""
    deny = (
        f'  - {{id: no, deny: read, paths: ["{orig}/key*"]}}\n'
        f'  - {{id: kept, deny: delete, paths: ["{orig}/kept"], as: EROFS}}\n'
    )
    script = (
        f"echo x >{orig}/key; cat {orig}/key; echo y >{orig}/kept; rm {orig}/kept; cat {orig}/kept"
    )
    done = supervised(["sh", "-c", script], rules(supervised, orig) + deny)
    assert done.lines() == ["y"]
    assert "x" not in done.lines()
    assert b"Read-only file system" in done.err
    assert ("unlinkat", str(orig / "kept")) in done.denied()


def test_links_there_lead_nowhere(supervised: Supervised, orig: Path, tmp_path: Path) -> None:
    """A link that the program put in the tree is not followed by what is steered."""
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    script = f"""\
mkdir scratch; ln -s {secret} scratch/file; ln -s {tmp_path} scratch/up
cat {orig}/file; stat -L -c %s {orig}/file; cat {orig}/up/secret; stat {orig}/up/secret
"""
    done = supervised(["sh", "-c", script], rules(supervised, orig))
    assert b"secret" not in done.out
    assert done.lines() == []


def test_a_block_stays(supervised: Supervised, orig: Path) -> None:
    """What others wrote to the tree is not read by a program whose block denies it."""
    (supervised.root / "agent").write_bytes(Path("/bin/sh").resolve().read_bytes())
    (supervised.root / "agent").chmod(0o755)
    block = (
        "blocks:\n  - for: {program: agent}\n    default: allow\n    files:\n"
        f'      - {{id: never, deny: [read, write], paths: ["{orig}/n"]}}\n'
    )
    script = f"echo x >{orig}/n; cat {orig}/n; ./agent -c 'read a <{orig}/n; echo [$a]'"
    done = supervised(["sh", "-c", script], rules(supervised, orig) + block)
    assert done.lines() == ["x", "[]"], done.err


def test_a_denial_at_the_destination_stays(supervised: Supervised, orig: Path) -> None:
    """What a rule denies in the tree's own place is not read by the other name either."""
    kept = supervised.root / "scratch" / "kept"
    kept.parent.mkdir()
    kept.write_text("secret\n")
    deny = f'  - {{id: kept, deny: read, paths: ["{kept}"]}}\n'
    script = f"cat {orig}/kept; echo x >{orig}/n; cat {orig}/n"
    done = supervised(["sh", "-c", script], rules(supervised, orig) + deny)
    assert done.lines() == ["x"], done.err
