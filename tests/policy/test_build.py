"""The cold path in one call."""

from __future__ import annotations

import os
from pathlib import Path

from supervisor import native
from supervisor.policy import schema
from supervisor.policy.build import build
from supervisor.policy.context import Context


def test_policy_files_protect_themselves(tmp_path: Path) -> None:
    """A policy in a folder that it opens cannot be changed by the target."""
    path = tmp_path / "own.yaml"
    path.write_text('version: 1\nfiles:\n  - {id: w, allow: all, paths: ["${CWD}/**"]}\n')
    cwd = os.fsencode(tmp_path)
    context = Context(cwd=cwd, home=b"/h", uid=0, environ={})
    found = build(["./own.yaml"], context, rows=native.rows(), tests=native.whens())
    assert found.entry.sources[0][:2] == ("./own.yaml", str(path))
    assert found.entry.name == "own"
    assert not found.entry.needs_tmp
    for op, action in [("write", 3), ("delete", 3), ("rename", 3), ("read", 0)]:
        bit = schema.OP_BITS[op]
        assert native.decide(found.entry.blob, bit, os.fsencode(path)).action == action
        assert native.decide(found.entry.blob, bit, cwd + b"/other").action == 0
