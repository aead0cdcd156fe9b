"""Renames, links and changes of attributes where writes go to a tree of their own.

Where nothing of the original is in the way, a program sees what it would see natively: the
same script runs on a plain copy of the original, and prints the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Result, Supervised

pytestmark = pytest.mark.live

PYTHON = "/usr/bin/python3"


def rules(supervised: Supervised, orig: Path, ops: str = "[write, create]", more: str = "") -> str:
    """A workspace, a tree that is only read, and the tree that its writes go to."""
    scratch = supervised.root / "scratch"
    return (
        POLICY
        + f'  - {{id: seen, allow: [read, list], paths: ["{orig}/**"]}}\n'
        + f'  - {{id: away, steer: {ops}, paths: ["{orig}/**"], to: "{scratch}"}}\n'
        + more
    )


@pytest.fixture
def orig(tmp_path: Path) -> Path:
    """A tree outside of the workspace with two files and a folder."""
    top = tmp_path / "orig"
    (top / "sub").mkdir(parents=True)
    (top / "file").write_text("original\n")
    (top / "other").write_text("other\n")
    (top / "link").symlink_to("file")
    (top / "sub" / "deep").write_text("deep\n")
    return top


def state(top: Path) -> list[tuple[str, int, bytes]]:
    """What a tree holds, to see that nothing changed."""
    return [
        (str(path), path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(top.rglob("*"))
    ]


def twice(
    supervised: Supervised, orig: Path, argv: list[str], policy: str | None = None
) -> tuple[Result, Result]:
    """Run a command with the tree as its last argument: on a plain copy, and steered."""
    copy = supervised.root / "copy"
    shutil.copytree(orig, copy, symlinks=True)
    before = state(orig)
    native = supervised.natively([*argv, str(copy)])
    done = supervised([*argv, str(orig)], policy or rules(supervised, orig))
    assert state(orig) == before, "the original changed"
    return native, done


# What every line does is tried: `name(errno)` or what came out.
PRELUDE = """\
import ctypes, errno, os, sys
top = sys.argv[1]
os.chdir(top)
libc = ctypes.CDLL(None, use_errno=True)
def tried(what, *args):
    try:
        got = what(*args)
    except OSError as error:
        got = errno.errorcode[error.errno]
    print(what.__name__, *args[:2], "->", got)
def put(name, text):
    with open(name, "w") as file:
        file.write(text)
def get(name):
    with open(name) as file:
        return file.read()
def rename2(old, new, flags):
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), "renameat2")
"""


def python(code: str) -> list[str]:
    """The command that runs code after the prelude."""
    return [PYTHON, "-c", PRELUDE + code]


def test_atomic_save(supervised: Supervised, orig: Path) -> None:
    """What is written under another name and renamed over a file is the file's new text."""
    code = """\
for name in ("file", "new", "sub/deep", "sub/new"):
    put(name + ".tmp", "saved " + name)
    tried(os.rename, name + ".tmp", name)
    tried(get, name); tried(get, name + ".tmp"); tried(os.path.getsize, name)
os.mkdir("d"); put("d/.t", "in d"); tried(os.rename, "d/.t", "d/f"); tried(get, "d/f")
tried(os.replace, "d/f", "sub/moved"); tried(get, "sub/moved"); tried(get, "d/f")
os.mkdir("e"); put("e/x", "deep"); tried(os.rename, "e", "d/e"); tried(get, "d/e/x")
tried(get, "e/x"); tried(os.rename, "d", "sub/d"); tried(get, "sub/d/e/x")
tried(os.rename, "sub/d/e/", "sub/d/f/"); tried(get, "sub/d/f/x")
"""
    native, done = twice(supervised, orig, python(code))
    assert done.lines() == native.lines(), done.err
    assert (supervised.root / "scratch" / "file").read_text() == "saved file"


