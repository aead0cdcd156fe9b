#!/bin/sh
# The demonstration: makes a home folder with a private key and a repository, runs
# session.sh below supervise, and checks from outside that what was promised holds.
# Needs git, a C compiler and python3; `supervise` must be in PATH. Touches nothing
# outside of one scratch folder, which it removes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
supervise=$(command -v supervise) || {
	echo "demo: supervise is not in PATH; use \`make run\`" >&2
	exit 1
}
PATH=/usr/local/bin:/usr/bin:/bin
export PATH
unset PYTHONHOME PYTHONPATH VIRTUAL_ENV XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME
CC=$(command -v "${CC:-gcc}" || command -v cc) || { echo "demo: a C compiler is needed" >&2; exit 1; }
export CC
for tool in git python3; do
	command -v "$tool" >/dev/null || { echo "demo: $tool is needed in $PATH" >&2; exit 1; }
done

scratch=$(mktemp -d "${TMPDIR:-/tmp}/supervise-demo.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
HOME=$scratch/home
export HOME
secret="this-is-the-private-key-$$"
log=$scratch/audit.log
FORBIDDEN=/etc/$(basename "$scratch")
export FORBIDDEN

# The home folder of somebody who has something to lose.
mkdir -p "$HOME/.ssh" "$HOME/.local/bin" "$scratch/work"
echo "$secret" >"$HOME/.ssh/id_ed25519"
echo "# mine" >"$HOME/.bashrc"
echo "192.0.2.7 registry.test" >"$HOME/hosts"
printf '#!/bin/sh\nshift\necho "audited copy of $1"\n' >"$HOME/.local/bin/fetch"
chmod +x "$HOME/.local/bin/fetch"
git config --global user.name Demo
git config --global user.email demo@example.test
git config --global init.defaultBranch main

# The repository: C, a Python test of it, and two programs with telling names.
mkdir -p "$scratch/seed/tools"
cd "$scratch/seed"
echo 'int add(int a, int b) { return a - b; }' >add.c
cat >test_add.py <<'PYTHON'
import ctypes
import unittest


class Add(unittest.TestCase):
    def test_sum(self) -> None:
        self.assertEqual(ctypes.CDLL("./libadd.so").add(2, 3), 5)
PYTHON
printf '#!/bin/sh\necho connected\n' >tools/nc
printf '#!/bin/sh\necho "direct copy of $1"\n' >tools/curl
chmod +x tools/nc tools/curl
printf '%s\n' libadd.so keys __pycache__ >.gitignore
git init -q .
git add .
git commit -qm "first"
git clone -q --bare . "$HOME/origin.git"

cp "$here/session.sh" "$scratch/work/session.sh"
cd "$scratch/work"
status=0
"$supervise" -p "$here/policy.yaml" --audit "$log" -q -- sh session.sh >"$scratch/said" || status=$?
cat "$scratch/said"

# What the session says is one thing; what is on disk and in the record is another.
fail() {
	echo "demo: FAILED: $*" >&2
	exit 1
}
if [ -e "$FORBIDDEN" ]; then
	rm -f "$FORBIDDEN"
	fail "a file was written to /etc"
fi
! grep -q "$secret" "$scratch/said" || fail "the private key leaked"
[ "$(cat "$HOME/.ssh/id_ed25519")" = "$secret" ] || fail "the private key was changed"
[ "$(cat "$HOME/.bashrc")" = "# mine" ] || fail ".bashrc was changed"
[ ! -e "$HOME/outside" ] || fail "a file was written outside of the project"
[ "$status" = 0 ] || fail "the session ended with $status"
git -C "$scratch/work/project" log --oneline | grep -q "add: add" || fail "the commit is missing"

echo
"$supervise" audit verify "$log" || fail "the audit log does not verify"
"$supervise" log --denied "$log" >"$scratch/denied" || fail "the log cannot be read"
for word in id_ed25519 outside .bashrc nc; do
	grep -q -e "$word" "$scratch/denied" || fail "no denial of $word is on record"
done
echo "demo: $(grep -c '^allowed' "$scratch/said") allowed," \
	"$(grep -c '^denied' "$scratch/said") denied," \
	"$(grep -c '^steered' "$scratch/said") steered, all as expected"
