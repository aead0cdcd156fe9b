"""The environment that the target gets: keep, then drop, then set.

Works on plain tuples, as the cache holds them, so a warm start needs no records.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EnvPart = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, bytes], ...]]
"""keep patterns, drop patterns, (name, value) to set."""
_MARK = b"\x01"
_STAR, _ANY = b"*?"


def name_matches(pattern: bytes, name: bytes) -> bool:
    """Return whether a pattern of ``*``, ``?`` and letters matches a name whole."""
    at = i = 0
    back, back_i = -1, 0
    while i < len(name):
        if at < len(pattern) and pattern[at] == _STAR:
            at += 1
            back, back_i = at, i
        elif at < len(pattern) and (pattern[at] == _ANY or pattern[at] == name[i]):
            at += 1
            i += 1
        elif back >= 0:
            back_i += 1
            at, i = back, back_i
        else:
            return False
    return not pattern[at:].strip(b"*")


def apply_env(env: EnvPart, environ: Mapping[bytes, bytes], tmp: bytes = b"") -> dict[bytes, bytes]:
    """Return the environment of the target.

    Args:
        env: The policy's part; no ``keep`` keeps all.
        environ: The environment to start from; it is not changed.
        tmp: The session's private folder, put where a value starts with ``${TMPDIR}``.

    Raises:
        ValueError: A value needs the private folder and ``tmp`` is empty.
    """
    keep, drop, values = env
    kept, dropped = _Names(keep), _Names(drop)
    out = {
        name: value
        for name, value in environ.items()
        if (not keep or kept.hit(name)) and not dropped.hit(name)
    }
    for name, value in values:
        if value.startswith(_MARK):
            if not tmp:
                raise ValueError(f"the value of {name} needs a private folder")
            out[name.encode()] = tmp + value[1:]
        else:
            out[name.encode()] = value
    return out


class _Names:
    """Patterns made ready: whole names in a set, the few with wildcards one by one."""

    __slots__ = ("_exact", "_globs")

    def __init__(self, patterns: Iterable[str]) -> None:
        known = [pattern.encode() for pattern in patterns]
        self._exact = frozenset(p for p in known if b"*" not in p and b"?" not in p)
        self._globs = [p for p in known if p not in self._exact]

    def hit(self, name: bytes) -> bool:
        """Return whether any pattern matches the name."""
        return name in self._exact or any(_glob(p, name) for p in self._globs)


def _glob(pattern: bytes, name: bytes) -> bool:
    """One star at an end, the usual case, needs no walk."""
    body = pattern.strip(b"*")
    if b"*" in body or b"?" in body:
        return name_matches(pattern, name)
    if pattern.endswith(b"*"):
        return body in name if pattern.startswith(b"*") else name.startswith(body)
    return name.endswith(body)
