"""CPython's own tests, natively and supervised: the same outcome, test by test.

Python's suite is a large program of others' making that asks the kernel for nearly
everything. What may differ stands in DIFFERENCES with its reason, exactly: another
difference fails, and so does one that is gone.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from live_world import Supervised

# The system's Python: its tests come as a package (Debian: libpython3.11-testsuite).
PYTHON = "/usr/bin/python3"

POLICY = """\
version: 1
name: stdlib
files:
  - {id: see, allow: [read, exec], paths: ["/**"]}
  - {id: devices, allow: [write, metadata],
     paths: [/dev/null, /dev/zero, /dev/full, /dev/tty, /dev/ptmx, "/dev/pts/*"]}
  - {id: work, allow: all, paths: ["${root}/**"]}
  - {id: semaphores, allow: all, paths: ["/dev/shm/sem.*"]}
network:
  - {id: here, allow: [connect, bind], to: ["127.0.0.0/8", "[::1]", "unix:@*"]}
  - {id: every, allow: bind, to: ["0.0.0.0", "[::]"]}
"""

FILES = [
    "fileio",
    "glob",
    "import",
    "mmap",
    "os",
    "pathlib",
    "shutil",
    "stat",
    "tarfile",
    "tempfile",
]
PROCESSES = ["fcntl", "posix", "pty", "resource", "runpy", "signal", "subprocess"]
NETWORK = ["ftplib", "httplib", "selectors", "socket", "ssl"]
SERVERS = ["asyncio", "socketserver"]

# These take two minutes, and rights play no part in them: not as root, too.
ABOUT_SOCKETS = [(NETWORK, 800), (SERVERS, 2000)]
GROUPS = [(FILES, 1000), (PROCESSES, 350), *(ABOUT_SOCKETS if os.geteuid() else [])]

# What mostly sleeps, or computes: seconds that say nothing about us.
SLOW = [
    "ItimerTest",
    "*.PendingSignalsTests.test_sigtimedwait*",
    "*.POSIXProcessTestCase.test_*_dead",
    "*.test_check_output_timeout",
    "*.test_communicate_repeated_call_after_stdout_close",
    "SiginterruptTest",
    "StressTest",
    "test.test_signal.GenericTests.test_functions_module_attr",
    "*.test_tarfile.*Gzip*",
    "*.test_tarfile.*Bz2*",
    "*.test_tarfile.*Lzma*",
    "ProcessTestCaseNoPoll",
    # It hangs natively where the machine has vsock without a peer.
    "*VSOCK*",
]

XATTR = "attributes of the trusted space, which the suite tries first, are refused"

HOST_NAME = "the machine's name is not a program's to change, root's either"

DIFFERENCES = {
    "test.test_socket.GeneralModuleTests.test_sethostname": ("skipped", HOST_NAME),
    **{
        f"test.test_shutil.TestCopy.{name}": ("skipped", XATTR)
        for name in ("test_copy2_xattr", "test_copyxattr", "test_copyxattr_symlinks")
    },
}


def installed() -> bool:
    """Is the package with Python's own tests there?"""
    command = [PYTHON, "-c", "import test.test_os"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not installed(), reason="libpython3.11-testsuite is not installed")


def command(place: Path, modules: list[str]) -> list[str | Path]:
    """Python's test runner with everything it writes below one folder."""
    (place / "tmp").mkdir(parents=True)
    left_out = [word for pattern in SLOW for word in ("-i", pattern)]
    return [
        "env", f"TMPDIR={place}/tmp", f"HOME={place}", PYTHON, "-m", "test",
        *(["-u", "network"] if modules == SERVERS else []),  # where it means this machine only
        "--tempdir", place / "tmp", "--junit-xml", place / "result.xml", *left_out,
        *(f"test_{module}" for module in modules),
    ]  # fmt: skip


def outcomes(place: Path) -> dict[str, str]:
    """How each test ended: passed, skipped, failure or error."""
    found = {}
    for case in ET.parse(place / "result.xml").iter("testcase"):  # noqa: S314 - of our own making
        bad = [kind for kind in ("error", "failure", "skipped") if case.find(kind) is not None]
        found[case.attrib["name"]] = bad[0] if bad else "passed"
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("modules", "at_least"), GROUPS)
def test_the_same_outcomes(supervised: Supervised, modules: list[str], at_least: int) -> None:
    """Every test of Python's ends as it does natively, but for those listed above."""
    places = supervised.home / "native", supervised.root / "inside"  # as long
    with ThreadPoolExecutor(1) as pool:
        native_run = pool.submit(supervised.natively, command(places[0], modules), timeout=280)
        our_run = supervised(command(places[1], modules), POLICY, "-q", timeout=280)
        said = native_run.result().out[-2000:], our_run.out[-2000:]
    native, ours = outcomes(places[0]), outcomes(places[1])
    assert Counter(native.values())["passed"] >= at_least, said
    wrong = []
    for name in sorted(native.keys() | ours.keys()):
        expected = native.get(name, "missing")
        if expected == "passed":
            expected = DIFFERENCES.get(name, (expected, ""))[0]
        if ours.get(name, "missing") != expected:
            wrong.append(f"{name}: {expected} expected, {ours.get(name, 'missing')}")
    assert not wrong, "\n".join([*wrong, said[1].decode("utf-8", "replace")])


def test_the_list_names_tests(supervised: Supervised) -> None:
    """Each listed difference is a test that the installed suite has."""
    modules = sorted({name.split(".")[1] for name in DIFFERENCES})
    listed = supervised.natively([PYTHON, "-m", "test", "--list-cases", *modules])
    assert DIFFERENCES.keys() <= set(listed.lines())
