"""A fixed world for policies: folders, user and environment that are not this machine's."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from policy_world import Errors, Load

from supervisor.errors import PolicyError
from supervisor.policy.context import Context
from supervisor.policy.merge import load_policy
from supervisor.policy.schema import Policy

HEAD = "version: 1\n"


@pytest.fixture
def context() -> Context:
    """Return a context that names no real folder."""
    return Context(
        cwd=b"/home/u/project",
        home=b"/home/u",
        uid=1000,
        environ={b"TOOL": b"/opt/tool", b"STAR": b"/a*b", b"EMPTY": b""},
    )


@pytest.fixture
def load(context: Context) -> Load:
    """Return a loader of one policy text."""

    def run(text: str, *, sets: Mapping[str, str] | None = None, mode: str = "") -> Policy:
        inline = [("agent.yaml", (HEAD + text).encode())]
        return load_policy([], context=context, inline=inline, sets=sets, mode=mode)

    return run


@pytest.fixture
def errors(load: Load) -> Errors:
    """Return a function that gives the rendered problems of one policy text."""

    def run(text: str, *, sets: Mapping[str, str] | None = None) -> str:
        with pytest.raises(PolicyError) as caught:
            load(text, sets=sets)
        assert caught.value.exit_code == 125
        return str(caught.value)

    return run
