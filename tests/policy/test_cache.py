"""The cache: what it keeps is true, ours alone, and cheap to find."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.errors import SupervisorError
from supervisor.policy import cache, flat, private, trust
from supervisor.policy.cache import Entry
from supervisor.policy.context import Context

KEY = "k" * 64


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home folder of which no one else may write any parent."""
    tmp_path.chmod(0o700)
    return tmp_path


def entry(path: Path) -> Entry:
    """Return an entry that depends on one source file."""
    return Entry(
        blob=b"\x00blob",
        name="n\udcff",
        env=(("PATH",), (), (("A", b"\xff"),)),
        sources=(("f.yaml", str(path), hashlib.sha256(path.read_bytes()).hexdigest()),),
        needs_tmp=True,
        needs_trash=True,
        observe=False,
    )


@pytest.fixture
def stored(home: Path) -> tuple[bytes, Path, Path]:
    """Return the folder, the source and the file of a stored entry."""
    source = home / "f.yaml"
    source.write_text("version: 1\n")
    folder = cache.folder_of({}, os.fsencode(home))
    assert cache.store(folder, KEY, entry(source), {b"A": b"1"}, ["A", "B"])
    [file] = (home / ".cache/supervise").iterdir()
    return folder, source, file


def test_hit(stored: tuple[bytes, Path, Path]) -> None:
    """A stored entry comes back whole, in a private folder and file."""
    folder, source, file = stored
    found = cache.lookup(folder, KEY, {b"A": b"1"})
    assert found is not None
    for name in Entry.__slots__:
        assert getattr(found, name) == getattr(entry(source), name), name
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_changed_source(stored: tuple[bytes, Path, Path]) -> None:
    """Other bytes of the same size and time are another policy; a missing file too."""
    folder, source, _ = stored
    info = source.stat()
    source.write_text("version: 2\n")
    os.utime(source, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is None
    source.write_text("version: 1\n")
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is not None
    source.unlink()
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is None


def test_changed_environment(stored: tuple[bytes, Path, Path]) -> None:
    """A variable that was used must still be as it was: set, unset or equal."""
    folder, _, _ = stored
    for environ in ({}, {b"A": b"2"}, {b"A": b""}, {b"A": b"1", b"B": b""}):
        assert cache.lookup(folder, KEY, environ) is None
    assert cache.lookup(folder, KEY, {b"A": b"1", b"C": b"x"}) is not None


def test_every_flipped_byte_is_noticed(stored: tuple[bytes, Path, Path]) -> None:
    """A damaged or cut entry is ignored, and written anew."""
    folder, source, file = stored
    good = file.read_bytes()
    for at in range(len(good)):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert cache.lookup(folder, KEY, {b"A": b"1"}) is None, at
    for bad in (b"", good[:-1], good + b"x", b"SVC2" + hashlib.sha256(b"").digest()):
        file.write_bytes(bad)
        assert cache.lookup(folder, KEY, {b"A": b"1"}) is None
    body = flat.pack(b"other", *[b""] * 9)
    file.write_bytes(b"SVC2" + hashlib.sha256(body).digest() + body)
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is None
    assert cache.store(folder, KEY, entry(source), {b"A": b"1"}, ["A"])
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is not None


def test_entry_of_another_request(stored: tuple[bytes, Path, Path]) -> None:
    """An entry moved to another name is no answer to that request."""
    folder, _, file = stored
    file.rename(file.with_name("x" * 64 + ".svc"))
    assert cache.lookup(folder, "x" * 64, {b"A": b"1"}) is None


def test_writable_by_others(stored: tuple[bytes, Path, Path]) -> None:
    """A file or folder that someone else may write is not believed."""
    folder, _, file = stored
    for path, bad, good in [
        (file, 0o620, 0o600),
        (file, 0o602, 0o600),
        (file.parent, 0o770, 0o700),
        (file.parent, 0o702, 0o700),
        (file.parent, 0o1777, 0o700),
        (file.parent.parent, 0o777, 0o755),
    ]:
        path.chmod(bad)
        assert cache.lookup(folder, KEY, {b"A": b"1"}) is None, (path, bad)
        path.chmod(good)
        assert cache.lookup(folder, KEY, {b"A": b"1"}) is not None
    file.parent.parent.chmod(0o1777)
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is not None


def test_links(stored: tuple[bytes, Path, Path], home: Path) -> None:
    """Neither the file nor the folder may be a link, and the file has one name only."""
    folder, _, file = stored
    os.link(file, home / "second")
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is None
    (home / "second").unlink()
    file.rename(home / "moved")
    file.symlink_to(home / "moved")
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is None
    file.unlink()
    (home / "moved").rename(file)
    file.parent.rename(home / "elsewhere")
    (home / ".cache/supervise").symlink_to(home / "elsewhere")
    assert cache.lookup(folder, KEY, {b"A": b"1"}) is None


def test_no_cache(home: Path) -> None:
    """Without a home, or with one that cannot hold a cache, nothing is kept or raised."""
    source = home / "f.yaml"
    source.write_text("x")
    (home / "file").touch()
    for base in (b"", b"/proc/none", os.fsencode(home / "file"), b"relative"):
        folder = cache.folder_of({}, base) if base != b"relative" else base
        assert cache.lookup(folder, KEY, {}) is None
        assert not cache.store(folder, KEY, entry(source), {}, [])


def test_old_entries_go(home: Path) -> None:
    """The folder does not grow without end, and nothing but entries is removed."""
    source = home / "f.yaml"
    source.write_text("x")
    folder = cache.folder_of({b"XDG_CACHE_HOME": os.fsencode(home)}, b"")
    for i in range(260):
        assert cache.store(folder, f"{i:064}", entry(source), {}, [])
    (home / "supervise/other").touch()
    assert cache.store(folder, KEY, entry(source), {}, [])
    assert len(list((home / "supervise").iterdir())) == 257
    assert cache.lookup(folder, KEY, {}) is not None


def test_key_depends_on_everything() -> None:
    """Each part of a request leads to an entry of its own."""

    def key(**change: object) -> str:
        context = Context(cwd=b"/c", home=b"/h", uid=1, environ={})
        for name in ("cwd", "home", "uid"):
            if name in change:
                setattr(context, name, change.pop(name))
        fixed: dict[str, object] = {"version": "1", "machine": b"m", **change}
        names = fixed.pop("names", ["a"])
        return cache.request_key(names, context, **fixed)  # type: ignore[arg-type]

    keys = [
        key(),
        key(cwd=b"/d"),
        key(home=b"/i"),
        key(uid=2),
        key(version="2"),
        key(machine=b"n"),
        key(names=["b"]),
        key(names=["a", "a"]),
        key(sets={"a": "b"}),
        key(mode="observe"),
        key(inline=[("x", b"y")]),
        key(protected=[(b"/x", True, False)]),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == key()


def test_warm_start_imports_little() -> None:
    """Finding a cached policy loads neither YAML nor dataclasses nor libseccomp."""
    code = (
        "import sys\n"
        "from supervisor.policy import blob, cache, context, environ, packs, trust\n"
        "context.Context.current({b'HOME': b'/'})\n"
        "print(*sorted(sys.modules))\n"
    )
    root = Path(cache.__file__).parents[2]
    out = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; sys.path[:0] = sys.argv[1:]\n" + code, str(root)]
        + [path for path in sys.path if path.endswith("site-packages")],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"yaml", "dataclasses", "typing", "pyseccomp", "ctypes", "hashlib", "re", "difflib"}
    assert not heavy & set(out.stdout.split())


def test_trust(home: Path) -> None:
    """A file is trusted by place and content, in a store that only we can write."""
    folder = trust.state_folder({}, os.fsencode(home))
    policy = home / "p.yaml"
    policy.write_text("version: 1\n")
    path = os.fsencode(policy)
    digest = hashlib.sha256(policy.read_bytes()).hexdigest()
    assert not trust.is_trusted(folder, path, digest)
    assert trust.trust(folder, path) == digest
    assert trust.is_trusted(folder, path, digest)
    assert not trust.is_trusted(folder, path, "0" * 64)
    assert not trust.is_trusted(folder, path + b"x", digest)
    (home / "link").symlink_to(policy)
    assert trust.is_trusted(folder, os.fsencode(home / "link"), digest)
    store = home / ".local/state/supervise/trusted"
    assert store.stat().st_mode & 0o777 == 0o600
    store.chmod(0o666)
    assert not trust.is_trusted(folder, path, digest)
    store.chmod(0o600)
    assert trust.distrust(folder, path)
    assert not trust.distrust(folder, path)
    assert not trust.is_trusted(folder, path, digest)


def test_trust_failures(home: Path) -> None:
    """What cannot be trusted or kept is an error that says so."""
    folder = trust.state_folder({b"XDG_STATE_HOME": os.fsencode(home)}, b"")
    with pytest.raises(SupervisorError, match="cannot read"):
        trust.trust(folder, os.fsencode(home / "none"))
    (home / "p").touch()
    (home / "supervise").mkdir(mode=0o777)
    (home / "supervise").chmod(0o777)
    with pytest.raises(SupervisorError, match="cannot hold the list"):
        trust.trust(folder, os.fsencode(home / "p"))


def test_write_is_atomic(home: Path) -> None:
    """A failed write leaves neither a half file nor a temporary one."""
    opened = private.open_folder(os.fsencode(home), create=False)
    assert opened is not None
    (home / "name").mkdir()
    assert not private.write(opened, "name", b"x")
    assert [path.name for path in home.iterdir()] == ["name"]
    os.close(opened)
