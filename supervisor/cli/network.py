"""Questions about the network: addresses and local sockets, as typed and as rules see them."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from functools import partial

from supervisor.cli.lookup import NO_TMP
from supervisor.errors import UsageError
from supervisor.policy import addresses, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.model import Verdict
    from supervisor.policy.addresses import Endpoint
    from supervisor.policy.build import Built
    from supervisor.policy.explain import Explanation


_FILE = "in a run the socket's file is what is decided: files and create"
_OWN = "where the run itself made the socket, files and write decide instead"


def endpoint(text: str, cwd: bytes) -> Endpoint:
    """Read who is at the other end.

    Args:
        text: HOST:PORT, [V6]:PORT, unix:PATH or unix:@NAME.
        cwd: where a relative path starts.

    Raises:
        UsageError: it is none of these.
    """
    if text.startswith(addresses.UNIX):
        raw = os.fsencode(text.removeprefix(addresses.UNIX))
        if raw.startswith(b"@"):
            return addresses.Endpoint(schema.NET_ABSTRACT, raw[1:], 0)
        if not raw:
            raise UsageError(f"{text!r} names no socket", exit_code=2)
        true = os.path.realpath(os.path.join(cwd or b"/", raw))
        return addresses.Endpoint(schema.NET_PATH, true, 0)
    try:
        return addresses.endpoint(text)
    except addresses.AddressError as error:
        hint = f"did you mean '{error.suggestion}'?" if error.suggestion else ""
        raise UsageError(f"{text!r}: {error}", exit_code=2, hint=hint) from error


def explain(built: Built, text: str, op: str, cwd: bytes, blocks: int) -> Explanation:
    """Explain a decision about the network.

    Args:
        built: the compiled policy.
        text: as for :func:`endpoint`.
        op: ``connect`` or ``bind``.
        cwd: as for :func:`endpoint`.
        blocks: bits of the blocks that whoever asks is in.

    Raises:
        UsageError: the text is no address.
    """
    from supervisor.policy.explain import explain_net

    asked = endpoint(text, cwd)
    ask = partial(_decide, built.entry.blob, blocks)
    answer = explain_net(built.policy, built.compiled, ask, asked, op)
    if asked.kind != schema.NET_PATH or _by_rule(built, answer):
        return answer
    if op == "bind":
        return _made(built, asked, blocks)
    # Nobody listens, as far as the caller can see.
    return replace(answer, err=errno.ECONNREFUSED if answer.by_default else answer.err, note=_OWN)


def _by_rule(built: Built, answer: Explanation) -> bool:
    """Whether a network rule itself denies."""
    parts = (built.policy.network, *(block.network for block in built.policy.blocks))
    known = {rule.id for part in parts for rule in part}
    return answer.decision == "deny" and answer.winner is not None and answer.winner.id in known


def _made(built: Built, asked: Endpoint, blocks: int) -> Explanation:
    """A local socket that is bound to a path is a new file."""
    from supervisor import native
    from supervisor.policy.explain import explain as explain_path

    def ask(ops: int, path: bytes, name: bytes, argv: Sequence[bytes]) -> Verdict:
        return native.decide(
            built.entry.blob, ops, path, name=name, argv=argv, tmp=NO_TMP, blocks=blocks
        )

    answer = explain_path(built.policy, built.compiled, ask, asked.raw, "create")
    return replace(answer, path=asked.shown(), op="bind", note=_FILE)


def _decide(blob: bytes, blocks: int, op: int, asked: Endpoint) -> Verdict:
    from supervisor import native

    return native.decide_net(blob, op, asked.kind, asked.raw, asked.port, tmp=NO_TMP, blocks=blocks)
