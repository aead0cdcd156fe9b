"""``supervise policy ...``: look at policies without running anything."""

from __future__ import annotations

import os
from functools import partial

from supervisor.cli import network
from supervisor.cli import signals as signals_
from supervisor.cli.lookup import NO_TMP
from supervisor.cli.output import out, out_json, table, visible
from supervisor.cli.request import Request
from supervisor.errors import PolicyError, SupervisorError, UsageError
from supervisor.policy import addresses, packs, schema, signals
from supervisor.policy.schema import ACTION_NAMES
from supervisor.run.events import OPS, escape, treated

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from supervisor.cli.expectations import Expectation
    from supervisor.model import Verdict
    from supervisor.policy.build import Built
    from supervisor.policy.explain import Explanation
    from supervisor.policy.limits import Limit
    from supervisor.policy.schema import Policy

_FOUND = 1


def check(args: argparse.Namespace) -> int:
    """Tell every error of policies.

    Args:
        args: parsed command line.

    Returns:
        0, or 1 where there is an error.
    """
    results = []
    for name in args.file:
        try:
            policy = Request([name]).load()
        except PolicyError as error:
            results.append({"policy": name, "ok": False, "problems": _problems(error)})
            if not args.json:
                out(visible(error.message) + "\n")
        else:
            rules = _count(policy) + sum(map(_count, policy.blocks)) + len(policy.signals)
            notes = _notes(policy)
            results.append(
                {"policy": name, "ok": True, "rules": rules, "problems": [], "notes": notes}
            )
            if not args.json:
                out(f"{visible(name)}: {rules} rules, no errors\n")
                out("".join(f"  note: {visible(note)}\n" for note in notes))
    if args.json:
        out_json(results)
    return 0 if all(result["ok"] for result in results) else _FOUND


def _count(part: Policy | schema.Block) -> int:
    return len(part.files) + len(part.network) + len(part.execs)


def _notes(policy: Policy) -> Sequence[str]:
    """What the rules do not do although one could think so."""
    shown = ", ".join(rule.id for rule in policy.files if rule.shows)
    hidden = ", ".join(rule.id for rule in policy.files if rule.hide)
    notes = []
    if shown:
        notes.append(f"{shown}: opens get ENOENT, but stat and listings show the names")
    if hidden and policy.observe:
        notes.append(f"{hidden}: while observing, names are not hidden")
    elif hidden:
        notes.append(
            f"{hidden}: hidden names; chdir, an open with O_PATH, a '.' or '..' behind a hidden "
            "folder and the removal of the folder around them still tell that something is there"
        )
    return notes


def show(args: argparse.Namespace) -> int:
    """Print a policy: its source, or what comes out of it.

    Args:
        args: parsed command line.

    Raises:
        PolicyError: there is no such policy, or it has errors.
        SupervisorError: it cannot be read.
    """
    if args.merged or args.json:
        built = Request([args.name]).build()
        if args.json:
            out_json(_merged(built))
        else:
            out(_merged_text(built))
        return 0
    path = args.name if packs.is_file_name(args.name) else packs.pack_path(args.name)
    if path is None:
        from supervisor.policy.merge import no_such_policy

        raise PolicyError([no_such_policy(args.name)], exit_code=2)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            out(visible(stream.read()))
    except OSError as problem:
        raise SupervisorError(f"{path}: {problem.strerror}", exit_code=2) from problem
    return 0


def list(args: argparse.Namespace) -> int:  # noqa: A001 - the subcommand's name
    """List the policies that come with supervise.

    Args:
        args: parsed command line.
    """
    found = packs.list_packs()
    if args.json:
        out_json([{"name": name, "description": text} for name, text in found])
    else:
        out(table(found))
    return 0


