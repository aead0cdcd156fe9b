"""The table knows every call of this kernel, and what it does not know is refused."""

from __future__ import annotations

import errno
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from errno import ENOSYS
from pathlib import Path

import pyseccomp
import pytest
from live_world import POLICY, Supervised
from privilege import filtered

from supervisor import native

Put = Callable[..., Path]
ALLOW, BROKER, VERIFY, _, LOOK, NET = range(6)
# What the kernel calls a function, where the call has another name.
KERNEL_NAMES = {
    "newfstat": "fstat",
    "newlstat": "lstat",
    "newstat": "stat",
    "newuname": "uname",
    "sendfile64": "sendfile",
    "umount": "umount2",
    "sysctl": "_sysctl",
}
# Compiled into the kernel, but no number of ours leads there: the 32-bit gate's, 16-bit ids,
# 32-bit times, and calls of other architectures.
OTHER_GATES = re.compile(r"ia32_\w+|old_?\w+|\w+(16|_time32)|\w*(time|adj|get|set)\w*32")
NO_NUMBER = {
    *("fadvise64_64", "fstatfs64", "gethostname", "llseek", "mmap_pgoff", "ni_syscall", "nice"),
    *("recv", "send", "sgetmask", "signal", "sigpending", "sigprocmask", "sigsuspend"),
    *("socketcall", "ssetmask", "statfs64", "stime", "sync_file_range2", "waitpid"),
    *("fadvise64", "truncate64", "ftruncate64", "ipc", "sigaction", "sigreturn", "fcntl64"),
}


@pytest.fixture(scope="module")
def rows() -> dict[str, int]:
    """Names and numbers of the table."""
    return {row.name: row.nr for row in native.rows()}


def kernel_functions() -> Iterator[str]:
    """Names of the functions that this kernel has for 64-bit calls."""
    for line in Path("/proc/kallsyms").read_text().splitlines():
        found = re.fullmatch(r"\S+ [Tt] __x64_sys_(\w+)(\t.*)?", line)
        if found:
            yield found[1]


def test_every_function_of_the_kernel_has_a_row(rows: dict[str, int]) -> None:
    """A kernel with a new call makes this fail, so that it gets a considered row."""
    names = {KERNEL_NAMES.get(name, name) for name in kernel_functions()}
    assert len(names) > 300
    missing = names - rows.keys() - NO_NUMBER
    assert {name for name in missing if not OTHER_GATES.fullmatch(name)} == set()


