"""Tools that build, copy and pack: cmake and ninja, rsync, tar, apt, vim, npm, tmux.

As in test_programs: a script runs natively and then supervised, and all that is left is equal.
"""

from __future__ import annotations

from pathlib import Path

from live_world import Supervised
from test_programs import same, sections

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(parts C)
enable_testing()
add_library(parts STATIC one.c two.c)
add_library(moving SHARED three.c)
configure_file(made.h.in made.h @ONLY)
add_custom_command(OUTPUT four.c COMMAND sed s/NUMBER/4/ ${CMAKE_SOURCE_DIR}/four.in > four.c
                   DEPENDS four.in)
add_executable(program main.c four.c)
target_include_directories(program PRIVATE ${CMAKE_BINARY_DIR})
target_link_libraries(program parts moving)
set_target_properties(program PROPERTIES INSTALL_RPATH ${CMAKE_INSTALL_PREFIX}/lib)
add_test(NAME runs COMMAND program)
install(TARGETS program moving)
"""
CMAKE = """
exec 2>&1
set -eu
step() { echo "== $*"; "$@"; }
step cmake -S source -B out -G Ninja -DCMAKE_INSTALL_PREFIX="$PWD/installed" >configured
step cmake --build out -j1
step out/program
step ninja -C out -j1
sed -i 's/return 2/return 200/' source/two.c
step ninja -C out -j1
step out/program
(cd out && step ctest --output-on-failure | sed 's/[0-9.]* sec.*//')
step cmake --install out
step installed/bin/program
sed -i 's/project(parts/project(pieces/' source/CMakeLists.txt
echo "== renamed"
ninja -C out -j1 | grep -v '^--'
step out/program
step ninja -C out -t clean
find out -name '*.o' -o -name '*.so'
# what has times, or its own length of time, in it
rm -rf out/.ninja_log out/.ninja_deps out/CMakeFiles out/Testing configured
"""


def sources(root: Path) -> None:
    """A project with two libraries, a header and a source that are made, and a program."""
    source = root / "source"
    source.mkdir(exist_ok=True)
    (source / "CMakeLists.txt").write_text(CMAKE_LISTS)
    for n, name in enumerate(("one", "two", "three"), 1):
        (source / f"{name}.c").write_text(f"int {name}(void)\n{{\n\treturn {n};\n}}\n")
    (source / "four.in").write_text("int four(void)\n{\n\treturn NUMBER;\n}\n")
    (source / "made.h.in").write_text('#define NAME "@PROJECT_NAME@"\n')
    calls = "one() + two() + three() + four()"
    (source / "main.c").write_text(
        '#include <stdio.h>\n#include "made.h"\n\n'
        "int one(void), two(void), three(void), four(void);\n\n"
        f'int main(void)\n{{\n\tprintf(NAME " %d\\n", {calls});\n\treturn 0;\n}}\n'
    )


RSYNC = r"""
exec 2>&1
set -eu
step() { echo "== $*"; "$@"; }
mkdir -p from/deep/er
seq 1 20000 >from/numbers
seq 1 3 >from/deep/three && chmod 640 from/deep/three
ln -s deep/three from/link && ln from/numbers from/deep/hard && mkfifo from/pipe
truncate -s 1M from/deep/er/holes && printf tail >>from/deep/er/holes
touch -d 2024-01-02T03:04:05 from/numbers from/deep/three from/link
setfattr -n user.note -v kept from/deep/three 2>/dev/null || echo "no attributes here"
step rsync -aHSX --itemize-changes from/ to/
step rsync -aHSX --itemize-changes --delete from/ to/
sed -i 's/^777$/changed/' from/numbers
rm from/deep/three
step rsync -aH --no-whole-file --itemize-changes --delete --backup --suffix=.old from/ to/
step rsync -a --inplace --no-whole-file --checksum --itemize-changes from/numbers to/numbers
step rsync -a --link-dest=../from --exclude='*.old' to/ linked/
step rsync -an --itemize-changes --delete from/ to/
mkdir -p closed && chmod 500 closed
rsync -a from/link from/numbers missing to/ || echo "code $?"
stat -c '%n %h %b' from/deep/er/holes to/deep/er/holes linked/deep/er/holes
cmp from/numbers to/numbers
"""

TAR = r"""
exec 2>&1
set -eu
step() { echo "== $*"; "$@"; }
mkdir -p in/sub
echo one >in/one && echo two >in/sub/two && ln -s one in/link && ln in/one in/sub/hard
mkfifo in/pipe && truncate -s 200K in/holes && echo end >>in/holes
chmod 4711 in/one && chmod 1777 in/sub
attributes=yes
setfattr -n user.note -v "of one" in/one && setfattr -n user.empty in/sub || attributes=no
setfacl -m u:12345:r in/sub/two 2>/dev/null || echo "no access lists here"
touch -d 2024-01-02T03:04:05Z in/one in/sub/two in/holes in/pipe && touch -hd 2024-01-02 in/link
touch -d 2024-01-02T03:04:05Z in/sub in
step tar --xattrs --acls --sparse --sort=name --format=pax --pax-option=delete=atime,delete=ctime \
    -cf kept.tar in
