# Types of the compiled module, as far as native.py uses it.

from typing import Literal, overload

class CData:
    def __len__(self) -> int: ...

class ErrPtr(CData):
    code: int
    where: CData
    msg: CData

class RuleTextPtr(CData):
    id: CData
    src: CData
    say: CData

class RowPtr(CData):
    nr: int
    klass: int
    err: int
    name: CData
    note: CData

class WhenPtr(CData):
    nr: int
    arg: int
    mask: int
    value: int
    klass: int
    err: int

class FacilityPtr(CData):
    ok: int
    err: int
    need: int
    value: int
    name: CData
    buys: CData
    detail: CData

class IntArray(CData):
    def __getitem__(self, index: int) -> int: ...

class VerdictPtr(CData):
    action: int
    rule: int
    err: int
    matched: int
    rules: IntArray

class StartPtr(CData):
    argv: CData
    envp: CData
    cwd: CData
    path: CData
    degraded: int
    trash: CData
    trash_room: int

class StatusPtr(CData):
    running: int
    tasks: int
    exited: int
    code: int
    exec_err: int
    halted: int
    calls: int
    denied: int
    steered: int
    limit: int
    used: IntArray

class SessionPtr(CData): ...

class _FFI:
    NULL: CData
    @overload
    def new(self, cdecl: Literal["struct sv_err *"]) -> ErrPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_row *"]) -> RowPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_rule_text *"]) -> RuleTextPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_when *"]) -> WhenPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_facility *"]) -> FacilityPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_verdict *"]) -> VerdictPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_start *"]) -> StartPtr: ...
    @overload
    def new(self, cdecl: Literal["struct sv_status *"]) -> StatusPtr: ...
    @overload
    def new(self, cdecl: Literal["char[]"], init: bytes) -> CData: ...
    @overload
    def new(self, cdecl: Literal["uint8_t[]"], init: int) -> CData: ...
    @overload
    def new(self, cdecl: Literal["const char *[]"], init: list[CData]) -> CData: ...
    def buffer(self, cdata: CData, size: int = ...) -> memoryview: ...
    def string(self, cdata: CData) -> bytes: ...
    def from_buffer(self, source: bytes) -> CData: ...

class _Lib:
    SV_ABI: int
    SV_BLOB_VERSION: int
    def sv_abi(self) -> int: ...
    def sv_row(self, i: int, out: RowPtr) -> int: ...
    def sv_assume(self, waived: int) -> int: ...
    def sv_row_of(self, nr: int) -> int: ...
    def sv_when(self, i: int, out: WhenPtr) -> int: ...
    def sv_facility(self, i: int, out: FacilityPtr) -> int: ...
    def sv_guard(self, err: ErrPtr) -> int: ...
    def sv_open(self, blob: CData, size: int, tmp: bytes, err: ErrPtr) -> SessionPtr: ...
    def sv_spawn(self, s: SessionPtr, start: StartPtr, err: ErrPtr) -> int: ...
    def sv_poll(self, s: SessionPtr, buf: CData, cap: int, timeout_ms: int) -> int: ...
    def sv_rule(self, s: SessionPtr, i: int, out: RuleTextPtr) -> int: ...
    def sv_status(self, s: SessionPtr, out: StatusPtr) -> int: ...
    def sv_kill(self, s: SessionPtr, sig: int) -> int: ...
    def sv_close(self, s: SessionPtr) -> None: ...
    def sv_decide(
        self,
        blob: CData,
        size: int,
        tmp: bytes,
        op: int,
        path: CData,
        path_len: int,
        name: CData,
        name_len: int,
        argv: CData,
        argv_len: int,
        blocks: int,
        out: VerdictPtr,
        err: ErrPtr,
    ) -> int: ...
    def sv_decide_net(
        self,
        blob: CData,
        size: int,
        tmp: bytes,
        op: int,
        kind: int,
        subject: CData,
        n: int,
        port: int,
        blocks: int,
        out: VerdictPtr,
        err: ErrPtr,
    ) -> int: ...
    def sv_decide_signal(
        self,
        blob: CData,
        size: int,
        tmp: bytes,
        sig: int,
        who: int,
        out: VerdictPtr,
        err: ErrPtr,
    ) -> int: ...
    def sv_starts(
        self,
        blob: CData,
        size: int,
        tmp: bytes,
        path: CData,
        path_len: int,
        name: CData,
        name_len: int,
        err: ErrPtr,
    ) -> int: ...

ffi: _FFI
lib: _Lib
