"""Looking: as natively where names are visible, and nothing to see where a rule hides them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from live_world import POLICY, Supervised, differing, reachable, without

Put = Callable[..., Path]
PYTHON = "/usr/bin/python3"
HIDDEN = """\
  - {id: hidden, deny: all, as: ENOENT, paths: ["${root}/**/hid-*/**", "${root}/secret/**",
                                                "${root}/**/*.key"]}
"""
HIDING = POLICY + HIDDEN


def furnish(root: Path) -> Path:
    """A folder with every kind of object; no name in it is hidden."""
    top = root / "around/objects"
    (top / "folder").mkdir(parents=True)
    (top / "folder/inner").write_text("inner")
    (top / "file").write_text("content")
    (top / "script").write_text("#!/bin/sh\n")
    os.mkfifo(top / "fifo")
    with socket.socket(socket.AF_UNIX) as end:
        here = Path.cwd()
        os.chdir(top)
        end.bind("socket")
        os.chdir(here)
    links = {"to-file": "file", "to-folder": "folder", "dangling": "nowhere", "loop": "loop"}
    for name, text in {**links, "to-closed": "closed/inside", "to-slash": "file/"}.items():
        (top / name).symlink_to(text)
    (top / "closed").mkdir()
    (top / "closed/inside").write_text("")
    for name, mode in {"mode0": 0, "mode111": 0o111, "caps": 0o755, "script": 0o700}.items():
        (top / name).touch()
        (top / name).chmod(mode)
    for name in ("file", "folder"):
        try:
            os.setxattr(top / name, "user.x", b"xyz")
        except OSError:
            break  # this file system has none: then both sides say so
    (top / "closed").chmod(0)
    (top / "many").mkdir()
    for number in range(150):
        (top / f"many/{number:03}{'n' * (number % 60)}").touch()
    return top


def compare(supervised: Supervised, words: list[str | Path], but: tuple[str, ...] = ()) -> None:
    """Run the table in one folder natively, to settle the times of access, then both ways.

    Args:
        supervised: runs it.
        words: the table and its arguments.
        but: starts of names whose lines are left out.
    """
    supervised.natively(words)
    native = supervised.natively(words)
    ours = supervised(words, HIDING, "-q", timeout=120)
    assert native.code == ours.code == 0, ours.err
    pairs = list(zip(native.lines(), ours.lines(), strict=True))
    assert len(pairs) > 9000
    kept = [pair for pair in pairs if not (pair[0] + "\t").split("\t")[1].startswith(but)]
    wrong = differing(kept)
    assert not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(w[:1500] for w in wrong[:20])


def test_visible_names_look_as_natively(supervised: Supervised, program: Put) -> None:
    """Results, errnos and every byte of every buffer are the same, for all objects and calls."""
    top = furnish(supervised.root)
    compare(supervised, [program("look_table"), top, supervised.root])
    (top / "closed").chmod(0o700)


def around(uid: int) -> list[str | Path]:
    """Run what follows as another user."""
    return ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]


@pytest.mark.root
@pytest.mark.parametrize("owner", [0, 54321])
def test_changed_identity(supervised: Supervised, program: Put, owner: int) -> None:
    """A program with other ids sees what it would see natively, of others' files and its own."""
    top = furnish(supervised.root)
    for path in [top, *top.rglob("*")]:
        os.lchown(path, owner, owner)
    (supervised.root / "scratch").mkdir()
    os.chown(supervised.root / "scratch", 54321, 54321)
    reachable(top)
    (top / "closed").chmod(0)
    words = [*around(54321), program("look_table"), top, supervised.root / "scratch"]
    compare(supervised, words)


@pytest.mark.root
def test_access_goes_by_real_ids(supervised: Supervised, program: Put) -> None:
    """access asks for the real identity, all else for the effective one.

    Not so through a process's own links in /proc, which a supervisor with the real identity may
    not follow where the effective one is another: refused.
    """
    top = furnish(supervised.root)
    reachable(top)
    (top / "closed").chmod(0)
    compare(
        supervised,
        [program("look_table"), top, supervised.root, "ids"],
        ("/proc/", "/dev/fd/", "/dev/stdin"),
    )


