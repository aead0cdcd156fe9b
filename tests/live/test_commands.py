"""ioctl and setsockopt: the commands that reach past rules are refused by us, the others stay."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import Result, Supervised

Put = Callable[..., Path]
TIOCSCTTY = 0x540E
WIDE = 1 << 32

# What changes inodes, volumes or whole file systems, or reads past paths.
REFUSED = {
    "EXT4_IOC_SETVERSION": 0x40086604,
    "EXT4_IOC_GROUP_EXTEND": 0x40086607,
    "EXT4_IOC_GROUP_ADD": 0x40286608,
    "EXT4_IOC_MIGRATE": 0x6609,
    "EXT4_IOC_ALLOC_DA_BLKS": 0x660C,
    "EXT4_IOC_RESIZE_FS": 0x40086610,
    "EXT4_IOC_SWAP_BOOT": 0x6611,
    "EXT4_IOC_CHECKPOINT": 0x4004662B,
    "EXT4_IOC_SETFSUUID": 0x4008662C,
    "FS_IOC_SETFLAGS": 0x40086602,
    "FS_IOC32_SETFLAGS": 0x40046602,
    "FS_IOC_SETVERSION": 0x40087602,
    "FS_IOC32_SETVERSION": 0x40047602,
    "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613,
    "FS_IOC_ADD_ENCRYPTION_KEY": 0xC0506617,
    "FS_IOC_REMOVE_ENCRYPTION_KEY": 0xC0406618,
    "FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS": 0xC0406619,
    "FS_IOC_ENABLE_VERITY": 0x40806685,
    "FS_IOC_FSSETXATTR": 0x401C5820,
    "FIFREEZE": 0xC0045877,
    "FITHAW": 0xC0045878,
    "FITRIM": 0xC0185879,
    "FS_IOC_SHUTDOWN": 0x8004587D,
    "XFS_IOC_OPEN_BY_HANDLE": 0xC038586B,
    "XFS_IOC_SWAPEXT": 0xC0C0586D,
    "XFS_IOC_EXCHANGE_RANGE": 0x40285881,
    "BTRFS_IOC_SNAP_CREATE": 0x50009401,
    "BTRFS_IOC_DEFRAG": 0x50009402,
    "BTRFS_IOC_RESIZE": 0x50009403,
    "BTRFS_IOC_ADD_DEV": 0x5000940A,
    "BTRFS_IOC_SUBVOL_CREATE": 0x5000940E,
    "BTRFS_IOC_SNAP_DESTROY": 0x5000940F,
    "BTRFS_IOC_TREE_SEARCH": 0xD0009411,
    "BTRFS_IOC_INO_LOOKUP": 0xD0009412,
    "BTRFS_IOC_DEFAULT_SUBVOL": 0x40089413,
    "BTRFS_IOC_SNAP_CREATE_V2": 0x50009417,
    "BTRFS_IOC_SUBVOL_CREATE_V2": 0x50009418,
    "BTRFS_IOC_SUBVOL_SETFLAGS": 0x4008941A,
    "BTRFS_IOC_SET_RECEIVED_SUBVOL": 0xC0C89425,
    "BTRFS_IOC_SEND": 0x40489426,
    "FS_IOC_SETFSLABEL": 0x41009432,
    "BTRFS_IOC_SNAP_DESTROY_V2": 0x5000943F,
    "BTRFS_IOC_ENCODED_WRITE": 0x40809440,
    "FAT_IOCTL_SET_ATTRIBUTES": 0x40047211,
    "SIOCSIFFLAGS": 0x8914,
}
# What reads, or asks for write access to what it writes, as the rules did at its opening.
STAY = {
    "FS_IOC_GETFLAGS": 0x80086601,
    "FS_IOC_FIEMAP": 0xC020660B,
    "EXT4_IOC_MOVE_EXT": 0xC028660F,
    "FS_IOC_GET_ENCRYPTION_POLICY_EX": 0xC0096616,
    "FS_IOC_MEASURE_VERITY": 0xC0046686,
    "FS_IOC_FSGETXATTR": 0x801C581F,
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
    "FIDEDUPERANGE": 0xC0189436,
}
# Within a group, by direction (1 the kernel reads, 2 it writes) and number.
GROUPS: dict[str, Callable[[int, int], bool]] = {
    "66": lambda way, _: bool(way & 2),
    "58": lambda _, number: number == 31,
    "94": lambda _, number: number in (9, 13, 54),
}
IP, TCP, IPV6, SOCKET = 0, 6, 41, 1
# Of IP and IPv6: replacing the tables of iptables, arptables and ebtables, and their counters.
TABLES = [
    (level, option) for level in (IP, IPV6) for option in (64, 65, 96, 97, 127, 128, 129, 255)
]
# 64 and 65 are time stamps of a socket; 66 and 67 are options of IPv6.
OWN = [(SOCKET, 64), (SOCKET, 65), (IP, 1), (IP, 2), (IPV6, 16), (IPV6, 66), (IPV6, 67), (TCP, 1)]


def reasons(done: Result, call: str) -> list[str]:
    """Why a call was refused, once for each refusal on record."""
    faults = [event for event in done.events if event["decision"] == "deny"]
    return [event["action"]["detail"] for event in faults if event["action"]["call"] == call]


def words(pairs: list[tuple[int, int]]) -> list[str]:
    """Numbers for the program, the bits above an int set and not."""
    return [f"{n + high:x}" for high in (0, WIDE) for pair in pairs for n in pair]


@pytest.mark.parametrize("high", [0, WIDE], ids=["plain", "wide"])
def test_commands_of_file_systems(supervised: Supervised, program: Put, high: int) -> None:
    """By name: EPERM is ours, a pipe's own answer is another."""
    requests = [f"{number + high:x}" for number in (*REFUSED.values(), *STAY.values())]
    done = supervised([program("commands"), "ioctl", *requests], None, "-q")
    found = dict(zip((*REFUSED, *STAY), done.lines(), strict=True))
    native = supervised.natively([program("commands"), "ioctl", *requests])
    by_kernel = dict(zip((*REFUSED, *STAY), native.lines(), strict=True))
    assert {name for name, said in found.items() if said == "EPERM"} == set(REFUSED)
    assert {name: found[name] for name in STAY} == {name: by_kernel[name] for name in STAY}
    # Freezing a file system is for root, so that the kernel may say the same.
    assert {name for name, said in by_kernel.items() if said == "EPERM"} <= {"FIFREEZE", "FITHAW"}


