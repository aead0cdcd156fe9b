"""SHA-256 without ``hashlib``, which loads OpenSSL and costs a start some milliseconds."""

from __future__ import annotations

try:
    from _sha2 import sha256  # type: ignore[import-not-found]  # CPython 3.12 and later
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # CPython 3.11
    except ImportError:
        from hashlib import sha256


def digest(data: bytes) -> bytes:
    """Return the SHA-256 of ``data``, 32 bytes."""
    return bytes(sha256(data).digest())


def hexdigest(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hex."""
    return digest(data).hex()