def explain(args: argparse.Namespace) -> int:
    """Tell what would be decided, by which rule, and what would change it.

    Args:
        args: parsed command line.

    Returns:
        0 where it is allowed or steered, 1 where it is denied.

    Raises:
        SupervisorError: the question or the policy is wrong.
    """
    about = (args.path, args.exec, args.connect, args.bind, args.signal)
    if sum(map(bool, about)) != 1:
        known = "--path, --exec, --connect, --bind and --signal"
        raise UsageError(f"exactly one of {known} is needed", exit_code=2)
    for op in args.op.split(","):
        if op not in OPS:
            raise UsageError(f"there is no operation {op!r}", exit_code=2, hint=", ".join(OPS))
    request = Request.of(args)
    built = request.build()
    blocks = _blocks_of(built, args.program, request)
    if args.signal:
        answer = signals_.explain(built, args.signal, args.target)
    elif args.connect or args.bind:
        op = "connect" if args.connect else "bind"
        where = args.connect or args.bind
        answer = network.explain(built, where, op, request.context.cwd, blocks)
    else:
        ask = _exec_question(args.exec, request) if args.exec else _path_question(args, request)
        answer = _explain(built, *ask, blocks)
    shown = _block_names(built, blocks) if args.program else None
    if args.json:
        out_json({**_explanation(answer), "blocks": shown or []})
    else:
        out(_sentences(answer, shown))
    return _FOUND if answer.decision in ("deny", "approve") else 0


def test(args: argparse.Namespace) -> int:
    """Check a list of expectations against a policy, with the matcher itself.

    Args:
        args: parsed command line.

    Returns:
        0 where all hold, 1 otherwise.

    Raises:
        SupervisorError: the list or the policy is wrong.
    """
    from supervisor.cli.expectations import read

    expectations = read(args.file)
    request = Request.of(args)
    built = request.build()
    results = []
    for item in expectations:
        blocks = _blocks_of(built, [item.program] if item.program else args.program, request)
        answer = _expected(built, item, blocks, request)
        winner = answer.winner.id if answer.winner else ""
        ok = answer.decision == item.expect and item.rule in ("", winner)
        results.append({**item.shown(), "got": answer.decision, "by": winner, "ok": ok})
    failed = [result for result in results if not result["ok"]]
    if args.json:
        out_json(results)
    else:
        for result in failed:
            wanted = f"{result['expect']} {result['rule']}".rstrip()
            got = f"{result['got']} {result['by']}".rstrip()
            where = visible(f"{args.file}:{result['line']}: {result['op']} {result['target']}")
            out(f"{where}: expected {wanted}, got {got}\n")
        out(f"{len(results) - len(failed)} of {len(results)} expectations hold\n")
    return _FOUND if failed else 0


def _expected(built: Built, item: Expectation, blocks: int, request: Request) -> Explanation:
    if item.about in schema.NET_BITS:
        return network.explain(built, item.target, item.op, request.context.cwd, blocks)
    if item.about == "signal":
        return signals_.explain(built, item.target, item.who)
    path = _true_path(os.path.expanduser(item.target), request)
    is_exec = item.about == "exec"
    argv = [os.fsencode(word) for word in (item.target, *item.argv)] if is_exec else []
    return _explain(built, path, item.op, argv, blocks)


def syscalls(args: argparse.Namespace) -> int:
    """Print how every system call is treated.

    Args:
        args: parsed command line.
    """
    from supervisor import native

    rows = native.rows()
    if args.json:
        out_json(
            [
                {"nr": r.nr, "name": r.name, "class": treated(r.klass, r.err), "note": r.note}
                for r in rows
            ]
        )
    else:
        cells = [(str(r.nr), r.name, treated(r.klass, r.err), r.note) for r in rows]
        out(table([("NR", "NAME", "TREATED", "WHY"), *cells]))
    return 0


