"""Programs that own a terminal: full screens, sizes, passwords, jobs.

The screen is tmux's, outside of the run; what it shows natively and supervised is compared.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from live_world import Supervised

SECONDS = 20.0
# Looks in a row that must be the same: what is drawn piece by piece is not compared half done.
STILL = 3


class Screen:
    """A terminal of 80 columns and 24 lines with a shell."""

    def __init__(self, supervised: Supervised, name: str) -> None:
        """Start it in the workspace."""
        self.tmux = ["tmux", "-S", str(supervised.home / name), "-f", "/dev/null"]
        self.env = supervised.environ({"TERM": "screen", "PS1": "$ ", "LESSHISTFILE": "-"})
        self.cwd = supervised.root
        self("new-session", "-d", "-x", "80", "-y", "24", "env", "PS1=$ ", "bash", "--norc", "-i")
        self.wait(lambda text: text.rstrip().endswith("$"))

    def __call__(self, *words: str) -> str:
        """One command of tmux."""
        done = subprocess.run(
            [*self.tmux, *words],
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
        )
        return done.stdout

    def type(self, *keys: str) -> None:
        """Type text, in single quotes, and keys by tmux's names."""
        self("send-keys", *(key.strip("'") for key in keys))

    def shows(self) -> str:
        """What is to be seen."""
        return self("capture-pane", "-p")

    def wait(self, true: Callable[[str], object]) -> str:
        """Wait for a sight, then for it to stand still."""
        end = time.monotonic() + SECONDS
        before, still = "", 0
        while time.monotonic() < end:
            seen = self.shows()
            still = still + 1 if seen == before else 0
            if still >= STILL and true(seen):
                return seen
            before = seen
            time.sleep(0.04)
        raise AssertionError(f"not what was waited for:\n{before}")

    def until(self, text: str) -> str:
        """Wait for a text."""
        return self.wait(lambda seen: text in seen)


@contextmanager
def screen(supervised: Supervised, name: str) -> Iterator[Screen]:
    """A screen that is put away at the end."""
    terminal = Screen(supervised, name)
    try:
        yield terminal
    finally:
        terminal("kill-server")


Act = Callable[[Screen], Iterator[str]]


def both(supervised: Supervised, command: str, act: Act) -> list[str]:
    """What act saw of a command natively; the same as supervised, or it fails."""
    ours = shlex.join(supervised.words("pack:agent-dev", "-q"))
    found = []
    for name, words in (("native", command), ("supervised", f"{ours} {command}")):
        with screen(supervised, name) as terminal:
            (supervised.root / "start").write_text(f"clear; {words}; echo code=$?\n")
            terminal.type("'. ./start'", "Enter")
            found.append(list(act(terminal)))
    native, seen = found
    assert seen == native
    return seen


VIM = "vim -N -u NONE -i NONE -n --cmd 'set ruler showcmd laststatus=2 shortmess+=I'"


def test_vim(supervised: Supervised) -> None:
    """Windows, marks, undo, a shell command, a stop and a new size look the same."""

    def act(screen: Screen) -> Iterator[str]:
        yield screen.until("0,0-1")
        screen.type("i", "'first line'", "Enter", "'second line'", "Escape")
        yield screen.until("2,11")
        screen.type("'yy5p'", "':vsplit | set number'", "Enter")
        yield screen.until("  5 second line")
        screen.type("'3Gdd'", "u", "'/sec'", "Enter")
        yield screen.until("4,1")
        screen("resize-window", "-x", "60", "-y", "12")
        yield screen.wait(lambda seen: seen.count("\n") == 12 and "4,1" in seen)
        screen.type("':!echo from a shell'", "Enter")
        yield screen.until("Press ENTER")
        screen.type("Enter")
        yield screen.until("4,1")
        screen.type("C-z")
        screen.until("Stopped")
        screen.type("'clear; jobs %1 >/dev/null && echo stop''ped'", "Enter")
        screen.until("stopped")
        screen.type("'fg >/dev/null; echo code=$?'", "Enter")
        yield screen.until("4,1")
        screen.type("':w! text'", "Enter", "':qa!'", "Enter")
        yield screen.until("code=0").partition("code=0")[1]
        yield (supervised.root / "text").read_text()
        (supervised.root / "text").unlink()

    assert both(supervised, VIM, act)[-1].count("second line") == 6


