"""``supervise run``: a command under a policy."""

from __future__ import annotations

import os

from supervisor import __version__
from supervisor.cli import COMMANDS
from supervisor.cli.lookup import Lookup
from supervisor.cli.output import Stderr, open_standard_files, out, want_colour
from supervisor.cli.request import Request, make_own_folders
from supervisor.errors import SessionError, SupervisorError, UsageError
from supervisor.policy.digest import hexdigest
from supervisor.policy.environ import apply_env
from supervisor.run.session import Plan, run_and_leave
from supervisor.run.status import exec_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from supervisor.audit.writer import AuditTrail, LogFile
    from supervisor.policy.cache import Entry
    from supervisor.run.events import Event
    from supervisor.run.session import Follower, Outcome
    from supervisor.trash.folder import SessionTrash

    Runner = Callable[[Plan, Sequence[Follower]], Outcome]


_NO_COMMAND = "supervise [OPTIONS] -- COMMAND [ARG...]; `supervise -h` tells more"
_ENOENT = 2


class Options:
    """The options of ``run`` with their defaults; the parser fills in what was given."""

    def __init__(self) -> None:
        """Set every option to its default."""
        self.policy: list[str] = []
        self.set: list[tuple[str, str]] = []
        self.allow_path: list[tuple[str, tuple[str, ...]]] = []
        self.mode: str | None = None
        self.audit: str | None = None
        self.json = False
        self.allow_degraded: list[str] = []
        self.dry_run = False
        self.fail_on_deny = False
        self.timeout: float | None = None
        self.status_fd: int | None = None
        self.wait_all = False
        self.quiet = False
        self.verbose = False
        self.color = "auto"
        self.version = False
        self.short_help = False
        self.help = False


def run(words: Sequence[str], *, named: bool, runner: Runner = run_and_leave) -> int:
    """Run a command line.

    A line with few options or none is not worth the 10 ms that argparse takes.

    Args:
        words: what stands behind ``supervise [run]``.
        named: the word ``run`` was given.
        runner: runs the plan; tests bring their own.

    Returns:
        The exit code.

    Raises:
        SupervisorError: the command did not run, or its record could not be kept.
    """
    if words and words[0] != "--" and words[0].startswith("-"):
        parsed = _quick(words, named=named) or _parse(words, named=named)
        if parsed is None:
            return 0
        options, command = parsed
    else:
        options, command = Options(), list(words[1:] if words[:1] == ["--"] else words)
    if not command:
        raise UsageError("no command was given", hint=_NO_COMMAND)
    open_standard_files()
    return _Run(options, command).go(runner)


def _quick(words: Sequence[str], *, named: bool) -> tuple[Options, list[str]] | None:
    """Read a line of simple options; None where the parser must."""
    from supervisor.cli import quick

    options = Options()
    command = quick.read(words, options, named=named)
    return None if command is None else (options, command)


def _parse(words: Sequence[str], *, named: bool) -> tuple[Options, list[str]] | None:
    """Read the options in front of the command; None where help or version was the answer."""
    from supervisor.cli.parser import build, split_command, version
    from supervisor.cli.texts import SHORT_HELP

    options = Options()
    parser = build(("run",))
    head, command, dashed = split_command(parser, words)
    parser.parse_args(head, namespace=options)
    if options.short_help or options.help:
        out(SHORT_HELP if options.short_help else parser.format_help())
        return None
    if options.version:
        out(version() + "\n")
        return None
    if command and command[0] in COMMANDS and not (dashed or named):
        raise UsageError(
            f"`{command[0]}` is a subcommand and must be the first word",
            hint=f"to run a program of that name: supervise ... -- {command[0]}",
        )
    return options, command