def test_rename_says_what_the_kernel_says(supervised: Supervised, orig: Path) -> None:
    """Refusals about kinds, missing names and NOREPLACE have the kernel's errno."""
    code = """\
put("n", "n"); os.mkdir("d"); put("d/x", "x"); os.mkdir("empty")
tried(os.rename, "missing", "x"); tried(os.rename, "nowhere/a", "x")
tried(os.rename, "n", "nowhere/x"); tried(os.rename, "n", "d"); tried(os.rename, "d", "n")
tried(os.rename, "n", "sub"); tried(os.rename, "d", "file"); tried(os.rename, "d", "d/in")
tried(os.rename, "n/", "m"); tried(os.rename, "n", "m/"); tried(os.rename, "n", ".")
tried(os.rename, "d", "empty"); tried(get, "empty/x"); tried(os.rename, "n", "file/x")
tried(rename2, "n", "file", 1); tried(rename2, "n", "sub/deep", 1); tried(rename2, "n", "m", 1)
put("k", "k"); tried(rename2, "k", "m", 1); tried(rename2, "k", "m", 2)
tried(get, "k"); tried(get, "m"); tried(rename2, "k", "none", 2); tried(rename2, "k", "empty", 2)
tried(get, "k/x"); tried(get, "empty"); tried(rename2, "k", "m", 3); tried(rename2, "k", "m", 9)
tried(os.rename, "m", "m"); tried(get, "m")
tried(os.mkdir, "sub"); tried(os.mkdir, "file"); tried(os.symlink, "a", "file")
tried(os.mkdir, "nowhere/d"); tried(os.mknod, "other"); tried(open, "file", "x")
tried(open, "nowhere/f", "w"); tried(os.mkdir, "z/"); tried(os.path.isdir, "z")
tried(os.mkdir, "z/y/"); tried(os.path.isdir, "z/y"); tried(os.rmdir, "z/y/")
"""
    native, done = twice(supervised, orig, python(code))
    assert done.lines() == native.lines(), done.err


def test_the_border(supervised: Supervised, orig: Path) -> None:
    """Across the tree's border, and from the original, names are not moved but copied."""
    code = """\
out = sys.argv[2] if len(sys.argv) > 2 else os.environ["OUT"]
put(out + "/w", "w"); put("n", "n"); put("both", "b"); put("file", "over")
tried(os.rename, out + "/w", "w"); tried(os.rename, "n", out + "/n")
tried(os.rename, "other", "moved"); tried(os.rename, "file", "moved")
tried(os.rename, "sub", "moved"); tried(rename2, "file", "n", 2); tried(rename2, "n", "other", 2)
tried(os.rename, "n", "link"); tried(os.link, "n", out + "/n")
tried(os.link, "other", "linked"); tried(os.link, out + "/w", "linked"); tried(get, "n")
os.mkdir("sub/new"); tried(os.rename, "sub/new", "d"); os.mkdir("sub2"); put("sub/x", "x")
tried(os.rename, "sub", "sub2")
"""
    before = state(orig)
    done = supervised([*python(code), orig, supervised.root], rules(supervised, orig))
    assert state(orig) == before
    root = supervised.root
    assert done.lines() == [
        *(f"rename {root}/w w -> EXDEV", f"rename n {root}/n -> EXDEV"),
        *("rename other moved -> EXDEV", "rename file moved -> EXDEV"),
        *("rename sub moved -> EXDEV", "rename2 file n -> EXDEV", "rename2 n other -> EXDEV"),
        *("rename n link -> EPERM", f"link n {root}/n -> EXDEV"),
        *("link other linked -> EXDEV", f"link {root}/w linked -> EXDEV", "get n -> n"),
        *("rename sub/new d -> None", "rename sub sub2 -> EXDEV"),
    ], done.err


def test_names_of_both_kinds(supervised: Supervised, orig: Path) -> None:
    """Who works in a folder of the tree may use true names and steered ones."""
    scratch = supervised.root / "scratch"
    more = f'  - {{id: locked, deny: rename, paths: ["{scratch}/locked*"], as: EROFS}}\n'
    more += f'  - {{id: key, deny: read, paths: ["{orig}/key*"]}}\n'
    code = """\
there = os.environ["THERE"]
os.mkdir("d"); put("d/a", "a"); os.chdir("d")
tried(os.rename, top + "/d/a", "b"); tried(get, "b"); tried(os.rename, "b", top + "/d/c")
tried(get, top + "/d/c"); tried(os.rename, "c", top + "/file"); tried(get, top + "/file")
put("n", "n"); tried(os.rename, top + "/d/n", there + "/locked")
tried(os.rename, "missing", top + "/x")
tried(os.rename, "n", top + "/sub"); tried(os.rename, "n", there + "/sub/n")
put(top + "/sub/z", "z"); tried(os.rename, top + "/d/n", there + "/sub/n")
tried(get, top + "/sub/n"); tried(os.rename, "../sub", top + "/d/sub")
put(there + "/key", "secret"); tried(os.rename, there + "/key", top + "/open")
tried(rename2, there + "/file", top + "/other", 1)
put(there + "/locked2", "x"); tried(os.rename, there + "/locked2", top + "/y")
"""
    done = supervised(
        [*python(code), orig], rules(supervised, orig, more=more), env={"THERE": str(scratch)}
    )
    assert [line.split("-> ")[-1] for line in done.lines()] == [
        *("None", "a", "None", "a", "None", "a", "EROFS", "ENOENT", "EISDIR", "ENOENT"),
        *("None", "n", "None", "EXDEV", "EEXIST", "EROFS"),
    ], done.err
    assert (scratch / "key").exists()


