"""The environment of the target."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.policy.environ import apply_env, name_matches

START = {b"PATH": b"/bin", b"LC_ALL": b"C", b"A_TOKEN": b"x", b"HOME": b"/h"}


def test_order() -> None:
    """Keep, then drop, then set; nothing to keep keeps all."""
    assert apply_env(((), (), ()), START) == START
    assert apply_env((("PATH", "LC_*"), (), ()), START) == {b"PATH": b"/bin", b"LC_ALL": b"C"}
    assert b"A_TOKEN" not in apply_env((("*",), ("*_TOKEN",), ()), START)
    assert apply_env((("PATH",), ("PATH",), (("PATH", b"/x"),)), START) == {b"PATH": b"/x"}
    assert START[b"PATH"] == b"/bin"


def test_private_folder() -> None:
    """A value that starts in the private folder gets its path, and needs one."""
    env = ((), (), (("T", b"\x01/a"), ("U", b"\x01")))
    assert apply_env(env, {}, b"/tmp/p") == {b"T": b"/tmp/p/a", b"U": b"/tmp/p"}
    with pytest.raises(ValueError, match="private folder"):
        apply_env(env, {})


@given(st.text("AB*?", max_size=6), st.text("AB", max_size=6))
def test_patterns(pattern: str, name: str) -> None:
    """Patterns match as fnmatch does."""
    wanted = fnmatch.fnmatchcase(name, pattern)
    assert name_matches(pattern.encode(), name.encode()) == wanted
