"""Questions about the network: addresses and local sockets, as typed and as rules see them."""

from __future__ import annotations

import os
from functools import partial

from supervisor.cli.lookup import NO_TMP
from supervisor.errors import UsageError
from supervisor.policy import addresses, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.model import Verdict
    from supervisor.policy.addresses import Endpoint
    from supervisor.policy.build import Built
    from supervisor.policy.explain import Explanation


def endpoint(text: str, op: str, cwd: bytes) -> Endpoint:
    """Read who is at the other end.

    Args:
        text: HOST:PORT, [V6]:PORT, unix:PATH or unix:@NAME.
        op: ``connect`` or ``bind``: connecting to the unspecified address reaches this machine.
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
        asked = addresses.endpoint(text)
    except addresses.AddressError as error:
        hint = f"did you mean '{error.suggestion}'?" if error.suggestion else ""
        raise UsageError(f"{text!r}: {error}", exit_code=2, hint=hint) from error
    return addresses.connected(asked) if op == "connect" else asked


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

    asked = endpoint(text, op, cwd)
    decide = partial(_decide, built.entry.blob, blocks)
    return explain_net(built.policy, built.compiled, decide, asked, op)


def _decide(blob: bytes, blocks: int, op: int, asked: Endpoint) -> Verdict:
    from supervisor import native

    return native.decide_net(blob, op, asked.kind, asked.raw, asked.port, tmp=NO_TMP, blocks=blocks)