def test_mv_copies(supervised: Supervised, orig: Path) -> None:
    """mv into the tree, out of it and of what only the tree holds does what it says."""
    script = f"""\
cd {orig}; echo w >{supervised.root}/w
mv {supervised.root}/w w && cat w; test -e {supervised.root}/w || echo moved
mv w {supervised.root}/v && cat {supervised.root}/v; test -e w || echo moved
mkdir d; echo x >d/x; mv d e && cat e/x; mv e {supervised.root}/e && cat {supervised.root}/e/x
mv file copied; cat copied; cat file
"""
    done = supervised(["sh", "-c", script], rules(supervised, orig))
    assert done.lines() == ["w", "moved", "w", "moved", "x", "x", "original", "original"]
    assert b"cannot remove 'file'" in done.err


def test_links_within_the_tree(supervised: Supervised, orig: Path) -> None:
    """A hard link joins two names of the tree, and is one file under both."""
    code = """\
put("n", "n"); os.mkdir("d")
tried(os.link, "n", "m"); put("n", "changed"); tried(get, "m")
print(os.stat("n").st_nlink, os.path.samefile("n", "m"))
tried(os.link, "n", "d/l"); tried(os.link, "n", "file"); tried(os.link, "n", "m")
tried(os.link, "d", "e"); tried(os.link, "missing", "e"); tried(os.link, "n", "nowhere/e")
tried(os.link, "n", "sub/l"); os.unlink("n"); tried(get, "sub/l"); tried(get, "d/l")
os.symlink("to", "s"); os.link("s", "t", follow_symlinks=False); tried(os.readlink, "t")
"""
    native, done = twice(supervised, orig, python(code))
    assert done.lines() == native.lines(), done.err


def test_nameless_files(supervised: Supervised, orig: Path) -> None:
    """A file without a name that was made in the tree's own folder gets a name there."""
    code = """\
os.mkdir("d")
fd = os.open("d", os.O_RDONLY)
one = os.open(f"/proc/self/fd/{fd}", os.O_TMPFILE | os.O_RDWR)
os.write(one, b"text")
os.link(f"/proc/self/fd/{one}", "d/named", follow_symlinks=True); tried(get, "d/named")
os.link(f"/proc/self/fd/{one}", "top", follow_symlinks=True); tried(get, "top")
"""
    native, done = twice(supervised, orig, python(code))
    assert done.lines() == native.lines(), done.err
    code = 'tried(os.open, "sub", os.O_TMPFILE | os.O_RDWR); os.mkdir("e")\n'
    code += 'tried(os.open, "e", os.O_TMPFILE | os.O_RDWR)\n'
    done = supervised([*python(code), orig], rules(supervised, orig))
    assert [line.split()[-1] for line in done.lines()] == ["ENOTSUP", "ENOTSUP"], done.err


ATTRIBUTES = """\
def mode(name): return oct(os.stat(name).st_mode)
def when(name): return os.stat(name).st_mtime_ns
def attr(name): return os.getxattr(name, "user.a")
os.umask(0o022); put("n", "n"); os.mkdir("d")
for name in ("n", "d"):
    tried(os.chmod, name, 0o700); tried(mode, name)
    tried(os.utime, name, (1, 2)); tried(when, name)
    tried(os.chown, name, -1, os.getgid()); tried(os.stat, "missing")
os.symlink("to", "s"); os.utime("s", (3, 4), follow_symlinks=False); print(os.lstat("s").st_mtime)
tried(os.setxattr, "n", "user.a", b"v"); tried(attr, "n"); print(os.listxattr("n"))
tried(os.removexattr, "n", "user.a"); tried(attr, "n"); tried(os.setxattr, "n", "user.a", b"v", 2)
tried(os.truncate, "n", 5); tried(get, "n"); tried(os.truncate, "d", 1); tried(os.truncate, "no", 1)
tried(os.chmod, "no", 0o600); tried(os.utime, "no"); tried(os.setxattr, "no", "user.a", b"")
tried(os.truncate, "file", 3); tried(get, "file"); tried(os.truncate, "sub/deep", 7)
tried(os.path.getsize, "sub/deep"); tried(os.chmod, "file", 0o751); tried(mode, "file")
"""


def test_attributes_in_the_tree(supervised: Supervised, orig: Path) -> None:
    """Mode, owner, times, length and attributes change where the name lies in the tree."""
    native, done = twice(supervised, orig, python(ATTRIBUTES))
    assert done.lines() == native.lines(), done.err


