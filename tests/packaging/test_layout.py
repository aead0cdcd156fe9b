"""The house rules that a program can check: sizes, directions, who prints."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lizard
import pytest

ROOT = Path(__file__).parent.parent.parent
NATIVE = ROOT / "native"
PACKAGE = ROOT / "supervisor"
FILE_LINES = 400
FUNCTION_LINES = 50
COMPLEXITY = 15

C_FILES = sorted([*NATIVE.rglob("*.c"), *NATIVE.rglob("*.h")])
PY_FILES = sorted(PACKAGE.rglob("*.py"))

# What the folders and the top files of native/ include besides their own: whole folders
# and single headers. policy/ and match/ stand on one level: the loaded policy holds a trie,
# and decisions read the loaded policy; headers make no circle, which is tested below.
TOP = {"model.h", "supervise.h"}
INCLUDES = {
    "supervise.h": set(),
    "model.h": {"supervise.h"},
    "base": TOP,
    "policy": {*TOP, "base", "match/argv.h", "match/cidr.h", "match/glob.h", "match/trie.h"},
    "match": {*TOP, "base", "policy/blob.h"},
    "event": {*TOP, "base"},
    "filter": {*TOP, "base"},
    "ipc": TOP,
    "life": {*TOP, "base", "ipc"},
    "syscalls": {*TOP, "facility.h"},  # the numbers of facilities
    "decode": {*TOP, "base", "syscalls/table.h"},
    "effect": {*TOP, "base", "decode/tracee.h"},
    "broker": {*TOP, "base", "decode", "effect", "event", "ipc", "match", "policy", "syscalls"},
    "notify": {*TOP, "base", "broker", "decode/realids.h", "effect"},
    "facility.h": TOP,
    "facility.c": {*TOP, "base", "facility.h", "filter"},
    "session.c": {*TOP, "base", "effect", "facility.h", "filter", "ipc", "life", "notify"},
}
# supervisor/X may not import supervisor/Y.
MAY_NOT_IMPORT = {
    "policy": {"run", "audit", "cli"},
    "audit": {"cli"},
    "run": {"cli"},
}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_there_is_something_to_check() -> None:
    """An empty list of files would let every test below pass."""
    assert C_FILES
    assert PY_FILES


@pytest.mark.parametrize("path", C_FILES, ids=_name)
def test_c_files_stay_short(path: Path) -> None:
    """No C file is longer than 400 lines."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_LINES


@pytest.mark.parametrize("path", [*C_FILES, *PY_FILES], ids=_name)
def test_functions_stay_small(path: Path) -> None:
    """No function is longer than 50 lines or has a complexity above 15."""
    found = [
        f"{f.name}: {f.length} lines, complexity {f.cyclomatic_complexity}"
        for f in lizard.analyze_file(str(path)).function_list
        if f.length > FUNCTION_LINES or f.cyclomatic_complexity > COMPLEXITY
    ]
    assert not found


def _included(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE))


def _refused(unit: str, included: set[str]) -> set[str]:
    """Return what a folder or top file of native/ includes and may not."""
    allowed = INCLUDES[unit] | {unit}
    return {name for name in included if not {name, name.partition("/")[0]} & allowed}


@pytest.mark.parametrize("path", C_FILES, ids=_name)
def test_includes_point_one_way(path: Path) -> None:
    """A part of native/ includes what the table above says and nothing else."""
    included = _included(path)
    assert "Python.h" not in path.read_text(encoding="utf-8")
    for name in included:
        assert (NATIVE / name).is_file(), f"{name} is not written relative to native/"
    assert not _refused(path.relative_to(NATIVE).parts[0], included)


def test_the_include_table_can_refuse() -> None:
    """A header of the wrong folder, or the wrong header of the right one, is refused."""
    wrong = {"policy/load.h", "broker/work.h", "model.hpp"}
    assert _refused("match", {*wrong, "policy/blob.h", "base/err.h", "match/glob.h"}) == wrong


def test_the_include_table_is_the_tree() -> None:
    """Every part of native/ has its line, and a line names what exists."""
    parts = {path.relative_to(NATIVE).parts[0] for path in C_FILES}
    assert parts == set(INCLUDES)
    assert all((NATIVE / name).exists() for names in INCLUDES.values() for name in names)


def test_includes_make_no_circle() -> None:
    """No header needs itself through others."""
    needs: dict[str, set[str]] = {}
    for path in NATIVE.rglob("*.h"):
        needs[str(path.relative_to(NATIVE))] = _included(path)
    while free := {unit for unit, others in needs.items() if not others & needs.keys()}:
        needs = {unit: others - free for unit, others in needs.items() if unit not in free}
    while free := needs.keys() - {other for others in needs.values() for other in others}:
        needs = {unit: others for unit, others in needs.items() if unit not in free}
    assert not needs


@pytest.mark.parametrize("folder", ["policy", "match"])
def test_matching_needs_no_kernel(folder: str) -> None:
    """policy/ and match/ include nothing that makes system calls or takes locks."""
    for path in (NATIVE / folder).glob("*.[ch]"):
        text = path.read_text(encoding="utf-8")
        bad = re.findall(
            r"#\s*include\s+<(sys/(?!types)[^>]+|unistd\.h|pthread\.h|fcntl\.h)>", text
        )
        assert not bad, f"{_name(path)}: {bad}"


@pytest.mark.parametrize("path", PY_FILES, ids=_name)
def test_imports_point_one_way(path: Path) -> None:
    """policy, audit and run do not import what stands above them."""
    part = path.relative_to(PACKAGE).parts[0]
    banned = {f"supervisor.{name}" for name in MAY_NOT_IMPORT.get(part, set())}
    found = {name for name in _imports(path) if ".".join(name.split(".")[:2]) in banned}
    assert not found


@pytest.mark.parametrize("path", PY_FILES, ids=_name)
def test_only_native_knows_the_binding(path: Path) -> None:
    """Nothing outside native.py (and the builder) says ffi or lib."""
    if path.name in {"native.py", "_build_ffi.py"} and path.parent == PACKAGE:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"ffi", "lib"}
    assert not {name for name in _imports(path) if "_native" in name}


@pytest.mark.parametrize("path", PY_FILES, ids=_name)
def test_only_the_command_line_prints(path: Path) -> None:
    """print() and the standard streams are used in cli/ alone."""
    if "cli" in path.relative_to(PACKAGE).parts or path.name == "_build_ffi.py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", node.lineno
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in {("sys", "stdout"), ("sys", "stderr")}


@pytest.mark.parametrize("path", PY_FILES, ids=_name)
def test_importing_does_no_work(path: Path) -> None:
    """A module's top level defines; it opens, starts and loops over nothing."""
    banned = {"open", "print", "exec", "eval", "run", "Popen", "system", "read_text", "connect"}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            continue
        assert not isinstance(statement, ast.While | ast.With | ast.For), statement.lineno
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                assert name not in banned, f"line {node.lineno}: {name}()"
