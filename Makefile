# `make help` lists the targets. VENV is made on first use; PYTHON chooses the
# interpreter it is made with (otherwise the first one that is good enough).
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pips in one .venv would trip over each other.
.NOTPARALLEL:

PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
CC ?= gcc
CLANG ?= clang
AARCH64_CC ?= aarch64-linux-gnu-gcc
FUZZ_SECONDS ?= 60
PYTEST_ARGS ?=
BENCH_ARGS ?=
OUT := build/make

# An empty _GNU_SOURCE agrees with files that define it themselves.
CWARN := -std=gnu11 -D_GNU_SOURCE= -Wall -Wextra -Werror -Wshadow -Wconversion -Wformat=2 \
	-Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum
NATIVE := $(shell find native -name '*.c' -o -name '*.h' -o -name '*.def')
SOURCES := $(filter %.c,$(NATIVE))

.PHONY: help run build test lint types native-test asan tsan fuzz aarch64 bench docs \
	generated wheel clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | \
		awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

# The project is installed as a path (compat) and not as an import hook, which would cost every
# start of the command 15 ms: Python sources are read from here, and the native module is
# built again when a C file is younger than the stamp.
PIP := $(PY) -m pip --quiet --disable-pip-version-check install
TOOLS := import tomllib; \
	extra = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(n for n in extra["test"] + extra["dev"] if "[test]" not in n), sep="\n")

$(VENV)/.made:
	@found=$$(sh .ci/preflight.sh $(PYTHON)) || exit 1; "$$found" -m venv $(VENV)
	@touch $@

$(VENV)/.built: $(VENV)/.made pyproject.toml setup.py supervisor/_build_ffi.py \
		$(wildcard supervisor/cli/supervise) $(NATIVE)
	$(PIP) --config-settings editable_mode=compat --editable .
	@touch $@

# What the tests and linters need, without the project: `run` does not wait for it, nor lint for
# the compiler.
$(VENV)/.dev: $(VENV)/.made pyproject.toml
	@$(PY) -c '$(TOOLS)' > $(VENV)/tools.txt
	$(PIP) --requirement $(VENV)/tools.txt
	@touch $@

build: $(VENV)/.built ## make .venv, install the project into it and build the native module

run: $(VENV)/.built ## show a supervised session that allows, denies and steers
	PATH="$(abspath $(VENV))/bin:$$PATH" sh docs/demo/run.sh

test: $(VENV)/.dev $(VENV)/.built ## run every test (PYTEST_ARGS adds arguments)
	$(PY) -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev ## ruff, formatting, function sizes, spelling
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lizard -L 50 -C 15 -w native supervisor
	$(VENV)/bin/codespell

types: $(VENV)/.dev ## mypy --strict
	$(PY) -m mypy

native-test: $(VENV)/.dev ## compile the C tests plainly and run them
	SV_NATIVE=plain $(PY) -m pytest tests/native $(PYTEST_ARGS)

asan: $(VENV)/.dev ## the C tests under AddressSanitizer and UBSan
	SV_NATIVE=asan $(PY) -m pytest tests/native $(PYTEST_ARGS)

tsan: $(VENV)/.dev ## the C tests under ThreadSanitizer
	SV_NATIVE=tsan $(PY) -m pytest tests/native $(PYTEST_ARGS)

fuzz: ## each fuzz target for FUZZ_SECONDS (needs clang)
	CLANG="$(CLANG)" FUZZ_SECONDS=$(FUZZ_SECONDS) OUT=$(OUT)/fuzz sh .ci/fuzz.sh

aarch64: ## cross-compile the native code for aarch64, warnings are errors
	@command -v $(AARCH64_CC) >/dev/null || { echo "aarch64: $(AARCH64_CC) is missing; install \
	gcc-aarch64-linux-gnu and libc6-dev-arm64-cross" >&2; exit 1; }
	@mkdir -p $(OUT)
	$(AARCH64_CC) $(CWARN) -O2 -fPIC -shared -Wl,-z,defs -pthread -I native \
		-o $(OUT)/native-aarch64.so $(filter-out %/arch_x86_64.c,$(SOURCES))

bench: $(VENV)/.built ## measure in interleaved rounds (BENCH_ARGS="--rounds N --out DIR")
	$(PY) bench/run.py $(BENCH_ARGS)
	@$(VENV)/bin/python -m pip -q install 'pytest-benchmark>=4'
	$(VENV)/bin/python -m pytest -q bench/micro --benchmark-columns=median,iqr,rounds

docs: $(VENV)/.built ## print the man page from the parser, so that it cannot go stale
	@mkdir -p $(OUT)
	$(VENV)/bin/supervise completion man > $(OUT)/supervise.1
	@if command -v man >/dev/null; then MANWIDTH=80 man --warnings -l $(OUT)/supervise.1 >/dev/null; fi

generated: $(VENV)/.built ## write docs/syscalls.md, docs/cli.md and the kept man page again
	$(PY) -m supervisor.cli.reference docs/syscalls.md
	$(PY) -m supervisor.cli.man docs/cli.md
	$(PY) -m supervisor.cli.man docs/man/supervise.1

wheel: $(VENV)/.dev ## sdist and wheel in dist/
	$(PY) -m build

clean: ## remove what was built, .venv too
	rm -rf build dist *.egg-info $(VENV) supervisor/_native*.so supervisor/_native.c
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
