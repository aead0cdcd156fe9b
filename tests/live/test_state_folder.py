"""Default logs and the list of trusted policies, reached behind a link: hidden where they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from live_world import COMMAND, Supervised

# Every way to a file and its folder, by each name that is given.
ATTEMPTS = r"""
import errno, os, sys
def attempt(what, call):
    try: print(what, "REACHED", call())
    except OSError as error: print(what, errno.errorcode[error.errno])
def new(name): return os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600))
for number, folder in enumerate(sys.argv[1:]):
    audit = folder + "/audit"
    for name in (folder + "/trusted", audit + "/kept.jsonl"):
        attempt("read", lambda: open(name).read())
        attempt("append", lambda: os.open(name, os.O_WRONLY | os.O_APPEND))
        attempt("cut", lambda: os.open(name, os.O_RDONLY | os.O_TRUNC))
        attempt("truncate", lambda: os.truncate(name, 0))
        attempt("chmod", lambda: os.chmod(name, 0o666))
        attempt("utime", lambda: os.utime(name))
        attempt("link", lambda: os.link(name, f"link{number}"))
        attempt("rename", lambda: os.rename(name, f"moved{number}"))
        attempt("unlink", lambda: os.unlink(name))
    for place in (folder, audit):
        attempt("list", lambda: os.listdir(place))
        attempt("create", lambda: new(place + "/new"))
        attempt("mkdir", lambda: os.mkdir(place + "/folder"))
        attempt("symlink", lambda: os.symlink("x", place + "/symlink"))
        if not os.path.islink(place):
            attempt("rename folder", lambda: os.rename(place, f"folder{number}"))
            attempt("replace", lambda: os.rename("mine", place))
    attempt("rmdir", lambda: os.rmdir(audit + "/empty"))
"""
# Which of the names on the way is a link, and what the environment says.
LINKS = {
    "home": ("home", "home/.local/state/supervise", {}),
    "local": ("home/.local", "home/.local/state/supervise", {}),
    "state": ("home/.local/state", "home/.local/state/supervise", {}),
    "own": ("home/.local/state/supervise", "home/.local/state/supervise", {}),
    "given": ("given", "given/supervise", {"XDG_STATE_HOME": "given"}),
    "given-own": ("given/supervise", "given/supervise", {"XDG_STATE_HOME": "given"}),
    "given-above": ("above", "above/given/supervise", {"XDG_STATE_HOME": "above/given"}),
}


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every name below a folder, with its mode and what is in it."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("kind", LINKS)
def test_state_folder_behind_a_link(supervised: Supervised, kind: str) -> None:
    """By the link's name and by the true one nothing in it is read, changed, moved or made."""
    link, named, given = LINKS[kind]
    root = supervised.root
    true = root / "true"
    folder = true / Path(named).relative_to(link)
    (folder / "audit" / "empty").mkdir(parents=True)
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(true)
    for name in ("trusted", "audit/kept.jsonl"):
        (folder / name).write_text("SECRET\n")
    (root / "mine").mkdir()
    env = {"HOME": str(root / "home"), **{key: str(root / value) for key, value in given.items()}}
    words = ["python3", "-c", ATTEMPTS, str(root / named), str(folder)]
    before = contents(folder)
    done = supervised(words, None, "-q", env=env)
    lines = done.lines()
    assert len(lines) >= 2 * (2 * 9 + 2 * 6 + 1) - 2, done.err
    # A new name that would be ruled more loosely is EXDEV, as everywhere.
    others = {line for line in lines if not line.endswith(" EACCES")}
    assert others <= {"link EXDEV", "rename folder EXDEV"}
    assert contents(folder) == before
    # The control: nothing else is in the way.
    native = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    reached = {
        line.partition(" REACHED")[0] for line in native.stdout.splitlines()[: len(lines) // 2]
    }
    assert {"read", "append", "cut", "chmod", "link", "rename", "list", "create"} <= reached


@pytest.mark.parametrize("kind", ["home", "local", "state", "given", "given-above"])
def test_default_log_behind_a_link(supervised: Supervised, kind: str) -> None:
    """The log of a run is kept there, and the next run cannot read it."""
    link, named, given = LINKS[kind]
    root = supervised.root
    (root / "true").mkdir()
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to("true" if "/" not in link else root / "true")
    env = {"HOME": str(root / "home"), **{key: str(root / value) for key, value in given.items()}}
    logs = root / "true" / Path(named).relative_to(link) / "audit"
    for _ in range(2):
        kept = [str(log) for log in logs.glob("*.jsonl")]
        done = subprocess.run(
            [*supervised.words(), "sh", "-c", f'cat {logs}/* {named}/audit/* "$@"', "sh", *kept],
            cwd=root,
            env=supervised.environ(env),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.stdout == b""
        assert b"leaves no audit log" not in done.stderr
    assert len(list(logs.glob("*.jsonl"))) == 2
    assert all(b'"session_end"' in log.read_bytes() for log in logs.iterdir())


def test_first_run_of_a_generous_umask(supervised: Supervised, tmp_path: Path) -> None:
    """In a fresh home our folders are nobody else's, and the log is there, whatever the umask."""
    home = tmp_path / "fresh"
    home.mkdir()
    done = subprocess.run(
        [*COMMAND, "--", "true"],
        cwd=supervised.root,
        env=supervised.environ({"HOME": str(home)}),
        capture_output=True,
        timeout=60,
        check=False,
        umask=0o002,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(home.glob(".local/state/supervise/audit/*.jsonl"))) == 1
    made = [path for path in home.rglob("*") if path.is_dir()]
    assert len(made) >= 7
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
