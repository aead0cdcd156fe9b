"""Random file operations on twin trees, natively and supervised: every line is the same.

SUPERVISE_TWIN_OPS sets how many operations (20,000), SUPERVISE_TWIN_SEED the first seed.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest
from live_world import POLICY, Result, Supervised

log = logging.getLogger(__name__)

OPERATIONS = int(os.environ.get("SUPERVISE_TWIN_OPS", "20000"))
FIRST_SEED = int(os.environ.get("SUPERVISE_TWIN_SEED", "1"))
A_RUN = 10_000  # operations of one seed
O_CREAT = 0o100
O_PATH = 0o10000000
WHITEOUT = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One operation: what was done and what came of it."""

    call: str
    words: tuple[str, ...]
    outcome: str

    @property
    def errno(self) -> str:
        """Name of the errno, ``ok`` where there is none."""
        return self.outcome.split(" ")[1]


def path_only(native: Line, ours: Line) -> bool:
    """Our openat2 cannot hand over O_PATH descriptors with resolve flags."""
    return (
        native.call == "openat2"
        and "resolve=0" not in native.words
        and bool(int(native.words[-4], 8) & O_PATH)
        and ours.errno == "ENOSYS"
    )


def behind_dangling(native: Line, ours: Line) -> bool:
    """A dangling link is not created through where openat2 limits the walk."""
    return (
        native.call == "openat2"
        and "resolve=0" not in native.words
        and bool(int(native.words[-4], 8) & O_CREAT)
        and ours.errno == "ELOOP"
    )


def whiteout(native: Line, ours: Line) -> bool:
    """A whiteout is a device node: refused before the names are looked at."""
    return (
        native.call == "rename"
        and bool(int(native.words[-1], 16) & WHITEOUT)
        and ours.errno == "EPERM"
    )


def slash_behind(native: Line, ours: Line) -> bool:
    """Nor is it seen that what lies behind a link ends in a slash, which only changes the errno."""
    return (
        native.call == "openat2"
        and "resolve=0" not in native.words
        and bool(int(native.words[-4], 8) & O_CREAT)
        and (native.errno, ours.errno) == ("EISDIR", "ENOTDIR")
    )


def procfs(native: Line, ours: Line) -> bool:
    """The policy, which lets nobody change /proc, speaks before the kernel.

    Limits of openat2 fail there natively, too: names then mean the supervisor's own folder.
    """
    refused = ours.errno in ("EACCES", "EXDEV")
    on_link = native.call in ("chown", "utimens")  # natively possible, and forgotten at once
    limited = native.call == "openat2" and "resolve=0" not in native.words
    return any(word.startswith(("/proc/", "/dev/fd/")) for word in native.words) and (
        (refused and (native.errno != "ok" or on_link))
        or (limited and "ok" not in (native.errno, ours.errno))
    )


def doubtful(native: Line, ours: Line) -> bool:
    """A name that may or may not end in "(deleted)", in a folder nobody may search, is refused."""
    return native.words[:1] == ("doubtful",) and ours.errno == "EACCES"


def own_proc(native: Line, ours: Line) -> bool:
    """Who changed its ids hides its /proc folder, from us with these ids as from others."""
    return (
        any(word.startswith(("/proc/", "/dev/fd/")) for word in native.words)
        and ours.errno == "EACCES"
    )


def opened_before(native: Line, ours: Line) -> bool:
    """AT_EMPTY_PATH links what /proc/self/fd would, also what another identity opened."""
    return (
        native.call == "link"
        and bool({"1000", "1400"} & set(native.words))
        and native.errno == "ENOENT" != ours.errno
    )


CHANGED = (own_proc, opened_before)  # only where the identity changes
KNOWN = (path_only, behind_dangling, whiteout, slash_behind, procfs, doubtful)
EPOCH = re.compile(r"^(\d+)\.")


def parsed(text: str) -> Line | None:
    """The fields of an operation's line; None for a line about the tree."""
    fields = text.split("\t")
    if len(fields) != 3 or fields[0] == "tree":
        return None
    call, *words = fields[1].split(" ")
    return Line(call, tuple(words), fields[2])


def epochs(result: Result) -> Iterator[list[str]]:
    """Lines by epoch: after each the tree is told and made anew."""
    number = 0

    def which(text: str) -> int:
        nonlocal number
        found = EPOCH.match(text)
        number = int(found[1]) if found else number
        return number

    for _, group in groupby(result.lines(), which):
        yield list(group)


def excuse(native: str, ours: str, changed: bool) -> str:
    """Name of the known difference that this is; empty where it is none."""
    a, b = parsed(native), parsed(ours)
    if a is None or b is None or (a.call, a.words) != (b.call, b.words):
        return ""
    allowed = (*KNOWN, *CHANGED) if changed else KNOWN
    return next((known.__name__ for known in allowed if known(a, b)), "")


