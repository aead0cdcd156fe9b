"""The seccomp program, run by an interpreter of its own and held against the rows."""

from __future__ import annotations

import errno
import random
import sys
from dataclasses import dataclass

import bpf_sim
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor import native
from supervisor.errors import EnvironmentFault, SupervisorError
from supervisor.policy import bpf
from supervisor.policy.bpf import CLASS_ALLOW as A
from supervisor.policy.bpf import CLASS_BROKER as B
from supervisor.policy.bpf import CLASS_LOOK as L
from supervisor.policy.bpf import CLASS_NET as N
from supervisor.policy.bpf import CLASS_REFUSE as R
from supervisor.policy.bpf import CLASS_SIGNAL as S
from supervisor.policy.bpf import CLASS_VERIFY as V
from supervisor.policy.bpf import RowLike, WhenLike, build_filter

FULL = (1 << 64) - 1
WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Row:
    """A row of a made-up table."""

    nr: int
    klass: int
    err: int = 0


@dataclass(frozen=True)
class When:
    """An argument test of a made-up table."""

    nr: int
    arg: int
    mask: int
    value: int
    klass: int
    err: int = 0


def expected(
    rows: list[RowLike],
    tests: list[WhenLike],
    nr: int,
    args: tuple[int, ...],
    *,
    hides: bool = False,
    nets: bool = False,
    signals: bool = False,
) -> int:
    """Return what the table says about one native call."""
    if nr >= bpf_sim.X32_BIT and nr != WORD:
        return bpf_sim.KILL_PROCESS
    for row in rows:
        if row.nr == nr:
            klass, err = row.klass, row.err
            for test in tests:
                if test.nr == nr and args[test.arg] & test.mask == test.value:
                    klass, err = test.klass, test.err
                    break
            told = {True: bpf_sim.NOTIFY, False: bpf_sim.ALLOW}
            known = {A: bpf_sim.ALLOW, R: bpf_sim.ERRNO | err, L: told[hides], N: told[nets]}
            known[S] = told[signals]
            return known.get(klass, bpf_sim.NOTIFY)
    return bpf_sim.ERRNO | errno.ENOSYS


def corners(tests: list[WhenLike], nr: int) -> list[tuple[int, ...]]:
    """Return arguments around every test: each bit flipped, with and without high halves."""
    dice = random.Random(nr)  # noqa: S311 - repeatable
    out: list[tuple[int, ...]] = [(0,) * 6, (FULL,) * 6]
    mine = [test for test in tests if test.nr == nr]
    values = [test.value for test in mine]
    for test in mine:
        near = [test.value ^ (1 << bit) for bit in range(64)]
        for value in [*values, *near, *(dice.getrandbits(64) for _ in range(8))]:
            for high in (0, 1 << 32, WORD << 32):
                args = [dice.choice([0, 1, *values]) for _ in range(6)]
                args[test.arg] = value ^ high
                out.append(tuple(args))
    return out


def prove(
    rows: list[RowLike],
    tests: list[WhenLike],
    *,
    hides: bool = False,
    nets: bool = False,
    signals: bool = False,
) -> bytes:
    """Build the program and hold its verdicts against the table's."""
    program = build_filter(rows, tests, looks=hides, nets=nets, signals=signals)
    assert len(program) // 8 <= 4096
    numbers = {row.nr for row in rows}
    around = {nr + step for nr in numbers for step in (-1, 1)}
    odd = {0, 999, 0x3FFFFFFF, 0x40000000, 0x40000001, 0x7FFFFFFF, 0xFFFFFFFE, WORD}
    for nr in sorted((numbers | around | odd) - {-1}):
        row, mine = [r for r in rows if r.nr == nr], [test for test in tests if test.nr == nr]
        for args in corners(mine, nr):
            verdict = bpf_sim.run(program, nr, args)
            wanted = expected(row, mine, nr, args, hides=hides, nets=nets, signals=signals)
            assert verdict == wanted, (nr, [hex(a) for a in args])
            foreign = bpf_sim.run(program, nr, args, bpf_sim.AUDIT_ARCH_I386)
            assert foreign == bpf_sim.KILL_PROCESS, nr
    return program


def test_every_class_and_number() -> None:
    """All classes, a fake success, and numbers that libseccomp does not know by name."""
    prove(
        [
            *(Row(nr, A) for nr in range(20)),
            Row(20, R, errno.EPERM),
            Row(21, R, 0),
            Row(22, R, errno.ENOSYS),
            Row(23, B),
            Row(24, V),
            Row(452, B),
            Row(463, R, errno.EPERM),
            Row(600, A),
        ],
        [],
    )


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("nets", [False, True])
@pytest.mark.parametrize("signals", [False, True])
def test_classes_that_policies_wake(hides: bool, nets: bool, signals: bool) -> None:
    """Rows of names, of the network and of signals notify each where its own rules are there."""
    rows: list[RowLike] = [Row(1, L), Row(2, N), Row(3, A), Row(4, N), Row(5, A), Row(6, S)]
    tests: list[WhenLike] = [When(4, 2, 0x20000000, 0x20000000, R, 1), When(5, 4, FULL, 0, N)]
    prove(rows, tests, hides=hides, nets=nets, signals=signals)


