"""The policies that come with the package, found by name.

A pack is ``NAME.yaml`` below one folder: ``supervisor/policies`` in an installed
package, ``policies`` beside the package in a source tree.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PACK = "agent-dev"
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def is_file_name(name: str) -> bool:
    """Return whether ``name`` means a file rather than a pack."""
    return name.endswith((".yaml", ".yml")) or name.startswith(("/", "./", "../"))


def packs_folder() -> str:
    """Return the folder of the packs, as an absolute path."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "policies")
    if os.path.isdir(installed):
        return installed
    return os.path.join(os.path.dirname(package), "policies")


def pack_path(name: str) -> str | None:
    """Return the absolute path of a pack, or None when there is none of that name."""
    parts = name.split("/")
    if not all(part and _LETTERS.issuperset(part) for part in parts):
        return None
    path = os.path.join(packs_folder(), *parts) + ".yaml"
    return path if os.path.isfile(path) else None


def list_packs() -> list[tuple[str, str]]:
    """Return (name, one-line description) of every pack, sorted by name.

    The description is the first comment line of the file.
    """
    root = packs_folder()
    found = []
    for folder, _, files in os.walk(root):
        for file in files:
            if file.endswith(".yaml"):
                path = os.path.join(folder, file)
                found.append((os.path.relpath(path, root)[:-5], _description(path)))
    return sorted(found)


def _description(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        first = stream.readline()
    return first[1:].strip() if first.startswith("#") else ""


def default_names(environ: Mapping[bytes, bytes], home: bytes) -> tuple[str, ...]:
    """Return the policies to use when none was asked for.

    ``SUPERVISE_POLICY`` (names or absolute paths, separated by ":") comes before
    ``supervise/policy.yaml`` in the user's configuration folder, and that before the
    pack ``agent-dev``. The current folder is never searched: the target may write it.

    Args:
        environ: The environment.
        home: The home folder, or b"".
    """
    asked = os.fsdecode(environ.get(b"SUPERVISE_POLICY", b""))
    names = tuple(name for name in asked.split(":") if name)
    if names:
        return names
    folder = config_folder(environ, home)
    own = os.path.join(folder, b"policy.yaml")
    return (os.fsdecode(own),) if folder and os.path.isfile(own) else (DEFAULT_PACK,)


def config_folder(environ: Mapping[bytes, bytes], home: bytes) -> bytes:
    """Return the true path of the user's configuration folder of ours; b"" = none.

    Args:
        environ: The environment.
        home: The home folder, or b"".
    """
    config = environ.get(b"XDG_CONFIG_HOME", b"")
    if not config.startswith(b"/"):
        config = os.path.join(home, b".config") if home else b""
    return os.path.realpath(os.path.join(config, b"supervise")) if config else b""
