"""Extends, variables and single values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from policy_world import Errors, Load

from supervisor.errors import PolicyError, UsageError
from supervisor.policy.context import Context
from supervisor.policy.merge import load_policy
from supervisor.policy.schema import Policy


def write(folder: Path, name: str, text: str) -> str:
    """Write one policy file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("version: 1\n" + text)
    return str(path)


def patterns_of(policy: Policy) -> list[bytes]:
    """Return all patterns of the files rules."""
    return [pattern for rule in policy.files for pattern in rule.patterns]


def test_rules_add_up(tmp_path: Path, context: Context) -> None:
    """An extended file's rules come along once, however often it is named."""
    write(tmp_path, "sub/base.yaml", "files:\n  - {id: base, allow: read, paths: [/b]}\n")
    write(tmp_path, "one.yaml", "extends: [sub/base.yaml]\n")
    path = write(
        tmp_path,
        "two.yaml",
        "extends: [one.yaml, ./sub/base.yaml]\nfiles:\n  - {id: own, deny: all, paths: [/o]}\n",
    )
    policy = load_policy([path, path], context=context)
    assert [rule.id for rule in policy.files] == ["base", "own"]
    assert [os.path.basename(source.file) for source in policy.sources] == [
        "base.yaml",
        "one.yaml",
        "two.yaml",
    ]
    assert policy.name == "two"


def test_circle(tmp_path: Path, context: Context) -> None:
    """Files that extend each other are an error at the key that closes the circle."""
    path = write(tmp_path, "a.yaml", "extends: [b.yaml]\n")
    write(tmp_path, "b.yaml", "extends: [a.yaml]\n")
    with pytest.raises(PolicyError) as caught:
        load_policy([path], context=context)
    first = str(caught.value).splitlines()[0]
    assert first == f"{tmp_path}/b.yaml:2:11: error: 'a.yaml' extends itself in a circle"


def test_depth(tmp_path: Path, context: Context) -> None:
    """Eight levels of extends are fine, nine are not."""
    write(tmp_path, "8.yaml", "files: []\n")
    for i in range(7, -1, -1):
        write(tmp_path, f"{i}.yaml", f"extends: [{i + 1}.yaml]\n")
    assert len(load_policy([f"{tmp_path}/0.yaml"], context=context).sources) == 9
    write(tmp_path, "8.yaml", "extends: [9.yaml]\n")
    write(tmp_path, "9.yaml", "files: []\n")
    with pytest.raises(PolicyError, match="nested deeper than 8 levels"):
        load_policy([f"{tmp_path}/0.yaml"], context=context)


def test_missing_files(tmp_path: Path, context: Context) -> None:
    """What cannot be found is said with the place that asked for it."""
    path = write(tmp_path, "a.yaml", "extends: [nope.yaml, base/system-raed]\n")
    with pytest.raises(PolicyError) as caught:
        load_policy([path, "agent-dve"], context=context)
    text = str(caught.value)
    assert f"{tmp_path}/nope.yaml: error: cannot be read: No such file or directory" in text
    assert f"{path}:2:11: error: 'nope.yaml' cannot be extended" in text
    assert "there is no pack 'base/system-raed' (did you mean 'base/system-read'?)" in text
    assert "\nerror: there is no policy called 'agent-dve' (did you mean 'agent-dev'?)\n" in text


def test_problems_of_all_files(tmp_path: Path, context: Context) -> None:
    """A broken file does not hide the problems of the file that extends it."""
    write(tmp_path, "b.yaml", "fils: []\n")
    path = write(tmp_path, "a.yaml", "extends: [b.yaml]\nnam: x\n")
    with pytest.raises(PolicyError) as caught:
        load_policy([path], context=context)
    assert str(caught.value).count("error: unknown key") == 2


def test_single_values(tmp_path: Path, context: Context) -> None:
    """A file beats what it extends; lists of env add up; `set` is overridden."""
    write(
        tmp_path,
        "b.yaml",
        "vars: {w: /b, x: /x}\naudit: {record: all}\n"
        "env: {keep: [A], drop: [S], set: {K: b, L: b}}\n",
    )
    path = write(
        tmp_path,
        "a.yaml",
        'extends: [b.yaml]\nvars: {w: /a}\nenv: {keep: [B], set: {K: "${w}"}}\n'
        'files:\n  - {id: f, allow: all, paths: ["${w}/**", "${x}"]}\n',
    )
    policy = load_policy([path], context=context)
    assert patterns_of(policy) == [b"/a/**", b"/x"]
    assert policy.env.keep == ("A", "B")
    assert policy.env.drop == ("S",)
    assert policy.env.values == (("K", b"/a"), ("L", b"b"))
    assert policy.record == 2


def test_mode_never_weakens_by_a_pack(tmp_path: Path, context: Context) -> None:
    """`observe` counts only in a file that the user named, and `enforce` beats it."""
    observe = write(tmp_path, "o.yaml", "mode: observe\n")
    extends = write(tmp_path, "e.yaml", "extends: [o.yaml]\n")
    strict = write(tmp_path, "s.yaml", "mode: enforce\n")
    assert load_policy([observe], context=context).observe
    assert not load_policy([extends], context=context).observe
    assert load_policy([extends, observe], context=context).observe
    assert load_policy([observe, extends], context=context).observe
    assert not load_policy([observe, strict], context=context).observe
    assert load_policy([strict], context=context, mode="observe").observe
    assert not load_policy([observe], context=context, mode="enforce").observe