def test_less(supervised: Supervised) -> None:
    """Pages, searches, a following end that Ctrl-C stops, and a new size look the same."""
    (supervised.root / "long").write_text("".join(f"line {n}\n" for n in range(500)))

    def act(screen: Screen) -> Iterator[str]:
        yield screen.until("line 22")
        screen.type("Space")
        yield screen.until("line 45")
        screen.type("'/e 33.'", "Enter")
        yield screen.until("line 330")
        screen.type("F")
        yield screen.until("interrupt")
        with (supervised.root / "long").open("a") as file:
            file.write("one more\n")
        yield screen.until("one more")
        screen.type("C-c")
        yield screen.wait(lambda seen: "nterrupt" not in seen)
        screen("resize-window", "-x", "40", "-y", "10")
        yield screen.wait(lambda seen: seen.count("\n") == 10 and seen.endswith(":\n"))
        screen.type("q")
        yield screen.until("code=0").partition("code=0")[1]
        (supervised.root / "long").write_text("".join(f"line {n}\n" for n in range(500)))

    both(supervised, "less long", act)


CURSES = """
import curses, os, signal
def main(screen):
    curses.curs_set(0)
    while True:
        screen.erase()
        screen.addstr(0, 0, f"{screen.getmaxyx()} {os.get_terminal_size()}")
        screen.refresh()
        key = screen.getch()
        if key == ord("q"):
            break
curses.wrapper(main)
"""


def test_size(supervised: Supervised) -> None:
    """A new size reaches the program at once, by signal and by asking."""
    (supervised.root / "sizes.py").write_text(CURSES)

    def act(screen: Screen) -> Iterator[str]:
        yield screen.until("(24, 80)")
        for x, y in ((100, 30), (20, 3), (80, 24)):
            screen("resize-window", "-x", str(x), "-y", str(y))
            yield screen.until(f"({y}, {x})")
        screen.type("q")
        yield screen.until("code=0").partition("code=0")[1]

    both(supervised, "/usr/bin/python3 sizes.py", act)


ASKING = """
import getpass, sys
for number in range(2):
    try:
        print("got", getpass.getpass(f"Secret {number}: "))
    except KeyboardInterrupt:
        print("inter" + "rupted")
print("Name:", flush=True)
print("line", sys.stdin.readline())
"""


@pytest.mark.parametrize("streams", ["", "2>/dev/null"], ids=["streams", "terminal alone"])
def test_password(supervised: Supervised, streams: str) -> None:
    """What is typed at a password prompt is not shown, Ctrl-C ends it, and echo comes back."""
    (supervised.root / "ask.py").write_text(ASKING)

    def act(screen: Screen) -> Iterator[str]:
        screen.until("Secret 0:")
        screen.type("'hush'")
        yield screen.until("Secret 0:")
        screen.type("Enter")
        screen.until("Secret 1:")
        screen.type("C-c")
        screen.until("Name:")
        screen.type("'shown'", "Enter")
        yield screen.until("code=0")

    seen = both(supervised, f"/usr/bin/python3 ask.py {streams}", act)
    assert "hush" not in seen[0]
    assert "got hush" in seen[1]
    assert "interrupted" in seen[1]
    assert seen[1].count("shown") == 2


def test_jobs(supervised: Supervised) -> None:
    """An interactive shell inside has jobs: stopped, continued, in the background, ended."""

    def act(screen: Screen) -> Iterator[str]:
        def at(text: str) -> None:
            screen.wait(lambda seen: seen.rstrip().endswith(text))

        def line(text: str, then: str) -> None:
            screen.type(f"'{text}'", "Enter")
            at(then)

        line("PS1=in\\>", "in>")
        line("cat", "in>cat")
        line("one", "one\none")
        screen.type("C-z")
        at("in>")
        line("sleep 100 &", "in>")
        line("jobs", "in>")
        line("fg %1", "cat")
        line("two", "two\ntwo")
        screen.type("C-d")
        at("in>")
        line("fg", "sleep 100")
        screen.type("C-c")
        at("in>")
        line("echo code $?", "in>")
        line("cat | cat", "cat | cat")
        screen.type("C-z")
        at("in>")
        line("fg; echo after", "cat | cat")
        screen.type("C-c")
        at("in>")
        screen.type("'exit 7'", "Enter")
        text = screen.until("code=7")
        yield "\n".join(line for line in text.splitlines() if "[2]" not in line)

    (seen,) = both(supervised, "bash --norc -i", act)
    assert seen.count("Stopped") == 2
    assert "code 130" in seen
