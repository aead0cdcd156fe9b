"""Which policy files in folders of the target the user has vouched for.

A policy that lies where a target may write is used unasked only if the user trusted
exactly these bytes before. One line a file: SHA-256, a space, the path in hex.
"""

from __future__ import annotations

import os

from supervisor.errors import SupervisorError
from supervisor.policy import private
from supervisor.policy.digest import hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = "trusted"
_MAX_STORE = 1 << 20
_MAX_POLICY = 1 << 20


def state_folder(environ: Mapping[bytes, bytes], home: bytes) -> bytes:
    """Return ``supervise`` below ``$XDG_STATE_HOME`` or ``~/.local/state``; b"" = none."""
    base = environ.get(b"XDG_STATE_HOME", b"")
    if base.startswith(b"/"):
        return os.path.realpath(os.path.join(base, b"supervise"))
    if not home:
        return b""
    return os.path.realpath(os.path.join(home, b".local", b"state", b"supervise"))


def is_trusted(folder: bytes, path: bytes, sha256: str) -> bool:
    """Return whether the user trusted exactly this content at this place.

    Args:
        folder: From :func:`state_folder`.
        path: The policy file; its true path counts.
        sha256: Hex digest of its bytes, as they were read.
    """
    return _read(folder).get(os.path.realpath(path)) == sha256


def trust(folder: bytes, path: bytes) -> str:
    """Trust the present content of a policy file; return its SHA-256 in hex.

    Raises:
        SupervisorError: The file cannot be read or the store not be written.
    """
    true = os.path.realpath(path)
    try:
        with open(true, "rb") as stream:
            data = stream.read(_MAX_POLICY + 1)
    except OSError as error:
        raise SupervisorError(f"cannot read {os.fsdecode(path)!r}: {error.strerror}") from error
    if len(data) > _MAX_POLICY:
        raise SupervisorError(f"{os.fsdecode(path)!r} is too large for a policy")
    store = _read(folder)
    store[true] = hexdigest(data)
    _write(folder, store)
    return store[true]


def distrust(folder: bytes, path: bytes) -> bool:
    """Forget a file; return whether it was trusted.

    Raises:
        SupervisorError: The store cannot be written.
    """
    store = _read(folder)
    found = store.pop(os.path.realpath(path), None)
    if found is not None:
        _write(folder, store)
    return found is not None


def _read(folder: bytes) -> dict[bytes, str]:
    opened = private.open_folder(folder, create=False)
    if opened is None:
        return {}
    try:
        data = private.read(opened, _NAME, _MAX_STORE)
    finally:
        os.close(opened)
    store = {}
    for line in (data or b"").decode("ascii", "replace").splitlines():
        digest, _, path = line.partition(" ")
        try:
            store[bytes.fromhex(path)] = digest
        except ValueError:
            continue  # a line that we did not write trusts nothing
    return store


def _write(folder: bytes, store: dict[bytes, str]) -> None:
    opened = private.open_folder(folder, create=True)
    if opened is None:
        raise SupervisorError(
            f"{os.fsdecode(folder)!r} cannot hold the list of trusted policies",
            hint="it and the folders above must belong to you and be writable by no one else",
        )
    try:
        text = "".join(f"{digest} {path.hex()}\n" for path, digest in sorted(store.items()))
        if not private.write(opened, _NAME, text.encode()):
            raise SupervisorError(f"cannot write to {os.fsdecode(folder)!r}")
    finally:
        os.close(opened)