OTHERS = """
import os
fd = os.open("secret-of-root", os.O_RDONLY)
os.dup2(fd, 3)
parent, child = os.getpid(), os.fork()
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.setresuid(54321, 54321, 54321)
def tell(name):
    for call in (os.stat, os.lstat, os.readlink):
        try:
            got = call(name)
            got = "a text" if isinstance(got, str) else oct(got.st_mode)
        except OSError as error:
            got = os.strerror(error.errno)
        print(call.__name__, name.replace(str(parent), "PARENT"), got)
folders = ("/proc/self", f"/proc/{parent}", "/proc/thread-self", f"/proc/self/root/proc/{parent}")
for folder in folders:
    for name in ("fd/3", "fd", "exe", "cwd", "ns/mnt", "fd/3/x", "cwd/locked/x", "cwd/locked/none"):
        tell(f"{folder}/{name}")
tell("/dev/fd/3")
tell("/dev/stdin")
"""


@pytest.mark.root
def test_links_of_others_in_proc(supervised: Supervised) -> None:
    """Who became somebody else follows its own links in /proc, and no other program's."""
    reachable(supervised.root)
    (supervised.root / "secret-of-root").write_text("")
    (supervised.root / "locked").mkdir(mode=0o700)
    (supervised.root / "locked/x").touch()
    native = supervised.natively([PYTHON, "-ISc", OTHERS])
    assert sum(line.endswith("Permission denied") for line in native.lines()) > 20
    ours = supervised([PYTHON, "-ISc", OTHERS], HIDING, "-q")
    assert native.code == ours.code == 0, ours.err
    pairs = list(zip(native.lines(), ours.lines(), strict=True))
    # further on from its own links, and into others' folders by way of them, we do not go for it
    behind = ("/fd/3/x", "/self/root/proc/PARENT/", "/cwd/locked/")
    wrong = [p for p in pairs if p[0] != p[1] and not p[1].endswith("Permission denied")]
    wrong += [p for p in pairs if p[0] != p[1] and not any(word in p[0] for word in behind)]
    assert not wrong, "\n".join(differing(wrong))


# Prints what each call says of each name: an errno, or that there is something.
EVERY = """
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
buf = ctypes.create_string_buffer(8192)
args = ctypes.create_string_buffer(ctypes.addressof(buf).to_bytes(8, "little") + bytes(8), 16)
at, follow = -100, 0
def calls(name):
    yield "newfstatat", 262, at, name, buf, 0
    yield "newfstatat", 262, at, name, buf, 0x100
    yield "statx", 332, at, name, 0, 0xfff, buf
    yield "faccessat", 269, at, name, 0
    yield "faccessat2", 439, at, name, 0, 0
    yield "readlinkat", 267, at, name, buf, 4096
    yield "getxattr", 191, name, b"user.x", buf, 10
    yield "lgetxattr", 192, name, b"user.x", buf, 10
    yield "listxattr", 194, name, buf, 10
    yield "llistxattr", 195, name, buf, 10
    yield "getxattrat", 464, at, name, 0, b"user.x", args, 16
    yield "listxattrat", 465, at, name, 0, buf, 10
    yield "file_getattr", 468, at, name, buf, 24, 0
    yield "statfs", 137, name, buf
    yield "stat", 4, name, buf
    yield "lstat", 6, name, buf
    yield "access", 21, name, 0
    yield "readlink", 89, name, buf, 4096
    yield "inotify_add_watch", 254, watcher, name, 2
    yield "open", 2, name, 0
    yield "open", 2, name, 0o200000
    yield "open", 2, name, 0o301, 0o600
    yield "mkdir", 83, name, 0o700
    yield "link", 86, b"visible", name
    yield "rename", 82, b"visible", name
    yield "link", 86, name, b"linked"
    yield "rename", 82, name, b"moved"
    yield "truncate", 76, name, 1
    yield "symlink", 88, b"x", name
    yield "mknod", 133, name, 0o100600, 0
    yield "setxattr", 188, name, b"user.x", b"y", 1, 0
    yield "utime", 132, name, None
    yield "unlink", 87, name
    yield "rmdir", 84, name
    yield "chmod", 90, name, 0o600
    yield "execve", 59, name, None, None
watcher = libc.inotify_init()
for name in sys.argv[1:]:
    for call, *rest in calls(os.fsencode(name)):
        got = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in rest])
        print(call, name, errno.errorcode[ctypes.get_errno()] if got < 0 else "there")
"""


def hide_some(root: Path) -> list[str]:
    """Hidden names of every kind; returns them, and some that are not there at all."""
    (root / "secret").mkdir(parents=True)
    (root / "secret/f").write_text("s")
    (root / "a/hid-x").mkdir(parents=True)
    (root / "a/hid-x/f").write_text("")
    (root / "a/b.key").write_text("key")
    os.mkfifo(root / "a/fifo.key")
    (root / "a/link.key").symlink_to("../visible")
    (root / "a/way").symlink_to("b.key")
    (root / "visible").write_text("")
    hidden = ["secret", "secret/", "secret/f", "secret/./f", "a/hid-x", "a/hid-x/f", "a/b.key"]
    more = ["a/fifo.key", "a/../secret", "/proc/self/cwd/secret/f", str(root / "a/b.key")]
    return [*hidden, *more, "a/nothing.key", "secret/nothing", "a/hid-y", "a/hid-y/f"]