def test_attributes_are_steered(supervised: Supervised, orig: Path) -> None:
    """Where metadata is steered, too, a file is copied to the tree with the change made."""
    (orig / "other").chmod(0o640)
    code = """\
tried(os.chmod, "file", 0o751); tried(mode, "file"); tried(get, "file")
tried(os.utime, "sub/deep", (1, 2)); tried(when, "sub/deep"); tried(get, "sub/deep")
tried(os.setxattr, "other", "user.a", b"v"); tried(attr, "other"); tried(get, "other")
tried(os.chown, "other", -1, os.getgid()); tried(os.path.exists, "missing")
tried(os.chmod, "missing", 0o600); tried(os.removexattr, "file", "user.a")
"""
    policy = rules(supervised, orig, "[write, create, metadata]")
    native, done = twice(supervised, orig, python(ATTRIBUTES + code), policy)
    assert done.lines() == native.lines(), done.err
    assert (supervised.root / "scratch" / "sub" / "deep").stat().st_mtime == 2
    shutil.rmtree(supervised.root / "scratch")
    code = 'tried(os.chmod, "sub", 0o700); tried(os.chmod, ".", 0o711); tried(get, "sub/deep")\n'
    done = supervised([*python(code), orig], policy)
    assert done.lines() == [
        "chmod sub 448 -> None",
        "chmod . 457 -> None",
        "get sub/deep -> deep",
        "",
    ]
    assert (supervised.root / "scratch").stat().st_mode & 0o777 == 0o711
    assert (supervised.root / "scratch" / "sub").stat().st_mode & 0o777 == 0o700


def test_attributes_of_the_original_stay(supervised: Supervised, orig: Path) -> None:
    """Where metadata is not steered, that of the original is decided as it was."""
    before = state(orig)
    code = 'tried(os.chmod, "file", 0o700); tried(os.utime, "sub"); tried(os.chmod, "sub", 0o700)\n'
    done = supervised([*python(code), orig], rules(supervised, orig))
    assert [line.split()[-1] for line in done.lines()] == ["EACCES"] * 3, done.err
    assert state(orig) == before


DENIED = """\
  - {{id: kept, deny: [delete, rename], paths: ["{0}/kept"], as: EROFS}}
  - {{id: key, deny: read, paths: ["{0}/key*"]}}
  - {{id: plain, deny: metadata, paths: ["{0}/plain"], as: EROFS}}
  - {{id: there, deny: [write, create, delete, rename, metadata], as: EROFS,
     paths: ["{1}/locked", "{1}/locked/**"]}}
"""


def test_denials_hold_in_the_tree(supervised: Supervised, orig: Path) -> None:
    """What rules deny about a name, or about its place in the tree, is denied."""
    locked = supervised.root / "scratch" / "locked"
    locked.mkdir(parents=True)
    (locked / "in").write_text("in\n")
    code = """\
put("kept", "k"); put("n", "n"); put("key", "secret"); put("plain", "p")
tried(os.rename, "kept", "x"); tried(os.rename, "n", "kept"); tried(os.unlink, "kept")
tried(os.rename, "key", "x"); tried(os.link, "key", "x"); tried(get, "x"); tried(get, "key")
tried(os.chmod, "plain", 0); tried(os.utime, "plain"); tried(os.setxattr, "plain", "user.a", b"")
tried(put, "locked/in", "x"); tried(put, "locked/new", "x"); tried(os.mkdir, "locked/d")
tried(os.unlink, "locked/in"); tried(os.rename, "locked/in", "x"); tried(os.rename, "n", "locked/x")
tried(os.rename, "n", "locked/in"); tried(os.link, "n", "locked/x"); tried(os.chmod, "locked/in", 0)
tried(os.rename, "locked", "x"); tried(os.truncate, "locked/in", 0); tried(os.rmdir, "locked")
tried(get, "locked/in")
"""
    policy = rules(supervised, orig, more=DENIED.format(orig, supervised.root / "scratch"))
    done = supervised([*python(code), orig], policy)
    ends = [line.split("-> ")[-1] for line in done.lines()]
    assert ends == [
        *["EROFS"] * 3,
        *["ENOENT"] * 4,
        *["EROFS"] * 15,
        "in",
        "",
    ], done.err


LISTING = """\
import shutil
libc.telldir.restype = libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.telldir.argtypes = libc.readdir.argtypes = libc.closedir.argtypes = (ctypes.c_void_p,)
libc.seekdir.argtypes = (ctypes.c_void_p, ctypes.c_long); libc.telldir.restype = ctypes.c_long
libc.rewinddir.argtypes = (ctypes.c_void_p,)
def one(stream):
    entry = libc.readdir(stream)
    return ctypes.string_at(entry + 19).decode() if entry else None
def all_of(stream):
    return list(iter(lambda: one(stream), None))
"""


