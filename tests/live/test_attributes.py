"""Extended attributes: set and removed as natively, decided as metadata."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised, differing, twins

Put = Callable[..., Path]
PYTHON = "/usr/bin/python3"
# version 2, effective: CAP_NET_BIND_SERVICE
CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)


def same(pairs: list[tuple[str, str]]) -> None:
    """Hold the two runs against each other."""
    assert len(pairs) > 700
    assert sum(natively.split("\t")[2].startswith("ok") for natively, _ in pairs) > 50
    wrong = differing(pairs)
    assert not wrong, f"{len(wrong)} lines differ:\n" + "\n".join(wrong[:20])


def test_attributes_behave_as_natively(supervised: Supervised, program: Put) -> None:
    """Errno and what is left are equal line by line, whatever is wrong with the arguments."""
    same(twins(supervised, program("attributes_table")))


@pytest.mark.root
def test_changed_identity(supervised: Supervised, program: Put) -> None:
    """A child with other ids sets what it could set natively, and no more."""
    same(twins(supervised, program("attributes_table"), 54321))


def python(code: str) -> list[str]:
    """A program of the system's Python, which the policy lets run."""
    return [PYTHON, "-ISc", "import os, sys\n" + code]


SHOW = """
def do(call, *args):
    try:
        call(*args)
        print("ok")
    except OSError as fault:
        print(os.strerror(fault.errno))
"""


@pytest.mark.root
def test_attributes_of_the_system(supervised: Supervised) -> None:
    """What overlays, labels and signatures go by is refused; a capability is given as natively."""
    (supervised.root / "f").write_text("")
    code = f"""{SHOW}
do(os.setxattr, "f", "trusted.overlay.opaque", b"y")
do(os.removexattr, "f", "trusted.kept")
do(os.setxattr, "f", "security.label", b"y")
do(os.setxattr, "f", "security.capability", {CAPABILITY!r})
do(os.removexattr, "f", "security.capability")
do(os.setxattr, "f", "user.kept", b"y")
"""
    os.setxattr(supervised.root / "f", "trusted.kept", b"1")
    done = supervised(python(code))
    no = "Operation not permitted"
    assert done.lines() == [no, no, no, "ok", "ok", "ok"], done.err
    assert set(os.listxattr(supervised.root / "f")) == {"trusted.kept", "user.kept"}
    denied = [event for event in done.events if event["decision"] == "deny"]
    assert [event["action"]["call"] for event in denied] == ["setxattr", "removexattr", "setxattr"]
    assert b"means something to the system outside" in done.err


def test_decided_as_metadata(supervised: Supervised) -> None:
    """A rule that denies metadata keeps attributes as they are, whatever leads to the file."""
    for name in ("free", "kept"):
        (supervised.root / name).write_text("")
        os.setxattr(supervised.root / name, "user.old", b"1")
    (supervised.root / "link").symlink_to("kept")
    policy = POLICY + '  - {id: kept, deny: [metadata], paths: ["${root}/kept"]}\n'
    code = f"""{SHOW}
for name in ("free", "kept", "link"):
    do(os.setxattr, name, "user.new", b"2")
    do(os.removexattr, name, "user.old")
for name in ("free", "kept"):
    fd = os.open(name, os.O_RDONLY)
    do(os.setxattr, fd, "user.fd", b"3")
    do(os.removexattr, fd, "user.new")
    do(os.setxattr, f"/proc/self/fd/{{fd}}", "user.fd", b"4")
print(os.getxattr("kept", "user.old"), os.listxattr("kept"))
"""
    done = supervised(python(code), policy)
    no = "Permission denied"
    by_path = ["ok", "ok", no, no, no, no]
    assert done.lines()[:12] == [*by_path, "ok", "ok", "ok", no, no, no], done.err
    assert done.lines()[12] == "b'1' ['user.old']"
    assert ("setxattr", str(supervised.root / "kept")) in done.denied()
    assert ("fremovexattr", str(supervised.root / "kept")) in done.denied()
    made = [event["action"]["call"] for event in done.events if event["decision"] == "allow"]
    assert made.count("setxattr") == 2
    assert made.count("fsetxattr") == 1


def test_observing_refuses_nothing_of_it(supervised: Supervised) -> None:
    """Observing, an attribute that a rule denies is set, and told."""
    (supervised.root / "f").write_text("")
    policy = POLICY + '  - {id: kept, deny: [metadata], paths: ["${root}/f"]}\n'
    done = supervised(python('os.setxattr("f", "user.a", b"1")'), policy, "--mode", "observe")
    assert done.code == 0, done.err
    assert os.getxattr(supervised.root / "f", "user.a") == b"1"


def test_a_memory_file_needs_no_rule(supervised: Supervised) -> None:
    """What has no name and belongs to the tree: the kernel's answer, not ours."""
    code = f"""{SHOW}
do(os.setxattr, os.memfd_create("m"), "user.a", b"1")
do(os.setxattr, os.pipe()[0], "user.a", b"1")
"""
    words = python(code)
    assert supervised(words).lines() == supervised.natively(words).lines()


@pytest.mark.parametrize("tool", ["tar", "cp", "shutil"])
def test_copies_keep_attributes(supervised: Supervised, tool: str) -> None:
    """tar, cp and Python carry attributes over, large ones too."""
    source = supervised.root / "source"
    (source / "sub").mkdir(parents=True)
    wanted = {"user.small": b"1", "user.bytes": bytes(range(256)), "user.empty": b""}
    for place in (source / "sub", source / "sub/f"):
        if place.name == "f":
            place.write_text("content")
        for name, value in wanted.items():
            os.setxattr(place, name, value)
    if tool == "tar":
        script = (
            "tar --xattrs -cf a.tar source && mkdir copy && "
            "tar --xattrs -xf a.tar -C copy --strip-components=1"
        )
        words = ["/bin/sh", "-c", script]
    elif tool == "cp":
        words = ["/bin/cp", "-a", "source", "copy"]
    else:
        words = [PYTHON, "-Ic", "import shutil; shutil.copytree('source', 'copy')"]
    assert shutil.which(words[0])
    done = supervised(words)
    assert done.code == 0, done.err
    assert done.err == b""
    for name in ("sub", "sub/f"):
        copy = supervised.root / "copy" / name
        assert {key: os.getxattr(copy, key) for key in os.listxattr(copy)} == wanted