def test_hidden_names_are_not_there(supervised: Supervised) -> None:
    """No call tells a hidden name that is there from one that is not."""
    script = [PYTHON, "-ISc", EVERY]
    apart = supervised.root.parent / "apart"
    names = hide_some(apart)
    native = supervised.natively([*script, *names[:7]], cwd=apart).lines()
    assert sum(line.endswith(" there") for line in native) > 40
    names = hide_some(supervised.root)
    done = supervised([*script, *names], HIDING, "-q")
    assert done.code == 0, done.err
    odd = {line for line in done.lines() if not line.endswith(" ENOENT")}
    # what is wrong with the name itself is said first, and calls that this kernel does not know
    odd -= {"open secret/ EISDIR", *(line for line in odd if line.endswith(" ENOSYS"))}
    assert odd == set()
    assert (supervised.root / "a/b.key").read_text() == "key"
    assert ("stat", str(supervised.root / "a/b.key")) in done.denied()


def test_a_link_that_is_hidden_or_leads_to_hidden(supervised: Supervised) -> None:
    """A hidden link is not there itself; a visible one to something hidden dangles."""
    hide_some(supervised.root)
    script = """
import os
for call in (os.lstat, os.readlink, os.stat):
    for name in ("a/link.key", "a/way"):
        try:
            got = call(name)
            print(call.__name__, name, got if isinstance(got, str) else "there")
        except FileNotFoundError:
            print(call.__name__, name, "not there")
"""
    done = supervised([PYTHON, "-ISc", script], HIDING, "-q")
    assert done.lines() == [
        "lstat a/link.key not there",
        "lstat a/way there",
        "readlink a/link.key not there",
        "readlink a/way b.key",
        "stat a/link.key there",  # rules are about true paths: this is the file behind it
        "stat a/way not there",
    ], done.err


def test_descriptors_show_no_more_than_names(supervised: Supervised) -> None:
    """What an O_PATH descriptor or the working folder leads to is hidden; what is held is not."""
    hide_some(supervised.root)
    script = """
import os
def tell(what, call):
    try:
        call()
        print(what, "there")
    except OSError as error:
        print(what, os.strerror(error.errno))
fd = os.open("a/b.key", os.O_PATH)
tell("fstat", lambda: os.fstat(fd))
tell("by number", lambda: os.stat(f"/proc/self/fd/{fd}"))
folder = os.open("secret", os.O_PATH)
tell("below", lambda: os.stat("f", dir_fd=folder))
tell("list", lambda: os.listdir(folder))
os.chdir("secret")
tell("here", lambda: os.stat("."))
tell("in here", lambda: os.stat("f"))
tell("list here", lambda: os.listdir("."))
os.chdir("..")
tell("held", lambda: os.fstat(0))
"""
    done = supervised.natively(
        [
            *("sh", "-c", 'exec "$@" < secret/f', "sh"),
            *supervised.words(HIDING, "-q"),
            *(PYTHON, "-ISc", script),
        ]
    )
    no = "No such file or directory"
    assert done.lines() == [
        *(f"{what} {no}" for what in ("fstat", "by number", "below", "list", "here", "in here")),
        f"list here {no}",
        "held there",
    ], done.err


def test_tools_do_not_find_hidden_names(supervised: Supervised) -> None:
    """Ls, find, du, tar, the shell's and Python's globs and walks show what is visible."""
    hide_some(supervised.root)
    script = """
ls -aR; ls -la a; find . ; echo * a/* ; du -a; tar cf - . | tar tf -
/usr/bin/python3 -IS -c '
import glob, os, pathlib
print(list(os.walk(".")), glob.glob("**/*", recursive=True), list(pathlib.Path().rglob("*")))
print([(e.name, e.is_dir(), e.stat(follow_symlinks=False)) for e in os.scandir("a")])'
"""
    native = supervised.natively(["sh", "-c", script])
    assert b"b.key" in native.out
    done = supervised(["sh", "-c", script], HIDING, "-q")
    assert done.code == 0, done.err
    for word in (b"secret", b"hid-x", b"fifo.key", b"link.key"):
        assert word not in done.out
        assert word not in done.err
    assert done.out.count(b"visible") > 6
    # the text of a visible link is its own
    assert set(done.out.replace(b"way -> b.key", b"").split()) & {b"b.key", b"./a/b.key"} == set()


