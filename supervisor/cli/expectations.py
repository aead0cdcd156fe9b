"""Expectations kept beside a policy: a YAML list of questions with the answers wanted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from supervisor.errors import SupervisorError
from supervisor.policy.schema import WHO
from supervisor.run.events import OPS

if TYPE_CHECKING:
    from typing import NoReturn

_ABOUT = ("path", "exec", "connect", "bind", "signal")
_GIVEN = ("op", "expect", "rule", "program", "target")
_KEYS = {*_ABOUT, *_GIVEN}
_EXPECT = ("allow", "deny", "steer")
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Expectation:
    """One question and its answer.

    Attributes:
        target: The path, the program as called, the address, or the signal.
        argv: For a program: its arguments.
        about: What it is about: path | exec | connect | bind | signal.
        op: Operation word.
        expect: allow | deny | steer.
        rule: Id of the rule that must decide; "" for any.
        line: Where it stands in its file.
        program: Who asks, as far as blocks are concerned; "" for nobody in particular.
        who: Whom a signal is for: self | child | others | tree.
    """

    target: str
    argv: tuple[str, ...]
    about: str
    op: str
    expect: str
    rule: str
    line: int
    program: str = ""
    who: str = "tree"

    def shown(self) -> dict[str, object]:
        """Return the parts that reports show."""
        return {
            "target": self.target,
            "op": self.op,
            "expect": self.expect,
            "rule": self.rule,
            "line": self.line,
        }


def read(path: str) -> list[Expectation]:
    """Read a file of expectations.

    Args:
        path: the file.

    Raises:
        SupervisorError: it cannot be read or says something else (exit code 2).
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            _fail(path, 0, f"is larger than {_MAX_BYTES} bytes")
        root = yaml.compose(data.decode(), Loader=yaml.SafeLoader)
    except OSError as problem:
        raise SupervisorError(f"{path}: {problem.strerror}", exit_code=2) from problem
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as problem:
        raise SupervisorError(f"{path}: not valid YAML: {problem}", exit_code=2) from problem
    if not isinstance(root, yaml.SequenceNode) or not root.value:
        _fail(path, 0, "is no list of expectations")
    return [_item(path, node) for node in root.value]


def _item(path: str, node: yaml.Node) -> Expectation:
    line = node.start_mark.line + 1
    fields = _fields(path, node)
    found = [key for key in _ABOUT if key in fields]
    if len(found) != 1:
        _fail(path, line, "exactly one of path, exec, connect, bind and signal is needed")
    about = found[0]
    words = _words(path, fields[about]) if about == "exec" else (_word(path, fields[about]),)
    given = {key: _word(path, fields[key]) for key in _GIVEN if key in fields}
    op = given.get("op", "read") if about == "path" else about
    expect = given.get("expect", "")
    if expect not in _EXPECT:
        _fail(path, line, f"expect is one of {', '.join(_EXPECT)}")
    if about == "path" and op not in OPS:
        _fail(path, line, f"there is no operation {op!r}")
    target = words[0] if about == "exec" else os.path.expandvars(words[0])
    rule, program = given.get("rule", ""), given.get("program", "")
    who = given.get("target", "tree")
    if "target" in given and (about != "signal" or who not in WHO):
        _fail(path, line, f"target goes with signal, and is one of {', '.join(WHO)}")
    return Expectation(target, words[1:], about, op, expect, rule, line, program, who)


def _fields(path: str, node: yaml.Node) -> dict[str, yaml.Node]:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        _fail(path, line, "an expectation is a mapping")
    fields: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if key.value not in _KEYS or key.value in fields:
            _fail(path, line, f"unknown or repeated key {key.value!r}")
        fields[key.value] = value
    return fields


def _words(path: str, node: yaml.Node) -> tuple[str, ...]:
    if isinstance(node, yaml.SequenceNode) and node.value:
        return tuple(_word(path, item) for item in node.value)
    return (_word(path, node),)


def _word(path: str, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        _fail(path, node.start_mark.line + 1, "a word is needed")
    return str(node.value)


def _fail(path: str, line: int, text: str) -> NoReturn:
    where = f"{path}:{line}" if line else path
    raise SupervisorError(f"{where}: {text}", exit_code=2)
