"""A classic BPF interpreter for seccomp programs: slow, small and independent."""

from __future__ import annotations

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


def _alu(code: int, left: int, right: int) -> int:
    operation = code & 0xF0
    table = {
        0x00: left + right,
        0x10: left - right,
        0x40: left | right,
        0x50: left & right,
        0x60: left << (right & 31),
        0x70: left >> (right & 31),
        0xA0: left ^ right,
    }
    return table[operation] & 0xFFFFFFFF


def _jumps(code: int, left: int, right: int) -> bool:
    return {
        0x10: left == right,
        0x20: left > right,
        0x30: left >= right,
        0x40: bool(left & right),
    }[code & 0xF0]


def _load(op: int, k: int, data: bytes, memory: list[int]) -> int:
    mode = op & 0xE0
    if mode == _ABS:
        assert k % 4 == 0
        return int(struct.unpack_from("<I", data, k)[0])
    return k if mode == _IMM else memory[k]


def run(program: bytes, nr: int, args: tuple[int, ...] = (), arch: int = AUDIT_ARCH) -> int:
    """Return the 32-bit verdict of a program for one call."""
    padded = [value & (1 << 64) - 1 for value in (*args, *([0] * (6 - len(args))))]
    data = struct.pack("<IIQ6Q", nr & 0xFFFFFFFF, arch, 0, *padded)
    code = list(struct.iter_unpack("<HBBI", program))
    a = x = at = 0
    memory = [0] * 16
    while True:
        op, jt, jf, k = code[at]
        at += 1
        kind = op & 7
        if kind == _RET:
            return int(a if op & 0x18 else k)
        if kind == _LD:
            a = _load(op, k, data, memory)
        elif kind == _LDX:
            x = _load(op, k, data, memory)
        elif kind in (_ST, _STX):
            memory[k] = a if kind == _ST else x
        elif kind == _ALU:
            a = _alu(op, a, x if op & 0x08 else k)
        elif kind == _MISC:
            a, x = (x, x) if op & 0x80 else (a, a)
        elif op & 0xF0:
            at += jt if _jumps(op, a, x if op & 0x08 else k) else jf
        else:
            at += k