def trust(args: argparse.Namespace) -> int:
    """Trust a project's policy file as it is now, or no longer.

    Args:
        args: parsed command line.

    Raises:
        SupervisorError: the file or the list cannot be used, or the policy has errors.
    """
    from supervisor.policy import trust as store

    request = Request(["./" + args.file if not packs.is_file_name(args.file) else args.file])
    path = os.fsencode(args.file)
    if args.remove:
        found = store.distrust(request.state, path)
        out(f"{visible(args.file)}: {'trusted no longer' if found else 'was not trusted'}\n")
        return 0 if found else _FOUND
    request.load()
    digest = store.trust(request.state, path)
    out(f"{visible(args.file)}: trusted as sha256 {digest}\n")
    return 0


def _path_question(
    args: argparse.Namespace, request: Request
) -> tuple[bytes, str, Sequence[bytes]]:
    return _true_path(os.path.expanduser(args.path), request), args.op, ()


def _exec_question(words: Sequence[str], request: Request) -> tuple[bytes, str, Sequence[bytes]]:
    """The program is searched as a run would: in PATH where it is a bare name."""
    import shutil

    found = words[0] if "/" in words[0] else shutil.which(words[0])
    if not found:
        raise UsageError(f"{words[0]!r} is not found in PATH", exit_code=2)
    argv = [os.fsencode(word) for word in words]
    return _true_path(found, request), "exec", argv


def _true_path(path: str, request: Request) -> bytes:
    whole = os.path.join(os.fsdecode(request.context.cwd) or "/", path)
    return os.fsencode(os.path.realpath(whole))


def _blocks_of(built: Built, programs: Sequence[str], request: Request) -> int:
    """The blocks that these programs start, as bits; one that is not here goes by its name."""
    import shutil

    from supervisor import native

    bits = 0
    for word in programs:
        found = word if "/" in word else shutil.which(word)
        path = _true_path(found, request) if found else b"/" + os.fsencode(word)
        bits |= native.starts(built.entry.blob, path, name=os.fsencode(word), tmp=NO_TMP)
    return bits


def _block_names(built: Built, blocks: int) -> Sequence[str]:
    return [block.id for i, block in enumerate(built.policy.blocks) if blocks >> i & 1]


def _explain(
    built: Built, path: bytes, op: str, argv: Sequence[bytes], blocks: int = 0
) -> Explanation:
    from supervisor.policy.explain import explain as ask

    name = argv[0] if argv else b""
    decide = partial(_decide, built.entry.blob, blocks)
    return ask(built.policy, built.compiled, decide, path, op, name=name, argv=argv)


def _decide(
    blob: bytes, blocks: int, ops: int, path: bytes, name: bytes, argv: Sequence[bytes]
) -> Verdict:
    from supervisor import native

    return native.decide(blob, ops, path, name=name, argv=argv, tmp=NO_TMP, blocks=blocks)


def _explanation(answer: Explanation) -> dict[str, object]:
    rules = [answer.winner] if answer.winner else []
    shown = [
        {"id": rule.id, "action": rule.action, "src": rule.src, "say": rule.say}
        for rule in (*rules, *answer.losers)
    ]
    return {
        "path": escape(answer.path),
        "op": answer.op,
        "decision": answer.decision,
        "errno": answer.err,
        "rule": shown[0] if rules else None,
        "losers": shown[len(rules) :],
        "mechanism": answer.mechanism,
        "change": answer.change,
        "why": answer.why,
        "note": answer.note,
        "observe": answer.observe,
    }


def _sentences(answer: Explanation, blocks: Sequence[str] | None = None) -> str:
    from supervisor.cli.denials import errno_name, quoted

    seen = f" = -1 {errno_name(answer.err)}" if answer.err else ""
    lines = [f"{answer.decision.upper()} {answer.op} {quoted(answer.path)}{seen}"]
    if answer.observe:
        lines.append("  mode       observe: it is recorded and passes all the same")
    if blocks is not None:
        lines.append(f"  blocks     {', '.join(blocks) or 'none'}")
    if answer.winner is None:
        why = "nothing allows it" if answer.decision == "deny" else "no rule speaks of it"
        lines.append(f"  rule       default: {why}")
    else:
        rule = answer.winner
        say = f": {rule.say}" if rule.say else ""
        lines.append(f"  rule       {rule.id} ({rule.src}){say}")
        if rule.text:
            lines.append(f"             {rule.text}")
    if answer.why:
        lines.append(f"  bytes      {answer.why}")
    if answer.note:
        lines.append(f"  note       {answer.note}")
    lines += [f"  outvoted   {rule.action} {rule.id} ({rule.src})" for rule in answer.losers]
    lines += [f"  mechanism  {answer.mechanism}", f"  change     {answer.change}"]
    return visible("\n".join(lines)) + "\n"