class _Run:
    """One run of one command line."""

    def __init__(self, args: Options, command: Sequence[str]) -> None:
        self.args = args
        self.command = [os.fsencode(word) for word in command]
        self.session = os.urandom(8).hex()
        self.stderr = Stderr(colour=want_colour(args.color, os.environ, 2))
        self.status = _StatusLines(args.status_fd, self.session)
        self.audit_path = os.path.realpath(args.audit) if args.audit else ""

    def go(self, runner: Runner) -> int:
        code = SupervisorError("").exit_code
        try:
            code = self._go(runner)
        except SupervisorError as error:
            code = error.exit_code
            raise
        finally:
            self.status.finished(code)
        return code

    def _go(self, runner: Runner) -> int:
        protect = ((os.fsencode(self.audit_path), False, False),) if self.audit_path else ()
        if not self.args.dry_run:
            make_own_folders(os.environb)
        request = Request(
            self.args.policy,
            sets=self.args.set,
            allow=self.args.allow_path,
            mode=self.args.mode or "",
            protect=protect,
            ways=[os.fsencode(os.path.abspath(self.args.audit))] if self.args.audit else [],
        )
        degraded = degraded_bits(self.args.allow_degraded)
        if degraded:
            from supervisor import native

            native.assume(degraded)
        entry = request.compiled()
        if self.args.dry_run:
            from supervisor.cli.dryrun import show

            return show(entry, self.command, as_json=self.args.json)
        lookup = Lookup(entry.blob)
        trail = self._trail(request, entry, lookup)
        followers: list[Follower] = [self.status, *([trail] if trail else [])]
        if not self.args.quiet:
            log = self.audit_path if trail else None
            followers.append(LazyDenials(self.stderr, lookup, self.args, log))
        plan = Plan(
            self.command,
            entry.blob,
            lambda tmp: apply_env(entry.env, request.environ, tmp),
            private_tmp=entry.needs_tmp,
            trash=self._trash(request) if entry.needs_trash else None,
            degraded=degraded,
            timeout=self.args.timeout,
            wait_all=self.args.wait_all,
            fail_on_deny=self.args.fail_on_deny,
            opened=lookup.bind,
            limits=entry.limits,
        )
        try:
            outcome = runner(plan, followers)
        except BaseException as error:
            if trail is not None:
                _close_after(trail, error)
            raise
        self._tell_end(outcome)
        return outcome.code

    def _trash(self, request: Request) -> Callable[[], SessionTrash]:
        from supervisor.trash.folder import SessionTrash

        return lambda: SessionTrash(request.environ, self.session)

    def _trail(self, request: Request, entry: Entry, lookup: Lookup) -> AuditTrail | None:
        from supervisor.audit import writer

        torn = 0
        if self.audit_path:
            log, torn = writer.open_or_create(self.audit_path)
        elif (default := self._default_log(request)) is not None:
            log = default
        else:
            return None
        trail = writer.AuditTrail(
            log,
            self.session,
            {"name": entry.name, "sha256": hexdigest(entry.blob)},
            call_name=lookup.call,
            rule=lookup.id_and_source,
            limits={name: _set(hard=hard, soft=soft) for name, hard, soft, _ in entry.limits},
        )
        trail.begin(start_action(self.command, entry, self.args.allow_degraded), torn)
        return trail

    def _default_log(self, request: Request) -> LogFile | None:
        from supervisor.audit import folder as logs

        folder = logs.state_folder(request.environ)
        reason = "HOME is not set"
        if folder:
            try:
                return logs.create_default(folder, self.session)
            except OSError as problem:
                reason = f"{folder}: {problem.strerror}"
        if not self.args.quiet:
            label = self.stderr.paint("yellow", "warning:")
            self.stderr.say(f"{label} this run leaves no audit log: {reason}")
        return None

    def _tell_end(self, outcome: Outcome) -> None:
        if failure := exec_failure(outcome.status):
            from supervisor.run.events import escape

            hint = ""
            if outcome.status.exec_err == _ENOENT and b"/" not in self.command[0]:
                from supervisor.cli.near import program

                hint = program(os.fsdecode(self.command[0]))
            self.stderr.error(f"cannot run `{escape(self.command[0])}`: {failure}", hint)
        elif outcome.timed_out and outcome.limit != "wall" and not self.args.quiet:
            self.stderr.say(f"the time limit of {self.args.timeout:g} s is over: ended")
        if self.args.verbose:
            status = outcome.status
            counts = f"{status.calls} calls, {status.denied} denied, {status.steered} steered"
            used = ", ".join(f"{n} {name}" for name, n in status.counters().items())
            self.stderr.say(f"session {self.session}: {counts}; counted: {used}")