def test_every_number_of_the_headers_has_a_row(rows: dict[str, int]) -> None:
    """The installed <asm/unistd_64.h> and the table agree on names and numbers."""
    done = subprocess.run(
        ["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(re.findall(r"#define __NR_(\w+) (\d+)", done.stdout))
    assert len(found) > 300
    assert {name: int(nr) for name, nr in found.items() if rows.get(name) != int(nr)} == {}


def test_every_number_of_libseccomp_has_a_row(rows: dict[str, int]) -> None:
    """What libseccomp can name, the table knows under the same number."""
    strange = {}
    for nr in range(601):
        try:
            name = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, nr)
        except (ValueError, OSError):
            continue
        text = name.decode() if isinstance(name, bytes) else str(name)
        if rows.get(text) != nr:
            strange[nr] = text
    assert strange == {}


def test_no_number_stands_twice(rows: dict[str, int]) -> None:
    """One row per number."""
    assert len(set(rows.values())) == len(list(native.rows()))


def test_unknown_numbers_are_enosys(
    supervised: Supervised, program: Put, rows: dict[str, int]
) -> None:
    """Gaps, what comes after the last known call, and odd numbers do not exist."""
    known = set(rows.values())
    unknown = [n for n in range(601) if n not in known] + [1000, 4096, 65535, 1 << 20, 1 << 29]
    done = supervised([program("numbers"), *map(str, unknown)], None, "-q")
    assert done.lines() == [f"{n} ENOSYS" for n in unknown]


def test_every_refusal_of_the_table(supervised: Supervised, program: Put) -> None:
    """What a row refuses fails with its errno; the ones that are told are on record with why."""
    # These two pass by every filter since Linux 6.12: they are of use to the kernel's own probes.
    rows = [row for row in native.rows() if row.name not in ("uretprobe", "uprobe")]
    refused = {row.nr: row for row in rows if row.err and row.klass >= VERIFY}
    assert len(refused) > 60
    done = supervised([program("numbers"), *map(str, refused)], None, "-q")
    found = {int(nr): getattr(errno, name) for nr, name in map(str.split, done.lines())}
    # A container's filter answers first: with ENOSYS what is younger than its profile.
    young = [nr for nr, err in found.items() if filtered() and err == ENOSYS != refused[nr].err]
    assert len(young) < 10
    assert {**found, **{nr: refused[nr].err for nr in young}} == {
        nr: row.err for nr, row in refused.items()
    }
    told = {e["action"]["call"]: e["action"]["detail"] for e in done.events if e["type"] == "fault"}
    notes = {row.name: row.note for row in refused.values() if row.klass == VERIFY}
    assert len(told) > 10
    assert told.items() <= notes.items() if filtered() else told == notes


# With arguments that are all -1 these wait, end or change the program that asks.
NOT_ASKED = {
    *("exit", "exit_group", "fork", "vfork", "clone", "pause", "rt_sigreturn", "rt_sigsuspend"),
    *("restart_syscall", "sync", "alarm"),
    # Natively it asks for no_new_privs first, which is set here.
    "landlock_restrict_self",
    # These three make what nobody would remove.
    *("shmget", "semget", "msgget"),
}
# The filter's tests of single bits come before the kernel's, of MSG_FASTOPEN and new namespaces.
WITH_NETWORK = POLICY + 'network: [{allow: [connect, bind], to: ["127.0.0.0/8"]}]\n'
BITS_FIRST = {**dict.fromkeys(("sendto", "sendmsg", "sendmmsg"), "EOPNOTSUPP"), "unshare": "EPERM"}


@pytest.mark.parametrize("policy", [None, WITH_NETWORK], ids=["plain", "network"])
def test_every_other_row_of_the_table(
    supervised: Supervised, program: Put, policy: str | None
) -> None:
    """What the kernel does, or we for it, answers senseless arguments as natively."""
    wanted = (ALLOW, BROKER, LOOK, NET)
    rows = [row for row in native.rows() if row.klass in wanted and row.name not in NOT_ASKED]
    assert len(rows) > 250
    words: list[str | Path] = [program("numbers"), *(str(row.nr) for row in rows)]
    names = {str(row.nr): row.name for row in rows}
    native_lines, lines = (
        supervised.natively(words).lines(),
        supervised(words, policy, "-q").lines(),
    )
    expected, seen = (dict(map(str.split, said)) for said in (native_lines, lines))
    assert len(expected) == len(rows)
    unlike = {names[nr]: seen.get(nr) for nr in expected if seen.get(nr) != expected[nr]}
    assert unlike == BITS_FIRST


@pytest.mark.parametrize(
    "command", [["unshare", "-Ur", "true"], ["unshare", "--net", "true"], ["chroot", ".", "/x"]]
)
def test_sandboxes_inside_get_a_sentence(supervised: Supervised, command: list[str]) -> None:
    """A program that makes its own sandbox fails, and its user reads why."""
    done = supervised(command)
    assert done.code != 0
    assert b"would change" in done.err


@pytest.mark.parametrize("gate", ["int80", "x32"])
def test_foreign_gates_kill(supervised: Supervised, program: Put, gate: str) -> None:
    """Calls of another architecture end the program."""
    done = supervised([program("numbers"), gate], None, "-q")
    assert done.code == 128 + signal.SIGSYS
