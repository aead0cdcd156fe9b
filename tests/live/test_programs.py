"""Real programs under agent-dev do what they do without: git, make with a compiler, pip.

A script runs natively and then supervised, in a folder of the very same name, so that paths in
configuration files, archives and debug information are equal too: all that is left behind is
compared byte by byte, but for what VARIES names.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

from live_world import Result, Supervised

# Contents that are different after two native runs, too.
VARIES = {
    "*/.git/index": "inode numbers and times; the scripts print what `git ls-files -s` says",
}
# pyc files begin with the time of their source.
PYC_HEADER = 16
# Denials that change nothing: call and path, and why.
HARMLESS = {
    ("bind", "[[]::1]:0"): "urllib3 in pip tries at import whether there is IPv6, no more",
    ("*", "/usr/lib/python3*/__pycache__*"): "a Python that was installed without its compiled "
    "files, as while apt replaces it: as root it writes them, otherwise it does without",
    ("openat", "/var/tmp/folder.swp"): "vim looks for a place, as the file's own folder is missing",
    ("openat", "/tmp/folder.swp"): "the next place it tries",
    ("socket", "socket of family 1, type 2"): "utempter, which tmux starts, tells the system log",
    ("socket", "socket of family 16, type 3"): "npm asks for the network interfaces",
    ("openat", "*/.config/go/telemetry/*"): "go counts how it is used, where the home folder has "
    "such a folder already; the counts may be sent on, so nothing here writes them",
}

GIT_CONFIG = """\
[user]
\tname = Live
\temail = live@example.test
[init]
\tdefaultBranch = main
[pack]
\tthreads = 1
"""
GIT = r"""
exec 2>&1
set -eu
export GIT_AUTHOR_DATE=2024-01-02T03:04:05Z GIT_COMMITTER_DATE=2024-01-02T03:04:05Z
top=$PWD
step() { echo "== $*"; "$@"; }

git init -q seed && cd seed
mkdir src
for n in 1 2 3 4 5 6 7 8 9; do echo "line $n of the text" >>src/text; done
printf '#!/bin/sh\necho tool\n' >tool && chmod +x tool
ln -s src/text link
git add . && git commit -qm first
step git clone --bare . ../origin.git
step git clone "$top/origin.git" "$top/project"
cd "$top/project"
printf '#!/bin/sh\necho "hook $(git rev-parse --abbrev-ref HEAD)"\n' >.git/hooks/pre-commit
chmod +x .git/hooks/pre-commit

sed -i 's/line 1/LINE 1/' src/text && ./tool && cat link
git mv tool tools
step git status --porcelain
step git commit -am "edit and rename"
step git switch -c topic
echo "on topic" >>src/text && git commit -am "on topic"
step git switch main
echo "on main" >>src/text && echo new >new && git add new && git commit -am "on main"
step git merge topic && exit 9
step git status --porcelain
sed -i '/^[<=>]/d' src/text && git add src/text && step git commit -m "merge by hand"
step git switch -c side HEAD~1
echo side >side && git add side && step git commit -m side
step git rebase main
step git switch main
step git merge --no-ff --no-edit side

echo unfinished >>new && echo untracked >loose
step git stash push -u
step git status --porcelain
step git stash list
step git stash pop
git restore new && rm loose
step git tag -a v1 -m "version 1"
step git worktree add ../second topic
git -C ../second reset -q --hard HEAD~1 && cat ../second/src/text
step git worktree remove ../second
step git gc --prune=now
step git count-objects -v
step git fsck --full --strict
step git push origin main topic v1
step git log --all --format='%h %an <%ae> %cd %s' --date=iso-strict
step git log --stat -M --format=%s
step git ls-files -s
step git clone --branch main "file://$top/origin.git" "$top/again"
step git -C "$top/again" ls-files -s
cd "$top/origin.git"
step git for-each-ref
step git -C "$top/seed" pull "$top/origin.git" main
step git -C "$top/seed" ls-files -s
"""

UNITS = 50
MAKEFILE = """\
CFLAGS = -std=gnu11 -O1 -g -Wall -Werror -Iinclude -MMD -MP
UNITS := $(sort $(wildcard src/unit*.c))