def compare(native: list[str], ours: list[str], seen: Counter[str], changed: bool) -> str:
    """What differs first and is no known difference; empty where nothing does.

    A known difference after which the trees are not the same any more ends the comparison.
    """
    for a, b in zip(native, ours, strict=False):
        if a == b:
            seen["lines"] += 1
            continue
        known = excuse(a, b, changed)
        if not known:
            return f"natively   {a}\nsupervised {b}"
        seen[known] += 1
        outcomes = a.split("\t")[2] + b.split("\t")[2]
        if known != path_only.__name__ and " ok" in outcomes:
            return ""
    if len(native) != len(ours):
        return f"natively {len(native)} lines, supervised {len(ours)}"
    return ""


def tree_of(root: Path) -> list[str]:
    """Every name below root with what lstat tells, looked at from outside."""
    found = []
    for path in sorted(root.rglob("*"), key=os.fsencode):
        st = path.lstat()
        size = 0 if path.is_dir() and not path.is_symlink() else st.st_size
        mtime = st.st_mtime_ns if st.st_mtime < 1e9 else "now"
        text = os.readlink(path).replace(str(root), "ROOT") if path.is_symlink() else ""
        name = os.fsencode(path.relative_to(root))
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found.append(
            f"{name!r} {st.st_mode:o} {st.st_uid}.{st.st_gid} {st.st_nlink} {size} {mtime} "
            f"{text} {content!r}"
        )
    return found


# Every look comes to the supervisor as soon as any name is hidden.
LOOKING = POLICY + "  - {id: hidden, deny: all, as: ENOENT, paths: [/nowhere/**]}\n"


def twins(
    supervised: Supervised, program: Path, seed: int, words: list[str], policy: str | None
) -> list[Result]:
    """The same operations natively and supervised, each in a tree of its own."""
    trees = [supervised.root / f"{twin}{seed}" for twin in "ns"]
    for tree in trees:
        tree.mkdir()
    with ThreadPoolExecutor(1) as pool:
        argv = [program, trees[0], str(seed), *words]
        future = pool.submit(supervised.natively, argv, timeout=100)
        ours = supervised([program, trees[1], str(seed), *words], policy, "-q", timeout=100)
        native = future.result()
    for result in (native, ours):
        assert result.code == 0, result.err
    return [native, ours]


def check(
    supervised: Supervised,
    program: Path,
    words: list[str],
    operations: int,
    policy: str | None = None,
) -> None:
    """Run all seeds; fail with the first differences."""
    seen: Counter[str] = Counter()
    wrong = []
    runs = max(1, operations // A_RUN)
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        count = [str(min(A_RUN, operations)), *words]
        native, ours = twins(supervised, program, seed, count, policy)
        pairs = list(zip(epochs(native), epochs(ours), strict=True))
        texts = [compare(a, b, seen, bool(words)) for a, b in pairs]
        wrong += [f"seed {seed}: {text}" for text in texts if text]
        left, right = (tree_of(supervised.root / f"{twin}{seed}") for twin in "ns")
        if pairs[-1][0] == pairs[-1][1]:
            assert left == right
    log.info("compared: %s", dict(seen))
    assert not wrong, f"{len(wrong)} epochs differ:\n" + "\n".join(wrong[:30])
    assert seen["lines"] > runs * min(A_RUN, operations) * (0.7 if words else 0.9)


@pytest.mark.timeout(max(240, OPERATIONS // 200))
def test_random_operations(supervised: Supervised, program: Callable[..., Path]) -> None:
    """Results, errnos and trees are the same, but for the known differences."""
    check(supervised, program("twin"), [], OPERATIONS)


@pytest.mark.timeout(max(240, OPERATIONS // 200))
def test_where_names_are_hidden(supervised: Supervised, program: Callable[..., Path]) -> None:
    """The same where stat, access, readlink and listings are brokered, too."""
    check(supervised, program("twin"), [], OPERATIONS // 2, LOOKING)


@pytest.fixture
def open_to_all() -> Iterator[Supervised]:
    """A workspace that others reach; pytest shuts its own folder again at every start."""
    with tempfile.TemporaryDirectory(prefix="twin-") as name:
        place = Path(name)
        place.chmod(0o755)
        for folder in ("work", "home"):
            (place / folder).mkdir()
        yield Supervised(place / "work", place / "home")


@pytest.mark.root
@pytest.mark.timeout(max(240, OPERATIONS // 200))
@pytest.mark.parametrize("words", [["54321"], ["54321", "turns"]], ids=["for good", "in turns"])
@pytest.mark.parametrize("policy", [None, LOOKING], ids=["plain", "hiding"])
def test_changed_identity(
    open_to_all: Supervised, compile_c: Callable[..., Path], words: list[str], policy: str | None
) -> None:
    """The same where root became somebody else, for good or from time to time."""
    program = Path(shutil.copy(compile_c("twin"), open_to_all.root / "twin"))
    check(open_to_all, program, words, OPERATIONS // 4, policy)