def test_same_id_in_two_files(tmp_path: Path, context: Context) -> None:
    """Ids are unique over all files; given ones clash, missing ones are told apart."""
    one = write(tmp_path, "a.yaml", "files:\n  - {id: x, allow: all, paths: [/a]}\n")
    two = write(tmp_path, "b.yaml", "files:\n  - {id: x, allow: all, paths: [/b]}\n")
    with pytest.raises(PolicyError) as caught:
        load_policy([one, two], context=context)
    assert "b.yaml:3:5: error: repeated rule id 'x'\n" in str(caught.value)
    assert str(caught.value).endswith(f"note: previous definition here: {one}:3")
    one = write(tmp_path, "a.yaml", "files:\n  - {allow: all, paths: [/a]}\n")
    two = write(tmp_path, "b.yaml", "files:\n  - {allow: all, paths: [/b]}\n")
    policy = load_policy([one, two], context=context)
    assert [rule.id for rule in policy.files] == ["files.1", "b.files.1"]


def test_built_in_variables(load: Load) -> None:
    """Values are literal: their wildcards are escaped, `/` at their end does not count."""
    policy = load(
        "files:\n  - {allow: all, paths: ["
        '"${CWD}/**", "${HOME}", "${TMPDIR}/a", "/run/${UID}", "${ENV:TOOL}/x", "${ENV:STAR}"]}\n'
    )
    assert patterns_of(policy) == [
        b"/home/u/project/**",
        b"/home/u",
        b"\x01/a",
        b"/run/1000",
        b"/opt/tool/x",
        b"/a\\*b",
    ]
    assert policy.used_env == ("STAR", "TOOL")


def test_sets_beat_files(load: Load) -> None:
    """`--set` beats the file and is literal too."""
    text = 'vars: {w: "${CWD}"}\nfiles:\n  - {allow: all, paths: ["${w}/**"]}\n'
    assert patterns_of(load(text)) == [b"/home/u/project/**"]
    assert patterns_of(load(text, sets={"w": "/x[1]/"})) == [b"/x\\[1\\]/**"]
    with pytest.raises(UsageError, match="--set ww: no policy has a variable of that name"):
        load(text, sets={"ww": "/x"})


@pytest.mark.parametrize(
    ("head", "path", "message"),
    [
        ("", "${wrokspace}/x", "undefined variable 'wrokspace'"),
        ("vars: {workspace: /w}\n", "${wrokspace}/x", "(did you mean 'workspace'?)"),
        ("", "${ENV:NOPE}/x", "environment variable 'NOPE' is not set"),
        ("", "/x/${TMPDIR}", "${TMPDIR} must start the text"),
        ("", "${TMPDIR}x", "${TMPDIR} must start the text"),
        ("", "${CWD", "'${' without '}'"),
        ('vars: {a: "${b}", b: "${a}"}\n', "${a}/x", "refers to itself (a -> b -> a)"),
        ("vars: {a: rel}\n", "${a}/x", "bad pattern '${a}/x' (here 'rel/x'): must start"),
        ('vars: {a: "/x/.."}\n', "${a}/x", "bad pattern '${a}/x' (here '/x/../x'): has a"),
    ],
)
def test_bad_variables(errors: Errors, head: str, path: str, message: str) -> None:
    """A variable that cannot be replaced is an error with its reason."""
    assert message in errors(f'{head}files:\n  - {{allow: all, paths: ["{path}"]}}\n')


def test_the_whole_file_system_by_accident(context: Context) -> None:
    """A workspace that is "/" is refused where it would be writable."""
    context.cwd = b"/"
    text = b'version: 1\nvars: {w: "${CWD}"}\nfiles:\n  - {allow: all, paths: ["${w}/**"]}\n'
    with pytest.raises(PolicyError) as caught:
        load_policy([], context=context, inline=[("agent.yaml", text)])
    assert (
        "agent.yaml:4:26: error: '${w}/**' is the whole file system here: "
        "start in a project folder, or use --set w=FOLDER" in str(caught.value)
    )
    read = text.replace(b"allow: all", b"allow: read")
    assert patterns_of(load_policy([], context=context, inline=[("a", read)])) == [b"/**"]


def test_env_values(load: Load) -> None:
    """Values may be empty, may come from variables and may be in the private folder."""
    policy = load('env: {set: {A: "", B: "${ENV:EMPTY}", C: "${TMPDIR}", D: "x${UID}"}}\n')
    assert policy.env.values == (("A", b""), ("B", b""), ("C", b"\x01"), ("D", b"x1000"))


def test_exec_programs(load: Load) -> None:
    """Names without a slash are bare, all else are patterns; a variable may be either."""
    policy = load(
        "vars: {tool: git, path: /opt/x}\n"
        "exec:\n"
        '  - {id: a, deny: [curl, /bin/nc, "**/wget", "**", "${tool}", "${path}/y"]}\n'
        '  - {id: s, steer: npm, to: ["${path}", "--a", "${TMPDIR}/b"], args: append}\n'
    )
    deny, steer = policy.execs
    assert deny.names == (b"curl", b"git")
    assert deny.patterns == (b"/bin/nc", b"**/wget", b"**", b"/opt/x/y")
    assert (steer.dest, steer.append) == ((b"/opt/x", b"--a", b"\x01/b"), True)


def test_context_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links in HOME are resolved; without HOME the user database answers."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path / "link")
    context = Context.current({b"HOME": os.fsencode(tmp_path / "link")})
    assert context.home == context.cwd == os.fsencode(tmp_path / "real")
    assert Context.current({}).home.startswith(b"/")
    assert Context.current({b"HOME": b"relative"}).home == Context.current({}).home