def test_listings_show_both(supervised: Supervised, orig: Path) -> None:
    """A folder's listing has the names of both trees, each of them once."""
    code = """\
def show(name):
    kinds = lambda e: (e.name, e.is_dir(follow_symlinks=False), e.is_symlink(), e.inode() > 0)
    print(name, sorted(map(kinds, os.scandir(name))))
put("file", "again"); put("n", "n"); os.mkdir("d"); put("sub/x", "x"); put("d/y", "y")
os.symlink("n", "l")
for name in (".", "sub", "d", "sub/.."): show(name)
shutil.rmtree("d"); os.unlink("n"); os.unlink("sub/x"); show("."); show("sub")
"""
    native, done = twice(supervised, orig, python(LISTING + code))
    assert done.lines() == native.lines(), done.err


def test_listings_of_many(supervised: Supervised, orig: Path) -> None:
    """Long listings, read in parts, from remembered places, while names come and go."""
    for i in range(700):
        (orig / f"old-{i}-{'x' * (i % 97)}").touch()
    code = """\
for i in range(900): put(f"new-{i}-{'y' * (i % 89)}", "")
names = os.listdir("."); print(len(names), len(set(names)))
stream = libc.opendir(b"."); where = {}
while True:
    at = libc.telldir(stream); name = one(stream)
    if name is None: break
    where[name] = at
print(len(where), sorted(where) == sorted([*names, ".", ".."]))
wrong = 0
for name, at in where.items():
    libc.seekdir(stream, at); wrong += one(stream) != name
print(wrong)
libc.rewinddir(stream); print(sorted(all_of(stream)) == sorted(where), all_of(stream))
libc.rewinddir(stream); first = one(stream); rest = all_of(stream)
print(len(rest) + 1 == len(where))
libc.rewinddir(stream); left = set()
for name in iter(lambda: one(stream), None):
    left.add(name)
    if name.startswith("new-"): os.unlink(name)
print(left == set(where), [n for n in os.listdir(".") if n.startswith("new-")])
put("more", ""); libc.rewinddir(stream); print("more" in all_of(stream))
"""
    native, done = twice(supervised, orig, python(LISTING + code))
    assert done.lines() == native.lines(), done.err


def test_a_listing_ends(supervised: Supervised, orig: Path) -> None:
    """A listing that is read while files are made for each name that it shows ends."""
    code = """\
put("start", "")
stream = libc.opendir(b"."); made = 0
while one(stream) is not None and made < 20000:
    put(f"made-{made}", ""); made += 1
print(made < 20000)
"""
    done = supervised([*python(LISTING + code), orig], rules(supervised, orig))
    assert done.lines() == ["True"], done.err


def test_old_listings(supervised: Supervised, orig: Path) -> None:
    """The call that the first programs had shows both, too, in buffers that hold a few names."""
    code = """\
for i in range(30): put(f"new-{i}" + "z" * i, ""); os.makedirs(f"dir-{i}")
def entries(number, room):
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY); buf = ctypes.create_string_buffer(room)
    while (n := libc.syscall(number, fd, buf, room)) > 0:
        at = 0
        while at < n:
            size = int.from_bytes(buf.raw[at + 16:at + 18], "little")
            if number == 78:
                name, kind = buf.raw[at + 18:at + size - 1], buf.raw[at + size - 1]
            else:
                name, kind = buf.raw[at + 19:at + size], buf.raw[at + 18]
            yield name.split(b"\\0")[0], kind
            at += size
    yield b"", n and ctypes.get_errno()
for number in (78, 217):
    for room in (88, 200, 4096): print(sorted(entries(number, room)))
    print(list(entries(number, 8)))
"""
    native, done = twice(supervised, orig, python(code))
    assert done.lines() == native.lines(), done.err


def test_listings_keep_secrets(supervised: Supervised, orig: Path) -> None:
    """Names that rules hide or deny reading are in no listing, wherever they lie."""
    scratch = supervised.root / "scratch"
    (scratch / "closed").mkdir(parents=True)
    (scratch / "closed" / "in").touch()
    for name in ("ghost", "key", "n", "there"):
        (scratch / name).touch()
    more = f"""\
  - {{id: ghost, deny: all, as: ENOENT, paths: ["{orig}/ghost"]}}
  - {{id: key, deny: read, paths: ["{orig}/key"]}}
  - {{id: there, deny: read, paths: ["{scratch}/there"]}}
  - {{id: closed, deny: list, paths: ["{scratch}/closed"]}}
"""
    (orig / "closed").mkdir()
    code = 'print(sorted(os.listdir("."))); print(os.listdir("closed"))\n'
    done = supervised([*python(code), orig], rules(supervised, orig, more=more))
    assert done.lines() == [str(sorted(["closed", "file", "link", "n", "other", "sub"])), "[]"]