def start_action(
    command: Sequence[bytes], entry: Entry, degraded: Sequence[str]
) -> dict[str, int | str | list[str]]:
    """Describe a run for the first record of its audit log.

    Args:
        command: the command and its arguments.
        entry: the compiled policy.
        degraded: facilities that the user does without.
    """
    from supervisor.run.events import escape

    system = os.uname()
    try:
        cwd = escape(os.getcwdb())
    except OSError:
        cwd = ""
    return {
        "argv": [escape(word) for word in command],
        "cwd": cwd,
        "uid": os.getuid(),
        "user": _user_name(),
        "host": system.nodename,
        "kernel": f"{system.release} {system.machine}",
        "version": __version__,
        "mode": "observe" if entry.observe else "enforce",
        "degraded": list(degraded),
        "sources": [f"{escape(os.fsencode(name))} {digest}" for name, _, digest in entry.sources],
    }


def degraded_bits(names: Sequence[str]) -> int:
    """Translate --allow-degraded into the bits of sv_start.

    Args:
        names: some of flags.WAIVABLE.
    """
    if not names:
        return 0
    from supervisor import native

    known = {facility.name: 1 << facility.index for facility in native.facilities()}
    return sum({known[name] for name in names})


class LazyDenials:
    """Loads the code that tells denials when there is something to tell."""

    def __init__(self, stderr: Stderr, lookup: Lookup, args: Options, log: str | None) -> None:
        """Prepare to tell.

        Args:
            stderr: where to.
            lookup: names of rules and syscalls.
            args: parsed command line.
            log: the audit log: "" is the default one, None stands for none.
        """
        self._stderr = stderr
        self._lookup = lookup
        self._args = args
        self._log = log
        self._denials: Follower | None = None

    def events(self, batch: Sequence[Event]) -> None:
        """Pass a batch on where any of it is worth telling."""
        if self._denials is None:
            from supervisor.run.events import ALLOW, FAULT, LIMIT

            told = (FAULT, LIMIT)
            if all(event.action == ALLOW and event.kind not in told for event in batch):
                return
            from supervisor.cli.denials import Denials
            from supervisor.cli.hints import Hints, policy_words

            self._denials = Denials(
                self._stderr,
                rule=self._lookup.rule,
                call_name=self._lookup.call,
                hints=Hints(policy_words(self._args), lookup=self._lookup, log=self._log),
                as_json=self._args.json,
                verbose=self._args.verbose,
            )
        self._denials.events(batch)

    def tick(self) -> None:
        """Nothing waits here."""

    def started(self, pid: int) -> None:
        """Nothing to tell."""

    def ended(self, outcome: Outcome) -> None:
        """Sum up."""
        if self._denials is not None:
            self._denials.ended(outcome)


class _StatusLines:
    """--status-fd: JSON lines about the start and the end."""

    def __init__(self, fd: int | None, session: str) -> None:
        self._out: Stderr | None = None
        self._session = session
        self._used = ""
        if fd is None:
            return
        try:
            os.fstat(fd)
            if fd > 2:  # noqa: PLR2004 - the standard three belong to the command
                os.set_inheritable(fd, False)
        except OSError as problem:
            raise UsageError(f"--status-fd {fd}: {problem.strerror}") from problem
        self._out = Stderr(fd)

    def events(self, batch: Sequence[Event]) -> None:
        pass

    def tick(self) -> None:
        pass

    def started(self, pid: int) -> None:
        if self._out:
            number = f'"pid": {pid}, ' if pid else ""
            line = f'"event": "started", {number}"session": "{self._session}"'
            self._out.write(f"{{{line}}}\n")

    def ended(self, outcome: Outcome) -> None:
        counters = ", ".join(f'"{name}": {n}' for name, n in outcome.status.counters().items())
        self._used = f', "counters": {{{counters}}}, "limit": "{outcome.limit}"'

    def finished(self, code: int) -> None:
        if self._out:
            line = f'"code": {code}, "event": "exit", "session": "{self._session}"{self._used}'
            self._out.write(f"{{{line}}}\n")


def _set(**values: int) -> dict[str, int]:
    """Leave out the limits that are none."""
    return {name: value for name, value in values.items() if value >= 0}


def _close_after(trail: AuditTrail, error: BaseException) -> None:
    """Leave a last record where that is still possible; the error itself matters more."""
    code = error.exit_code if isinstance(error, SupervisorError) else 125
    try:
        trail.end({"exit": code, "detail": str(error)[:500]})
    except SessionError:
        return


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""
