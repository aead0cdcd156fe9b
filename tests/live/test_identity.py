"""Whose files they are, and whose rights count: the caller's, never the supervisor's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import COMMAND, Supervised, reachable

Put = Callable[..., Path]
UID, GID, GROUP = 54321, 54322, 54323


def prepare(folder: Path) -> None:
    """A folder of UID's with files of several owners."""
    folder.mkdir()
    for name, uid, gid, mode in (
        ("roots", 0, 0, 0o600),
        ("own", UID, GID, 0o400),
        ("groups", 0, GID, 0o640),
        ("further", 0, GROUP, 0o640),
        ("others", 0, 0, 0o604),
        ("nobody", UID, GID, 0o000),
    ):
        (folder / name).write_text(name)
        os.chown(folder / name, uid, gid)
        (folder / name).chmod(mode)
    os.chown(folder, UID, GID)


@pytest.mark.root
@pytest.mark.parametrize("caps", ["0", "1"], ids=["plain", "capability"])
def test_changed_identity(supervised: Supervised, program: Put, caps: str) -> None:
    """A setuid'ed child makes its own files and reads what it could read natively."""
    tool = program("identity")
    reachable(supervised.root)
    files = ["roots", "own", "groups", "further", "others", "nobody"]
    found = []
    for name in ("native", "supervised"):
        folder = supervised.root / name
        prepare(folder)
        words = [tool, str(UID), str(GID), str(GROUP), caps, *files]
        if name == "native":
            done = supervised.natively(words, cwd=folder)
        else:
            done = supervised(words, None, "-q", cwd=folder)
        made = [(folder / x).stat() for x in ("made", "dir") if (folder / x).exists()]
        found.append((done.out, done.code, [(s.st_uid, s.st_gid, s.st_mode) for s in made]))
    assert found[0] == found[1]
    out, code, made = found[0]
    assert code == 0
    assert [owner[:2] for owner in made] == [(UID, GID), (UID, GID)]
    assert (b"roots ok" in out) == (caps == "1")
    assert b"further ok" in out


@pytest.mark.root
def test_others_keep_their_identity(supervised: Supervised, program: Put) -> None:
    """After one child became somebody else, its siblings still work as root."""
    tool = program("identity")
    reachable(supervised.root)
    prepare(supervised.root / "d")
    loop = "i=0; while [ $i -lt 50 ]; do echo x > d/f$i; cat d/roots > /dev/null; i=$((i+1)); done"
    script = f"(cd d; {tool} {UID} {GID} {GROUP} 0 roots) & wait; {loop}"
    done = supervised(["bash", "-c", script])
    assert b"roots EACCES" in done.out
    assert done.err == b""
    assert {path.stat().st_uid for path in (supervised.root / "d").glob("f*")} == {0}


BLIND = ["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"]


@pytest.mark.root
def test_root_of_a_container(supervised: Supervised) -> None:
    """Without CAP_SYS_PTRACE who gave up root is refused, and what is missing is named."""
    words = ["setpriv", f"--reuid={UID}", "--clear-groups", "cat", "/etc/hostname"]
    env = supervised.environ()
    for around, code in (([], 0), (BLIND, 126)):
        done = subprocess.run(
            [*around, *supervised.words(), *words],
            cwd=supervised.root,
            env=env,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert (b"takes CAP_SYS_PTRACE, which supervise was not given" in done.stderr) == bool(code)
        told = subprocess.run(
            [*around, *COMMAND, "doctor", "--json"], env=env, capture_output=True, check=True
        )
        found = {item["name"]: item for item in json.loads(told.stdout)["findings"]}
        assert found["other-identities"]["ok"] == (code == 0)
        assert ("CAP_SYS_PTRACE" in found["other-identities"]["detail"]) == bool(code)


def test_undumpable_is_said_to_have_worked(supervised: Supervised) -> None:
    """A target cannot hide its memory from us; what it does then is still decided."""
    script = (
        "import ctypes, os\n"
        "print(ctypes.CDLL(None).prctl(4, 0, 0, 0, 0))\n"
        "open('made', 'w').write('x')\n"
        "print(open('made').read())\n"
        "try: open('/proc/self/mem'); print('readable')\n"
        "except OSError as e: print(e)\n"
    )
    done = supervised(["python3", "-c", script])
    assert done.lines()[:2] == ["0", "x"]


def test_no_capability_is_needed(supervised: Supervised) -> None:
    """Making, changing, moving and removing work with what the caller has."""
    script = (
        "set -e; umask 027; mkdir -p a/b; echo x > a/b/f; chmod 600 a/b/f; mv a/b/f a/g; "
        "ln a/g a/h; ln -s g a/l; touch -d @1000 a/g; stat -c %a:%h:%Y a/g; "
        "rm a/h a/l a/g; rmdir a/b a; mkfifo p; rm p; ls"
    )
    done = supervised(["sh", "-c", script])
    assert (done.code, done.out, done.err) == (0, b"600:2:1000\n", b"")


def test_new_files_belong_to_the_caller(supervised: Supervised) -> None:
    """Owner and group are those of who asked."""
    done = supervised(["sh", "-c", "umask 077; echo x > f; mkdir d; mkfifo p; ln -s x l"])
    assert done.code == 0
    for name, mode in (("f", 0o600), ("d", 0o700), ("p", 0o600)):
        found = (supervised.root / name).lstat()
        assert (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())
        assert found.st_mode & 0o777 == mode