@pytest.mark.parametrize("kind", GROUPS)
def test_groups_of_commands(supervised: Supervised, program: Put, kind: str) -> None:
    """Every number, direction and size: a file system's next command is refused as well."""
    done = supervised([program("commands"), "group", kind], None, "-q")
    found = {(int(way), int(number)) for way, number in map(str.split, done.lines())}
    assert found == {
        (way, number) for way in range(4) for number in range(256) if GROUPS[kind](way, number)
    }
    native = supervised.natively([program("commands"), "group", kind])
    assert len(native.lines()) >= 4 * 256 - 8


def test_tables_of_the_packet_filter(supervised: Supervised, program: Put) -> None:
    """They are refused, and on record; a socket's own options are as natively."""
    tool = program("commands")
    done = supervised([tool, "socket", *words(TABLES)], None, "-q")
    assert done.lines() == ["EPERM"] * 2 * len(TABLES)
    why = "the packet filter belongs to the machine"
    assert reasons(done, "setsockopt") == [why] * 2 * len(TABLES)
    done = supervised([tool, "socket", *words(OWN)], None, "-q")
    assert done.lines() == supervised.natively([tool, "socket", *words(OWN)]).lines()
    assert done.lines().count("done") >= len(OWN)
    assert reasons(done, "setsockopt") == []


def test_tables_of_ipvs(supervised: Supervised, program: Put) -> None:
    """Those of the load balancer, IP_VS_BASE_CTL and up, are refused as well."""
    options = [word for n in range(1152, 1169) for word in ("0", f"{n:x}")]
    done = supervised([program("commands"), "socket", *options], None, "-q")
    assert done.lines() == ["EPERM"] * 17


def test_filter_of_ones_own_socket(supervised: Supervised, program: Put) -> None:
    """SO_ATTACH_FILTER drops what one's own socket would get, and is as natively."""
    asked = [str(program("commands")), "filter"]
    done = supervised(asked)
    assert done.lines() == supervised.natively(asked).lines()
    assert reasons(done, "setsockopt") == []


def test_terminal_of_another_session(supervised: Supervised, program: Put) -> None:
    """TIOCSCTTY with an argument is refused whoever asks; the terminal stays where it is."""
    main, tty = pty.openpty()
    pairs = [(TIOCSCTTY, 1), (TIOCSCTTY, 2), (TIOCSCTTY + WIDE, 1), (TIOCSCTTY, 1 + WIDE)]
    asked = [f"{n:x}" for pair in pairs for n in pair]
    owner = subprocess.Popen(
        ["setsid", "-c", "sh", "-c", "echo; exec sleep 60"], stdin=tty, stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"\n"
        log = supervised.home / "audit"
        done = subprocess.run(
            [*supervised.words(None, "--audit", str(log)), program("commands"), "terminal", *asked],
            stdin=tty,
            capture_output=True,
            cwd=supervised.root,
            env=supervised.environ(),
            timeout=30,
            check=False,
            start_new_session=True,
        )
        terminal = Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[4]
    finally:
        owner.kill()
        owner.communicate()
        os.close(main)
        os.close(tty)
    assert done.stdout == b"EPERM\n" * len(pairs), done.stderr
    events = tuple(json.loads(line) for line in log.read_text().splitlines())
    told = reasons(Result(done.returncode, b"", b"", events), "ioctl")
    assert ["terminal" in why for why in told] == [True] * len(pairs)
    assert terminal != "0"


def test_terminal_of_ones_own(supervised: Supervised, program: Put) -> None:
    """Without the argument a terminal that nobody has is taken, as every terminal program does."""
    main, tty = pty.openpty()
    try:
        done = subprocess.run(
            [*supervised.words(None, "-q"), program("commands"), "terminal", f"{TIOCSCTTY:x}", "0"],
            stdin=tty,
            capture_output=True,
            cwd=supervised.root,
            env=supervised.environ(),
            timeout=30,
            check=False,
            start_new_session=True,
        )
    finally:
        os.close(main)
        os.close(tty)
    assert done.stdout == b"done\n", done.stderr
