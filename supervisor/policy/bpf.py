"""The seccomp program, from the rows of the syscall table.

libseccomp writes the program; this file gives it rules that do not overlap, as it
has no "else": a syscall with argument tests is cut into cubes (per argument a mask
and a value), one action each. Tests are tried in the order given and the first that
holds decides; where none holds the row does.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Any, Protocol

from supervisor.errors import EnvironmentFault, SupervisorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLASS_ALLOW, CLASS_BROKER, CLASS_VERIFY, CLASS_REFUSE, CLASS_LOOK, CLASS_NET, CLASS_SIGNAL = range(
    7
)
"""enum sv_class."""
MAX_INSTRUCTIONS = 4096
_MAX_CUBES = 1200
_FULL = (1 << 64) - 1
_OPTIMIZE_TREE = 2
_API_NOTIFY = 5

MISSING = (
    "libseccomp.so.2 is missing: apt-get install libseccomp2 (Debian, Ubuntu) "
    "or dnf install libseccomp (Fedora)"
)


class RowLike(Protocol):
    """A row of the syscall table (struct sv_row)."""

    @property
    def nr(self) -> int:
        """Number of the syscall."""

    @property
    def klass(self) -> int:
        """Enum sv_class."""

    @property
    def err(self) -> int:
        """Errno of a refused call; 0 makes it look like a success."""

    @property
    def name(self) -> str:
        """Name of the syscall."""

    @property
    def note(self) -> str:
        """Why it is treated so."""


class WhenLike(Protocol):
    """An argument test (struct sv_when): ``args[arg] & mask == value`` gives ``klass``."""

    @property
    def nr(self) -> int:
        """Number of the syscall."""

    @property
    def arg(self) -> int:
        """Index of the argument, 0 to 5."""

    @property
    def mask(self) -> int:
        """Bits that are looked at."""

    @property
    def value(self) -> int:
        """What these bits must be."""

    @property
    def klass(self) -> int:
        """Enum sv_class where the test holds."""

    @property
    def err(self) -> int:
        """Errno where ``klass`` refuses."""


Cube = dict[int, tuple[int, int]]
"""Argument index to (mask, value): all of them must hold."""


def build_filter(
    rows: Iterable[RowLike],
    tests: Iterable[WhenLike],
    *,
    looks: bool = False,
    nets: bool = False,
    signals: bool = False,
) -> bytes:
    """Return the seccomp program as struct sock_filter[], 8 bytes an instruction.

    Rows: ALLOW stays in the kernel, BROKER and VERIFY notify, REFUSE fails with its
    errno; LOOK, NET and SIGNAL stay in the kernel, or notify where ``looks``, ``nets`` and
    ``signals`` say so.
    Numbers without a row fail with ENOSYS; a foreign or x32 call kills.

    Raises:
        EnvironmentFault: libseccomp or its binding is missing or too old.
        SupervisorError: A row cannot be said in the program, or it grows too long.
    """
    seccomp = _seccomp()
    try:
        program = seccomp.SyscallFilter(seccomp.ERRNO(errno.ENOSYS))
        program.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    except OSError as error:
        raise EnvironmentFault(f"libseccomp cannot make a filter: {error.strerror}") from error
    with contextlib.suppress(OSError):  # without it: the same program, searched line by line
        program.set_attr(seccomp.Attr.CTL_OPTIMIZE, _OPTIMIZE_TREE)
    by_nr: dict[int, list[WhenLike]] = {}
    for test in tests:
        by_nr.setdefault(test.nr, []).append(test)
    asleep = {CLASS_LOOK: not looks, CLASS_NET: not nets, CLASS_SIGNAL: not signals}
    for row in rows:
        for klass, err, cube in _rules(row, by_nr.pop(row.nr, [])):
            chosen = CLASS_ALLOW if asleep.get(klass) else klass
            _add(seccomp, program, row.nr, _action(seccomp, chosen, err), cube)
    if by_nr:
        raise SupervisorError(f"argument tests for syscalls without a row: {sorted(by_nr)}")
    return _export(program)


def _seccomp() -> Any:  # noqa: ANN401 - an untyped module
    try:
        import pyseccomp
    except ImportError as error:
        raise EnvironmentFault(
            "the Python package pyseccomp is missing: pip install pyseccomp"
        ) from error
    except (RuntimeError, OSError, AttributeError) as error:
        raise EnvironmentFault(MISSING) from error
    try:
        # What the kernel offers is probed elsewhere; here only bytes are made.
        pyseccomp.set_api(_API_NOTIFY)
    except (NotImplementedError, OSError) as error:
        raise EnvironmentFault(
            "libseccomp is too old: 2.5 or later is needed for notifications"
        ) from error
    return pyseccomp


def _rules(row: RowLike, tests: Sequence[WhenLike]) -> list[tuple[int, int, Cube]]:
    """Return disjoint (class, errno, cube) for one syscall."""
    if any((test.klass, test.err) == (row.klass, row.err) for test in tests):
        return _rules_with_own(row, tests)
    out = []
    rest: list[Cube] = [{}]
    for test in tests:
        if test.value & ~test.mask:
            raise SupervisorError(f"argument test of syscall {test.nr} can never hold")
        remaining: list[Cube] = []
        for cube in rest:
            inside, outside = _split(cube, test.arg, test.mask, test.value)
            if inside is not None:
                out.append((test.klass, test.err, inside))
            remaining.extend(outside)
            if len(remaining) > _MAX_CUBES:
                # libseccomp does not survive what cannot fit in a program anyway.
                raise SupervisorError(f"the argument tests of syscall {test.nr} are too intricate")
        rest = remaining
    out.extend((row.klass, row.err, cube) for cube in rest)
    return out


def _rules_with_own(row: RowLike, tests: Sequence[WhenLike]) -> list[tuple[int, int, Cube]]:
    """Do as ``_rules``, where some tests give what the row gives anyway.

    Those only take away from later tests; cutting the rest along them, too, would
    multiply the pieces that tell one value from all others.
    """
    out: list[tuple[int, int, Cube]] = []
    rest: list[Cube] = [{}]
    for i, test in enumerate(tests):
        if (test.klass, test.err) == (row.klass, row.err):
            continue
        held: list[Cube] = [{test.arg: (test.mask, test.value)}]
        for earlier in tests[:i]:
            parts = (_split(cube, earlier.arg, earlier.mask, earlier.value) for cube in held)
            held = [cube for _, outside in parts for cube in outside]
        out.extend((test.klass, test.err, cube) for cube in held)
        for cube in held:
            rest = [piece for whole in rest for piece in _minus(whole, cube)]
    out.extend((row.klass, row.err, cube) for cube in rest)
    return out


def _minus(whole: Cube, taken: Cube) -> list[Cube]:
    """Return disjoint cubes: what of ``whole`` is not in ``taken``."""
    out: list[Cube] = []
    inside: Cube | None = whole
    for arg, (mask, value) in sorted(taken.items()):
        if inside is None:
            return [whole]
        inside, outside = _split(inside, arg, mask, value)
        out.extend(outside)
    return out if inside is not None else [whole]


def _split(cube: Cube, arg: int, mask: int, value: int) -> tuple[Cube | None, list[Cube]]:
    """Cut a cube along one test: the part where it holds, and the disjoint rest."""
    known_mask, known = cube.get(arg, (0, 0))
    if (known ^ value) & known_mask & mask:
        return None, [cube]
    outside = []
    fixed_mask, fixed = known_mask, known
    for bit in (1 << i for i in range(63, -1, -1)):
        if bit & mask & ~known_mask:
            outside.append({**cube, arg: (fixed_mask | bit, fixed | (bit & ~value))})
            fixed_mask |= bit
            fixed |= bit & value
    return {**cube, arg: (fixed_mask, fixed)}, outside


def _action(seccomp: Any, klass: int, err: int) -> int:  # noqa: ANN401
    if klass == CLASS_ALLOW:
        return int(seccomp.ALLOW)
    if klass == CLASS_REFUSE:
        return int(seccomp.ERRNO(err))
    return int(seccomp.NOTIFY)


def _add(seccomp: Any, program: Any, nr: int, action: int, cube: Cube) -> None:  # noqa: ANN401
    if action == seccomp.ERRNO(errno.ENOSYS):
        return  # the default already; libseccomp refuses to be told
    args = [
        seccomp.Arg(arg, seccomp.MASKED_EQ, mask, value)
        for arg, (mask, value) in sorted(cube.items())
        if mask
    ]
    try:
        program.add_rule_exactly(action, nr, *args)
    except OSError as error:
        raise SupervisorError(f"libseccomp refuses syscall {nr}: {error.strerror}") from error


def _export(program: Any) -> bytes:  # noqa: ANN401
    fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    with os.fdopen(fd, "w+b") as stream:
        try:
            program.export_bpf(stream)
        except OSError as error:
            raise SupervisorError(f"libseccomp cannot export: {error.strerror}") from error
        stream.seek(0)
        code: bytes = stream.read()
    if not code or len(code) % 8 or len(code) // 8 > MAX_INSTRUCTIONS:
        raise SupervisorError(f"the seccomp program has {len(code) // 8} instructions")
    return code
