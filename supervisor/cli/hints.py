"""What to type next after a denial: command lines that ask what the run was asked."""

from __future__ import annotations

import os

from supervisor.run.events import FAULT, NETWORK, OP_BIND, OP_EXEC, OP_SIGNAL, escape, op_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.cli.lookup import Lookup
    from supervisor.cli.run import Options
    from supervisor.run.events import Event

_SHELL_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_-+=:,./")


class Hints:
    """Writes command lines under the policies of one run."""

    def __init__(
        self,
        policies: Sequence[str] = (),
        *,
        lookup: Lookup | None = None,
        log: str | None = "",
    ) -> None:
        """Prepare to write.

        Args:
            policies: words of the command line that chose the policies: :func:`policy_words`.
            lookup: knows the compiled policy; without it hints name what the event names.
            log: the run's audit log; "" is the default one, None means that there is none.
        """
        self._ask = " ".join(("supervise policy explain", *map(_word, policies)))
        self._lookup = lookup
        self._log = log

    def fix(self, event: Event) -> str:
        """Say how to find out more, and where a flag would help, which.

        A rule that denies cannot be overruled by one that allows, so the flag is
        named only where no rule allowed the call.

        Args:
            event: the denial.
        """
        asked = self._lookup.denied_path(event) if self._lookup else event.path
        path = shell_word(asked)
        ops = op_names(event.ops).replace("+", ",")
        rest = ""
        within = self._lookup.starts(event.rule) if self._lookup else b""
        ask = f"{self._ask} --program {shell_word(within)}" if within else self._ask
        if event.ops & NETWORK:
            return self._net(event, ask)
        if event.ops & OP_SIGNAL:
            signal, who = event.path.decode().split(" ")
            target = "" if who == "group" else f" --target {who}"
            return f"`{self._ask} --signal {signal}{target}` tells what decides this"
        if event.ops & OP_EXEC:
            words, known = self._command(event)
            ask += f" --exec {' '.join(map(shell_word, words))}"
            rest = "" if known else ", with its arguments behind,"
        else:
            ask += f" --path {path} --op {ops}"
        if event.rule >= 0:
            return f"`{ask}`{rest} tells what decides this"
        suffix = "" if ops == "read" and b":" not in asked else f":{ops}"
        return f"`{ask}`{rest or ','} or allow once with `--allow-path {path}{suffix}`"

    def _net(self, event: Event, ask: str) -> str:
        """The same for an address or a local socket; no flag allows one, a rule does."""
        from supervisor.policy.addresses import targets_for

        op = "bind" if event.ops & OP_BIND else "connect"  # what is sent is decided as connected
        ask = f"`{ask} --{op} {shell_word(event.path)}`"
        if event.rule >= 0:
            return f"{ask} tells what decides this"
        rule = f"- {{id: my-{op}, allow: {op}, to: [{targets_for(event.path, op)}]}}"
        return f"{ask}, or add under network: `{rule}`"

    def more(self) -> str:
        """Say where the denials are that were only counted; empty where nowhere."""
        if self._log is None:
            return ""
        file = f" {_word(self._log)}" if self._log else ""
        return f": see `supervise log --denied{file}`"

    def _command(self, event: Event) -> tuple[list[bytes], bool]:
        """The program to ask about, and its arguments where a rule looks at them, if known."""
        if self._lookup is None:
            return [event.path], True
        programs = self._lookup.programs()
        called = _called(event.path, programs.names.get(event.rule, ()))
        if not programs.looks_at_arguments({_base(event.path), _base(called)}):
            return [called], True
        # a refused call has not always had its arguments read
        argv = event.detail.removesuffix(b"\0").split(b"\0") if event.kind != FAULT else []
        return [called, *argv[1:]], bool(event.detail)


def policy_words(args: Options) -> list[str]:
    """Repeat the options that chose the policies of a run.

    Args:
        args: options of the run.
    """
    words = [word for name in args.policy for word in _option("-p", "--policy", name)]
    for key, value in args.set:
        words += _option("--set", "--set", f"{key}={value}")
    for path, ops in args.allow_path:
        words += _option("--allow-path", "--allow-path", f"{path}:{','.join(ops)}")
    return words


def shell_word(data: bytes) -> str:
    """Write bytes as one word of a shell's command line, printable.

    Args:
        data: any bytes.
    """
    text = escape(data, "'")
    if data and _SHELL_SAFE.issuperset(text):
        return text
    return f"$'{text}'" if "\\" in text else f"'{text}'"


def _word(text: str) -> str:
    return shell_word(os.fsencode(text))


def _option(short: str, long: str, value: str) -> list[str]:
    return [f"{long}={value}"] if value.startswith("-") else [short, value]


def _base(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _called(path: bytes, names: Sequence[bytes]) -> bytes:
    """The name that a rule knows a program by, where only a link of that name leads to it."""
    if names and _base(path) not in names:
        for name in names:
            for folder in os.environb.get(b"PATH", b"").split(b":"):
                if folder and os.path.realpath(os.path.join(folder, name)) == path:
                    return name
    return path
