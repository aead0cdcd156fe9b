"""``supervise doctor``: what this machine offers, what it buys, what to do."""

from __future__ import annotations

import os
import sys

from supervisor import __version__
from supervisor.audit.folder import state_folder
from supervisor.cli.output import out, out_json, table
from supervisor.errors import SupervisorError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


class Finding:
    """One line of the report."""

    __slots__ = ("buys", "detail", "name", "needed", "ok")

    def __init__(self, name: str, buys: str, detail: str, *, ok: bool, needed: bool) -> None:
        """Hold what was looked at, whether it is there and what it is good for."""
        self.name = name
        self.ok = ok
        self.needed = needed
        self.buys = buys
        self.detail = detail


def doctor(args: argparse.Namespace) -> int:
    """Print what was found.

    Args:
        args: parsed command line.

    Returns:
        0, or 1 where something is missing that a run cannot do without.
    """
    findings = examine()
    missing = [found for found in findings if found.needed and not found.ok]
    system = os.uname()
    machine = {
        "version": __version__,
        "kernel": system.release,
        "arch": system.machine,
        "python": sys.version.split()[0],
    }
    if args.json:
        rows = [{key: getattr(found, key) for key in Finding.__slots__} for found in findings]
        out_json({**machine, "findings": rows, "ok": not missing})
    else:
        out("  ".join(f"{key} {value}" for key, value in machine.items()) + "\n\n")
        out(_report(findings, missing))
    return 1 if missing else 0


def examine() -> list[Finding]:
    """Look at everything that a run uses."""
    checks: tuple[Callable[[], list[Finding]], ...] = (
        _python,
        _supervisord,
        _libseccomp,
        _folders,
        _native,
    )
    return [found for check in checks for found in check()]


def _python() -> list[Finding]:
    ok = sys.version_info >= (3, 11)
    text = ".".join(map(str, sys.version_info[:3]))
    return [Finding("python", "runs the command line", text, ok=ok, needed=True)]


def _supervisord() -> list[Finding]:
    """The package of supervisord has our name: in one environment they overwrite each other."""
    from importlib.metadata import PackageNotFoundError, version

    buys = "the two distributions overwrite each other's files"
    try:
        text = f"supervisord {version('supervisor')} is installed here: use another environment"
    except PackageNotFoundError:
        return [Finding("no supervisord", buys, "not installed", ok=True, needed=False)]
    return [Finding("no supervisord", buys, text, ok=False, needed=False)]


def _libseccomp() -> list[Finding]:
    buys = "compiles the filter of a policy that is not in the cache"
    try:
        import pyseccomp  # noqa: F401
    except Exception as error:  # noqa: BLE001 - ctypes raises what it likes
        hint = "install libseccomp (Debian, Ubuntu: libseccomp2; Fedora: libseccomp)"
        return [Finding("libseccomp", buys, f"{error}: {hint}", ok=False, needed=True)]
    return [Finding("libseccomp", buys, "loaded", ok=True, needed=True)]


def _folders() -> list[Finding]:
    audit = state_folder(os.environb)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not cache.startswith("/"):
        home = os.environ.get("HOME", "")
        cache = os.path.join(home, ".cache") if home.startswith("/") else ""
    return [
        _writable("state folder", audit, "keeps the audit logs of runs"),
        _writable("cache folder", cache, "keeps compiled policies, for a fast start"),
    ]


def _writable(name: str, folder: str, buys: str) -> Finding:
    if not folder:
        return Finding(name, buys, "HOME is not set", ok=False, needed=False)
    place = folder
    while not os.path.lexists(place) and place != "/":
        place = os.path.dirname(place)
    ok = os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)
    text = folder if ok else f"{place} cannot be written"
    return Finding(name, buys, text, ok=ok, needed=False)


def _native() -> list[Finding]:
    buys = "enforces: without it nothing runs"
    try:
        from supervisor import native
    except SupervisorError as error:
        return [
            Finding("native core", buys, f"{error.message}: {error.hint}", ok=False, needed=True)
        ]
    found = [Finding("native core", buys, f"boundary {native.ABI}", ok=True, needed=True)]
    found += [
        Finding(item.name, item.buys, item.detail, ok=item.ok, needed=item.need)
        for item in native.facilities()
    ]
    return found


def _report(findings: Sequence[Finding], missing: Sequence[Finding]) -> str:
    text = table([(_mark(found), found.name, found.detail, found.buys) for found in findings])
    if missing:
        names = ", ".join(found.name for found in missing)
        text += f"\na run cannot start without: {names}\n"
    return text


def _mark(found: Finding) -> str:
    if found.ok:
        return "ok"
    return "MISSING" if found.needed else "absent"