step tar --xattrs --acls -tvvf kept.tar
mkdir out && step tar --xattrs --acls -xpf kept.tar -C out
[ $attributes = no ] || step getfattr -R -d --absolute-names out/in
step tar -df kept.tar -C out
echo "== packed"
for pack in gzip bzip2 xz zstd; do
    command -v $pack >/dev/null || continue
    tar --use-compress-program=$pack -cf in.$pack in/one in/sub
    tar --use-compress-program=$pack -tf in.$pack
    rm in.$pack
done
step tar -rf kept.tar --transform=s/one/another/ in/one
step tar -tf kept.tar
tar -cf - in | (mkdir piped && tar -xf - -C piped)
rm kept.tar
"""

APT_CONF = """\
Dir "{root}/apt";
Dir::State::status "{root}/apt/status";
Dir::Cache::archives "{root}/apt/archives";
Dir::Etc::sourcelist "{root}/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::trusted "-";
Dir::Etc::trustedparts "-";
Dir::Log "{root}/apt/log";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "";
Acquire::Languages "none";
"""
APT = r"""
exec 2>&1
set -eu
export APT_CONFIG=$PWD/apt.conf SOURCE_DATE_EPOCH=1704164645
step() { echo "== $*"; "$@"; }
mkdir -p apt/var/lib/apt/lists/partial apt/archives/partial apt/log repo fetched
mkdir -p apt/etc/apt/apt.conf.d apt/etc/apt/preferences.d
: >apt/status
echo "deb [trusted=yes] file:$PWD/repo ./" >apt/sources.list
step dpkg-deb --root-owner-group -Zgzip -b parrot repo/parrot_1.2_all.deb
cd repo
{ dpkg-deb -f parrot_1.2_all.deb
  echo "Filename: ./parrot_1.2_all.deb"
  echo "Size: $(stat -c %s parrot_1.2_all.deb)"
  echo "SHA256: $(sha256sum parrot_1.2_all.deb | cut -d' ' -f1)"
  echo; } >Packages
printf 'Date: Tue, 02 Jan 2024 03:04:05 UTC\nSHA256:\n %s %s Packages\n' \
    "$(sha256sum Packages | cut -d' ' -f1)" "$(stat -c %s Packages)" >Release
cd ..
step apt-get -q update | grep -v '^Fetched'
step apt-cache policy parrot
step apt-cache show parrot
cd fetched
step apt-get -q download parrot | grep -v '^Fetched'
step dpkg-deb -x parrot_1.2_all.deb root
step dpkg-deb -c parrot_1.2_all.deb
step apt-get -q -s install parrot
step apt-get -q download missing || echo "code $?"
# what holds times and numbers of its own
rm -rf ../apt/pkgcache.bin ../apt/srcpkgcache.bin
"""


def package(root: Path) -> None:
    """What dpkg-deb makes a package of, and apt's settings."""
    held = root / "parrot"
    (held / "DEBIAN").mkdir(parents=True)
    (held / "DEBIAN").chmod(0o755)
    (held / "DEBIAN/control").write_text(
        "Package: parrot\nVersion: 1.2\nArchitecture: all\n"
        "Maintainer: Live <live@example.test>\nDescription: Says it again\n"
    )
    (held / "usr/share/parrot").mkdir(parents=True)
    (held / "usr/share/parrot/said.txt").write_text("pieces of eight\n")
    (root / "apt.conf").write_text(APT_CONF.format(root=root))


