"""Random calls on names, from a seed: what each of them gives, line by line.

    tree_random.py SEED CALLS FOLDER

The program that is run natively and below a steer to a tree; it imports the system's modules only.
"""

import ctypes
import errno
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

NAMES = ("a", "b", "c", "e/f", "e/g")
OPENS = (
    *(os.O_CREAT | flags for flags in (os.O_WRONLY, os.O_RDONLY, os.O_RDWR | os.O_TRUNC)),
    *(os.O_CREAT | os.O_EXCL | flags for flags in (os.O_WRONLY, os.O_RDONLY)),
    *(os.O_WRONLY | flags for flags in (os.O_APPEND, os.O_TRUNC)),
    *(os.O_RDONLY | flags for flags in (0, os.O_DIRECTORY, os.O_NOFOLLOW)),
)
DICE = random.Random()  # noqa: S311 - a seed gives the same calls again
LIBC = ctypes.CDLL(None, use_errno=True)


def rename2(old: str, new: str, flags: int) -> None:
    """Do renameat2(2)."""
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def opened(name: str, flags: int) -> int | str:
    """Open, write where that is possible, and say how long it is."""
    fd = os.open(name, flags, 0o640)
    try:
        if flags & os.O_ACCMODE:
            os.write(fd, b"xyz")
        return "folder" if os.path.isdir(name) else os.fstat(fd).st_size
    finally:
        os.close(fd)


def listed(name: str) -> list[tuple[str, bool]]:
    """Say what a folder holds."""
    return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in os.scandir(name))


def looked(name: str) -> object:
    """Say what is there."""
    found = os.lstat(name)
    folder = os.path.isdir(name)
    return oct(found.st_mode), folder or (found.st_size, found.st_nlink)


def there(top: str, name: str) -> object:
    """Go there, and back."""
    try:
        os.chdir(name)
        return listed(".")
    finally:
        os.chdir(top)


def changed(name: str, turn: int) -> object:
    """Change one thing about what is there."""
    kind = turn % 4
    if kind == 0:
        os.chmod(name, (0o700, 0o640, 0o755)[turn % 3])
    elif kind == 1:
        os.utime(name, (turn, turn))
        return int(os.stat(name).st_mtime)
    elif kind == 2:
        os.truncate(name, turn % 7)
    else:
        os.setxattr(name, "user.a", b"%d" % turn)
        return os.listxattr(name)
    return None


def calls(top: str, turn: int, name: str, other: str) -> list[tuple[str, Callable[[], object]]]:
    """Return the calls to choose from."""
    how, flags = DICE.choice(OPENS), DICE.choice((0, 1, 2, 3))
    return [
        *[(f"open {how:o}", lambda: opened(name, how))] * 4,
        ("mkdir", lambda: os.mkdir(name, 0o755)),
        *[("rename", lambda: os.rename(name, other))] * 3,
        (f"rename2 {flags}", lambda: rename2(name, other, flags)),
        ("link", lambda: os.link(name, other, follow_symlinks=False)),
        ("unlink", lambda: os.unlink(name)),
        ("rmdir", lambda: os.rmdir(name)),
        *[(f"change {turn % 4}", lambda: changed(name, turn))] * 3,
        ("list", lambda: listed(name)),
        ("stat", lambda: looked(name)),
        ("read", lambda: Path(name).read_text()),
        ("access", lambda: os.access(name, os.R_OK | os.W_OK)),
        ("chdir", lambda: there(top, name)),
    ]


def a_name(top: str) -> str:
    """Return a name, one to three parts long, now and then with a slash or from the root."""
    name = "/".join(DICE.choice(NAMES) for _ in range(DICE.choice((1, 1, 2, 2, 3))))
    name += "/" if DICE.random() < 0.08 else ""
    return f"{top}/{name}" if DICE.random() < 0.1 else name


def say(line: str) -> None:
    """Write a line."""
    sys.stdout.write(line + "\n")


def main(seed: str, count: str, top: str) -> None:
    """Make the calls."""
    DICE.seed(int(seed))
    os.umask(0o022)
    os.chdir(top)
    for turn in range(int(count)):
        name, other = a_name(top), a_name(top)
        what, call = DICE.choice(calls(top, turn, name, other))
        try:
            got = call()
        except OSError as error:
            got = errno.errorcode[error.errno or 0]
        say(f"{what} {name} {other} -> {got}".replace(top, "TOP"))
    at_end = sorted((at, sorted(d), sorted(f)) for at, d, f in os.walk(top))
    say(str(at_end).replace(top, "TOP"))


if __name__ == "__main__":
    main(*sys.argv[1:])
