"""Races against the supervisor: each must win against a naive one and lose against ours.

Zero hits in N tries bound the rate of success below 3/N (95 %). That says something
only where the same program is shown to win, so every race has a positive control.

SUPERVISE_RACE_TRIES sets the tries of a race (exec races take 1/40 of it; default 20,000
and 500), SUPERVISE_RACE_REPORT names a file that gets one JSON line per run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.escape.conftest import Tree

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(3600)]

RUN_SECONDS = 150  # a program ends itself after 120
CONTROL_BOUND = 64  # the control may take this many times the first number of tries
REFUSED = 3  # exit status: what should have raced was refused


@dataclass(frozen=True, slots=True)
class Race:
    """One race.

    Attributes:
        name: as shown by pytest.
        args: program and arguments; {t} is the tree, {p} the port of net_server.c, the tries
            are put in second.
        naive: mode of the naive supervisor that loses it.
        guards: what the naive supervisor forbids ({t} as above).
        share: part of the asked tries (process starts are slow).
        refusal: our supervisor may refuse the racing itself.
        hides: the forbidden names are hidden, not only denied.
        nets: 127.0.0.2 may be connected to.
    """

    name: str
    args: str
    naive: str
    guards: str = "{t}/area_b"
    share: float = 1.0
    refusal: bool = False
    hides: bool = False
    nets: bool = False


DATA = "{t}/area_a/data {t}/area_b/data"
DIRS = "{t}/area_a/good {t}/area_b {t}/area_a"
INNER = "{t}/area_a/in_a/data {t}/area_a/in_b/data"
PARENT_OPS = (
    *("mkdir", "symlink", "unlink", "rename", "link", "chmod", "truncate"),
    *("setxattr", "watch"),
)

NET_RULES = 'network:\n  - {id: two, allow: connect, to: ["127.0.0.2"]}\n'
NET_MODES = (
    *(("connect", "address"), ("sendto", "address"), ("name", "message"), ("name peer", "message")),
    *(("pointer", "message"), ("dup2-connect", "family"), ("dup2-send", "type")),
    ("dup2-files", "type"),
)

RACES = (
    Race("path-thread", f"flip_path {DATA} thread", "string-open"),
    Race("path-peer", f"flip_path {DATA} peer", "string-open"),
    Race("path-inside", f"flip_path {INNER}", "string-open", "{t}/area_a/in_b"),
    Race("how-flags", "flip_how - {t}/readonly/file flags", "how", "{t}/readonly"),
    Race("how-path", f"flip_how {DATA} path", "string-open"),
    Race("shm-anon", f"shm_flip {DATA} anon", "string-open"),
    Race("shm-memfd", f"shm_flip {DATA} memfd", "string-open"),
    Race("shm-vmw", f"shm_flip {DATA} vmw", "string-open", refusal=True),
    Race("symlink", f"swap_symlink {DIRS} link", "behalf"),
    Race("folder", f"swap_symlink {DIRS} folder", "behalf"),
    Race("dirfd", "dirfd_dup2 {t}/area_a/good {t}/area_a ../area_b/data dup2", "resolve-open"),
    Race("cwd", "dirfd_dup2 {t}/area_a/good {t}/area_a ../area_b/data cwd", "resolve-open"),
    Race("look-path", f"look_race {DATA} - flip", "string-look", hides=True),
    Race("look-link", f"look_race {DIRS} swap", "resolve-look", hides=True),
    Race("look-fd", f"look_race {DATA} - fd", "resolve-look", hides=True),
    Race("unlink", f"flip_unlink {DATA}", "string-unlink"),
    Race("rename-from", f"flip_rename {DATA} {{t}}/area_a/x from", "string-rename"),
    Race("rename-to", f"flip_rename {DATA} {{t}}/area_a/x to", "string-rename"),
    Race("link-from", f"flip_rename {DATA} {{t}}/area_a/x link", "string-rename"),
    Race("parent-create", f"swap_parent {DIRS} create", "behalf"),
    *(Race(f"parent-{op}", f"swap_parent {DIRS} {op}", "resolve-change") for op in PARENT_OPS),
    Race(
        "exec-path",
        "flip_exec {t}/bin/forbidder {t}/bin/forbidden",
        "exec",
        "{t}/bin/forbidden",
        share=1 / 40,
    ),
    *(
        Race(
            f"exec-{kind}",
            f"swap_exec {{t}}/bin/forbidder {{t}}/bin/forbidden {{t}}/area_a {kind}",
            naive,
            "{t}/bin/forbidden",
            share=1 / 40,
        )
        for kind, naive in (("link", "resolve-exec"), ("script", "script"))
    ),
    Race(
        "exec-bytes",
        "flip_bytes {t}/bin/forbidder {t}/bin/forbidden {t}/area_a",
        "bytes",
        "{t}/bin/forbidden",
        share=1 / 40,
    ),
    Race("exec-argv", "flip_argv bud bad {t}/bin/tool bytes", "argv", "bad", share=1 / 40),
    Race("exec-argv-ptr", "flip_argv bud bad {t}/bin/tool ptr", "argv", "bad", share=1 / 40),
    *(
        Race(
            f"net-{mode.replace(' ', '-')}", f"net_race {{p}} {mode}", naive, "127.0.0.1", nets=True
        )
        for mode, naive in NET_MODES
    ),
)


@pytest.fixture(scope="module")
def port(programs: Path) -> Iterator[int]:
    """The port of the two ends, outside the tree, that the network races may reach."""
    with subprocess.Popen(
        [programs / "net_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.stdin.close()


@dataclass(frozen=True, slots=True)
class Count:
    """What one run of a race program said."""

    tries: int
    hits: int
    other: int


def run(race: Race, tree: Tree, port: int, around: list[str], tries: int, who: str) -> Count | None:
    """Runs a race once below `around`; None = the racing itself was refused."""
    program, *rest = race.args.format(t=tree.root, p=port).split()
    start = time.monotonic()
    done = subprocess.run(
        [*around, str(tree.root / "bin" / program), str(tries), *rest],
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=RUN_SECONDS,
        check=False,
        cwd=tree.root / "area_a",
    )
    if done.returncode == REFUSED:
        return None
    match = re.search(r"^tries (\d+) hits (\d+) other (\d+)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    assert match is not None, f"no count in {done.stdout!r}: {done.stderr[-2000:]}"
    count = Count(*map(int, match.groups()))
    report(race, who, count, time.monotonic() - start)
    return count


def report(race: Race, who: str, count: Count, seconds: float) -> None:
    """Adds one JSON line to the report, where one is wanted."""
    name = os.environ.get("SUPERVISE_RACE_REPORT")
    if not name:
        return
    line = {
        "race": race.name,
        "under": who,
        "tries": count.tries,
        "hits": count.hits,
        "other": count.other,
        "seconds": round(seconds, 2),
    }
    with Path(name).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


def asked(race: Race) -> int:
    """Tries that a race must make against our supervisor."""
    return max(100, int(int(os.environ.get("SUPERVISE_RACE_TRIES", "20000")) * race.share))


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_naive_supervisor_loses(race: Race, tree: Tree, port: int) -> None:
    """The positive control: against check-then-continue the race is won."""
    first = max(100, int(2000 * race.share))
    around = [str(tree.root / "bin/naive"), race.naive, race.guards.format(t=tree.root), "--"]
    tries = first
    while tries <= first * CONTROL_BOUND:
        count = run(race, tree, port, around, tries, "naive")
        assert count is not None, "the race was refused under the naive supervisor"
        if count.hits:
            return
        tries *= 4
    pytest.fail(f"no hit in {tries // 4} tries: this race proves nothing here")


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_supervisor_wins(
    race: Race, tree: Tree, port: int, supervise: Callable[[Tree], list[str]]
) -> None:
    """Not one try reaches the forbidden object, and the allowed one is reached."""
    if race.hides:
        policy = tree.policy.read_text()
        tree.policy.write_text(
            policy.replace("secret, deny: all,", "secret, deny: all, as: ENOENT,")
        )
        assert "as: ENOENT" in tree.policy.read_text()
    if race.nets:
        tree.policy.write_text(tree.policy.read_text() + NET_RULES)
    before = tree.marks()
    want = asked(race)
    made = allowed = 0
    while made < want:
        count = run(race, tree, port, supervise(tree), want - made, "supervise")
        if count is None:
            assert race.refusal, "swapping within the workspace was refused"
            break
        assert count.hits == 0, f"{count.hits} of {count.tries} tries got through"
        assert count.tries > 0, "the program made no try"
        made += count.tries
        allowed += count.tries - count.other
    assert tree.marks() == before
    assert count is None or allowed > 0, "nothing was allowed, so nothing was raced"
