"""Blocks: rules for some programs and all that they start, and no way out of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from live_world import POLICY, Result, Supervised, reachable

Put = Callable[..., Path]

SYSTEM = '{allow: [read, exec], paths: [/usr/**, /lib/**, /lib64/**, /bin/**, /etc/**, "/dev/**"]}'
# What is called agent lives in its folder; nothing else is narrowed.
BLOCK = f"""\
blocks:
  - id: agent
    for: {{program: agent}}
    files:
      - {SYSTEM}
      - {{id: tools, allow: [read, exec], paths: ["${{root}}/bin/**", "${{root}}/agent"]}}
      - {{id: kernel-in, allow: read, paths: [/proc/**]}}
      - {{id: inside, allow: all, paths: ["${{root}}/in/**"]}}
"""


OPEN = """\
blocks:
  - for: {program: agent}
    default: allow
    files:
      - {id: never, deny: write, paths: ["${root}/never"]}
"""


@pytest.fixture
def scene(supervised: Supervised, program: Put) -> Path:
    """A workspace with a folder for the agent, a file outside, and a shell called agent."""
    root = supervised.root
    program("execs")
    (root / "in").mkdir()
    (root / "in/file").write_text("inside\n")
    (root / "file").write_text("outside\n")
    shutil.copy("/bin/sh", root / "agent")
    return root


def rules_of(done: Result) -> set[str]:
    """Ids of the rules that refused something."""
    return {event["rule"] for event in done.events if event["decision"] == "deny"}


def test_narrows_the_program(supervised: Supervised, scene: Path) -> None:
    """Reads and writes go where policy and block both allow; the default of the block is told."""
    script = "read x < in/file; echo $x; echo new > in/new; read y < file; echo [$y]; echo z > file"
    done = supervised(["./agent", "-c", script], POLICY + BLOCK)
    assert done.out == b"inside\n[]\n"
    assert (scene / "file").read_text() == "outside\n"
    assert (scene / "in/new").read_text() == "new\n"
    assert rules_of(done) == {"agent"}
    assert b"in block 'agent' nothing allows it" in done.err
    assert b"--program agent --path" in done.err


HEIRS = {
    "child": "cat file",
    "grandchild": "sh -c 'sh -c \"cat file; true\"; true'",
    "background": "cat file & wait",
    "orphan": "(setsid sh -c 'sleep 0.2; cat file > in/out 2>&1' &) ; sleep 0.6; cat in/out",
    "exec": "exec cat file",
    "other-name": "cp /bin/cat in/tac2; ./in/tac2 file",
    "python": "python3 -c 'print(open(\"file\").read())'",
    "spawn": "bin/execs spawn /bin/cat file",
    "fork": "python3 -c 'import os; os.fork(); os.fork(); print(open(\"file\").read())'",
    "thread": (
        "python3 -c 'import threading as t; "
        'x = t.Thread(target=lambda: print(open("file").read())); x.start(); x.join()\''
    ),
    "vfork": "bin/execs vfork bin/reader",
    "clone": 'python3 -c \'import subprocess as s; s.run(["cat", "file"])\'',
}


@pytest.mark.parametrize("how", HEIRS)
def test_descendants_are_in_it(supervised: Supervised, scene: Path, how: str) -> None:
    """Whatever a program in a block starts is in the block, however it is started."""
    script = scene / "bin/reader"
    script.write_text("#!/bin/sh\ncat file\n")
    script.chmod(0o755)
    done = supervised(["./agent", "-c", HEIRS[how]], POLICY + BLOCK)
    assert b"outside" not in done.out
    free = supervised(["sh", "-c", HEIRS[how]], POLICY + BLOCK)
    if how != "spawn":
        assert b"outside" in free.out, "the way itself works outside of the block"


@pytest.mark.usefixtures("scene")
def test_siblings_are_free(supervised: Supervised) -> None:
    """The parent, and what it starts before, at the same time and later, is not narrowed."""
    script = (
        "cat file; ./agent -c 'sleep 0.5; cat file' & sleep 0.2; cat file; wait; cat file; "
        "./agent -c 'cat file'; cat file"
    )
    done = supervised(["sh", "-c", script], POLICY + BLOCK, "-q")
    assert done.out == b"outside\n" * 4


def test_failed_starts_leave_no_trace(supervised: Supervised, scene: Path) -> None:
    """A program in a block that cannot start does not narrow who called it."""
    (scene / "broken").mkdir()
    broken = scene / "broken/agent"
    broken.write_bytes(b"\x7fELF but not really")
    broken.chmod(0o755)
    code = (
        "import os\n"
        f"for path in ({str(broken)!r}, '/nowhere/agent', {str(scene)!r}):\n"
        "    try: os.execv(path, ['agent'])\n"
        "    except OSError: pass\n"
        "print(open('file').read(), end='')\n"
    )
    done = supervised(["/usr/bin/python3", "-c", code], POLICY + BLOCK, "-q")
    assert done.out == b"outside\n"


@pytest.mark.parametrize("named", ["agent", '"${root}/ag*"', '["x", "${root}/agent"]'])
def test_how_programs_are_named(supervised: Supervised, scene: Path, named: str) -> None:
    """By name, as called and as it truly is; by path; one of a list."""
    (scene / "link").symlink_to("agent")
    policy = POLICY + BLOCK.replace("program: agent", f"program: {named}")
    for way in ("./agent -c 'cat file'", "./link -c 'cat file'"):
        done = supervised(["sh", "-c", way], policy, "-q")
        assert done.out == b"", way


def test_scripts_and_interpreters(supervised: Supervised, scene: Path) -> None:
    """A script counts by its own name and by that of its interpreter."""
    script = scene / "in/script"
    script.write_text("#!/bin/sh\ncat file\n")
    shell = scene / "in/other"
    shell.write_text(f"#!{scene}/agent\ncat file\n")
    for path in (script, shell):
        path.chmod(0o755)
    by_script = POLICY + BLOCK.replace("program: agent", "program: script")
    assert supervised(["in/script"], by_script, "-q").out == b""
    assert supervised(["in/other"], by_script, "-q").out == b"outside\n"
    assert supervised(["in/other"], POLICY + BLOCK, "-q").out == b""
    assert supervised(["in/script"], POLICY + BLOCK, "-q").out == b"outside\n"


def test_blocks_add_up(supervised: Supervised, scene: Path) -> None:
    """A program in two blocks may do what both allow; the second adds to the first."""
    second = (
        "  - id: reader\n    for: {program: cat}\n    default: allow\n"
        '    files:\n      - {id: no-two, deny: read, paths: ["${root}/in/two"]}\n'
    )
    (scene / "in/two").write_text("two\n")
    script = "cat file; cat in/file; cat in/two; read x < in/two; echo $x"
    done = supervised(["./agent", "-c", script], POLICY + BLOCK + second)
    assert done.out == b"inside\ntwo\n"
    assert rules_of(done) == {"agent", "no-two"}
    alone = supervised(["sh", "-c", "cat file; cat in/two"], POLICY + BLOCK + second)
    assert alone.out == b"outside\n"
    assert rules_of(alone) == {"no-two"}


@pytest.mark.usefixtures("scene")
def test_never_widens(supervised: Supervised) -> None:
    """What a block allows and the policy does not stays denied."""
    wide = "blocks:\n  - for: {program: agent}\n    files:\n      - {allow: all, paths: [/**]}\n"
    script = "echo x > /etc/supervise-test; read x < file; echo $x; cat /proc/self/mem"
    done = supervised(["./agent", "-c", script], POLICY + wide, "-q")
    assert done.out == b"outside\n"
    assert not Path("/etc/supervise-test").exists()


@pytest.mark.usefixtures("scene")
def test_programs_in_a_block(supervised: Supervised) -> None:
    """Exec rules of a block narrow what may be started in it, arguments included."""
    block = (
        "blocks:\n  - for: {program: agent}\n    default: allow\n    exec:\n"
        "      - {id: no-cat, deny: cat, as: EPERM}\n"
        "      - {id: no-x, deny: execs, argv: [show, x]}\n"
    )
    script = "cat file; bin/execs show y | head -1; bin/execs show x | head -1; head -1 file"
    done = supervised(["./agent", "-c", script], POLICY + block)
    assert b"[show][y]" in done.out
    assert b"[show][x]" not in done.out
    assert done.out.endswith(b"outside\n")
    assert done.out.count(b"outside") == 1
    assert rules_of(done) == {"no-cat", "no-x"}
    free = supervised(["sh", "-c", script], POLICY + block, "-q")
    assert b"[show][x]" in free.out
    assert free.out.count(b"outside") == 2


def test_steered_programs(supervised: Supervised, scene: Path) -> None:
    """A steered start is in the blocks of what was asked for and of what runs instead."""
    steer = "exec:\n  - {id: other, steer: [curl], to: [/bin/cat, file]}\n"
    shutil.copy("/bin/true", scene / "curl")
    for name, named in (("asked", "curl"), ("replacement", "cat")):
        policy = POLICY + steer + BLOCK.replace("program: agent", f"program: {named}")
        assert supervised(["./curl"], policy, "-q").out == b"", name
    assert supervised(["./curl"], POLICY + steer + BLOCK, "-q").out == b"outside\n"


def test_moves_in_a_block(supervised: Supervised, scene: Path) -> None:
    """Renames and links stay where the block decides alike; nothing is moved in or out."""
    wide = BLOCK.replace(
        'inside, allow: all, paths: ["${root}/in/**"]',
        'inside, allow: all, paths: ["${root}/in/**"]}\n'
        '      - {id: half, allow: [create, rename, delete], paths: ["${root}/half/**"]',
    )
    (scene / "half").mkdir()
    (scene / "half/secret").write_text("secret\n")
    code = (
        "import os\n"
        "for call, a, b in [(os.rename, 'half/secret', 'in/s'), (os.link, 'half/secret', 'in/t'),\n"
        "                   (os.rename, 'in/file', 'in/file2'),\n"
        "                   (os.rename, 'half/secret', 'half/s')]:\n"
        "    try: call(a, b); print('done')\n"
        "    except OSError as e: print(e.errno)\n"
    )
    done = supervised(["./agent", "-c", f'/usr/bin/python3 -c "{code}"'], POLICY + wide, "-q")
    assert done.out == b"18\n18\ndone\ndone\n", done.err


def test_no_way_out_by_renaming(supervised: Supervised, scene: Path) -> None:
    """A name that a block is for keeps it: renamed or linked, it would be another program."""
    script = (
        "import os\n"
        "for call in (os.rename, os.link):\n"
        "    try: call('agent', 'x')\n"
        "    except OSError as e: print(e.errno)\n"
    )
    done = supervised(["/usr/bin/python3", "-c", script], POLICY + BLOCK)
    assert not (scene / "x").exists()
    assert (scene / "agent").exists()
    assert done.out == b"18\n18\n"


@pytest.mark.usefixtures("scene")
def test_descriptors_are_not_asked_again(supervised: Supervised) -> None:
    """What was opened before is the caller's gift, as everywhere."""
    done = supervised(["sh", "-c", "./agent -c 'cat <&3' 3< file"], POLICY + BLOCK, "-q")
    assert done.out == b"outside\n"


def test_new_names_and_folders(supervised: Supervised, scene: Path) -> None:
    """Every kind of change is asked of the block."""
    script = (
        "mkdir d; ln -s x l; rm file; chmod 600 file; touch file; truncate -s 0 file; mkfifo p; "
        "ls . >/dev/null; rmdir bin; mv file in/; cp file in/copy; cd in; mkdir d; mv d e; rm file"
    )
    supervised(["./agent", "-c", script], POLICY + BLOCK, "-q")
    assert sorted(os.listdir(scene)) == ["agent", "bin", "file", "in"]
    assert (scene / "file").read_text() == "outside\n"
    assert sorted(os.listdir(scene / "in")) == ["e"]


INTO = """\
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class Part(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('n', ctypes.c_size_t)]
word = ctypes.create_string_buffer(8)
here = Part(ctypes.addressof(word), 8)
child = os.fork()
if child == 0:
    time.sleep(30)
    os._exit(0)
def said(name, rc):
    print(name, 'done' if rc >= 0 else os.strerror(ctypes.get_errno()))
def look(who, pid):
    for name in ('readv', 'writev'):
        call = getattr(libc, 'process_vm_' + name)
        said(f'{name}-{who}', call(pid, ctypes.byref(here), 1, ctypes.byref(here), 1, 0))
    said(f'ptrace-{who}', libc.ptrace(0x4206, pid, None, None))  # SEIZE
    pidfd = os.pidfd_open(pid)
    said(f'getfd-{who}', libc.syscall(438, pidfd, 0, 0))
    for name, how in (('read', os.O_RDONLY), ('write', os.O_RDWR)):
        for path in (f'/proc/{pid}/mem', f'/proc/{pid}/task/{pid}/mem'):
            try:
                os.close(os.open(path, how))
                print(name, who, 'done')
            except OSError as e:
                print(name, who, os.strerror(e.errno))
look('child', child)
if len(sys.argv) > 1:
    look('other', int(sys.argv[1]))
os.kill(child, 9)
"""


def test_nobody_is_reached_into(supervised: Supervised, scene: Path) -> None:
    """A process in a block gets no memory and no descriptors of others; others may."""
    (scene / "in/into.py").write_text(INTO)
    wide = POLICY.replace("kernel, allow: read", "kernel, allow: [read, write]")
    block = BLOCK.replace("kernel-in, allow: read", "kernel-in, allow: [read, write]")
    python = "/usr/bin/python3 in/into.py"
    done = supervised(["sh", "-c", f"./agent -c '{python} '$$"], wide + block, "-q")
    assert len(done.lines()) == 16, done.err
    assert b"done" not in done.out
    free = supervised(["sh", "-c", python], wide + block, "-q")
    told = [line for line in free.lines() if not line.startswith(("write child", "ptrace"))]
    assert len(told) == 5
    assert all(line.endswith("done") for line in told), free.out
    # an open block, too
    done = supervised(["sh", "-c", f"./agent -c '{python} '$$"], wide + OPEN, "-q")
    assert b"done" not in done.out
    assert len(done.lines()) == 16, done.err


def limits(done: Result) -> dict[str, str]:
    """What limits.c said."""
    return dict(line.split(" ", 1) for line in done.lines())


def check_limits(done: Result) -> None:
    """No try to set the limit came through, and other limits can be set."""
    found = limits(done)
    tries = {key: value for key, value in found.items() if key not in ("same", "limit")}
    assert len(tries) > 30
    assert set(tries.values()) <= {"EPERM"}, tries
    assert found["same"] == "1"
    assert "limit" not in found


@pytest.mark.usefixtures("scene")
def test_the_limit_cannot_be_set(supervised: Supervised, program: Put) -> None:
    """By no call, on nobody: not on oneself, parent, child, thread or sibling."""
    program("limits")
    sibling = "sleep 20 & S=$!; "
    script = f'{sibling} ./agent -c "bin/limits $S; cat file; true"; kill $S'
    done = supervised(["sh", "-c", script], POLICY + BLOCK, "-q")
    assert b"outside" not in done.out
    check_limits(done)
    # nor by one outside of all blocks, for another
    done = supervised(["sh", "-c", f"{sibling} bin/limits $S; kill $S"], POLICY + BLOCK, "-q")
    check_limits(done)


@pytest.mark.usefixtures("scene")
def test_refused_limits_are_told(supervised: Supervised) -> None:
    """Whoever tries is on record."""
    done = supervised(["/usr/bin/prlimit", "--msgqueue=0"], POLICY + BLOCK)
    assert done.code != 0
    assert b"in which blocks of the policy a process is" in done.err


@pytest.mark.usefixtures("scene")
def test_without_blocks_nothing_changes(supervised: Supervised, program: Put) -> None:
    """A run without blocks leaves the limit alone, and its tree may set it."""
    program("limits")
    show = ["/usr/bin/prlimit", "--msgqueue", "--noheadings"]
    assert supervised(show).out == supervised.natively(show).out
    lower = ["sh", "-c", "prlimit --msgqueue=4096:4096 --pid $$; prlimit --msgqueue --noheadings"]
    assert supervised(lower, None, "-q").out == supervised.natively(lower).out


def test_a_limit_that_is_too_low_starts_nothing(supervised: Supervised, scene: Path) -> None:
    """Where the limit cannot be what it must be, the run says so and does not start."""
    words = [*supervised.words(POLICY + BLOCK), "true"]
    around = ["/usr/bin/prlimit", "--msgqueue=1000:1000"]
    if os.geteuid() == 0:
        around = ["/usr/bin/setpriv", "--bounding-set=-sys_resource", "--inh-caps=-all", *around]
        around = [around[0], "--bounding-set=-sys_resource", *around[3:]]
    done = subprocess.run(
        [*around, *words], env=supervised.environ(), capture_output=True, check=False, cwd=scene
    )
    assert done.returncode == 125
    assert b"ulimit -q" in done.stderr


@pytest.mark.root
@pytest.mark.usefixtures("scene")
def test_root_gets_no_way_out(supervised: Supervised, program: Put) -> None:
    """With every capability, CAP_SYS_RESOURCE included, the limit stays."""
    program("limits")
    done = supervised(["./agent", "-c", "bin/limits; cat file"], POLICY + BLOCK, "-q")
    assert b"outside" not in done.out
    check_limits(done)


@pytest.mark.root
def test_other_identities(supervised: Supervised, scene: Path) -> None:
    """Who changed its identity is in its blocks as before, and can enter some."""
    reachable(scene)
    scene.chmod(0o777)
    (scene / "in").chmod(0o777)
    user = "/usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups"
    script = f"{user} cat file; {user} ./agent -c 'cat file; cat in/file'"
    done = supervised(["sh", "-c", script], POLICY + BLOCK, "-q")
    assert done.out == b"outside\ninside\n", done.err
    inside = supervised(
        ["./agent", "-c", f"{user} cat file; {user} cat in/file"], POLICY + BLOCK, "-q"
    )
    assert inside.out == b"inside\n", inside.err


@pytest.mark.usefixtures("scene")
def test_observing(supervised: Supervised) -> None:
    """Observing, a block's denials are on record, and pass."""
    done = supervised(["./agent", "-c", "cat file"], POLICY + BLOCK, "--mode", "observe")
    assert done.out == b"outside\n"
    assert "agent" in rules_of(done)


@pytest.mark.usefixtures("scene")
def test_private_folder(supervised: Supervised) -> None:
    """The run's own folder may stand in a block's rules."""
    policy = (
        POLICY
        + '  - {allow: all, paths: ["${TMPDIR}/**"]}\n'
        + BLOCK.replace('"${root}/in/**"', '"${root}/in/**", "${TMPDIR}/x/**"')
    )
    script = "mkdir $TMPDIR/x; ./agent -c 'echo a > $TMPDIR/x/y; echo a > $TMPDIR/z'; ls $TMPDIR"
    done = supervised(["sh", "-c", script], policy, "-q")
    assert done.out == b"x\n"
