"""What the escape tests share: the built programs, the tree they attack, the policy."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# ${root} is put in by --set: tree names may hold characters that mean something in YAML.
POLICY = """\
version: 1
name: escape
files:
  - {id: system, allow: [read, exec], paths: [/usr/**, /lib/**, /lib32/**, /lib64/**, /libx32/**,
                                              /bin/**, /sbin/**, /etc/**]}
  - {id: kernel, allow: read, paths: [/proc/**]}
  - {id: devices, allow: [read, write], paths: [/dev/null, /dev/ptmx, "/dev/pts/*", /dev/tty]}
  - {id: work, allow: all, paths: ["${root}/area_a/**"]}
  - {id: programs, allow: [read, exec], paths: ["${root}/bin/**"]}
  - {id: readonly, allow: read, paths: ["${root}/readonly/**"]}
  - {id: secret, deny: all, paths: ["${root}/area_b/**", "${root}/area_a/in_b/**",
                                    "${root}/area_a/nest/deep/secret/**"]}
exec:
  - {id: forbidden, deny: forbidden}
  - {id: tool-bad, deny: tool, argv: ["bad"]}
"""


@dataclass(frozen=True, slots=True)
class Tree:
    """One fresh tree: what may be reached, what may not, and the way in.

    Attributes:
        root: absolute path; area_a is writable, area_b secret, readonly and bin as named.
        policy: the policy file that says so.
    """

    root: Path
    policy: Path

    def marks(self) -> dict[str, bytes | int]:
        """The protected state, read from outside: every file's content, mode and attributes."""
        found: dict[str, bytes | int] = {}
        for top in ("area_b", "readonly", "area_a/in_b", "area_a/nest/deep/secret"):
            for path in sorted((self.root / top).rglob("*")):
                name = str(path.relative_to(self.root))
                found[name] = path.read_bytes() if path.is_file() else b"(folder)"
                found[name + " mode"] = path.lstat().st_mode
                found[name + " attributes"] = "\n".join(os.listxattr(path)).encode()
        return found


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every program of this folder, built by gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is needed to build the attack programs")
    out = tmp_path_factory.mktemp("programs")
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    attacks = sorted(HERE.glob("attacks*.c"))
    jobs: dict[str, list[Path]] = {
        source.stem: [source] for source in HERE.glob("*.c") if source not in attacks
    }
    jobs["attacks"] = attacks
    for name, sources in jobs.items():
        subprocess.run(
            [gcc, *flags, "-o", str(out / name), *map(str, sources)], check=True, timeout=120
        )
    # One letter apart, so that a flipped path is never a mixture of both.
    shutil.copy(out / "target", out / "forbidder")
    shutil.copy(out / "target", out / "tool")
    only = ["-DFORBIDDEN=1", "-o", str(out / "forbidden"), str(HERE / "target.c")]
    subprocess.run([gcc, *flags, *only], check=True, timeout=120)
    return out


@pytest.fixture
def tree(tmp_path: Path, programs: Path) -> Iterator[Tree]:
    """A tree with allowed, read-only and secret parts, and its policy.

    It has the same name in every test, so that the policy is compiled once.
    """
    root = programs.with_name("tree")
    for folder in (
        "area_a/good",
        "area_a/in_a",
        "area_a/in_b",
        "area_a/nest/deep/secret",
        "area_a/area_b",
        "area_b/sub",
        "readonly",
    ):
        (root / folder).mkdir(parents=True)
    for name in ("area_a/data", "area_a/good/data", "area_a/in_a/data", "area_a/area_b/data"):
        (root / name).write_text("ALLOWED\n")
    for name in (
        "area_b/data",
        "area_b/victim",
        "area_b/sub/data",
        "area_a/in_b/data",
        "area_a/nest/deep/secret/data",
    ):
        (root / name).write_text("FORBIDDEN\n")
    (root / "readonly/file").write_text("A\n")
    shutil.copytree(programs, root / "bin")
    policy = programs.with_name("policy.yaml")
    digest = hashlib.sha256((root / "bin/forbidder").read_bytes()).hexdigest()
    policy.write_text(f'{POLICY}  - {{id: pinned, allow: pinned, sha256: "{digest}"}}\n')
    yield Tree(root, policy)
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        root.rename(tmp_path / "tree")


@pytest.fixture(scope="session")
def supervise() -> Callable[[Tree], list[str]]:
    """The words that run a command under a tree's policy; skips where it cannot work."""
    base = [sys.executable, "-m", "supervisor"]
    found = subprocess.run(
        [*base, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    if found.returncode != 0:
        why = f"python -m supervisor does not run: {found.stderr.strip()[-300:]}"
        if os.environ.get("SUPERVISE_MUST_WORK") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return lambda tree: [*base, "-p", str(tree.policy), "--set", f"root={tree.root}", "--"]
