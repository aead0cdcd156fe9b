"""What a run leaves behind must neither leak now nor serve the next run."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from live_world import COMMAND, Supervised

STEAL = """
import os, sys
path, other = sys.argv[1:]
os.link(path, other)
held = os.open(path, os.O_PATH)
os.unlink(path)
print(os.readlink(f"/proc/self/fd/{held}"))
try:
    print("STOLEN", os.read(os.open(f"/proc/self/fd/{held}", os.O_RDONLY), 100))
except OSError as error:
    print("held", error.errno)
"""
# Chains of fork, parent ends, fork: somebody is always just being born.
CHAIN = """
import os, sys, time
end = time.monotonic() + 20
for chain in range(4):
    if os.fork() == 0:
        n = 0
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
            n += 1
            open(f"made-{chain}-{n}", "w").close()
        os._exit(0)
time.sleep(0.3)
"""


def test_removed_name_still_counts(supervised: Supervised) -> None:
    """A file with a second name is judged by the name that was removed, too."""
    (supervised.root / ".env").write_text("SECRET=hunter2\n")
    done = supervised(["/usr/bin/python3", "-c", STEAL, ".env", ".env.bak"], "pack:agent-dev")
    assert b"(deleted)" in done.out
    assert b"held 2" in done.out
    assert b"hunter2" not in done.out


@pytest.mark.parametrize("script", ['mv "$PWD" "$TMPDIR/old"', 'rm -rf "$PWD"', 'rm -rf "$TMPDIR"'])
def test_free_folder_keeps_its_name(supervised: Supervised, script: str) -> None:
    """The project folder cannot make way for a link that would lead the next run elsewhere."""
    (supervised.root / "file").write_text("x")
    done = supervised(
        ["sh", "-c", f'{script}; test -d "$PWD" && test -d "$TMPDIR"'], "pack:agent-dev"
    )
    assert done.code == 0, done.err
    assert supervised.root.is_dir()


def test_steer_destination_is_no_link(supervised: Supervised) -> None:
    """A link where calls are steered to ends the start, with a sentence."""
    victim = supervised.root / "victim"
    victim.mkdir()
    (supervised.root / "shadow").symlink_to(victim)
    policy = (
        "version: 1\nname: s\nextends: [agent-dev]\nfiles:\n"
        '  - {id: s, steer: [write, create], paths: ["/opt/x/**"], to: "${CWD}/shadow"}\n'
    )
    done = supervised(["sh", "-c", "echo x > /opt/x/f"], policy)
    assert done.code == 125
    assert b"symbolic link" in done.err
    assert list(victim.iterdir()) == []


def test_configuration_cannot_be_planted(supervised: Supervised) -> None:
    """A policy for later runs is not written by this one, even where home is the project."""
    script = 'mkdir -p .config/supervise; echo "mode: observe" > .config/supervise/policy.yaml'
    env = {"HOME": str(supervised.root)}
    supervised(["sh", "-c", script], "pack:agent-dev", env=env)
    assert not (supervised.root / ".config" / "supervise" / "policy.yaml").exists()


def test_nothing_is_made_after_the_end(supervised: Supervised) -> None:
    """What forks while the tree is ended goes with it, and all it made is on record."""
    done = supervised(["/usr/bin/python3", "-c", CHAIN], "pack:agent-dev", timeout=60)
    made = {path.name for path in supervised.root.glob("made-*")}
    told = {os.path.basename(event["action"].get("path", "")) for event in done.events}
    assert made
    assert made - told == set()


def test_foreign_terminal(supervised: Supervised) -> None:
    """A terminal that another program opened cannot be read or written; one's own can."""
    master, slave = pty.openpty()
    try:
        script = (
            "import os, pty, sys\n"
            "for name in (sys.argv[1], os.ttyname(pty.openpty()[1])):\n"
            "    try: os.close(os.open(name, os.O_RDWR | os.O_NOCTTY)); print('open')\n"
            "    except OSError as error: print(error.errno)\n"
        )
        done = supervised(["/usr/bin/python3", "-c", script, os.ttyname(slave)], "pack:agent-dev")
    finally:
        os.close(master)
        os.close(slave)
    assert done.lines() == ["13", "open"]


POLICY_OF_ITS_OWN = 'version: 1\nname: mine\nfiles:\n  - {id: all, allow: all, paths: ["/**"]}\n'


@pytest.mark.parametrize("kind", ["config", "state", "cache", "policy"])
def test_link_left_behind(supervised: Supervised, kind: str) -> None:
    """In a home folder as workspace, no link in place of a folder of ours serves the next run."""
    home = supervised.root
    (supervised.home / "outside").write_text("OUTSIDE\n")
    env = supervised.environ({"HOME": str(home)})
    own = home / ".supervise.yaml"
    (home / "real").mkdir()
    line = f"$(sha256sum < {own} | cut -d' ' -f1) {os.fsencode(own).hex()}"
    line = f"$(sha256sum < {own} | cut -d' ' -f1) {os.fsencode(own).hex()}"
    plant = (
        "mkdir -p evil/supervise; chmod 700 evil evil/supervise; umask 077; "
        f"printf '%s' '{POLICY_OF_ITS_OWN}' > evil/supervise/policy.yaml; "
        f"cp evil/supervise/policy.yaml {own}; echo {line} > evil/supervise/trusted; "
    )
    words = [*COMMAND, "-q"]
    if kind == "config":
        plant += "ln -s evil .config; rm -rf .config; ln -s evil .config; mv evil .config"
    elif kind == "policy":
        (home / "real/p.yaml").write_text("version: 1\nname: p\nextends: [agent-dev]\n")
        (home / "p.yaml").symlink_to("real/p.yaml")
        words += ["-p", "p.yaml"]
        plant += "ln -sf evil/supervise/policy.yaml p.yaml; mv real gone; mv evil real"
    else:
        place = home / (".cache" if kind == "cache" else ".local/state")
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(home / "real")
        plant += f"rm -f {place}; ln -sfT {home}/evil {place}; mv real gone; mv evil real"
    for script in (plant, f"cat {supervised.home}/outside"):
        done = subprocess.run(
            [*words, "--", "sh", "-c", script],
            cwd=home,
            env=env,
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert done.stdout == b"", "a policy that the first run wrote was used by the second"
    assert done.returncode == 1, done.stderr
