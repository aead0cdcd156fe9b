"""The tool chains of Go and Rust: a module and a crate are built, checked and tested offline.

As in test_programs: a script runs natively and then supervised, and all that is left is equal.
"""

from __future__ import annotations

from pathlib import Path

from live_world import Supervised
from test_programs import same, sections

# What stands first is the system's own, which is also what an ordinary user can run.
STEP = r"""
exec 2>&1
set -eu
export PATH=/usr/bin:/bin:/usr/local/go/bin
step() {
    echo "== $*"
    "$@" >said 2>&1 && code=0 || code=$?
    # without how long it took
    sed -E 's/( in |\t)[0-9.]+s$//' said
    rm said
    [ $code = 0 ] || echo "code $code"
}
"""

GO = f"""{STEP}
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOCACHE=$PWD/cache
step go build -o parrot .
step ./parrot a "b c"
step go vet ./...
step go test ./...
step go test ./words
sed -i 's/pieces of/parts of/' words/words.go
step go build -o parrot .
step ./parrot changed
step go test ./words
mv words/odd words/odd.go
step go vet ./words
rm -r cache
"""
MODULE = {
    "go.mod": "module example.test/parrot\n\ngo 1.19\n",
    "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"os"\n\n\t"example.test/parrot/words"\n)\n\n'
    "func main() { fmt.Println(words.Say(os.Args[1:])) }\n",
    "words/odd": 'package words\n\nimport "fmt"\n\nfunc odd() { fmt.Printf("%d", "no") }\n',
    "words/words.go": '// Package words says it again.\npackage words\n\nimport "strings"\n\n'
    "// Say puts words behind its own.\nfunc Say(more []string) string {\n"
    '\treturn strings.Join(append([]string{"pieces of eight"}, more...), " ")\n}\n',
    "words/words_test.go": 'package words\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
    "func TestSay(t *testing.T) {\n"
    '\tif err := os.WriteFile(t.TempDir()+"/said", []byte(Say(nil)), 0o600); err != nil {\n'
    "\t\tt.Fatal(err)\n\t}\n"
    '\tif said := Say([]string{"x"}); said != "pieces of eight x" {\n\t\tt.Error(said)\n\t}\n}\n',
}

CARGO = f"""{STEP}
export CARGO_HOME=$PWD/cargo CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never
step cargo build --offline
step target/debug/parrot a "b c"
step cargo test --offline
sed -i '/vec!/s/pieces of/parts of/' src/lib.rs
step cargo build --offline
step target/debug/parrot changed
step cargo test --offline --lib
sed -i 's/fn main/fn/' src/main.rs
step cargo build --offline
# the order of what is in it is left to chance
rm target/.rustc_info.json
"""
CRATE = {
    "Cargo.toml": '[package]\nname = "parrot"\nversion = "1.2.0"\nedition = "2021"\n',
    "src/lib.rs": "//! Says it again.\n\n/// Puts words behind its own.\n///\n/// ```\n"
    '/// assert!(parrot::say(&[]).starts_with("p"));\n/// ```\n'
    "pub fn say(more: &[String]) -> String {\n"
    '    let mut words = vec!["pieces of eight".to_string()];\n'
    '    words.extend_from_slice(more);\n    words.join(" ")\n}\n\n'
    "#[test]\nfn says() {\n"
    '    let said = std::env::temp_dir().join(format!("said-{}", std::process::id()));\n'
    "    std::fs::write(&said, say(&[])).unwrap();\n    std::fs::remove_file(&said).unwrap();\n"
    '    assert_eq!(say(&["x".to_string()]), "pieces of eight x");\n}\n',
    "src/main.rs": "fn main() {\n    let words: Vec<String> = std::env::args().skip(1).collect();\n"
    '    println!("{}", parrot::say(&words));\n}\n',
}


def put(root: Path, files: dict[str, str]) -> None:
    """Write files and the folders around them."""
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)


def module(root: Path) -> None:
    """A module of two packages, one with a test."""
    put(root, MODULE)


def crate(root: Path) -> None:
    """A library with a test, and a program that uses it."""
    put(root, CRATE)


def test_go(supervised: Supervised) -> None:
    """Two packages are built, vetted and tested; a failed test and a bad format are told."""
    parts = sections(same(supervised, GO, module).lines())
    assert parts["./parrot a b c"] == ["pieces of eight a b c"]
    assert "ok  \texample.test/parrot/words" in parts["go test ./..."]
    assert parts["./parrot changed"] == ["parts of eight changed"]
    assert parts["go test ./words"][0].endswith("(cached)")
    assert parts["go test ./words"][-1] == "code 1"
    assert parts["go vet ./..."] == []
    assert "words/odd.go:5:14" in parts["go vet ./words"][1]


def test_cargo(supervised: Supervised) -> None:
    """A library and a program are built and tested; a failed build is told."""
    parts = sections(same(supervised, CARGO, crate).lines())
    assert parts["target/debug/parrot a b c"] == ["pieces of eight a b c"]
    tested = parts["cargo test --offline"]
    assert "test says ... ok" in tested
    assert "test src/lib.rs - say (line 5) ... ok" in tested
    assert parts["target/debug/parrot changed"] == ["parts of eight changed"]
    assert parts["cargo test --offline --lib"][-1] == "code 101"
    assert parts["cargo build --offline"][-1] == "code 101"
