"""A classic BPF interpreter for seccomp programs: slow, small and independent."""

from __future__ import annotations

import functools
import operator
import platform
import struct

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[platform.machine()]
AUDIT_ARCH_I386 = 0x40000003
X32_BIT = 0x40000000

KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
NOTIFY = 0x7FC00000
ALLOW = 0x7FFF0000

_LD, _LDX, _ST, _STX, _ALU, _JMP, _RET, _MISC = range(8)
_ABS, _IMM, _MEM = 0x20, 0x00, 0x60


_ALU_OPS = {
    0x00: operator.add,
    0x10: operator.sub,
    0x40: operator.or_,
    0x50: operator.and_,
    0x60: lambda left, right: left << (right & 31),
    0x70: lambda left, right: left >> (right & 31),
    0xA0: operator.xor,
}
_JUMPS = {0x10: operator.eq, 0x20: operator.gt, 0x30: operator.ge, 0x40: operator.and_}


def _load(op: int, k: int, data: tuple[int, ...], memory: list[int]) -> int:
    mode = op & 0xE0
    if mode == _ABS:
        assert k % 4 == 0
        return data[k // 4]
    return k if mode == _IMM else memory[k]


@functools.lru_cache(maxsize=4)
def _decoded(program: bytes) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("<HBBI", program))


def run(program: bytes, nr: int, args: tuple[int, ...] = (), arch: int = AUDIT_ARCH) -> int:
    """Return the 32-bit verdict of a program for one call."""
    padded = [value & (1 << 64) - 1 for value in (*args, *([0] * (6 - len(args))))]
    data = struct.unpack("<16I", struct.pack("<IIQ6Q", nr & 0xFFFFFFFF, arch, 0, *padded))
    code = _decoded(program)
    a = x = at = 0
    memory = [0] * 16
    while True:
        op, jt, jf, k = code[at]
        at += 1
        kind = op & 7
        if kind == _JMP:
            if op & 0xF0:
                at += jt if _JUMPS[op & 0xF0](a, x if op & 0x08 else k) else jf
            else:
                at += k
        elif kind == _RET:
            return int(a if op & 0x18 else k)
        elif kind == _LD:
            a = _load(op, k, data, memory)
        elif kind == _LDX:
            x = _load(op, k, data, memory)
        elif kind in (_ST, _STX):
            memory[k] = a if kind == _ST else x
        elif kind == _ALU:
            a = _ALU_OPS[op & 0xF0](a, x if op & 0x08 else k) & 0xFFFFFFFF
        else:
            a, x = (x, x) if op & 0x80 else (a, a)
