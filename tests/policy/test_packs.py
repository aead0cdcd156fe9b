"""The policies that ship: they load anywhere and keep their promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from supervisor import native
from supervisor.errors import PolicyError
from supervisor.policy import packs, schema
from supervisor.policy.addresses import endpoint
from supervisor.policy.build import Built, build
from supervisor.policy.compile import FLAG_NET
from supervisor.policy.context import Context

NAMES = [name for name, _ in packs.list_packs()]
TMP = b"/tmp/private"


def built(name: str, cwd: bytes = b"/home/u/p", home: bytes = b"/home/u") -> Built:
    """Compile one pack."""
    context = Context(cwd=cwd, home=home, uid=0, environ={})
    return build([name], context, rows=[], tests=[])


def ask(policy: Built, op: str, path: bytes) -> str:
    """Return the action for one path."""
    verdict = native.decide(policy.entry.blob, schema.OP_BITS[op], path, tmp=TMP)
    return schema.ACTION_NAMES[verdict.action]


def test_list() -> None:
    """All packs are there, each with one line that says what it is."""
    assert {
        "agent-dev",
        "base/loopback",
        "base/no-secrets",
        "base/system-read",
        "ci-strict",
        "node-dev",
        "observe",
        "offline",
        "python-dev",
        "read-only",
    } <= set(NAMES)
    for name, description in packs.list_packs():
        assert 20 < len(description) < 110, name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("cwd", "home"),
    [
        (b"/home/u/p", b"/home/u"),
        (b"/root", b"/root"),
        (b"/usr/src/app", b"/"),
        (b"/tmp/x*[1]", b"/nonexistent"),
    ],
)
def test_loads_anywhere(name: str, cwd: bytes, home: bytes) -> None:
    """Every pack loads for every usual place, and the native core takes the blob."""
    policy = built(name, cwd, home)
    assert ask(policy, "read", b"/nowhere/x") in ("allow", "deny")
    assert all(rule.named for rule in policy.policy.files)


@pytest.mark.parametrize("name", ["agent-dev", "ci-strict", "python-dev", "node-dev", "offline"])
def test_root_is_no_workspace(name: str) -> None:
    """Started in "/", a pack with a writable workspace says what to do instead."""
    with pytest.raises(PolicyError, match="start in a project folder, or use --set workspace="):
        built(name, cwd=b"/")


@pytest.mark.parametrize("name", ["agent-dev", "ci-strict", "python-dev", "node-dev", "offline"])
def test_work(name: str) -> None:
    """The workspace and the private folder are free, the rest of the machine is not."""
    policy = built(name)
    for op in schema.OP_BITS:
        assert ask(policy, op, b"/home/u/p/src/a.c") == "allow"
        assert ask(policy, op, TMP + b"/x") == "allow"
    for op in ("write", "create", "delete", "rename", "metadata"):
        for path in (
            b"/usr/bin/ls",
            b"/etc/passwd",
            b"/home/u/other",
            b"/tmp/x",
            b"/home/u/.bashrc",
        ):
            assert ask(policy, op, path) == "deny", (op, path)
    for path in (b"/usr/bin/ls", b"/lib64/ld.so", b"/etc/hosts", b"/dev/null", b"/proc/1/stat"):
        assert ask(policy, "read", path) == "allow", path
    assert ask(policy, "write", b"/dev/null") == "allow"


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("observe", "base/system-read")])
@pytest.mark.parametrize("home", [b"/home/u", b"/home/u/p"])
def test_secrets(name: str, home: bytes) -> None:
    """No secret can be read or moved, not even where the workspace is the home folder."""
    policy = built(name, home=home)
    paths = [
        home + b"/.ssh/id_rsa",
        home + b"/.ssh/config",
        home + b"/.aws/credentials",
        home + b"/.netrc",
        home + b"/.cargo/credentials.toml",
        home + b"/.config/git/credentials",
        home + b"/.bash_history",
        home + b"/.mozilla/firefox/x/logins.json",
        b"/home/u/p/.env",
        b"/home/u/p/sub/.env.local",
        b"/home/u/p/keys/id_ed25519",
        b"/etc/shadow",
        b"/etc/shadow-",
        b"/etc/sudoers.d/x",
    ]
    for path in paths:
        assert ask(policy, "read", path) == "deny", path
        assert ask(policy, "rename", path) == "deny", path


def test_git_works_in_the_workspace() -> None:
    """init, clone and checkout write hooks, settings and whatever the project tracks."""
    policy = built("agent-dev")
    for path in (b".git/hooks/pre-commit.sample", b".git/config", b".env.example", b".env"):
        for op in ("create", "write", "delete", "metadata"):
            assert ask(policy, op, b"/home/u/p/" + path) == "allow", (op, path)
    strict = built("ci-strict")
    assert ask(strict, "write", b"/home/u/p/.git/config") == "deny"
    assert ask(strict, "create", b"/home/u/p/sub/.git/hooks/post-merge") == "deny"
    assert ask(strict, "write", b"/home/u/p/.git/index") == "allow"


def test_nameless_files() -> None:
    """In /tmp only what tmpfile(3) makes can be made: it never has a name."""
    policy = built("agent-dev")
    assert ask(policy, "create", b"/tmp/#tmpfile") == "allow"
    for op in ("read", "delete", "rename", "metadata"):
        assert ask(policy, op, b"/tmp/#tmpfile") == "deny", op
    assert ask(policy, "create", b"/tmp/#tmpfile2") == "deny"


def test_read_only() -> None:
    """Nothing but the private folder can be changed."""
    policy = built("read-only")
    verdict = native.decide(policy.entry.blob, schema.WRITE, b"/home/u/p/a", tmp=TMP)
    assert (schema.ACTION_NAMES[verdict.action], verdict.err) == ("deny", 30)
    assert ask(policy, "read", b"/home/u/p/a") == "allow"
    assert ask(policy, "write", TMP + b"/a") == "allow"


def reach(policy: Built, op: str, text: str) -> str:
    """Return the action for one address."""
    where = endpoint(text)
    found = native.decide_net(
        policy.entry.blob, schema.NET_BITS[op], where.kind, where.raw, where.port, tmp=TMP
    )
    return schema.ACTION_NAMES[found.action]


@pytest.mark.parametrize("name", NAMES)
def test_network(name: str) -> None:
    """Only the pack for loopback reaches anything, and nothing beyond this machine."""
    policy = built(name)
    wanted = "allow" if name == "base/loopback" else "deny"
    for op in schema.NET_BITS:
        for text in ("127.0.0.1:80", "127.255.0.1:65535", "[::1]:1", "127.0.0.1:0"):
            assert reach(policy, op, text) == wanted, (op, text)
        for text in ("0.0.0.0:80", "[::]:80", "10.0.0.1:80", "[fe80::1]:80", "169.254.169.254:80"):
            assert reach(policy, op, text) == "deny", (op, text)
    assert bool(policy.compiled.flags & FLAG_NET) == (name == "base/loopback")


def test_floor_is_narrow() -> None:
    """The default pack grants the kernel's floor no more than its program folders."""
    floor = [path for path, _ in built("agent-dev").compiled.floor]
    assert b"/" not in floor
    assert b"/home/u" not in floor


def test_observe() -> None:
    """Only the observe pack, named by the user, switches enforcement off."""
    assert [name for name in NAMES if built(name).policy.observe] == ["observe"]


def test_names_cannot_escape() -> None:
    """A pack name is no path."""
    for name in ("../policies/agent-dev", "/etc/passwd", "base//no-secrets", "", "a.b", "A"):
        assert packs.pack_path(name) is None, name


def test_default_names(tmp_path: Path) -> None:
    """Environment before the user's file before the default; never the current folder."""
    home = os.fsencode(tmp_path)
    (tmp_path / "policy.yaml").touch()
    assert packs.default_names({}, home) == ("agent-dev",)
    (tmp_path / ".config/supervise").mkdir(parents=True)
    own = tmp_path / ".config/supervise/policy.yaml"
    own.touch()
    assert packs.default_names({}, home) == (str(own),)
    assert packs.default_names({b"XDG_CONFIG_HOME": b"/none"}, home) == ("agent-dev",)
    assert packs.default_names({b"SUPERVISE_POLICY": b"a:/b.yaml"}, home) == ("a", "/b.yaml")
