#!/bin/sh
# Builds tests/fuzz/fuzz_*.c with libFuzzer and runs each for FUZZ_SECONDS over
# its kept corpus (tests/fuzz/corpus/NAME, which is read and never written).
set -eu

out=${OUT:-build/fuzz}
clang=${CLANG:-clang}
seconds=${FUZZ_SECONDS:-60}
command -v "$clang" >/dev/null || {
	echo "fuzz: $clang is missing; install clang and libclang-rt-14-dev" >&2
	exit 1
}
mkdir -p "$out"
sources=$(find native -name '*.c' ! -name 'arch_*.c' -o -name "arch_$(uname -m).c")
found=0
for source in tests/fuzz/fuzz_*.c; do
	[ -e "$source" ] || continue
	found=1
	name=$(basename "$source" .c)
	echo "fuzz: $name for $seconds s"
	# shellcheck disable=SC2086 # a list of files without spaces
	"$clang" -std=gnu11 -D_GNU_SOURCE= -g -O1 -pthread -I native \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		-o "$out/$name" "$source" $sources
	mkdir -p "$out/corpus/$name"
	kept=tests/fuzz/corpus/${name#fuzz_}
	[ -d "$kept" ] || kept=
	"$out/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 \
		-verbosity=0 -artifact_prefix="$out/" "$out/corpus/$name" ${kept:+"$kept"}
done
[ "$found" = 1 ] || { echo "fuzz: tests/fuzz has no fuzz_*.c" >&2; exit 1; }