def test_folders_of_the_tree(supervised: Supervised, orig: Path) -> None:
    """A folder that only the tree has is a working folder, and one to start from."""
    code = """\
here = os.getcwd()
os.makedirs("d/e"); put("d/f", "f"); put("d/e/g", "g")
tried(os.chdir, "d"); tried(get, "f"); put("new", "n"); os.mkdir("m"); tried(get, "../d/new")
tried(os.chdir, "e"); tried(get, "g"); tried(os.chdir, "../../d/e"); os.chdir(here)
tried(get, "d/new"); tried(os.chdir, "d/f"); tried(os.chdir, "missing"); tried(os.chdir, "d/no")
before = os.listdir("/proc/self/fd")
tried(os.chdir, "sub"); tried(get, "deep"); os.chdir(here)
for _ in range(200): os.chdir("d"); os.chdir(here)
print(before == os.listdir("/proc/self/fd"))
for flags in (os.O_PATH, os.O_PATH | os.O_DIRECTORY, os.O_RDONLY | os.O_DIRECTORY):
    fd = os.open("d", flags)
    print(os.stat("f", dir_fd=fd).st_size, os.get_inheritable(fd), sorted(os.listdir("d")))
    os.close(os.open("f", os.O_RDONLY, dir_fd=fd)); os.fchdir(fd); tried(get, "f"); os.chdir(here)
tried(os.open, "d/f", os.O_PATH | os.O_DIRECTORY); tried(os.open, "no", os.O_PATH)
print(os.fstat(os.open("d/f", os.O_PATH)).st_size, os.fstat(os.open("sub", os.O_PATH)).st_nlink > 0)
"""
    native, done = twice(supervised, orig, python(code))
    assert done.lines() == native.lines(), done.err


def test_a_working_folder_is_set_under_signals(supervised: Supervised, orig: Path) -> None:
    """No signal is lost, and none ends up between the calls that set the folder."""
    code = """\
import signal, threading, time
os.mkdir("d"); put("d/f", "f"); here = os.getcwd(); seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def go(name):
    try: os.chdir(name)
    except InterruptedError: go(name)
def other():
    for _ in range(300): get(here + "/d/f")
thread = threading.Thread(target=other); thread.start()
for _ in range(1000): go(here); go("d"); get("f")
signal.setitimer(signal.ITIMER_REAL, 0); thread.join()
print(len(seen) > 10, len(os.listdir("/proc/self/fd")) < 12)
"""
    done = supervised([*python(code), orig], rules(supervised, orig))
    assert done.lines() == ["True True"], done.err


MORE = "  - {id: more, allow: read, paths: [/dev/urandom, /sys/devices/**]}\n"

FILES = """\
cd $1
touch new; stat -c %s new; touch -d @5 new; stat -c %Y new; touch -d @9 file; stat -c %Y file
cp -p other cp1; cat cp1; stat -c '%Y %a' cp1
cp -r sub subcopy; cat subcopy/deep; cp -a sub suba
ls -R; mkdir d; cp file d/; cp -t d other; mv cp1 d/; ls d
install -m 700 file d/in; stat -c %a d/in
tar cf a.tar sub file; mkdir x; tar xpf a.tar -C x; ls -R x; stat -c %Y x/file
sed -i s/original/changed/ file; cat file; sort -ro other other; cat other
ln file hard; ln -s x sym; ls -l sym | cut -c1; find . -type f | sort; du -a . | wc -l
mkdir -p p/q/r; cd p/q; pwd; cd r; echo r >in; cat ../r/in; cd ../../..; cat p/q/r/in
rm -rf d x subcopy suba p; ls
"""
RSYNC = """\
cd $1; mkdir out; rsync -a sub/ out/; ls out; rsync -a sub file out2/; ls -R out2
echo more >>out2/file; touch -d @7 out2/file; rsync -a out2/ out/
cat out/file; stat -c %Y out/file; rm -r out; ls
"""
GIT = """\
cd $1; export HOME=$1/none GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z
git init -q -b main repo; cd repo; git config user.name n; git config user.email e
echo a >a; mkdir s; echo b >s/b; git add .; git commit -qm one; git log --format=%s%h
echo c >>a; git mv s/b s/c; git commit -qam two; git checkout -q -b br HEAD~1; cat a; ls -R
git checkout -q main; git merge -q br; git gc -q; git fsck; git status --short
cd ..; git clone -q repo clone; cat clone/a; cd clone; git pull -q; git log --format=%s
cd ..; rm -rf repo clone; ls
"""