def _merged(built: Built) -> dict[str, object]:
    policy = built.policy
    return {
        "name": policy.name,
        "mode": "observe" if policy.observe else "enforce",
        "vars": {name: escape(value) for name, value in policy.vars},
        "debuggers": built.compiled.no_debug or "allowed",
        "notes": _notes(policy),
        "sources": [{"file": s.file, "sha256": s.sha256} for s in policy.sources],
        "files": [_file_rule(rule) for rule in policy.files],
        "network": [_net_rule(rule) for rule in policy.network],
        "exec": [_exec_rule(rule) for rule in policy.execs],
        "signals": [_signal_rule(rule) for rule in policy.signals],
        "blocks": [_block(block) for block in policy.blocks],
        "env": {
            "keep": [*policy.env.keep],
            "drop": [*policy.env.drop],
            "set": {name: escape(value) for name, value in policy.env.values},
        },
        "limits": [_limit(limit) for limit in policy.limits],
    }


def _limit(limit: Limit) -> dict[str, object]:
    return {
        "name": limit.name,
        "hard": limit.hard,
        "soft": limit.soft,
        "on_exceed": "halt" if limit.halt else "deny",
        "src": str(limit.source),
    }


def _file_rule(rule: schema.FileRule) -> dict[str, object]:
    return {
        "id": rule.id,
        "action": ACTION_NAMES[rule.action],
        "ops": schema.op_names(rule.ops),
        "paths": [_shown(pattern) for pattern in rule.patterns],
        "except": [_shown(pattern) for pattern in rule.excluded],
        "to": _shown(rule.dest),
        "hide": rule.hide,
        "say": rule.say,
        "src": str(rule.source),
    }


def _net_rule(rule: schema.NetRule) -> dict[str, object]:
    return {
        "id": rule.id,
        "action": ACTION_NAMES[rule.action],
        "ops": schema.op_names(rule.ops),
        "to": _net_targets(rule),
        "say": rule.say,
        "src": str(rule.source),
    }


def _net_targets(rule: schema.NetRule) -> Sequence[str]:
    texts = []
    for entry in rule.entries:
        if entry[0] == schema.NET_ADDRESS:
            texts.append(addresses.shown(entry))
        else:
            at = "@" if entry[0] == schema.NET_ABSTRACT else ""
            texts.append(f"{addresses.UNIX}{at}{_shown(entry[1])}")
    return texts


def _exec_rule(rule: schema.ExecRule) -> dict[str, object]:
    argv = rule.argv_patterns
    return {
        "id": rule.id,
        "action": ACTION_NAMES[rule.action],
        "programs": [_shown(word) for word in (*rule.names, *rule.patterns)],
        "argv": None if argv is None else [escape(word) for word in argv],
        "sha256": rule.digest.hex(),
        "to": [_shown(word) for word in rule.dest],
        "say": rule.say,
        "src": str(rule.source),
    }


def _signal_rule(rule: schema.SignalRule) -> dict[str, object]:
    return {
        "id": rule.id,
        "action": ACTION_NAMES[rule.action],
        "signals": signals.names_of(rule.signals),
        "target": signals.who_of(rule.who),
        "to": signals.name_of(rule.to) if rule.action == schema.STEER else "",
        "say": rule.say,
        "src": str(rule.source),
    }