def test_signals_without_rules_stay_in_the_kernel() -> None:
    """A policy that says nothing of signals pays nothing for those that do."""
    rows, tests = list(native.rows()), list(native.whens())
    calls = [row.nr for row in rows if row.klass == S]
    if not calls:
        pytest.skip("no Landlock scope bounds signals here")
    assert len(calls) == 6
    for signals, verdict in ((False, bpf_sim.ALLOW), (True, bpf_sim.NOTIFY)):
        program = build_filter(rows, tests, signals=signals)
        assert {bpf_sim.run(program, nr) for nr in calls} == {verdict}
        fcntl = next(row.nr for row in rows if row.name == "fcntl")
        for command in range(20):
            told = signals and command in {8, 15}  # F_SETOWN, F_SETOWN_EX
            wanted = bpf_sim.NOTIFY if told else bpf_sim.ALLOW
            assert bpf_sim.run(program, fcntl, (0, command, 0, 0, 0, 0)) == wanted


def test_argument_tests() -> None:
    """Bits, whole words and whole registers; several values; the rest by the row."""
    prove(
        [Row(1, B), Row(2, A), Row(3, B), Row(4, V), Row(5, A), Row(6, A), Row(7, R, 1)],
        [
            When(1, 2, 0x243, 0, A),
            *(When(2, 1, WORD, value, R, 1) for value in (0x5412, 0x541C, 0x541D)),
            When(2, 1, 0xFFFFFF00, 0x8900, R, 22),
            When(3, 3, 0x1000, 0x1000, A),
            When(4, 4, FULL, 0, A),
            When(5, 0, 0x20000, 0x20000, R, 1),
            When(5, 0, 0x10000000, 0x10000000, R, errno.ENOSYS),
            When(6, 0, 0xFF, 1, R, 0),
            When(6, 1, 0xF, 2, B),
            When(7, 0, WORD, 38, A),
        ],
    )


def test_tests_with_the_rows_own_class() -> None:
    """They take away from later tests, whatever arguments these look at, and cost little."""
    tests: list[WhenLike] = [
        When(1, 1, 12, 12, V),
        When(1, 0, WORD, 0, A),
        When(2, 0, 3, 1, V),
        When(2, 1, 7, 5, A),
        When(2, 2, 7, 2, V),
        When(2, 0, 3, 2, R, 1),
        When(2, 2, 3, 3, A),
    ]
    assert len(prove([Row(1, V), Row(2, V)], tests)) // 8 < 400


def test_high_halves_do_not_matter() -> None:
    """An int argument with garbage above bit 31 is what the kernel takes it for."""
    program = build_filter([Row(16, A)], [When(16, 1, WORD, 0x5412, R, 1)])
    for high in (0, 1, WORD):
        assert bpf_sim.run(program, 16, (0, high << 32 | 0x5412)) == bpf_sim.ERRNO | 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.integers(1, 63),
            st.integers(0, 63),
            st.sampled_from([(A, 0), (B, 0), (R, 1), (R, 0), (R, 38)]),
        ),
        max_size=4,
    ),
    st.sampled_from([(A, 0), (V, 0), (R, 13), (R, 38)]),
)
@settings(max_examples=60, deadline=None)
def test_any_tests(
    cases: list[tuple[int, int, int, tuple[int, int]]], row: tuple[int, int]
) -> None:
    """Overlapping tests in any order: the first that holds decides."""
    tests = [When(9, arg, mask, value & mask, *then) for arg, mask, value, then in cases]
    rows = [Row(9, *row), Row(10, A)]
    program = build_filter(rows, tests)
    for first in range(64):
        for second in (0, 1, 21, 42, 63):
            args = (first, second, 0, 0, 0, 0)
            assert bpf_sim.run(program, 9, args) == expected(rows, tests, 9, args)


@pytest.mark.parametrize("hides", [False, True])
def test_the_real_table(hides: bool) -> None:
    """The table that ships is what its program does, where names are hidden and where not."""
    program = prove(list(native.rows()), list(native.whens()), hides=hides, nets=hides)
    looks = {row.name: row.nr for row in native.rows() if row.klass == L}
    assert {"newfstatat", "statx", "readlinkat", "getdents64"} < looks.keys()
    verdict = bpf_sim.NOTIFY if hides else bpf_sim.ALLOW
    assert {bpf_sim.run(program, nr) for nr in looks.values()} == {verdict}
    assert bpf_sim.run(program, 9999) == bpf_sim.ERRNO | errno.ENOSYS


def test_impossible_tables() -> None:
    """What cannot be meant or said is an error, never another program."""
    with pytest.raises(SupervisorError, match="without a row"):
        build_filter([Row(1, A)], [When(2, 0, 1, 1, R, 1)])
    with pytest.raises(SupervisorError, match="can never hold"):
        build_filter([Row(1, A)], [When(1, 0, 1, 2, R, 1)])
    wide = [When(1, arg, WORD, 1, R, 1) for arg in range(3)]
    with pytest.raises(SupervisorError, match="too intricate"):
        build_filter([Row(1, A)], wide)


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libseccomp the error says what to install."""
    import ctypes.util

    monkeypatch.delitem(sys.modules, "pyseccomp", raising=False)
    found = ctypes.util.find_library
    monkeypatch.setattr(
        ctypes.util, "find_library", lambda name: None if name == "seccomp" else found(name)
    )
    with pytest.raises(EnvironmentFault) as caught:
        build_filter([Row(1, A)], [])
    assert str(caught.value) == bpf.MISSING
    assert caught.value.exit_code == 125
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(EnvironmentFault, match="pip install pyseccomp"):
        build_filter([Row(1, A)], [])
