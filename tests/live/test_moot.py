"""Calls that the kernel ends before it asks for permission: the same errno where rules say no."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from live_world import Supervised

# FOLDER is out of bounds for the rules. None of these can change anything, whoever asks.
MOOT = """\
rm missing: os.unlink(f'{no}/missing')
rm missing, slash: os.unlink(f'{no}/missing/')
rm file, slash: os.unlink(f'{no}/file/')
rm folder, slash: os.unlink(f'{no}/folder/')
rm long: os.unlink(f'{no}/' + 'n' * 256)
mkdir long: os.mkdir(f'{no}/' + 'n' * 256)
rmdir missing: os.rmdir(f'{no}/missing')
mkdir folder: os.mkdir(f'{no}/folder')
mkdir folder, slash: os.mkdir(f'{no}/folder/')
mkdir file, slash: os.mkdir(f'{no}/file/')
mkdir link: os.mkdir(f'{no}/dangling')
symlink file: os.symlink('x', f'{no}/file')
symlink folder, slash: os.symlink('x', f'{no}/folder/')
symlink new, slash: os.symlink('x', f'{no}/new/')
mkfifo file: os.mkfifo(f'{no}/file')
mkfifo new, slash: os.mkfifo(f'{no}/new/')
link to file: os.link('mine', f'{no}/file')
link to link: os.link('mine', f'{no}/dangling')
link to new, slash: os.link('mine', f'{no}/new/')
link folder to file: os.link('.', f'{no}/file')
link folder: os.link('.', 'new')
link missing: os.link('missing', f'{no}/file')
rename missing out: os.rename(f'{no}/missing', 'mine')
rename missing in: os.rename('missing', f'{no}/file')
rename missing within: os.rename(f'{no}/missing', f'{no}/file')
rename onto file: rename2(f'{no}/file', f'{no}/folder', 1)
exchange with missing: rename2(f'{no}/file', f'{no}/missing', 2)
open new, excl: os.open(f'{no}/file', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
open link, excl: os.open(f'{no}/dangling', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
open folder to write: os.open(f'{no}/folder', os.O_WRONLY)
open folder, trunc: os.open(f'{no}/folder', os.O_TRUNC)
open file as folder: os.open(f'{no}/file', os.O_DIRECTORY | os.O_RDONLY)
open link, nofollow: os.open(f'{no}/dangling', os.O_NOFOLLOW | os.O_WRONLY)
truncate folder: os.truncate(f'{no}/folder', 0)
truncate fifo: os.truncate(f'{no}/fifo', 0)
chmod missing: os.chmod(f'{no}/missing', 0o600)
limits of a number below zero: resource.prlimit(-1, 0)
limits of nobody: resource.prlimit(2**22 + 1, 0)
schedule a number below zero: os.sched_setscheduler(-5, 0, os.sched_param(0))
schedule nobody: os.sched_setaffinity(2**22 + 1, {0})
priority of nobody: os.setpriority(os.PRIO_PROCESS, 2**22 + 1, 0)
signal nobody: os.kill(2**22 + 1, 0)
"""

# The other side: these could change something, and are refused by the rule.
REAL = """\
rm file: os.unlink(f'{no}/file')
rmdir folder: os.rmdir(f'{no}/folder')
mkdir new: os.mkdir(f'{no}/new')
mkdir new, slash: os.mkdir(f'{no}/new/')
symlink new: os.symlink('x', f'{no}/new')
mkfifo new: os.mkfifo(f'{no}/new')
link new: os.link('mine', f'{no}/new')
rename in: os.rename('mine', f'{no}/new')
rename out: os.rename(f'{no}/file', 'got')
exchange: rename2(f'{no}/file', f'{no}/folder', 2)
open new: os.open(f'{no}/new', os.O_CREAT | os.O_WRONLY)
open new, excl: os.open(f'{no}/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
open file: os.open(f'{no}/file', os.O_WRONLY)
open fifo: os.open(f'{no}/fifo', os.O_RDWR)
truncate file: os.truncate(f'{no}/file', 0)
"""

RUN = """\
import ctypes, errno, os, resource, sys
no, lines = sys.argv[1:]
def rename2(old, new, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, old.encode(), -100, new.encode(), flags):
        raise OSError(ctypes.get_errno(), 'renameat2')
for line in lines.splitlines():
    what, _, call = line.partition(': ')
    try:
        eval(call)
        print(what, 'done')
    except OSError as e:
        print(what, errno.errorcode[e.errno])
"""


def forbidden(supervised: Supervised) -> Path:
    """A folder that the policy does not speak of, with an object of each kind."""
    place = supervised.home / "no"
    (place / "folder").mkdir(parents=True)
    (place / "file").write_text("kept")
    (place / "dangling").symlink_to("nowhere")
    os.mkfifo(place / "fifo")
    (supervised.root / "mine").write_text("mine")
    return place


def python(place: Path, lines: str) -> list[str | Path]:
    """The command that makes these calls."""
    return ["/usr/bin/python3", "-c", RUN, place, lines]


def listing(place: Path) -> list[tuple[str, int, int]]:
    """Names, kinds and sizes below a folder."""
    return sorted(
        (str(path), path.lstat().st_mode, path.lstat().st_size) for path in place.rglob("*")
    )


def test_what_cannot_be_done_has_the_kernels_errno(supervised: Supervised) -> None:
    """Missing names, taken names and wrong kinds are told as natively, and nothing is recorded."""
    place = forbidden(supervised)
    before = listing(place)
    native = supervised.natively(python(place, MOOT))
    ours = supervised(python(place, MOOT))
    assert len(native.lines()) == len(MOOT.splitlines()), native.err
    assert "done" not in {line.split()[-1] for line in native.lines()}
    assert ours.lines() == native.lines()
    assert not [call for call in ours.denied() if call[1].startswith(str(place))]
    assert listing(place) == before


GONE = """\
unlink gone: os.unlink(f'{no}/gone')
rmdir gone: os.rmdir(f'{no}/gone')
rename gone: os.rename(f'{no}/gone', f'{no}/new')
"""


@pytest.mark.root
def test_missing_on_a_read_only_mount(supervised: Supervised) -> None:
    """There the kernel says so before it looks for a name, as in a container's /usr."""
    place = forbidden(supervised)
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    around = ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, str(place)]
    found = []
    for ours in ([], supervised.words(None, "-q")):
        done = subprocess.run(
            [*around, *ours, *map(str, python(place, GONE))],
            cwd=supervised.root,
            env=supervised.environ(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        found.append(done.stdout.decode().splitlines())
    assert found[0] == found[1]
    assert [line.split()[-1] for line in found[0]] == ["EROFS"] * 3


def test_what_could_be_done_is_refused(supervised: Supervised) -> None:
    """In the same folder, whatever could change something is refused by the rule and recorded."""
    place = forbidden(supervised)
    before = listing(place)
    ours = supervised(python(place, REAL))
    assert {line.split()[-1] for line in ours.lines()} == {"EACCES"}
    assert len(ours.lines()) == len(REAL.splitlines())
    assert len(ours.denied()) >= len(REAL.splitlines())
    assert listing(place) == before


def test_tools_that_count_on_it(supervised: Supervised) -> None:
    """Removing what is missing, and making a folder that is there, are no failures."""
    place = forbidden(supervised)
    script = f"rm -f {place}/missing && rm -rf {place}/missing && mkdir -p {place}/folder"
    done = supervised(["sh", "-c", f"{script} && ln -sfn x {place}/missing/x; echo $?"])
    assert done.lines() == ["1"]
    assert supervised(["sh", "-c", script], None, "--fail-on-deny").code == 0


def test_a_new_file_behind_a_dangling_link(supervised: Supervised) -> None:
    """A file is made where the link leads, under the rules of that place."""
    place = forbidden(supervised)
    (place / "out").symlink_to(supervised.root / "made")
    (supervised.root / "in").symlink_to(place / "new")
    done = supervised(["sh", "-c", f"echo 1 > {place}/out; echo 2 > in; true"])
    assert done.code == 0
    assert (supervised.root / "made").read_text() == "1\n"
    assert not (place / "new").exists()
    assert ("openat", str(place / "new")) in done.denied()