program: main.o libunits.a
\t@echo LD $@
\t@$(CC) $(CFLAGS) -o $@ main.o -L. -lunits
libunits.a: $(UNITS:src/%.c=build/%.o)
\t@echo AR $@
\t@rm -f $@ && $(AR) rcsD $@ $^
build/%.o: src/%.c | build
\t@echo CC $@
\t@$(CC) $(CFLAGS) -c -o $@ $<
main.o: src/main.c
\t@echo CC $@
\t@$(CC) $(CFLAGS) -c -o $@ $<
build:
\t@mkdir $@
-include $(wildcard *.d build/*.d)
"""
MAKE = """
exec 2>&1
set -eu
# In parallel the order of lines is left to chance.
built() { echo "== $1"; make -j8 >log || { cat log; exit 9; }; sort log; rm log; }
built "everything"
echo "== run"
./program
built "nothing"
touch src/unit17.c
built "one file"
sed -i 's/define UNIT23 23/define UNIT23 1000/' include/unit23.h
built "a header"
echo "== changed"
./program
echo "== library"
ar t libunits.a
"""

WHEEL = "parrot-1.2-py3-none-any.whl"
PACKAGE = {
    "parrot/__init__.py": "from parrot.words import SAID\n\n__all__ = ['SAID']\n",
    "parrot/words.py": (
        "from importlib.resources import files\n\n"
        "SAID = files('parrot').joinpath('said.txt').read_text()\n"
    ),
    "parrot/said.txt": "pieces of eight\n",
    "parrot/main.py": (
        "import sys\nfrom parrot import SAID\n\n\n"
        "def main() -> int:\n    print(SAID.strip(), *sys.argv[1:])\n    return 3\n"
    ),
    "parrot-1.2.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: parrot\nVersion: 1.2\nSummary: Says it again\n"
        "Requires-Python: >=3.11\n\nSays it again.\n"
    ),
    "parrot-1.2.dist-info/WHEEL": (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ),
    "parrot-1.2.dist-info/entry_points.txt": "[console_scripts]\nparrot = parrot.main:main\n",
    "parrot-1.2.dist-info/top_level.txt": "parrot\n",
}
PIP = """
exec 2>&1
set -eu
export PYTHONHASHSEED=0
step() { echo "== $*"; "$@"; }
step python3 -m venv env
step env/bin/pip install --no-index --find-links . parrot
step env/bin/python -c 'import parrot; print(parrot.__file__, parrot.SAID)'
step env/bin/parrot a "b c" || echo "code $?"
step env/bin/pip show --files parrot
mkdir kept
cp -a env/bin env/lib/python3*/site-packages/parrot* kept
step env/bin/pip uninstall -y parrot
step find env -name '*parrot*'
step env/bin/python -c 'import parrot' || echo "code $?"
"""

FAKEROOT = r"""
exec 2>&1
set -eu
echo content >file && mkdir folder && ln -s file link
fakeroot sh -eu -c '
    id -u
    chown 12345:12346 file link && chmod 4711 file && mknod node c 1 3
    stat -c "%n %U:%G %u:%g %a %F %t:%T" file link folder node
    tar --sort=name --mtime=@0 -cf made.tar file folder link node
'
tar --numeric-owner -tvf made.tar
rm node
echo "== saved"
fakeroot -s state chown 7:8 file
fakeroot -i state stat -c %u:%g file
rm state
for n in 1 2 3 4; do
    echo $n >out$n
    fakeroot -- sh -c "chown $n:$n out$n; stat -c %u out$n >>out$n" &
done
wait
cat out1 out2 out3 out4
"""


def content(path: Path, name: str) -> str:
    """What stands for the bytes of a file."""
    if any(fnmatch(f"/{name}", pattern) for pattern in VARIES):
        return "varies"
    data = path.read_bytes()
    return hashlib.sha256(data[PYC_HEADER:] if path.suffix == ".pyc" else data).hexdigest()


def tree(root: Path) -> dict[str, str]:
    """Every name below a folder: type, mode, owner, number of links, and what it holds."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in map(Path(folder).joinpath, [*folders, *files]):
            short = str(name.relative_to(root))
            about = name.lstat()
            held = ""
            if stat.S_ISLNK(about.st_mode):
                held = f"-> {os.readlink(name)}"
            elif stat.S_ISREG(about.st_mode):
                held = content(name, short)
            mode, owner = stat.filemode(about.st_mode), f"{about.st_uid}:{about.st_gid}"
            found[short] = f"{mode} {owner} {about.st_nlink} {held}"
    return found


def harmless(call: str, path: str) -> bool:
    """Whether HARMLESS names this denial."""
    return any(fnmatch(call, known) and fnmatch(path, where) for known, where in HARMLESS)


def unlike(native: dict[str, str], ours: dict[str, str]) -> list[str]:
    """One line for each name that differs."""
    return [
        f"{name}: natively {native.get(name)}, supervised {ours.get(name)}"
        for name in sorted({*native, *ours})
        if native.get(name) != ours.get(name)
    ]


def same(
    supervised: Supervised,
    script: str,
    prepare: Callable[[Path], None] = Path.touch,
    pack: str = "agent-dev",
) -> Result:
    """Run a script both ways; whatever can be seen of it from outside must be equal.

    Args:
        supervised: the runner; its workspace is where both runs take place.
        script: what sh runs.
        prepare: fills the workspace.
        pack: the policy.
    """
    root = supervised.root
    prepare(root)
    native = supervised.natively(["sh", "-c", script])
    assert native.code == 0, native.out.decode()
    expected = tree(root)
    root.rename(root.with_name("native"))
    root.mkdir()
    prepare(root)
    ours = supervised(["sh", "-c", script], f"pack:{pack}", "-q")
    assert (ours.code, ours.lines()) == (0, native.lines())
    assert (ours.err, native.err) == (b"", b"")
    assert unlike(expected, tree(root)) == []
    assert [denial for denial in ours.denied() if not harmless(*denial)] == []
    assert {"exec", "file"} <= {event["type"] for event in ours.events}
    return ours


def sections(lines: list[str]) -> dict[str, list[str]]:
    """The lines below each heading that a script printed."""
    parts: dict[str, list[str]] = {}
    part: list[str] = []
    for line in lines:
        if line.startswith("== "):
            part = parts.setdefault(line.removeprefix("== "), [])
        else:
            part.append(line)
    return parts


def units(root: Path) -> None:
    """Write 50 C files with a header each, a program that calls them all, and a Makefile."""
    for folder in ("src", "include"):
        (root / folder).mkdir()
    for n in range(UNITS):
        this, before = f"unit{n:02}", f"unit{(n - 1) % UNITS:02}"
        (root / f"include/{this}.h").write_text(
            f"#pragma once\n#define {this.upper()} {n}\nint {this}(int left);\n"
        )
        (root / f"src/{this}.c").write_text(
            f'#include "{this}.h"\n#include "{before}.h"\n\nint {this}(int left)\n{{\n'
            f"\treturn left ? {this.upper()} + {before}(left - 1) : 0;\n}}\n"
        )
    heads = "".join(f'#include "unit{n:02}.h"\n' for n in range(UNITS))
    calls = "".join(f'\tprintf("%d\\n", unit{n:02}({UNITS}));\n' for n in range(UNITS))
    (root / "src/main.c").write_text(
        f"#include <stdio.h>\n{heads}\nint main(void)\n{{\n{calls}\treturn 0;\n}}\n"
    )
    (root / "Makefile").write_text(MAKEFILE)


def wheel(root: Path) -> None:
    """Write a wheel as a build tool would."""
    record = "parrot-1.2.dist-info/RECORD"
    lines = []
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in PACKAGE.items():
            archive.writestr(zipfile.ZipInfo(name), text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
            lines.append(f"{name},sha256={digest.decode()},{len(text)}\n")
        archive.writestr(zipfile.ZipInfo(record), "".join([*lines, f"{record},,\n"]))
    (root / WHEEL).write_bytes(held.getvalue())


def test_git(supervised: Supervised) -> None:
    """Clone, commit, merge, rebase, stash, gc and push leave the same repositories."""
    (supervised.home / ".gitconfig").write_text(GIT_CONFIG)
    parts = sections(same(supervised, GIT).lines())
    assert "CONFLICT (content): Merge conflict in src/text" in parts["git merge topic"]
    assert len(parts["git log --all --format=%h %an <%ae> %cd %s --date=iso-strict"]) == 7
    assert parts["git fsck --full --strict"] == []
    pushed = [line.split()[-1] for line in parts["git for-each-ref"]]
    assert pushed == ["refs/heads/main", "refs/heads/topic", "refs/tags/v1"]


def test_make(supervised: Supervised) -> None:
    """A parallel build makes the same bytes, and builds again only what has to be."""
    parts = sections(same(supervised, MAKE, units).lines())
    objects = [f"unit{n:02}.o" for n in range(UNITS)]
    compiled = [f"CC build/{name}" for name in objects]
    total = sum(range(UNITS))
    assert parts == {
        "everything": sorted([*compiled, "CC main.o", "AR libunits.a", "LD program"]),
        "run": [str(total)] * UNITS,
        "nothing": ["make: 'program' is up to date."],
        "one file": ["AR libunits.a", compiled[17], "LD program"],
        "a header": ["AR libunits.a", compiled[23], compiled[24], "CC main.o", "LD program"],
        "changed": [str(total - 23 + 1000)] * UNITS,
        "library": objects,
    }


def test_pip(supervised: Supervised) -> None:
    """A new environment takes a wheel, runs its command, and lets go of it."""
    parts = sections(same(supervised, PIP, wheel).lines())
    assert parts["env/bin/parrot a b c"] == ["pieces of eight a b c", "code 3"]
    assert "  ../../../bin/parrot" in parts["env/bin/pip show --files parrot"]
    assert parts["find env -name *parrot*"] == []
    assert parts["env/bin/python -c import parrot"][-1] == "code 1"
    assert parts["env/bin/pip install --no-index --find-links . parrot"][-1].startswith("Success")


def test_fakeroot(supervised: Supervised) -> None:
    """Owners that only the run believes in, kept by a server on message queues and semaphores."""
    lines = same(supervised, FAKEROOT).lines()
    assert "file UNKNOWN:UNKNOWN 12345:12346 4711 regular file 0:0" in lines
    assert "node root:root 0:0 644 character special file 1:3" in lines
    assert lines[-9:] == ["7:8", "1", "1", "2", "2", "3", "3", "4", "4"]
