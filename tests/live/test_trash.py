"""Steered deletes: kept whole, given back, and never in the tree's reach."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_world import COMMAND, POLICY, Result, Supervised

TRASH = """\
  - {id: bin, steer: [delete], paths: ["${root}/**"], except: ["${root}/free/**"], to: trash}
"""
KEEPING = POLICY + TRASH


def trash(supervised: Supervised, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run ``supervise trash``."""
    return subprocess.run(
        [*COMMAND, "trash", *words],
        env=supervised.environ(),
        cwd=supervised.root,
        capture_output=True,
        timeout=30,
        check=False,
    )


def listed(supervised: Supervised) -> list[dict[str, object]]:
    """What the trash holds, oldest first."""
    found: list[dict[str, object]] = json.loads(trash(supervised, "list", "--json").stdout)
    return found


def looks(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything that a restore must bring back, by name."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(info.st_mode) else b""
        link = os.readlink(path) if path.is_symlink() else ""
        # A folder's time was already changed by what was removed from it before.
        emptied = stat.S_ISDIR(info.st_mode) and path.name != "empty"
        times = () if emptied else (info.st_mtime_ns,)
        names = {n: os.getxattr(path, n, follow_symlinks=False) for n in attributes(path)}
        found[str(path.relative_to(root))] = (
            info.st_mode,
            info.st_uid,
            content,
            link,
            times,
            names,
        )
    return found


def attributes(path: Path) -> list[str]:
    """Names of a file's own extended attributes."""
    try:
        return [n for n in os.listxattr(path, follow_symlinks=False) if n.startswith("user.")]
    except OSError:
        return []


def fill(root: Path) -> None:
    """A tree with one of each."""
    (root / "deep/er").mkdir(parents=True)
    (root / "deep/empty").mkdir()
    (root / "deep/er/file").write_bytes(b"content\n" * 1000)
    (root / "deep/tool").write_text("#!/bin/sh\n")
    (root / "deep/tool").chmod(0o4751)
    (root / "deep/odd\nname\xff").write_text("odd")
    (root / "deep/link").symlink_to("nowhere/at all")
    os.mkfifo(root / "deep/fifo", 0o640)
    for n, path in enumerate([*root.rglob("*"), root / "deep"]):
        os.utime(path, (1000 + n, 2000 + n), follow_symlinks=False)
    (root / "deep/er").chmod(0o2750)
    if attributes_work(root):
        os.setxattr(root / "deep/er/file", "user.colour", b"blue\0green")


def attributes_work(root: Path) -> bool:
    """Whether this file system has extended attributes for users."""
    try:
        os.setxattr(root, "user.try", b"x")
        os.removexattr(root, "user.try")
    except OSError:
        return False
    return True


@pytest.fixture(params=["same", "other"])
def place(request: pytest.FixtureRequest, supervised: Supervised) -> Iterator[Supervised]:
    """A workspace whose trash lies on the same file system, or on another one."""
    state = supervised.home / ".local/state"
    state.mkdir(parents=True)
    if request.param == "same":
        yield supervised
        return
    away = tempfile.mkdtemp(prefix="sv-trash-", dir="/dev/shm")
    state.rmdir()
    state.symlink_to(away)
    assert os.stat(away).st_dev != supervised.root.stat().st_dev
    yield supervised
    shutil.rmtree(away)


def test_everything_comes_back(place: Supervised) -> None:
    """A removed tree is listed, and restored with types, modes, times and attributes."""
    fill(place.root)
    before = looks(place.root)
    done = place(["rm", "-rf", "deep"], KEEPING)
    assert done.code == 0, done.err
    assert not (place.root / "deep").exists()
    kinds = sorted(str(item["kind"]) for item in listed(place))
    assert kinds == ["fifo", "file", "file", "file", "folder", "folder", "folder", "link"]
    back = trash(place, "restore", "deep")
    assert back.returncode == 0, back.stdout + back.stderr
    assert looks(place.root) == before
    assert listed(place) == []
    assert not list((place.home / ".local/state/supervise/trash").iterdir())


def test_replaced_file_is_kept(place: Supervised) -> None:
    """What a rename puts itself in the place of goes to the trash, too."""
    (place.root / "old").write_text("old")
    (place.root / "new").write_text("new")
    done = place(["mv", "new", "old"], KEEPING)
    assert done.code == 0, done.err
    assert (place.root / "old").read_text() == "new"
    assert not (place.root / "new").exists()
    kept = listed(place)
    assert [(item["path"], item["bytes"]) for item in kept] == [(str(place.root / "old"), 3)]
    there = trash(place, "restore", str(kept[0]["id"]))
    assert there.returncode == 1
    assert b"File exists" in there.stdout
    assert trash(place, "restore", "--replace", str(kept[0]["id"])).returncode == 0
    assert (place.root / "old").read_text() == "old"


FAILING = """
import os, errno
def say(name, f, *a, **k):
    try: f(*a, **k); print(name, "ok")
    except OSError as e: print(name, errno.errorcode[e.errno])
os.mkdir("full"); open("full/x", "w").close(); open("file", "w").close(); os.symlink("full", "to")
say("unlink folder", os.unlink, "full")
say("rmdir full", os.rmdir, "full")
say("rmdir file", os.rmdir, "file")
say("rmdir link", os.rmdir, "to")
say("missing", os.unlink, "none")
say("file as folder", os.unlink, "file/x")
say("slash", os.unlink, "file/")
say("dot", os.rmdir, "full/.")
say("dots", os.rmdir, "full/..")
say("long", os.unlink, "n" * 256)
say("over folder", os.rename, "file", "full")
say("folder over file", os.rename, "full", "file")
os.link("file", "twin")
say("same file", os.rename, "file", "twin")
say("unlink twin", os.unlink, "twin")
say("unlink link", os.unlink, "to")
say("empty", os.unlink, "full/x")
say("rmdir", os.rmdir, "full")
"""


def test_failures_are_the_kernels(place: Supervised) -> None:
    """Each refusal has the errno that it has without us, and leaves nothing in the trash."""
    words = ["/usr/bin/python3", "-c", FAILING]
    native = place.natively(words)
    for name in ("file", "twin"):
        (place.root / name).unlink(missing_ok=True)
    done = place(words, KEEPING)
    assert done.lines() == native.lines(), done.err
    kept = [str(item["path"]).rpartition("/")[2] for item in listed(place)]
    assert sorted(kept) == ["full", "to", "twin", "x"]


def test_full_trash_keeps_the_file(place: Supervised) -> None:
    """Where there is no room, the delete is refused and the reason told."""
    assert trash(place, "quota", "64K").returncode == 0
    (place.root / "small").write_bytes(b"x" * 1000)
    (place.root / "large").write_bytes(b"x" * 100_000)
    done = place(["rm", "small", "large"], KEEPING)
    assert done.code == 1
    assert b"Disk quota exceeded" in done.err
    assert b"the trash is full" in done.err
    assert (place.root / "large").exists()
    assert not (place.root / "small").exists()
    assert trash(place, "purge", "--all").stdout == b"1 removed for good\n"
    assert trash(place, "quota").stdout == b"0 of 65536 bytes used\n"


def test_out_of_reach(supervised: Supervised) -> None:
    """The tree can neither see nor empty the trash, nor rename what it would have kept away."""
    (supervised.root / "a").write_text("a")
    (supervised.root / "b").write_text("b")
    (supervised.root / "free").mkdir()
    state = supervised.home / ".local/state/supervise/trash"
    script = f'rm a; ls {state}; cat {state}/*/1; rm -rf {state}; mv b free/b; rm free/b; echo "$?"'
    policy = KEEPING + f'  - {{id: home, allow: all, paths: ["{supervised.home}/**"]}}\n'
    done = supervised(["sh", "-c", script], policy)
    assert b"a\n" not in done.out.removesuffix(b"0\n"), done.out
    kept = sorted(str(item["path"]).rpartition("/")[2] for item in listed(supervised))
    assert kept == ["a", "b"], done.err


def test_a_link_in_the_way(supervised: Supervised) -> None:
    """A restore never follows a link that the tree left where a folder was."""
    target = supervised.home / "keys"
    target.mkdir()
    (supervised.root / "dir").mkdir()
    (supervised.root / "dir/authorized").write_text("mine")
    script = f'rm -r dir && ln -s "{target}" dir'
    assert supervised(["sh", "-c", script], KEEPING).code == 0
    back = trash(supervised, "restore", "dir/authorized", str(supervised.root / "dir"))
    assert back.returncode != 0
    assert list(target.iterdir()) == []


def test_events_and_decisions(supervised: Supervised) -> None:
    """The record says what was steered where; explain and a run without a home speak up."""
    (supervised.root / "a").write_text("a")
    done: Result = supervised(["rm", "a"], KEEPING)
    steered = [e for e in done.events if e["decision"] == "steer"]
    assert [(e["rule"].split("@")[0], e["action"]["ops"]) for e in steered] == [("bin", "delete")]
    assert steered[0]["action"]["path2"].endswith("/1")
    observed = supervised(["sh", "-c", "touch b && rm b"], KEEPING, "--mode", "observe")
    assert observed.code == 0
    assert len(listed(supervised)) == 1
    homeless = supervised(["true"], KEEPING, env={"HOME": ""})
    assert homeless.code == 125
    assert b"trash" in homeless.err


@pytest.mark.root
def test_changed_identity(supervised: Supervised) -> None:
    """A child of root that became somebody else still has its deletes kept, and no more rights."""
    os.chmod(supervised.root, 0o755)
    mine = supervised.root / "mine"
    mine.mkdir()
    os.chown(mine, 1234, 1234)
    (mine / "a").write_text("a")
    (supervised.root / "roots").write_text("r")
    os.chown(mine / "a", 1234, 1234)
    for above in list(supervised.root.parents)[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    words = ["setpriv", "--reuid=1234", "--clear-groups", "rm", "-f", "mine/a", "roots"]
    done = supervised(words, KEEPING)
    assert done.code == 1, done.err
    assert (supervised.root / "roots").exists()
    assert [str(i["path"]).rpartition("/")[2] for i in listed(supervised)] == ["a"]
