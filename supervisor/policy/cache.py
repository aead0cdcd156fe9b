"""Compiled policies by content, so that a warm start reads no YAML.

An entry is one file, named by the hash of the request: which policies, for which
folder and user, on which machine, with which version of ours. It lists every source
file with the hash of its bytes and every environment variable that was used with the
hash of its value; both are looked at again before the entry is used. Times and sizes
are not trusted.

The folder is used only where nobody else can have written it (see ``private``);
elsewhere each start compiles anew, which is slower and no weaker.
"""

from __future__ import annotations

import os

from supervisor.policy import flat, private
from supervisor.policy.digest import digest, hexdigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from supervisor.policy.context import Context
    from supervisor.policy.environ import EnvPart

FORMAT = 1
_MAGIC = b"SVC8"
_MAX_ENTRY = 65 << 20
_MAX_SOURCE = 1 << 20
_MAX_ENTRIES = 256
_SUFFIX = ".svc"


class Entry:
    """A compiled policy, ready to run.

    Attributes:
        blob: Bytes for ``native.Session.open``.
        name: Name of the policy.
        env: For ``environ.apply_env``.
        sources: (name for people, absolute path or "", SHA-256 in hex) of every source file.
        needs_tmp: Whether a private temporary folder is needed.
        needs_trash: Whether a folder for what is deleted is needed.
        observe: Whether what rules refuse passes and is only recorded.
    """

    __slots__ = ("blob", "env", "name", "needs_tmp", "needs_trash", "observe", "sources")

    def __init__(
        self,
        *,
        blob: bytes,
        name: str,
        env: EnvPart,
        sources: tuple[tuple[str, str, str], ...],
        needs_tmp: bool,
        needs_trash: bool,
        observe: bool,
    ) -> None:
        """Hold the parts of one entry."""
        self.blob = blob
        self.name = name
        self.env = env
        self.sources = sources
        self.needs_tmp = needs_tmp
        self.needs_trash = needs_trash
        self.observe = observe


