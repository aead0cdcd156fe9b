"""An interpreter with file capabilities: they are the supervisor's alone, as execve drops them."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from live_world import Supervised, reachable

UID = 54321
# CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID, effective from the start: what
# capabilities(7) calls version 2 of the attribute.
CAPS = struct.pack("<5I", 0x02000001, 0xFB, 0, 0, 0)
# Each line is an attempt that only the capabilities would let through.
SCRIPT = """
cat secret
echo x >> secret
echo x > roots/new
mkdir roots/folder
ln -s x roots/link
rm -f roots/file
mv roots/file roots/moved
mv roots/file file
ln roots/file second
chmod 666 secret
chown 54321 secret
touch -d 2001-01-01 secret
truncate -s 0 secret
roots/program
echo x > own && cat own
mkdir folder && stat -c %u:%g:%a own folder
"""


def interpreter(folder: Path, caps: bytes = CAPS) -> Path:
    """A copy of ours with capabilities, which finds our modules as we do."""
    (folder / "bin").mkdir(parents=True)
    copy = folder / "bin" / "python3"
    shutil.copy(Path(sys.executable).resolve(), copy)
    (folder / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    (folder / "lib").symlink_to(Path(sys.prefix) / "lib")
    os.setxattr(copy, "security.capability", caps)
    return copy


def prepare(root: Path) -> None:
    """Files of root's, in a folder where anybody may make files."""
    shutil.rmtree(root)
    (root / "roots").mkdir(parents=True)
    root.chmod(0o777)
    (root / "secret").write_text("FORBIDDEN\n")
    (root / "secret").chmod(0o600)
    (root / "roots" / "file").write_text("")
    (root / "roots" / "program").write_text("#!/bin/sh\necho RUN\n")
    (root / "roots" / "program").chmod(0o700)


def as_user(supervised: Supervised, words: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command in the workspace as a user without any groups but one."""
    return subprocess.run(
        words,
        cwd=supervised.root,
        env=supervised.environ(),
        capture_output=True,
        timeout=60,
        check=False,
        user=UID,
        group=UID,
        extra_groups=[],
    )


@pytest.mark.root
def test_capabilities_of_our_interpreter(supervised: Supervised, tmp_path: Path) -> None:
    """What it runs reads, changes, makes and starts what its user may, and nothing else."""
    python = interpreter(tmp_path / "python")
    reachable(supervised.root)
    reachable(tmp_path)
    os.chown(supervised.home, UID, UID)
    found = []
    for ours in ([], [str(python), *supervised.words(None, "-q")[1:]]):
        prepare(supervised.root)
        done = as_user(supervised, [*ours, "sh", "-c", SCRIPT])
        names = sorted(
            str(path.relative_to(supervised.root)) for path in supervised.root.rglob("*")
        )
        found.append((done.returncode, done.stdout, done.stderr.splitlines(), names))
    assert found[1] == found[0]
    code, out, err, names = found[0]
    assert (code, out) == (0, f"x\n{UID}:{UID}:644\n{UID}:{UID}:755\n".encode())
    assert len(err) == 14
    assert names == ["folder", "own", "roots", "roots/file", "roots/program", "secret"]
    # The control: what runs the supervisor could have done it.
    read = [str(python), "-c", "print(open('secret').read())"]
    done = subprocess.run(read, cwd=supervised.root, capture_output=True, check=False, user=UID)
    assert done.stdout == b"FORBIDDEN\n\n", done.stderr


@pytest.mark.root
@pytest.mark.parametrize("caps", [0x02, 0x02 | 0x08, 0x80 | 0x40 | 0x02])
def test_a_few_capabilities(supervised: Supervised, tmp_path: Path, caps: int) -> None:
    """Whichever of them the interpreter has, the run works, and without them."""
    attribute = struct.pack("<5I", 0x02000001, caps, 0, 0, 0)
    python = interpreter(tmp_path / "python", attribute)
    reachable(supervised.root)
    reachable(tmp_path)
    os.chown(supervised.home, UID, UID)
    prepare(supervised.root)
    script = "cat secret; echo x > own; cat own"
    words = [str(python), *supervised.words(None, "-q")[1:], "sh", "-c", script]
    done = as_user(supervised, words)
    assert (done.returncode, done.stdout) == (0, b"x\n"), done.stderr
