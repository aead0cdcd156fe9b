"""Patterns as sets, held against brute force over a small world of paths."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.policy import patterns

_NAMES = [a + b for a in "ab" for b in ("", "a", "b")]
WORLD = ["/"] + [
    "/" + "/".join(parts) for n in (1, 2, 3) for parts in itertools.product(_NAMES, repeat=n)
]
PARTS = ["a", "b", "ab", "*", "?", "a*", "*b", "[ab]", "[!a]", "[!b]*", "**", "?b", "\\a"]


def glob(pattern: str, name: str) -> bool:  # noqa: PLR0911 - one return a case
    """Match one component, by trying everything."""
    if name == "\x01":  # stands for a folder of unknown depth
        return False
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(glob(pattern[1:], name[i:]) for i in range(len(name) + 1))
    if not name:
        return False
    if pattern[0] == "[":
        end = pattern.index("]")
        body = pattern[1:end]
        inside = name[0] not in body[1:] if body[0] == "!" else name[0] in body
        return inside and glob(pattern[end + 1 :], name[1:])
    if pattern[0] == "\\":
        pattern = pattern[1:]
    elif pattern[0] == "?":
        return glob(pattern[1:], name[1:])
    return pattern[0] == name[0] and glob(pattern[1:], name[1:])


def brute(parts: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Match components, by trying everything."""
    if not parts:
        return not names
    if parts[0] == "**":
        return any(brute(parts[1:], names[i:]) for i in range(len(names) + 1))
    return bool(names) and glob(parts[0], names[0]) and brute(parts[1:], names[1:])


def components(path: str) -> tuple[str, ...]:
    """Split an absolute path."""
    return tuple(path[1:].split("/")) if path != "/" else ()


def matched(pattern: str, path: str) -> bool:
    """Return whether brute force says that the pattern matches."""
    return brute(components(pattern), components(path))


pattern_text = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)


def automaton(pattern: str) -> patterns.Automaton:
    """Build the automaton of a text pattern."""
    return patterns.path_automaton(pattern.encode())


@given(pattern_text)
@settings(max_examples=300, deadline=None)
def test_matches_as_brute_force(pattern: str) -> None:
    """Every path of the small world is matched exactly when brute force matches it."""
    machine = automaton(pattern)
    for path in WORLD:
        assert machine.matches(patterns.spell(path.encode())) == matched(pattern, path), path


@given(pattern_text, pattern_text)
@settings(max_examples=300, deadline=None)
def test_intersection_is_exact(one: str, two: str) -> None:
    """A witness matches both patterns; no witness means no path of the world does."""
    found = patterns.search([automaton(one), automaton(two)], all, needed=2)
    if found is None:
        assert not any(matched(one, path) and matched(two, path) for path in WORLD)
    else:
        path = found.decode() or "/"
        assert matched(one, path)
        assert matched(two, path)


@given(pattern_text, st.lists(pattern_text, min_size=1, max_size=3))
@settings(max_examples=300, deadline=None)
def test_inclusion_is_exact(one: str, others: list[str]) -> None:
    """A witness escapes every cover; no witness means the cover holds in the world."""
    found = patterns.search(
        [automaton(one), *map(automaton, others)], lambda hit: hit[0] and not any(hit[1:])
    )
    if found is None:
        for path in WORLD:
            assert not matched(one, path) or any(matched(other, path) for other in others)
    else:
        path = found.decode() or "/"
        assert matched(one, path)
        assert not any(matched(other, path) for other in others)


def test_budget_is_kept() -> None:
    """A question that would cost too much is undecided instead of slow."""
    wide = automaton("/" + "/".join("*a" + "?" * 14 for _ in range(3)))
    with pytest.raises(patterns.Undecided):
        patterns.search([wide], lambda _: False, budget=patterns.Budget(500))


def test_tmpdir_is_not_covered_by_a_fixed_depth() -> None:
    """The unknown depth of the private folder is covered by '**' only."""
    machine = patterns.path_automaton(b"\x01/x")
    for cover, inside in ((b"/*/x", False), (b"/**/x", True), (b"/?/x", False), (b"/**", True)):
        found = patterns.search(
            [machine, patterns.path_automaton(cover)], lambda hit: hit[0] and not hit[1]
        )
        assert (found is None) is inside, cover


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (b"usr/bin", "must start with"),
        (b"", "must start with"),
        (b"*/x", "must start with"),
        (b"**x/y", "must start with"),
        (b"/a//b", "empty component"),
        (b"/a/", "empty component"),
        (b"/a/./b", "'.' or '..'"),
        (b"/a/../b", "'.' or '..'"),
        (b"/a/\\../b", "'.' or '..'"),
        (b"/a\0b", "NUL"),
        (b"/a**", "whole component"),
        (b"/a\\", "lone"),
        (b"/[a", "without ']'"),
        (b"/[a/b]", "without ']'"),
        (b"/[b-a]", "backwards"),
        (b"/" + b"a" * 4095, "longer than"),
    ],
)
def test_bad_patterns(pattern: bytes, why: str) -> None:
    """Patterns that mean nothing are refused with the reason."""
    with pytest.raises(patterns.PatternError, match=why.replace("[", "\\[").replace("'.'", "'.'")):
        patterns.split(pattern)


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [
        (b"/usr/**", b"/usr"),
        (b"/usr/bin/git", b"/usr/bin/git"),
        (b"/usr/l*b/x", b"/usr"),
        (b"**/x", b"/"),
        (b"/**", b"/"),
        (b"/", b"/"),
        (b"\x01/**", b"\x01"),
        (b"\x01/a/*", b"\x01/a"),
        (b"/a\\*b/**", b"/a*b"),
    ],
)
def test_literal_folder(pattern: bytes, folder: bytes) -> None:
    """The literal folder stops before the first wildcard and is unescaped."""
    assert patterns.literal_folder(pattern) == folder


@given(st.binary(min_size=1, max_size=12).filter(lambda text: b"\0" not in text))
def test_escape_is_literal(text: bytes) -> None:
    """An escaped text matches itself and is recognised as literal."""
    assert patterns.unescape(patterns.escape(text)) == text
    machine = patterns.argv_automaton([patterns.escape(text)])
    assert machine.matches(b"\0" + text)


def test_argument_patterns() -> None:
    """In arguments '*' crosses '/' and '**' is any number of arguments."""
    machine = patterns.argv_automaton([b"push", b"**", b"http*"])
    assert machine.matches(b"\0push\0http://x/y")
    assert machine.matches(b"\0push\0-f\0\0https")
    assert not machine.matches(b"\0push")
    assert not machine.matches(b"\0pull\0http")