@pytest.mark.parametrize("tool", ["cp", "rsync", "git"])
def test_tools(supervised: Supervised, orig: Path, tool: str) -> None:
    """Tools that save, copy, unpack and commit do what they do natively."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    script = {"cp": FILES, "rsync": RSYNC, "git": GIT}[tool]
    policy = rules(supervised, orig, more=MORE)
    native, done = twice(supervised, orig, ["sh", "-ec", script, "sh"], policy)
    found = [line.replace(str(orig), "TOP") for line in done.lines()]
    assert found == [
        line.replace(str(supervised.root / "copy"), "TOP") for line in native.lines()
    ], done.err
    assert (native.code, done.code, done.denied()) == (0, 0, []), done.err


def outside_of(top: Path) -> Path:
    """A folder that nobody may write to, with a file to be changed by mistake."""
    top.mkdir()
    (top / "victim").write_text("victim\n")
    return top


def test_a_swapped_folder_leads_nowhere(
    supervised: Supervised, orig: Path, tmp_path: Path, program: Callable[..., Path]
) -> None:
    """While a folder of the tree is swapped with a link that leads out, no change goes there.

    The control does the same changes by name, and hits; zero hits in N rounds of nine changes
    bound the chance of one below 3/(9N).
    """
    race, scratch = program("tree_race"), supervised.root / "scratch"
    scratch.mkdir()
    hit = outside_of(tmp_path / "hit")
    before = state(hit)
    for _ in range(20):
        supervised.natively([race, "3000", scratch, scratch, hit])
        shutil.rmtree(scratch)
        scratch.mkdir()
        if state(hit) != before:
            break
    else:
        pytest.fail("by name nobody wins this race: it proves nothing")
    outside = outside_of(tmp_path / "outside")
    before = state(outside)
    tries = int(os.environ.get("SUPERVISE_RACE_TRIES", "3000"))
    done = supervised(
        [race, str(tries), orig, scratch, outside], rules(supervised, orig), timeout=600
    )
    assert done.code == 0, done.err
    assert state(outside) == before
    made = int(done.lines()[0].split()[1])
    assert tries // 100 < made < 9 * tries, "nothing was changed, or nothing swapped: no race"


def test_links_in_the_tree_are_not_followed(
    supervised: Supervised, orig: Path, tmp_path: Path
) -> None:
    """No change by a steered name goes through a link of the tree, nor through `..`."""
    outside = outside_of(tmp_path / "outside")
    before = state(outside)
    scratch = supervised.root / "scratch"
    code = f"""\
there, out = {str(scratch)!r}, {str(outside)!r}
os.symlink(out, there + "/up"); os.symlink(out + "/victim", there + "/v")
put("n", "n"); os.mkdir("d")
tried(os.rename, "n", "up/x"); tried(os.rename, "up/victim", "x"); tried(os.link, "n", "up/x")
tried(os.link, "up/victim", "x"); tried(os.chmod, "up/victim", 0); tried(os.chmod, "v", 0)
tried(os.truncate, "v", 0); tried(os.utime, "v"); tried(os.setxattr, "v", "user.a", b"")
tried(os.chdir, "up"); tried(os.chdir, "v"); tried(os.listdir, "up")
tried(os.open, "up", os.O_PATH)
tried(os.unlink, "up/victim"); tried(os.mkdir, "up/d"); tried(put, "up/new", ""); tried(get, "v")
tried(os.link, "v", "w"); tried(get, "w")
tried(os.rename, "n", "d/../../x"); tried(os.rename, "n", "d/../x"); tried(os.rename, "n", "..")
tried(os.rename, "d/..", "x"); tried(put, "d/../n", "x"); tried(os.mkdir, "d/../../y")
"""
    done = supervised([*python(code), orig], rules(supervised, orig))
    ends = [line.split("-> ")[-1] for line in done.lines()]
    assert state(outside) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orig", "outside"]
    around = supervised.root.parent
    assert sorted(path.name for path in around.iterdir()) == ["home", "work"]
    assert "victim" not in "".join(ends)
    allowed = {"ELOOP", "ENOENT", "EXDEV", "EACCES", "EBUSY", "ENOTDIR", "EEXIST", "EPERM"}
    assert set(ends) <= {*allowed, "None"}, ends
    assert [end for end in ends if end == "None"] == ["None"], ends  # the link to a link
    assert os.readlink(scratch / "w") == str(outside / "victim")


def test_two_trees(supervised: Supervised, orig: Path, tmp_path: Path) -> None:
    """Between the trees of two rules it is EXDEV; each of them keeps its own."""
    second = tmp_path / "second"
    second.mkdir()
    more = f"""\
  - {{id: seen2, allow: [read, list], paths: ["{second}/**"]}}
  - {{id: away2, steer: [write, create], paths: ["{second}/**"], to: "{supervised.root}/scratch2"}}