VIM = r"""
exec 2>&1
set -eu
export TERM=xterm
seq 1 200 >text && chmod 640 text && ln -s text link
ed() {
    echo "== $*"
    # its own list of folders without backups has $TMPDIR in it
    vim -N -u NONE -i NONE -es -c 'set backupskip=' "$@" </dev/null || echo "code $?"
}
ed -c '%s/^7$/seven/' -c '10,20d' -c '$put ="last"' -c x link
ed -c 'set backup backupcopy=yes' -c 1d -c w -c q text
ed -c 'set backup backupcopy=no backupext=.old' -c 1d -c w -c q text
ed -c 'set undofile undodir=.' -c 'normal Gosome more' -c 'w other' -c 'r !echo from a shell' \
    -c 'w!' -c q text
ed -c 'set ff=dos' -c 'set fenc=latin1' -c wq other
ed -c 'g/1/m0' -c '%!sort -n' -c 'saveas sorted' -c q other
ed -c 'wq' missing/folder
ed -c 'mksession session' -c 'mkview view' -c 'preserve' -c 'q!' text
chmod 400 text
ed -c 1d -c w -c 'q!' text
ed -c 1d -c 'w!' -c q text
ls
find . -name '*.un~' -delete
rm -f session view
sha256sum text link other sorted text~ text.old
"""


NPM = r"""
exec 2>&1
set -eu
export npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
export npm_config_progress=false npm_config_loglevel=warn npm_config_offline=true
# how long it took, and where it wrote about that
step() { echo "== $*"; "$@" | sed 's/ in [0-9.]*m\?s$//'; }
(cd parrot && step npm pack --pack-destination ..)
cd project
step npm install ../parrot-1.2.0.tgz
step npm test
step npm exec -- parrot a "b c"
step node all.js
rm -rf node_modules
step npm ci
step npm uninstall parrot
npm run failing >failed || echo "code $?"
grep -v '[.]log$' failed && rm failed
"""
PARROT = {
    "package.json": """{
  "name": "parrot", "version": "1.2.0", "bin": "cli.js", "main": "index.js",
  "scripts": {"postinstall": "node note.js"}
}
""",
    "note.js": "require('fs').writeFileSync('installed', process.version);\n",
    "index.js": "module.exports = words => ['pieces of eight', ...words].join(' ');\n",
    "cli.js": "#!/usr/bin/env node\nconsole.log(require('parrot')(process.argv.slice(2)));\n",
}
PROJECT = {
    "package.json": """{
  "name": "project", "version": "0.1.0", "private": true,
  "scripts": {
    "test": "node --test test.mjs >/dev/null && echo tested",
    "failing": "node -e 'process.exit(7)'"
  }
}
""",
    "test.mjs": "import test from 'node:test';\nimport assert from 'node:assert';\n"
    "import parrot from 'parrot';\n"
    "test('says', () => assert.equal(parrot(['x']), 'pieces of eight x'));\n",
    # threads, children, streams, watchers and a folder read by the thread pool
    "all.js": "const {Worker, isMainThread, parentPort} = require('worker_threads');\n"
    "const {execFileSync, fork} = require('child_process');\n"
    "const fs = require('fs');\n"
    "if (!isMainThread) return parentPort.postMessage('from a thread');\n"
    "if (process.send) return process.send('from a child', () => process.disconnect());\n"
    "console.log(execFileSync('sh', ['-c', 'echo from a shell']).toString().trim());\n"
    "console.log(fs.readdirSync('.').join(' '));\n"
    "new Worker(__filename).on('message', text => {\n"
    "  console.log(text);\n"
    "  fork(__filename).on('message', text => console.log(text));\n"
    "});\n",
}


