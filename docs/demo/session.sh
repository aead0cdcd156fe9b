#!/bin/sh
# What the supervised tree does: an ordinary piece of work, then things that it
# should not do. Every step prints what became of it; the last line counts the
# steps that did not end as a person would expect.
set -u
wrong=0

works() {	# description, command...
	what=$1
	shift
	if out=$("$@" 2>&1); then
		echo "allowed  $what"
	else
		echo "WRONG    $what: $out"
		wrong=$((wrong + 1))
	fi
}

refused() {	# description, command...
	what=$1
	shift
	if out=$("$@" 2>&1); then
		echo "WRONG    $what: it worked"
		wrong=$((wrong + 1))
	else
		echo "denied   $what: ${out##*: }"
	fi
}

steered() {	# description, words that the result must have, command...
	what=$1 words=$2
	shift 2
	out=$("$@" 2>&1)
	case $out in
	*"$words"*) echo "steered  $what: $out" ;;
	*) echo "WRONG    $what: $out" && wrong=$((wrong + 1)) ;;
	esac
}

write() {
	echo "$1" >"$2"
}

edit() {
	sed 's/return a - b/return a + b/' add.c >add.c.new && mv add.c.new add.c
}

works "clone the repository" git clone -q "file://$HOME/origin.git" project
cd project || exit 1
works "edit a source file" edit
works "compile it with $CC" "$CC" -O1 -shared -fPIC -o libadd.so add.c
works "run its tests" python3 -m unittest -q
works "commit the change" git commit -qam "add: add, do not subtract"
works "use the private temporary folder" write notes "${TMPDIR:-/tmp}/notes"

refused "read a private key" cat "$HOME/.ssh/id_ed25519"
refused "read it through a link" sh -c 'ln -s "$HOME/.ssh" keys && cat keys/id_ed25519'
refused "write outside of the project" write x "$HOME/outside"
refused "change a start-up file" write "alias ls=rm" "$HOME/.bashrc"
refused "write to /etc" write x "$FORBIDDEN"
refused "run a forbidden program" tools/nc -l 1

steered "call curl" "audited copy of https://example.test" tools/curl https://example.test
steered "read /etc/hosts" "192.0.2.7 registry.test" cat /etc/hosts

exit "$wrong"