"""
    code = f"""\
two = {str(second)!r}
put("n", "n"); put(two + "/m", "m")
tried(os.rename, "n", two + "/n"); tried(os.link, "n", two + "/n")
tried(os.rename, two + "/m", "m")
tried(os.rename, two + "/m", two + "/o"); tried(get, two + "/o"); print(os.listdir(two))
"""
    done = supervised([*python(code), orig], rules(supervised, orig, more=more))
    ends = [line.split("-> ")[-1] for line in done.lines()]
    assert ends == ["EXDEV", "EXDEV", "EXDEV", "None", "m", "['o']"], done.err
    assert list(second.iterdir()) == []


def test_a_tree_within_the_workspace_that_is_steered(supervised: Supervised) -> None:
    """A tree that lies in what is steered to it is steered in its turn, and nothing leaves it."""
    work = supervised.root
    (work / "file").write_text("original\n")
    policy = (
        POLICY.replace(
            '{id: work, allow: all, paths: ["${root}/**"]}',
            '{id: w, allow: [read, list], paths: ["${root}/**"]}',
        )
        + f'  - {{id: away, steer: [write, create], paths: ["{work}/**"], to: "{work}/.s"}}\n'
    )
    code = """\
put("n.tmp", "n"); tried(os.rename, "n.tmp", "file"); tried(get, "file")
print(sorted(os.listdir(".")))
tried(get, ".s/file"); put(".s/x", "x"); tried(get, ".s/x"); tried(os.rename, ".s/x", "y")
tried(os.rename, ".s/file", "z"); tried(os.link, ".s/file", "z"); tried(get, "z"); tried(get, "y")
os.mkdir("d"); os.chdir("d"); tried(os.getcwd); put("in", "in"); tried(get, "in")
"""
    done = supervised([*python(code), work], policy)
    assert (work / "file").read_text() == "original\n"
    assert [line.split("-> ")[-1] for line in done.lines()] == [
        *("None", "n", "['.s', 'file']", "n", "x", "None", "EACCES", "None", "n", "x"),
        *(f"{work}/.s/d", "in"),
    ], done.err
    assert sorted(path.name for path in work.iterdir()) == [".s", "file"]


def test_what_the_tree_loses_is_kept(supervised: Supervised, orig: Path) -> None:
    """Where a rule keeps what is deleted, it keeps what is deleted by a steered name, too."""
    code = """\
put("n", "n"); put("m", "m"); put("t", "t"); os.mkdir("d")
tried(os.unlink, "n"); tried(os.rename, "t", "m"); tried(get, "m"); tried(os.rmdir, "d")
"""
    bin_rule = f'  - {{id: bin, steer: delete, paths: ["{supervised.root}/**"], to: trash}}\n'
    policy = rules(supervised, orig, more=bin_rule)
    done = supervised([*python(code), orig], policy)
    assert [line.split()[-1] for line in done.lines()] == ["None", "None", "t", "None"], done.err
    kept = supervised.home / ".local" / "state" / "supervise" / "trash"
    found = sorted(os.readlink(path) for path in kept.rglob("*.path"))
    scratch = supervised.root / "scratch"
    assert found == [str(scratch / "d"), str(scratch / "m"), str(scratch / "n")]


def test_folders_that_may_not_be_listed(supervised: Supervised, orig: Path) -> None:
    """A folder that only the tree has is listed by no name under which a rule denies it."""
    (supervised.root / "scratch" / "shut" / "in").mkdir(parents=True)
    more = f'  - {{id: shut, deny: list, paths: ["{orig}/shut"]}}\n'
    code = 'tried(os.listdir, "shut"); tried(os.chdir, "shut"); tried(os.open, "shut", os.O_PATH)\n'
    done = supervised([*python(code), orig], rules(supervised, orig, more=more))
    assert [line.split()[-1] for line in done.lines()] == ["ENOENT"] * 3, done.err


@pytest.mark.parametrize("seed", range(3))
def test_random_calls(supervised: Supervised, tmp_path: Path, seed: int) -> None:
    """Where the original has nothing but an empty folder, all goes as natively."""
    top = tmp_path / "orig"
    (top / "e").mkdir(parents=True)
    program = str(Path(__file__).parent / "tree_random.py")
    allow = f'  - {{id: program, allow: read, paths: ["{program}"]}}\n'
    argv = [PYTHON, program, str(seed), "1000"]
    native, done = twice(supervised, top, argv, rules(supervised, top, more=allow))
    pairs = list(zip(native.lines(), done.lines(), strict=True))
    assert [pair for pair in pairs if pair[0] != pair[1]] == [], done.err
    assert sum("-> E" not in line for line in native.lines()) > 100, "nearly all of it failed"