SEED = int(os.environ.get("SUPERVISE_LOOK_SEED", "1"))
WALK = """
import os, sys
for folder, folders, files in os.walk("tree"):
    for name in folders + files:
        path = os.path.join(folder, name)
        st = os.lstat(path)
        print(path, oct(st.st_mode), st.st_ino, st.st_size, st.st_mtime_ns)
for name in sys.stdin.read().split():
    print(name, os.path.lexists(name), os.access(name, os.F_OK))
"""


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_any_tree_is_seen_without_its_hidden_parts(supervised: Supervised, seed: int) -> None:
    """A walk of a random tree sees exactly what no rule hides, whatever lies where."""
    random = Random(seed)  # noqa: S311 - repeatable
    folders, names = [supervised.root / "tree"], []
    folders[0].mkdir()
    for number in range(400):
        kind = random.choice(["hid-", "", "", "x", "-hid", "y", "z"])
        tail = random.choice(["", "", ".keys", "key", ".key"])
        path = random.choice(folders) / f"{kind}{number}{tail}"
        if random.random() < 0.3 and (tail != ".key" or random.random() < 0.1):
            path.mkdir()
            folders.append(path)
        elif random.random() < 0.2:
            path.symlink_to(random.choice(["nowhere", "..", "/"]))
        else:
            path.write_text("x" * random.randrange(9))
        names.append(str(path.relative_to(supervised.root)))
    names += [f"{name}{tail}" for name in names[::7] for tail in ("x", ".key")]

    def hidden(name: str) -> bool:
        parts = name.split("/")
        return name.endswith(".key") or any(part.startswith("hid-") for part in parts)

    native = supervised.natively([PYTHON, "-ISc", WALK]).lines()
    seen = [line for line in native if not hidden(line.split()[0])]
    # below x.key there is nothing hidden but what a rule says: only the folder itself is not there
    seen = [line for line in seen if ".key/" not in line.split()[0]]

    def there(path: Path) -> bool:
        return os.path.lexists(path) and not hidden(os.path.relpath(path, supervised.root))

    told = [
        f"{name} {there(supervised.root / name)} {there((supervised.root / name).resolve())}"
        for name in names
    ]
    assert len(seen) > 60
    assert len(seen) < len(native) - 60
    done = supervised([PYTHON, "-ISc", WALK], HIDING, "-q", stdin=" ".join(names).encode())
    assert done.lines() == [*seen, *told], done.err


def test_listing_a_folder_of_hidden_names_ends(supervised: Supervised) -> None:
    """Many hidden names in a row are no end of the folder, nor is anything shown twice."""
    folder = supervised.root / "big"
    folder.mkdir()
    for number in range(3000):
        (folder / f"{number:04}-{'n' * 40}.key").touch()
    wanted = {f"seen{number}" for number in range(5)}
    for name in wanted:
        (folder / name).touch()
    done = supervised([PYTHON, "-ISc", "import os; print(*sorted(os.listdir('big')))"], HIDING)
    assert done.lines() == [" ".join(sorted(wanted))], done.err
    assert done.denied() == []


def test_hide_false_and_observe_leave_looking_to_the_kernel(supervised: Supervised) -> None:
    """With `hide: false`, and while observing, names are seen as before and not asked about."""
    hide_some(supervised.root)
    script = "import os; print(os.stat('a/b.key').st_size, sorted(os.listdir('a')))"
    seen = "3 ['b.key', 'fifo.key', 'hid-x', 'link.key', 'way']"
    plain = HIDING.replace("as: ENOENT,", "as: ENOENT, hide: false,")
    for policy, *options in ((plain,), (HIDING, "--mode", "observe")):
        done = supervised([PYTHON, "-ISc", script], policy, *options)
        assert done.lines() == [seen], done.err
        assert done.denied() == []
    opens = supervised([PYTHON, "-ISc", "open('a/b.key')"], plain)
    assert b"FileNotFoundError" in opens.err


def test_listing_needs_duplicates(supervised: Supervised) -> None:
    """Below a profile without pidfd_getfd a listing is refused, why is told, and all else works."""
    hide_some(supervised.root)
    inner = ["/bin/sh", "-c", "ls; test -e visible && echo seen; test -e secret || echo unseen"]
    done = supervised.natively([*without("pidfd_getfd"), *supervised.words(HIDING), *inner])
    assert done.lines() == ["seen", "unseen"], done.err
    assert b"cannot open" not in done.err
    assert b"pidfd_getfd" in done.err
