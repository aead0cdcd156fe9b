"""Runs commands below supervise: what the live tests import by name."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyseccomp

COMMAND = [sys.executable, "-m", "supervisor"]

# Everything below ${root}, and what programs need of the machine.
POLICY = """\
version: 1
name: live
files:
  - {id: system, allow: [read, exec], paths: [/usr/**, /lib/**, /lib32/**, /lib64/**, /libx32/**,
                                              /bin/**, /sbin/**, /etc/**]}
  - {id: kernel, allow: read, paths: [/proc/**]}
  - {id: devices, allow: [read, write], paths: [/dev/null, /dev/zero, /dev/ptmx, "/dev/pts/*",
                                               /dev/tty]}
  - {id: streams, allow: read, paths: [/dev/fd, /dev/stdin, /dev/stdout, /dev/stderr, /]}
  - {id: work, allow: all, paths: ["${root}/**"]}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """How a supervised command ended.

    Attributes:
        code: exit code of supervise.
        out: stdout, bytes.
        err: stderr, bytes.
        events: records of the audit log, start and end included.
    """

    code: int
    out: bytes
    err: bytes
    events: tuple[dict[str, Any], ...]

    def lines(self) -> list[str]:
        """Stdout as lines of text."""
        return self.out.decode("utf-8", "surrogateescape").splitlines()

    def denied(self) -> list[tuple[str, str]]:
        """Call and path of every denial."""
        return [
            (event["action"].get("call", ""), event["action"].get("path", ""))
            for event in self.events
            if event["decision"] == "deny"
        ]


@dataclass(frozen=True, slots=True)
class Supervised:
    """Runs commands under a policy; call it.

    Attributes:
        root: the private workspace, which the default policy allows.
        home: a home folder without anything but our cache; logs lie below it, too.
    """

    root: Path
    home: Path

    def environ(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        """A login's environment with a home of its own."""
        path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        base = {"PATH": path, "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        return {**base, **(extra or {})}

    def words(self, policy: str | None = None, *options: str) -> list[str]:
        """Our own part of the command line, ``--`` included.

        Args:
            policy: text of a policy (default: the one above), or ``pack:NAME``.
            options: further options.
        """
        if policy is not None and policy.startswith("pack:"):
            chosen = ["-p", policy.removeprefix("pack:")]
        else:
            text = POLICY if policy is None else policy
            # One file each, as a compiled policy is kept by the names of its sources.
            file = self.home / hashlib.sha256(text.encode()).hexdigest()[:12] / "policy.yaml"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            chosen = ["-p", str(file)]
            if "${root}" in text:
                chosen += ["--set", f"root={self.root}"]
        return [*COMMAND, *chosen, *options, "--"]

    def __call__(
        self,
        argv: Sequence[str | Path],
        policy: str | None = None,
        *options: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 60,
    ) -> Result:
        """Run a command to its end.

        Args:
            argv: the command.
            policy: see words.
            options: further options of ours.
            cwd: where to start; the workspace.
            env: changes to the environment.
            stdin: what it reads.
            timeout: seconds until the test fails.
        """
        # One name for all runs: it is part of the policy, which is then compiled once.
        log = self.home / "audit.log"
        words = self.words(policy, "--audit", str(log), *options)
        done = subprocess.run(
            [*words, *map(str, argv)],
            cwd=cwd or self.root,
            env=self.environ(env),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        events: list[dict[str, Any]] = []
        if log.exists():
            events = [json.loads(line) for line in log.read_text().splitlines()]
            log.rename(self.home / f"audit-{len(list(self.home.glob('audit-*')))}.log")
        return Result(done.returncode, done.stdout, done.stderr, tuple(events))

    def natively(
        self, argv: Sequence[str | Path], *, cwd: Path | None = None, timeout: float = 60
    ) -> Result:
        """Run the same command without us."""
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=cwd or self.root,
            env=self.environ(),
            input=b"",
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr, ())


def reachable(path: Path) -> None:
    """Let another user walk down to a path."""
    for parent in [path, *path.parents]:
        if str(parent) not in ("/", "/tmp") and parent.stat().st_uid == os.geteuid():
            parent.chmod(parent.stat().st_mode | 0o011)


def twins(
    supervised: Supervised, table: Path, uid: int | None = None, policy: str | None = None
) -> list[tuple[str, str]]:
    """What a table prints natively and supervised, line by line.

    Args:
        supervised: runs it.
        table: a program that takes the empty folder to work in.
        uid: the user that it is run as (default: ours).
        policy: as for Supervised.
    """
    around: list[str | Path] = []
    if uid is not None:
        reachable(supervised.root)
        around = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
    found = []
    for name in ("native", "supervised"):
        folder = supervised.root / name
        folder.mkdir()
        if uid is not None:
            os.chown(folder, uid, uid)
        words = [*around, table, folder]
        native = name == "native"
        done = supervised.natively(words) if native else supervised(words, policy, "-q")
        assert done.code == 0, done.err
        found.append(done.lines())
    return list(zip(*found, strict=True))


def differing(pairs: list[tuple[str, str]]) -> list[str]:
    """The pairs that are not equal, for a failed assertion."""
    return [f"natively   {a}\nsupervised {b}" for a, b in pairs if a != b]


def without(call: str) -> list[str]:
    """The beginning of a command that runs below a profile which refuses a call with EPERM.

    Args:
        call: its name.
    """
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, call)
    code = f"""\
import os, struct, ctypes, sys
# load the number; this one gives EPERM, all else goes on
words = [(0x20, 0, 0, 0), (0x15, 0, 1, {number}), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *w) for w in words))
class Prog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
prog = Prog(len(words), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(prog)) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
    return ["/usr/bin/python3", "-ISc", code]
