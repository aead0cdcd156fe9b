#!/bin/sh
# Finds a Python that can build the project, or says what to install.
# Usage: preflight.sh [PYTHON...]   prints the interpreter on stdout.
# Exit code 1: something is missing; one sentence each on stderr.
set -u

missing=0
need() {	# what, Debian package, Fedora package
	missing=1
	echo "preflight: $1 is missing; install it:" >&2
	echo "    sudo apt-get install $2        (Debian, Ubuntu)" >&2
	echo "    sudo dnf install $3        (Fedora, RHEL)" >&2
}

[ "$(uname -s)" = Linux ] || { echo "preflight: supervise needs Linux" >&2; exit 1; }

python=
for candidate in "$@" python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11; do
	path=$(command -v "$candidate" 2>/dev/null) || continue
	if "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
		python=$path
		break
	fi
done
if [ -z "$python" ]; then
	need "Python 3.11 or newer" "python3 python3-venv python3-dev" "python3 python3-devel"
	exit 1
fi
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
	need "the venv module of $python" python3-venv python3
"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
	need "Python.h for $python" python3-dev python3-devel
command -v "${CC:-gcc}" >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 ||
	need "a C compiler" "gcc libc6-dev" gcc
"$python" -c 'import ctypes; ctypes.CDLL("libseccomp.so.2")' 2>/dev/null ||
	need "libseccomp.so.2" libseccomp2 libseccomp
[ "$missing" = 0 ] || exit 1
echo "$python"
