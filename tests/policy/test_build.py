"""The cold path in one call."""

from __future__ import annotations

import os
from pathlib import Path

import bpf_sim
import pytest

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


@pytest.mark.parametrize("to", ["/tree", "/file", ""])
def test_only_trees_bring_folders_to_the_supervisor(to: str, tmp_path: Path) -> None:
    """chdir and opens with O_PATH are asked about where a steer goes to a tree, and only there."""
    rule = {
        "/tree": "{steer: [write, create], paths: [/a/**], to: /tree}",
        "/file": "{steer: [write, create], paths: [/a/b], to: /file}",
        "": "{deny: all, as: ENOENT, paths: [/a/**]}",
    }[to]
    path = tmp_path / "own.yaml"
    path.write_text(f"version: 1\nfiles:\n  - {rule}\n")
    context = Context(cwd=os.fsencode(tmp_path), home=b"/h", uid=0, environ={})
    found = build([str(path)], context, rows=native.rows(), tests=native.whens())
    numbers = {row.name: row.nr for row in native.rows()}
    told = bpf_sim.NOTIFY if to == "/tree" else bpf_sim.ALLOW
    program = found.compiled.filter
    assert bpf_sim.run(program, numbers["chdir"]) == told
    assert bpf_sim.run(program, numbers["openat"], (0, 0, os.O_PATH)) == told
    assert bpf_sim.run(program, numbers["openat"], (0, 0, os.O_RDONLY)) == bpf_sim.NOTIFY
    looks = bpf_sim.ALLOW if to == "/file" else bpf_sim.NOTIFY
    assert bpf_sim.run(program, numbers["getdents64"]) == looks