def packages(root: Path) -> None:
    """A package of JavaScript, and a project to use it."""
    for name, files in (("parrot", PARROT), ("project", PROJECT)):
        (root / name).mkdir()
        for file, text in files.items():
            (root / name / file).write_text(text)


def test_npm(supervised: Supervised) -> None:
    """A package is packed, installed without a network, run, installed again and removed."""
    lines = same(supervised, NPM, packages, "node-dev").lines()
    assert "pieces of eight a b c" in lines
    assert [line for line in lines if line.startswith("from")] == [
        "from a shell",
        "from a thread",
        "from a child",
    ]
    assert "code 7" in lines


TMUX = r"""
exec 2>&1
set -eu
export TMUX_TMPDIR=${TMPDIR:-$HOME} TERM=xterm
tm() { tmux -f /dev/null -L live "$@"; }
# until it is seen, for ten seconds
see() { for _ in $(seq 100); do tm capture-pane -pt "$1" | grep "$2" && return; sleep 0.1; done; }
tm new-session -d -s one -n first -x 80 -y 24 "exec env PS1= sh"
tm send-keys -t one 'echo size $(stty size)' Enter
see one '^size'
tm split-window -h -t one "exec env PS1= sh"
tm list-panes -t one -F '#{pane_index} #{pane_width}x#{pane_height}'
tm send-keys -t one:0.1 'read word; echo got $word >heard; tmux wait-for -S heard' Enter
tm send-keys -t one:0.1 'a word' Enter
tm wait-for heard
cat heard
tm pipe-pane -t one:0.0 'cat >piped'
tm send-keys -t one:0.0 'echo through a pipe; tmux wait-for -S piped' Enter
tm wait-for piped
tm set-buffer 'pasted text' && tm save-buffer buffer && cat buffer && echo
tm kill-pane -t one:0.1
tm new-window -t one -n two "sleep 100"
tm list-windows -t one -F '#{window_index} #{window_name}'
tm resize-window -t one:0 -x 40 -y 10
tm send-keys -t one:0 'clear; until stty size | grep "^10 40"; do sleep 0.1; done' Enter
see one:0 '^10 40'
tm kill-server
tm list-sessions >/dev/null 2>&1 || echo "code $?"
grep -c 'through a pipe' piped && rm piped
"""


def test_tmux(supervised: Supervised) -> None:
    """A server of its own, windows, panes, pipes and sizes work inside the run."""
    lines = same(supervised, TMUX).lines()
    assert "10 40" in lines
    assert "got a word" in lines


def test_cmake(supervised: Supervised) -> None:
    """A project is configured, built, changed, tested and installed."""
    parts = sections(same(supervised, CMAKE, sources).lines())
    assert parts["out/program"][-1] == "pieces 208"
    assert parts["installed/bin/program"] == ["parts 208"]


def test_rsync(supervised: Supervised) -> None:
    """Copies with links, holes, attributes and deltas come out the same."""
    assert "code 23" in same(supervised, RSYNC).lines()


def test_tar(supervised: Supervised) -> None:
    """Archives keep modes, links, holes, attributes and access lists."""
    parts = sections(same(supervised, TAR).lines())
    assert parts["tar -df kept.tar -C out"] == []


def test_apt(supervised: Supervised) -> None:
    """A package from a folder is listed, fetched into a folder and unpacked."""
    parts = sections(same(supervised, APT, package).lines())
    assert (supervised.root / "fetched/parrot_1.2_all.deb").is_file()
    assert parts["apt-get -q download missing"][-1] == "code 100"


def test_vim(supervised: Supervised) -> None:
    """Files are edited in place, through links, with backups, undo files and filters."""
    lines = same(supervised, VIM).lines()
    assert lines.count("code 1") == 2
    assert "seven" in (supervised.root / "text").read_text().splitlines()
    assert "text~" in lines