def folder_of(environ: Mapping[bytes, bytes], home: bytes) -> bytes:
    """Return the cache folder, or b"" where there is none.

    It is ``supervise`` below ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    base = environ.get(b"XDG_CACHE_HOME", b"")
    if base.startswith(b"/"):
        # True path, so that a link the user made is no reason to go without.
        return os.path.join(os.path.realpath(base), b"supervise")
    return os.path.join(os.path.realpath(home), b".cache", b"supervise") if home else b""


def request_key(  # noqa: PLR0913 - all but two by name
    names: Sequence[str],
    context: Context,
    *,
    version: str,
    machine: bytes,
    sets: Mapping[str, str] | None = None,
    mode: str = "",
    inline: Sequence[tuple[str, bytes]] = (),
    protected: Iterable[tuple[bytes, bool, bool]] = (),
    ways: tuple[tuple[bytes, ...], tuple[bytes, ...]] = ((), ()),
) -> str:
    """Return the name of the entry for one request.

    Args:
        names: Policies as for ``merge.load_policy``.
        context: As for ``merge.load_policy``.
        version: Version of this package.
        machine: Fingerprint of the syscall table and of what the kernel offers.
        sets: As for ``merge.load_policy``.
        mode: As for ``merge.load_policy``.
        inline: As for ``merge.load_policy``.
        protected: As for ``compile.compile_policy``.
        ways: As for ``compile.compile_policy``.
    """
    parts = (
        FORMAT,
        version,
        machine,
        [name.encode("utf-8", "surrogateescape") for name in names],
        sorted((k, os.fsencode(v)) for k, v in (sets or {}).items()),
        mode,
        [(name, digest(data)) for name, data in inline],
        sorted(protected),
        ways,
        context.cwd,
        context.home,
        context.uid,
    )
    return hexdigest(repr(parts).encode("utf-8", "surrogateescape"))


def fingerprint(parts: Iterable[object]) -> bytes:
    """Return a digest of plain values (numbers, text, bytes, tuples of them)."""
    return digest(repr(list(parts)).encode("utf-8", "surrogateescape"))


def lookup(folder: bytes, key: str, environ: Mapping[bytes, bytes]) -> Entry | None:
    """Return the entry of a request if it is there, untouched and still true.

    Args:
        folder: From :func:`folder_of`.
        key: From :func:`request_key`.
        environ: The environment that ``${ENV:NAME}`` reads.
    """
    opened = private.open_folder(folder, create=False)
    if opened is None:
        return None
    try:
        data = private.read(opened, key + _SUFFIX, _MAX_ENTRY)
    finally:
        os.close(opened)
    found = _unpack(data, key) if data is not None else None
    if found is None:
        return None
    entry, used_env = found
    if any(_file_digest(path) != known for _, path, known in entry.sources if path):
        return None
    if any(_env_digest(environ, variable) != known for variable, known in used_env):
        return None
    return entry


def store(
    folder: bytes,
    key: str,
    entry: Entry,
    environ: Mapping[bytes, bytes],
    used_env: Iterable[str],
) -> bool:
    """Keep an entry for the next start; return whether it was kept.

    Args:
        folder: From :func:`folder_of`.
        key: From :func:`request_key`.
        entry: What to keep.
        environ: The environment that ``${ENV:NAME}`` read.
        used_env: The names that it was asked for.
    """
    keep, drop, values = entry.env
    body = flat.pack(
        flat.text(key),
        flat.text(entry.name),
        b"1" if entry.needs_tmp else b"",
        b"1" if entry.needs_trash else b"",
        b"1" if entry.observe else b"",
        flat.many(flat.text(pattern) for pattern in keep),
        flat.many(flat.text(pattern) for pattern in drop),
        flat.many(flat.pack(flat.text(name), value) for name, value in values),
        flat.many(flat.pack(*map(flat.text, source)) for source in entry.sources),
        flat.many(flat.pack(flat.text(n), _env_digest(environ, n)) for n in used_env),
        entry.blob,
    )
    if len(body) > _MAX_ENTRY // 2:
        return False
    opened = private.open_folder(folder, create=True)
    if opened is None:
        return False
    try:
        _prune(opened)
        return private.write(opened, key + _SUFFIX, _MAGIC + digest(body) + body)
    finally:
        os.close(opened)


def _unpack(data: bytes, key: str) -> tuple[Entry, list[tuple[str, bytes]]] | None:
    body = data[36:]
    if data[:4] != _MAGIC or digest(body) != data[4:36]:
        return None
    try:
        kept, name, tmp, trash, observe, keep, drop, values, sources, used, blob = flat.unpack(body)
        pairs = [flat.unpack(item) for item in flat.unpack(values)]
        files = [tuple(map(flat.as_text, flat.unpack(item))) for item in flat.unpack(sources)]
        variables = [flat.unpack(item) for item in flat.unpack(used)]
        entry = Entry(
            blob=blob,
            name=flat.as_text(name),
            env=(
                tuple(map(flat.as_text, flat.unpack(keep))),
                tuple(map(flat.as_text, flat.unpack(drop))),
                tuple((flat.as_text(variable), value) for variable, value in pairs),
            ),
            sources=tuple((shown, path, known) for shown, path, known in files),
            needs_tmp=bool(tmp),
            needs_trash=bool(trash),
            observe=bool(observe),
        )
        return (
            (entry, [(flat.as_text(n), known) for n, known in variables])
            if (flat.as_text(kept) == key)
            else None
        )
    except ValueError:
        return None


def _file_digest(path: str) -> str:
    """Return the SHA-256 of a source file in hex, or "" when it cannot be a source."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return ""
    data = b""
    try:
        while part := os.read(fd, _MAX_SOURCE + 1 - len(data)):
            data += part
    except OSError:
        return ""
    finally:
        os.close(fd)
    return hexdigest(data) if len(data) <= _MAX_SOURCE else ""


def _env_digest(environ: Mapping[bytes, bytes], name: str) -> bytes:
    """Return the digest of a variable's value; values themselves may be secret."""
    value = environ.get(os.fsencode(name))
    return b"" if value is None else digest(b"=" + value)


def _prune(folder: int) -> None:
    """Make room: one entry per project folder adds up over the years."""
    try:
        found = [item.name for item in os.scandir(folder) if item.name.endswith(_SUFFIX)]
        if len(found) < _MAX_ENTRIES:
            return
        aged = sorted(found, key=lambda name: os.stat(name, dir_fd=folder).st_mtime_ns)
        for name in aged[: len(found) - _MAX_ENTRIES + 1]:
            os.unlink(name, dir_fd=folder)
    except OSError:
        pass  # another start prunes at the same time
