"""The only importer of the compiled module: a typed, thin layer over native/supervise.h.

Nothing of cffi leaves this file: bytes, ints and the classes of supervisor.model do.
"""

from __future__ import annotations

from supervisor.errors import EnvironmentFault, SessionError, SupervisorError
from supervisor.model import Facility, Row, Status, Verdict, When
from supervisor.run.events import Event

try:
    from supervisor._native import ffi, lib
except ImportError as problem:
    raise EnvironmentFault(
        f"the compiled module supervisor._native cannot be loaded ({problem})",
        hint="build it in place with `pip install -e .`",
    ) from problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from supervisor._native import CData, ErrPtr, SessionPtr, VerdictPtr

ABI = 1
_BATCH = 1 << 18  # room for some hundred events; one of them never exceeds 64 KiB
_ENOENT, _EINTR = 2, 4

if lib.sv_abi() != ABI or lib.SV_ABI != ABI:
    raise EnvironmentFault(
        f"the compiled module speaks boundary {lib.sv_abi()}, this code {ABI}",
        hint="rebuild it with `pip install -e .`",
    )

BLOB_VERSION = lib.SV_BLOB_VERSION


class Session:
    """One supervised tree; the compiled half of a run.

    Use :meth:`open`, then :meth:`spawn` once, then :meth:`poll` until
    :meth:`status` says that nothing runs, then :meth:`close`.
    """

    __slots__ = ("_buffer", "_handle", "_unpack")

    def __init__(self, handle: SessionPtr) -> None:
        """Take over a handle of sv_open; use :meth:`open` instead."""
        self._handle: SessionPtr | None = handle
        self._buffer: CData | None = None
        self._unpack: Callable[[memoryview], Iterable[Sequence[object]]] | None = None

    @classmethod
    def open(cls, blob: bytes, tmp: bytes = b"") -> Session:
        """Load a compiled policy.

        Args:
            blob: bytes of the compiled policy, version ``BLOB_VERSION``.
            tmp: the session's private folder; empty for none.

        Raises:
            SupervisorError: the blob was refused, or a facility is missing.
        """
        err = ffi.new("struct sv_err *")
        handle = lib.sv_open(ffi.from_buffer(blob), len(blob), tmp, err)
        if handle == ffi.NULL:
            raise _failure(err)
        return cls(handle)

    def spawn(
        self,
        argv: Sequence[bytes],
        env: Mapping[bytes, bytes],
        *,
        cwd: bytes | None = None,
        path: bytes | None = None,
        degraded: int = 0,
        trash: tuple[bytes, int] | None = None,
    ) -> int:
        """Start the main command under the policy.

        Args:
            argv: its arguments, the program's name first; no NUL in any.
            env: its whole environment.
            cwd: folder to start in; None stays.
            path: program file; None searches ``argv[0]`` in PATH of ``env``.
            degraded: bits of the facilities that the user does without.
            trash: the session's folder for what is deleted, and the bytes it may take.

        Returns:
            The process id of the main command, or 0 where the library does not tell it.

        Raises:
            SupervisorError: a step before the exec failed; a failed exec itself
                is told by :meth:`status` (``exec_err``).
        """
        pairs = [name + b"=" + value for name, value in env.items()]
        if any(b"\0" in text for text in (*argv, *pairs, cwd or b"", path or b"")):
            raise SessionError("a NUL byte cannot be part of a command")
        keep: list[CData] = []
        start = ffi.new("struct sv_start *")
        start.argv = _strings(argv, keep)
        start.envp = _strings(pairs, keep)
        start.cwd = _optional(cwd, keep)
        start.path = _optional(path, keep)
        start.degraded = degraded
        if trash is not None:
            start.trash = _optional(trash[0], keep)
            start.trash_room = trash[1]
        err = ffi.new("struct sv_err *")
        pid = lib.sv_spawn(self._live(), start, err)
        if pid < 0:
            raise _failure(err)
        return pid

    def poll(self, timeout_ms: int) -> list[Event]:
        """Take the events that wait, oldest first.

        Args:
            timeout_ms: how long to wait for the first, in milliseconds.

        Returns:
            The events; empty when none came or the session's state changed.

        Raises:
            SupervisorError: the library failed or wrote what is no event.
        """
        handle = self._live()
        if self._buffer is None:
            self._buffer = ffi.new("uint8_t[]", _BATCH)
        size = lib.sv_poll(handle, self._buffer, _BATCH, timeout_ms)
        if size == -_EINTR:  # a signal's handler has run; the caller looks at its state
            return []
        if size < 0:
            raise SessionError(f"reading events failed with errno {-size}")
        if size == 0:
            return []
        return self._decode(ffi.buffer(self._buffer, size))

    def status(self) -> Status:
        """Tell what runs and how the main command ended."""
        out = ffi.new("struct sv_status *")
        code = lib.sv_status(self._live(), out)
        if code < 0:
            raise SessionError(f"reading the status failed with errno {-code}")
        return Status(
            running=bool(out.running),
            tasks=out.tasks,
            exited=out.exited,
            code=out.code,
            exec_err=out.exec_err,
            halted=bool(out.halted),
            calls=out.calls,
            denied=out.denied,
            steered=out.steered,
            limit=out.limit,
            used=tuple(out.used[i] for i in range(len(out.used))),
        )

    def rule(self, index: int) -> tuple[str, str]:
        """Tell a rule's id and source; empty strings for the default.

        Args:
            index: its number.
        """
        out = ffi.new("struct sv_rule_text *")
        if index < 0 or lib.sv_rule(self._live(), index, out) < 0:
            return ("", "")
        return (_text(out.id), _text(out.src))

    def kill(self, sig: int = 0) -> None:
        """Send a signal to the main command, or end the whole tree.

        Args:
            sig: signal number; 0 ends every process of the tree now.
        """
        lib.sv_kill(self._live(), sig)

    def close(self) -> None:
        """End what is left and free the session; calling it again does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            lib.sv_close(handle)

    def _live(self) -> SessionPtr:
        if self._handle is None:
            raise SessionError("the session is closed")
        return self._handle

    def _decode(self, data: memoryview) -> list[Event]:
        if self._unpack is None:
            from supervisor.run.events import unpacker

            self._unpack = unpacker(_BATCH)
        try:
            return [Event.of(fields) for fields in self._unpack(data)]
        except (TypeError, ValueError) as problem:
            raise SessionError(f"the event stream is damaged: {problem}") from problem


def starts(blob: bytes, path: bytes, *, name: bytes = b"", tmp: bytes = b"") -> int:
    """Tell which blocks a program starts, as bits.

    Args:
        blob: bytes of the compiled policy.
        path: true path of the program.
        name: the program as called.
        tmp: as for :func:`decide`.

    Raises:
        SupervisorError: the blob was refused.
    """
    err = ffi.new("struct sv_err *")
    code = lib.sv_starts(
        ffi.from_buffer(blob),
        len(blob),
        tmp,
        ffi.from_buffer(path),
        len(path),
        ffi.from_buffer(name),
        len(name),
        err,
    )
    if code < 0:
        raise _failure(err)
    return int(code)


def decide(
    blob: bytes,
    op: int,
    path: bytes,
    *,
    name: bytes = b"",
    argv: Sequence[bytes] = (),
    tmp: bytes = b"",
    blocks: int = 0,
) -> Verdict:
    """Ask the matcher one question, without a session.

    Args:
        blob: bytes of the compiled policy.
        op: one or more bits of enum sv_op.
        path: true path of the object.
        name: the program as called, for an exec.
        argv: its arguments, the program's name first.
        tmp: the folder that the policy's late-bound patterns stand for.
        blocks: bits of the blocks that the asking process is in.

    Raises:
        SupervisorError: the blob or the question was refused.
    """
    packed = b"".join(text + b"\0" for text in argv)
    out = ffi.new("struct sv_verdict *")
    err = ffi.new("struct sv_err *")
    code = lib.sv_decide(
        ffi.from_buffer(blob),
        len(blob),
        tmp,
        op,
        ffi.from_buffer(path),
        len(path),
        ffi.from_buffer(name),
        len(name),
        ffi.from_buffer(packed),
        len(packed),
        blocks,
        out,
        err,
    )
    return _verdict(code, out, err)


def decide_net(
    blob: bytes,
    op: int,
    kind: int,
    subject: bytes,
    port: int = 0,
    *,
    tmp: bytes = b"",
    blocks: int = 0,
) -> Verdict:
    """Ask the matcher about an address or a local socket, without a session.

    Args:
        blob: bytes of the compiled policy.
        op: one of enum sv_net_op.
        kind: enum sv_net_kind.
        subject: 4 or 16 bytes of an address, a true path, or an abstract name.
        port: that of an address.
        tmp: as for :func:`decide`.
        blocks: as for :func:`decide`.

    Raises:
        SupervisorError: the blob or the question was refused.
    """
    out = ffi.new("struct sv_verdict *")
    err = ffi.new("struct sv_err *")
    code = lib.sv_decide_net(
        ffi.from_buffer(blob),
        len(blob),
        tmp,
        op,
        kind,
        ffi.from_buffer(subject),
        len(subject),
        port,
        blocks,
        out,
        err,
    )
    return _verdict(code, out, err)


def decide_signal(blob: bytes, signal: int, who: int, *, tmp: bytes = b"") -> Verdict:
    """Ask the matcher about a signal, without a session.

    Args:
        blob: bytes of the compiled policy.
        signal: its number.
        who: one or more of enum sv_who.
        tmp: as for :func:`decide`.

    Raises:
        SupervisorError: the blob or the question was refused.
    """
    out = ffi.new("struct sv_verdict *")
    err = ffi.new("struct sv_err *")
    code = lib.sv_decide_signal(ffi.from_buffer(blob), len(blob), tmp, signal, who, out, err)
    return _verdict(code, out, err)


def _verdict(code: int, out: VerdictPtr, err: ErrPtr) -> Verdict:
    if code < 0:
        raise _failure(err)
    shown = min(out.matched, len(out.rules))
    return Verdict(
        out.action, out.rule, out.err, out.matched, tuple(out.rules[i] for i in range(shown))
    )


def rows() -> list[Row]:
    """List the syscall table."""
    out = ffi.new("struct sv_row *")
    found: list[Row] = []
    while lib.sv_row(len(found), out) >= 0:
        found.append(Row(out.nr, out.klass, out.err, _text(out.name), _text(out.note)))
    return found


def call_name(nr: int) -> str:
    """Name a syscall; an unknown number shows as itself.

    Args:
        nr: its number; a negative one stands for none.
    """
    out = ffi.new("struct sv_row *")
    index = lib.sv_row_of(nr)
    if index < 0 or lib.sv_row(index, out) < 0:
        return f"syscall {nr}" if nr >= 0 else "call"
    return _text(out.name)


def whens() -> list[When]:
    """List the argument tests of the filter."""
    out = ffi.new("struct sv_when *")
    found: list[When] = []
    while lib.sv_when(len(found), out) >= 0:
        found.append(When(out.nr, out.arg, out.mask, out.value, out.klass, out.err))
    return found


def facilities() -> list[Facility]:
    """Probe the kernel for everything that a run may use; takes some milliseconds."""
    out = ffi.new("struct sv_facility *")
    found: list[Facility] = []
    while lib.sv_facility(len(found), out) != -_ENOENT:
        found.append(
            Facility(
                len(found),
                _text(out.name),
                _text(out.buys),
                _text(out.detail),
                ok=bool(out.ok),
                need=bool(out.need),
                err=out.err,
                value=out.value,
            )
        )
    return found


def assume(degraded: int) -> None:
    """Say which facilities a run does without, before :func:`rows` is asked for its filter.

    Args:
        degraded: bits of the facilities.
    """
    lib.sv_assume(degraded)


def fingerprint() -> tuple[object, ...]:
    """Tell this build of the library, and what the kernel bounds by itself, from others.

    Cheap: the cache of policies asks at every start.
    """
    import os

    from supervisor import _native

    info = os.stat(_native.__file__ or "")
    file = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
    return (ABI, BLOB_VERSION, lib.sv_assume(-1), *file)


def guard() -> None:
    """Fork: this process goes on as the child; the parent ends the tree if the child dies.

    Call it before any thread exists.

    Raises:
        SupervisorError: the fork or a protection step failed.
    """
    err = ffi.new("struct sv_err *")
    if lib.sv_guard(err) < 0:
        raise _failure(err)


def _failure(err: ErrPtr) -> SupervisorError:
    where, sentence = _text(err.where), _text(err.msg)
    told = f"{where}: {sentence}" if where and sentence else sentence or where
    return SessionError(told or f"the library failed with errno {err.code}")


def _text(field: CData) -> str:
    return ffi.string(field).decode("utf-8", "backslashreplace")


def _strings(items: Sequence[bytes], keep: list[CData]) -> CData:
    texts = [ffi.new("char[]", item) for item in items]
    array = ffi.new("const char *[]", [*texts, ffi.NULL])
    keep += [*texts, array]
    return array


def _optional(item: bytes | None, keep: list[CData]) -> CData:
    if item is None:
        return ffi.NULL
    keep.append(ffi.new("char[]", item))
    return keep[-1]
