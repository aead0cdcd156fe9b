"""Builds ``supervisor._native`` with cffi; the cdef is cut out of native/supervise.h.

setuptools calls :func:`ffibuilder`
(``cffi_modules=["supervisor/_build_ffi.py:ffibuilder"]``) from the project's root.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

from cffi import FFI

_ROOT = Path(__file__).resolve().parent.parent
_BEGIN, _END = "/* cffi: begin */", "/* cffi: end */"
_FLAGS = ["-std=gnu11", "-O2", "-fvisibility=hidden", "-pthread", "-D_GNU_SOURCE"]
# Commands of setuptools that call us but compile nothing.
_NO_COMPILER = {"sdist", "egg_info", "dist_info", "clean", "--version", "--name"}


def cdef(header: str) -> str:
    """Cut the declarations for cffi out of the boundary header.

    Args:
        header: text of native/supervise.h.

    Raises:
        SystemExit: the two markers are not there, once each and in order.
    """
    before, begin, rest = header.partition(_BEGIN)
    body, end, after = rest.partition(_END)
    if not begin or not end or _BEGIN in rest or _END in before + after:
        raise SystemExit("native/supervise.h: the two cffi markers must stand in it once, in order")
    return body


def sources(native: Path, machine: str) -> list[str]:
    """List the C files to compile, sorted, as paths relative to the project's root.

    Args:
        native: the folder native/.
        machine: CPU architecture as ``uname -m`` prints it; files called
            ``arch_*.c`` of any other one are left out.
    """
    ours = f"arch_{machine}.c"
    found = [
        path
        for path in native.rglob("*.c")
        if not path.name.startswith("arch_") or path.name == ours
    ]
    return sorted(os.path.relpath(path, native.parent) for path in found)


def missing_tool() -> str:
    """Say in one sentence what a build would miss; empty when nothing is missing."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    compiler = (shlex.split(command) or ["cc"])[0]
    if shutil.which(compiler) is None:
        return (
            f"supervise needs a C compiler to build and {compiler!r} was not found: install one "
            "(Debian, Ubuntu: gcc and libc6-dev; Fedora: gcc) or name one in CC"
        )
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        return (
            "supervise needs the C headers of Python to build and Python.h was not found: install "
            "them (Debian, Ubuntu: python3-dev; Fedora: python3-devel)"
        )
    return ""


def ffibuilder() -> FFI:
    """Describe the extension module to cffi.

    Raises:
        SystemExit: the C compiler or the headers of Python are missing.
    """
    if not _NO_COMPILER.intersection(sys.argv[1:]) and (problem := missing_tool()):
        raise SystemExit(problem)
    native = _ROOT / "native"
    ffi = FFI()
    ffi.cdef(cdef((native / "supervise.h").read_text(encoding="utf-8")))
    depends = [*native.rglob("*.h"), *native.rglob("*.def")]
    ffi.set_source(
        "supervisor._native",
        '#include "supervise.h"\n',
        sources=sources(native, platform.machine()),
        include_dirs=[os.path.relpath(native, _ROOT)],
        depends=sorted(os.path.relpath(path, _ROOT) for path in depends),
        extra_compile_args=_FLAGS,
        extra_link_args=["-pthread"],
        py_limited_api=True,
        define_macros=[("Py_LIMITED_API", "0x030b0000")],
    )
    return ffi
