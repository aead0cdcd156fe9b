"""Byte strings in a row, each behind its length: what a warm start reads.

msgpack would do, but importing it costs a fourth of a Python start, and a warm start
needs it for nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WIDTH = 4


def pack(*items: bytes) -> bytes:
    """Put byte strings in a row.

    Args:
        items: each shorter than 4 GiB.
    """
    return b"".join(len(item).to_bytes(_WIDTH, "big") + item for item in items)


def many(items: Iterable[bytes]) -> bytes:
    """Put any number of byte strings in a row.

    Args:
        items: as for :func:`pack`.
    """
    return pack(*items)


def unpack(data: bytes) -> list[bytes]:
    """Take a row apart.

    Args:
        data: from :func:`pack`.

    Raises:
        ValueError: it was not made by :func:`pack`, whole.
    """
    items: list[bytes] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + _WIDTH], "big")
        end = at + _WIDTH + size
        if at + _WIDTH > len(data) or end > len(data):
            raise ValueError("a row of byte strings is cut short")
        items.append(data[at + _WIDTH : end])
        at = end
    return items


def text(value: str) -> bytes:
    """Encode text, bytes of file names included.

    Args:
        value: text, maybe with surrogate escapes.
    """
    return value.encode("utf-8", "surrogateescape")


def as_text(value: bytes) -> str:
    """Undo :func:`text`.

    Args:
        value: its bytes.
    """
    return value.decode("utf-8", "surrogateescape")
