"""Programs: every way to start one, natively and supervised, and rules about them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

Put = Callable[..., Path]
EMPTY_PATH = "0x1000"
NOFOLLOW = "0x100"


def rules(*lines: str) -> str:
    """The usual policy with exec rules."""
    return POLICY + "exec:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


def write(path: Path, text: str, mode: int = 0o755) -> Path:
    """A script."""
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def scene(supervised: Supervised, program: Put) -> Path:
    """The workspace with a program and scripts of every kind."""
    root = supervised.root
    program("execs")
    write(root / "script", '#!/bin/sh\necho "[$0][$1][$2]"\n')
    write(root / "options", '#!/bin/sh -e  \necho "[$0][$1]"; false; echo not reached\n')
    write(root / "outer", "#!./script\n")
    write(root / "bare", 'echo "bare [$0][$1]"\n')
    write(root / "spaces", "#!   \n")
    write(root / "lost", "#!/no/such/interpreter\n")
    write(root / "folder-interpreter", "#!/usr\n")
    write(root / "closed", "#!/bin/sh\n", 0o644)
    write(root / "self", "#!./self\n")
    write(root / "long", "#!" + "/" * 300 + "bin/sh\n")
    (root / "nothing").touch(0o755)
    os.chmod(root / "nothing", 0o755)
    (root / "link").symlink_to("bin/execs")
    (root / "script-link").symlink_to("script")
    (root / "dangling").symlink_to("nowhere")
    shutil.copy(root / "bin/execs", root / "unreadable-later")
    return root


WAYS = [
    ["bin/execs", "show", "a", "b c", ""],
    ["./link", "show"],
    ["./script", "a", "b c"],
    ["./script-link", "a"],
    ["./options", "x"],
    ["./outer", "a"],
    ["sh", "-c", "./bare a"],
    ["sh", "-c", "./spaces; echo $?"],
    ["sh", "-c", "./lost; echo $?"],
    ["sh", "-c", "./folder-interpreter; echo $?"],
    ["sh", "-c", "./closed; echo $?"],
    ["sh", "-c", "./self; echo $?"],
    ["sh", "-c", "./long a; echo $?"],
    ["sh", "-c", "./nothing; echo $?"],
    ["sh", "-c", "./dangling; echo $?"],
    ["sh", "-c", "./bin; echo $?"],
    ["sh", "-c", "PATH=/nowhere:bin:/usr/bin execs show; echo $?"],
    ["sh", "-c", "PATH=/nowhere:/usr/bin execs show; echo $?"],
    ["sh", "-c", "cd bin && exec ../script a"],
    ["sh", "-c", "exec 7</dev/null; MARK=yes bin/execs show"],
    ["bin/execs", "at", "bin", "execs"],
    ["bin/execs", "at", ".", "script"],
    ["bin/execs", "at", ".", "link"],
    ["bin/execs", "at", ".", "link", NOFOLLOW],
    ["bin/execs", "at", "bin", "../bin/execs", "0"],
    ["bin/execs", "at", "bin", "nosuch"],
    ["bin/execs", "at", "script", "x"],
    ["bin/execs", "at", "bin", "", EMPTY_PATH],
    ["bin/execs", "at", "bin/execs", "", "0"],
    ["bin/execs", "at", "bin", "execs", "0x40000"],
    ["bin/execs", "fd", "bin/execs"],
    ["bin/execs", "fd", "nothing"],
    ["bin/execs", "thread", "bin/execs"],
    ["bin/execs", "thread", "script"],
    ["bin/execs", "thread", "nothing"],
    ["bin/execs", "spawn", "bin/execs"],
    ["bin/execs", "spawn", "nosuch"],
    ["bin/execs", "vfork", "bin/execs"],
    ["bin/execs", "vfork", "lost"],
    ["bin/execs", "huge", "100000", "10", "bin/execs"],
    ["bin/execs", "huge", "131071", "1", "bin/execs"],
    ["bin/execs", "huge", "131072", "1", "bin/execs"],
    ["bin/execs", "huge", "100000", "100", "bin/execs"],
    ["bin/execs", "huge", "1", "60000", "bin/execs"],
    ["bin/execs", "as", "other-name", "bin/execs", "show"],
]


@pytest.mark.parametrize("ruled", [False, True], ids=["plain", "argv-rule"])
def test_starting_programs_is_as_natively(supervised: Supervised, scene: Path, ruled: bool) -> None:
    """Output and exit code are equal, whether or not a rule looks at the arguments."""
    policy = rules("id: never, deny: execs, argv: [never]") if ruled else None
    wrong = []
    for way in WAYS:
        native = supervised.natively(way, cwd=scene)
        ours = supervised(way, policy, "-q", cwd=scene)
        if (native.out, native.code) != (ours.out, ours.code):
            wrong.append((way, native.out, native.code, ours.out, ours.code, ours.err))
    assert not wrong


def test_program_in_memory_is_denied(supervised: Supervised, scene: Path) -> None:
    """A program that no path names runs nowhere."""
    done = supervised([scene / "bin/execs", "memfd", scene / "bin/execs"], None, "-q")
    assert done.out == b"EACCES\n"


def test_unreadable_program_is_denied(supervised: Supervised, scene: Path) -> None:
    """A program that may be run but not read would hide from us: refused."""
    (scene / "unreadable-later").chmod(0o111)
    if os.geteuid() != 0:
        done = supervised(["./unreadable-later", "show"], None, "-q")
        assert done.code == 126


@pytest.mark.parametrize(
    "way", ["bin/tool x", "./tool-link x", "PATH=copies tool x", "bin/execs at bin tool"]
)
def test_denied_by_name(supervised: Supervised, scene: Path, way: str) -> None:
    """The name counts as called and as it truly is: links and copies change nothing."""
    shutil.copy(scene / "bin/execs", scene / "bin/tool")
    (scene / "tool-link").symlink_to("bin/tool")
    (scene / "copies").mkdir()
    shutil.copy(scene / "bin/execs", scene / "copies/tool")
    done = supervised(["sh", "-c", way], rules("id: no-tool, deny: tool"))
    assert b"[" not in done.out
    assert [event["rule"] for event in done.events if event["decision"] == "deny"] == ["no-tool"]


def test_denied_by_arguments(supervised: Supervised, scene: Path) -> None:
    """A rule about arguments refuses these and no others."""
    policy = rules('id: no-push, deny: execs, argv: [show, "push*", "**"]')
    assert supervised([scene / "bin/execs", "show", "pull"], policy).code == 0
    done = supervised([scene / "bin/execs", "show", "push-it", "x"], policy)
    assert done.code == 126
    assert done.out == b""


def test_denied_interpreter(supervised: Supervised, scene: Path) -> None:
    """A script cannot bring an interpreter that the policy denies."""
    policy = rules("id: no-perl, deny: own-sh")
    shutil.copy("/bin/sh", scene / "bin/own-sh")
    write(scene / "evil", f"#!{scene}/bin/own-sh\necho ran\n")
    write(scene / "evil-chain", "#!./evil\n")
    for name in ("evil", "evil-chain"):
        done = supervised(["sh", "-c", f"./{name}; echo $?"], policy)
        assert b"ran" not in done.out
        assert any(path.endswith("own-sh") or "evil" in path for _, path in done.denied())


def test_files_rule_denies_execution(supervised: Supervised, scene: Path) -> None:
    """A path that may be read need not be executable."""
    policy = POLICY.replace(
        "allow: all, paths", "allow: [read, write, create, delete, metadata, rename], paths"
    )
    assert supervised([scene / "bin/execs", "show"], policy).code == 126
    assert supervised(["cat", "script"], policy).code == 0


@pytest.mark.parametrize("args", ["append", "replace"])
def test_steered_program(supervised: Supervised, scene: Path, args: str) -> None:
    """The other program runs, with our arguments, and everything else is kept."""
    mode = ", args: append" if args == "append" else ""
    policy = rules(
        'id: fetch, steer: [curl], to: ["${root}/bin/execs", show, --audited]' + mode,
    )
    write(scene / "bin/curl", "#!/bin/sh\necho the real one\n")
    inner = "mkdir d; cd d; exec 7</dev/null; MARK=kept ../bin/curl -s 'a b'; echo code=$?"
    done = supervised(["sh", "-c", inner], policy, cwd=scene)
    lines = done.lines()
    expected = f"[{scene}/bin/execs][show][--audited]"
    if args == "append":
        expected += "[-s][a b]"
    assert lines[0] == expected, done.err
    assert lines[1:3] == ["MARK=kept", f"cwd={scene}/d"]
    assert lines[3] == "fds=4"
    assert lines[-1] == "code=0"
    assert any(event["decision"] == "steer" for event in done.events)


@pytest.mark.parametrize("how", ["thread", "spawn", "vfork"])
def test_steered_from_anywhere(supervised: Supervised, scene: Path, how: str) -> None:
    """Threads and vforked children are steered like any other caller."""
    policy = rules('id: fetch, steer: [curl], to: ["${root}/bin/execs", show, there]')
    write(scene / "bin/curl", "#!/bin/sh\necho the real one\n")
    done = supervised([scene / "bin/execs", how, "bin/curl"], policy)
    assert done.lines()[0] == f"[{scene}/bin/execs][show][there]"


def steered(rule: str) -> str:
    """The usual policy with a steer of files: steers and allows may both match."""
    return POLICY + f"  - {{{rule}}}\n"


def test_steered_reading(supervised: Supervised) -> None:
    """A file is read elsewhere; other files, and writing, are as they were."""
    (supervised.root / "hosts").write_text("ours\n")
    policy = steered('id: resolv, steer: [read], paths: [/etc/hosts], to: "${root}/hosts"')
    done = supervised(
        ["sh", "-c", "cat /etc/hosts; echo x >> /etc/hosts; head -c1 /etc/passwd"], policy
    )
    assert done.out == b"ours\nr"
    assert (supervised.root / "hosts").read_text() == "ours\n"


def test_steered_writing(supervised: Supervised) -> None:
    """Changes go to another tree, copied there first where the old bytes matter."""
    home, scratch = supervised.home / "data", supervised.root / "scratch"
    (home / "sub").mkdir(parents=True)
    (home / "sub/old").write_text("before\n")
    policy = POLICY + (
        '  - {id: see, allow: [read], paths: ["${home}/**"]}\n'
        '  - {id: scratch, steer: [write, create], paths: ["${home}/**"], to: "${root}/scratch"}\n'
    )
    script = (
        'set -e; cd "$1"; echo new > sub/new; echo after >> sub/old; mkdir made made/deep; '
        "echo x > made/deep/file; echo gone > sub/old2; ln -s target sub/link"
    )
    done = supervised(["sh", "-c", script, "sh", home], policy, "--set", f"home={home}")
    assert (done.code, done.err) == (0, b"")
    assert sorted(str(p.relative_to(home)) for p in home.rglob("*")) == ["sub", "sub/old"]
    assert (home / "sub/old").read_text() == "before\n"
    assert (scratch / "sub/old").read_text() == "before\nafter\n"
    assert (scratch / "sub/new").read_text() == "new\n"
    assert (scratch / "made/deep/file").read_text() == "x\n"
    assert os.readlink(scratch / "sub/link") == "target"