def _block(block: schema.Block) -> dict[str, object]:
    return {
        "id": block.id,
        "for": [_shown(word) for word in (*block.names, *block.patterns)],
        "default": "allow" if block.open else "deny",
        "files": [_file_rule(rule) for rule in block.files],
        "network": [_net_rule(rule) for rule in block.network],
        "exec": [_exec_rule(rule) for rule in block.execs],
        "src": str(block.source),
    }


def _merged_text(built: Built) -> str:
    policy, refused = built.policy, built.compiled.no_debug
    lines = [f"name: {policy.name}", f"mode: {'observe' if policy.observe else 'enforce'}"]
    lines.append(f"# debuggers: {f'refused, for {refused}' if refused else 'may work inside'}")
    lines += [f"# note: {note}" for note in _notes(policy)]
    lines += [f"# from {source.file}" for source in policy.sources]
    lines += _sections(policy)
    lines += _signals(policy)
    if policy.limits:
        lines.append("limits:")
    for limit in policy.limits:
        values = [f"{k}: {limit.show(v)}" for k, v in limit.values()]
        values.append(f"on_exceed: {'halt' if limit.halt else 'deny'}")
        lines += [f"  # {limit.source}", f"  {limit.name}: {{{', '.join(values)}}}"]
    if policy.blocks:
        lines.append("blocks:")
    for block in policy.blocks:
        programs = ", ".join(_shown(word) for word in (*block.names, *block.patterns))
        lines += [f"  # {block.source}", f"  - id: {block.id}"]
        lines += [f"    for: {{program: [{programs}]}}"]
        lines += [f"    default: {'allow' if block.open else 'deny'}"]
        lines += [f"    {line}" for line in _sections(block)]
    return visible("\n".join(lines)) + "\n"


def _sections(policy: Policy | schema.Block) -> Sequence[str]:
    lines = ["files:"]
    for rule in policy.files:
        lines += _head(rule)
        lines.append(f"    {ACTION_NAMES[rule.action]}: [{schema.op_names(rule.ops)}]")
        lines += _values("paths", map(_shown, rule.patterns))
    lines.append("network:")
    for net in policy.network:
        lines += _head(net)
        lines.append(f"    {ACTION_NAMES[net.action]}: [{schema.op_names(net.ops)}]")
        lines += _values("to", (f'"{text}"' for text in _net_targets(net)))
    lines.append("exec:")
    for entry in policy.execs:
        lines += _head(entry)
        lines += _values(ACTION_NAMES[entry.action], map(_shown, (*entry.names, *entry.patterns)))
        if entry.digest:
            lines.append(f"    sha256: {entry.digest.hex()}")
    return lines


def _signals(policy: Policy) -> Sequence[str]:
    lines = ["signals:"] if policy.signals else []
    for rule in policy.signals:
        lines += _head(rule)
        lines.append(
            f"    {ACTION_NAMES[rule.action]}: [{', '.join(signals.names_of(rule.signals))}]"
        )
        lines.append(f"    target: {signals.who_of(rule.who)}")
        if rule.action == schema.STEER:
            lines.append(f"    to: {signals.name_of(rule.to)}")
    return lines


def _head(rule: schema.Ruled) -> Sequence[str]:
    return [f"  # {rule.source}", f"  - id: {rule.id}"]


def _values(name: str, words: Iterable[str]) -> Sequence[str]:
    return [f"    {name}:", *(f"      - {word}" for word in words)]


def _shown(pattern: bytes) -> str:
    """A pattern as people write it: the late-bound folder by its name."""
    if pattern[:1] == b"\x01":
        return "${TMPDIR}" + escape(pattern[1:])
    return escape(pattern)


def _problems(error: PolicyError) -> Sequence[dict[str, object]]:
    return [
        {
            "file": problem.file,
            "line": problem.line,
            "column": problem.column,
            "message": problem.message,
            "suggestion": problem.suggestion,
        }
        for problem in error.problems
    ]
