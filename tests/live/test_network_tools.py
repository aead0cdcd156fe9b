"""Clients of everyday use against servers on this machine: as natively where rules allow it."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from live_world import POLICY, Supervised

pytestmark = pytest.mark.live
HOST = "127.0.0.1"

# What the clients ask for besides the network.
MORE = """\
  - {id: home, allow: all, paths: ["${home}/**"]}
  - {id: random, allow: read, paths: [/dev/urandom, /dev/random, "/sys/**", "/run/**"]}
  - {id: names, allow: write, paths: ["/proc/*/task/*/comm"]}
"""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips where a program is not installed; a skip in CI is a failure."""
    missing = [name for name in programs if not shutil.which(name, path=os.defpath + ":/usr/sbin")]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}")


def allowing(port: int) -> str:
    """A policy that lets programs connect to one port of this machine."""
    rule = f'network: [{{id: server, allow: connect, to: ["{HOST}:{port}"]}}]\n'
    return POLICY + MORE + rule


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *_: object) -> None:
        """Drop it."""


@contextmanager
def web(folder: Path) -> Iterator[int]:
    """Serve a folder by HTTP, outside; yields the port."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer((HOST, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    """A port that nobody has, most likely for a while."""
    with closing(socket.socket()) as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


@contextmanager
def daemon(argv: list[str | Path], port: int) -> Iterator[None]:
    """Run a server until the end of the block; it is there when its port answers."""
    process = subprocess.Popen(
        [str(word) for word in argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            assert process.poll() is None, "the server did not start"
            with suppress(OSError), closing(socket.create_connection((HOST, port), 1)):
                break
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def both(
    supervised: Supervised, argv: list[str | Path], port: int, failure: bytes, *, rest: bool = True
) -> list[str]:
    """Run a client natively, with a rule for the port, and without: the lines it prints.

    Args:
        supervised: runs it.
        argv: the client.
        port: of its server.
        failure: what it says where no rule allows it.
        rest: whether what it prints natively and supervised is compared.
    """
    words = ["env", f"HOME={supervised.home}", f"TMPDIR={supervised.home}", *argv]
    native = supervised.natively(words)
    assert native.code == 0, native.err
    done = supervised(words, allowing(port), "--set", f"home={supervised.home}")
    assert done.code == 0, done.err
    # urllib3 tries whether IPv6 is there
    assert set(done.denied()) <= {("bind", "[::1]:0")}
    if rest:
        assert done.lines() == native.lines()
    other = allowing(1)
    refused = supervised(words, other, "--set", f"home={supervised.home}")
    assert refused.code != 0
    assert failure in refused.err + refused.out, refused.err
    assert any(f"{HOST}:{port}" == path for _, path in refused.denied()), refused.denied()
    return done.lines()


@needs("curl")
def test_curl(supervised: Supervised, tmp_path: Path) -> None:
    """A file of two megabytes, and a page that is not there."""
    (tmp_path / "file").write_bytes(os.urandom(2_000_000))
    with web(tmp_path) as port:
        url = f"http://{HOST}:{port}"
        script = (
            f"curl -sS {url}/file | sha256sum && curl -s -o /dev/null -w '%{{http_code}}' {url}/x"
        )
        script = f"set -e; curl -sSo got {url}/file; sha256sum <got; " + script
        lines = both(supervised, ["sh", "-c", script], port, b"connect to server")
    assert lines[0] == lines[1]
    assert lines[2] == "404"


@needs("git")
def test_git_over_http(supervised: Supervised, tmp_path: Path) -> None:
    """A clone, a change outside, and a pull of it."""
    made = f"""\
cd {tmp_path}; export GIT_CONFIG_GLOBAL=/dev/null; git init -q -b main up; cd up
git config user.name n; git config user.email e@example; echo one >f; git add f; git commit -qm one
git clone -q --bare . ../up.git; cd ../up.git; git update-server-info
"""
    subprocess.run(["sh", "-ec", made], check=True, timeout=30)
    with web(tmp_path) as port:
        url = f"http://{HOST}:{port}/up.git"
        script = f"rm -rf c; git clone -q {url} c; cd c; git log --format=%s; git fetch; cat f"
        lines = both(supervised, ["sh", "-ec", script], port, b"connect to server")
    assert lines == ["one", "one"]


@needs("python3")
def test_pip_from_an_index(supervised: Supervised, tmp_path: Path) -> None:
    """pip takes a wheel from an index of ours."""
    folder = tmp_path / "simple" / "tiny"
    folder.mkdir(parents=True)
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("tiny.py", "VALUE = 7\n")
        wheel.writestr(
            "tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"
        )
        wheel.writestr(
            "tiny-1.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    python = "/usr/bin/python3"
    venv = f"[ -d v ] || {python} -m venv v; rm -rf t; v/bin/python -Im pip -q --isolated "
    with web(tmp_path) as port:
        install = (
            f"install --no-cache-dir --no-deps --index-url http://{HOST}:{port}/simple -t t tiny"
        )
        script = f"{venv} --disable-pip-version-check --retries 0 {install}; cat t/tiny.py"
        lines = both(supervised, ["sh", "-ec", script], port, b"No matching distribution")
    assert lines == ["VALUE = 7"]


@needs("node")
def test_node(supervised: Supervised, tmp_path: Path) -> None:
    """fetch, and a server and a client of its own by a local socket."""
    (tmp_path / "page").write_text("hello")
    code = """\
const net = require('net');
fetch(process.argv[1] + '/page').then(r => r.text()).then(t => {
  console.log(t);
  const server = net.createServer(c => c.end('local')).listen('./sock', () => {
    net.connect('./sock').on('data', d => { console.log(d.toString()); server.close(); });
  });
}).catch(e => { console.error(e.cause ? e.cause.code : e); process.exit(1); });
"""
    with web(tmp_path) as port:
        argv: list[str | Path] = ["node", "-e", code, f"http://{HOST}:{port}"]
        assert both(supervised, argv, port, b"EACCES") == ["hello", "local"]


@needs("redis-server", "redis-cli", "redis-benchmark")
def test_redis(supervised: Supervised, tmp_path: Path) -> None:
    """A client, and the benchmark with fifty connections."""
    port = free_port()
    server: list[str | Path] = ["redis-server", "--port", str(port), "--bind", HOST, "--save", ""]
    with daemon([*server, "--dir", tmp_path], port):
        ask = f"redis-cli -h {HOST} -p {port}"
        script = (
            f"{ask} set k v && {ask} get k && redis-benchmark -h {HOST} -p {port} -n 2000 -t set -q"
        )
        script += " | tr '\\r' '\\n' | grep -c 'requests per second'"
        assert both(supervised, ["sh", "-c", script], port, b"ermission denied") == ["OK", "v", "1"]


class Names(threading.Thread):
    """Answers every question for an address, by UDP."""

    def __init__(self) -> None:
        super().__init__()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((HOST, 0))
        self.socket.settimeout(0.05)
        self.over = threading.Event()

    def run(self) -> None:
        """Answer until the end."""
        while not self.over.is_set():
            try:
                ask, peer = self.socket.recvfrom(512)
            except TimeoutError:
                continue
            end = ask.index(b"\0", 12) + 5
            head = ask[:2] + b"\x85\x80\0\1\0\1\0\0\0\0"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\3"
            if ask[end - 4 : end - 2] != b"\0\1":
                head, answer = ask[:2] + b"\x85\x80\0\1\0\0\0\0\0\0", b""
            self.socket.sendto(head + ask[12:end] + answer, peer)


@needs("dig", "nslookup")
def test_dig_and_nslookup(supervised: Supervised) -> None:
    """Both ask a server of ours and print what it says."""
    server = Names()
    server.start()
    port = server.socket.getsockname()[1]
    try:
        ask = f"dig @{HOST} -p {port} +short +tries=1 +time=3 host.example"
        lines = both(supervised, ["sh", "-ec", ask], port, b"ermission denied")
        assert lines == ["10.1.2.3"]
        look = f"nslookup -port={port} -timeout=3 -retry=1 host.example {HOST}"
        lines = both(supervised, ["sh", "-ec", look], port, b"ermission denied")
        assert "Address: 10.1.2.3" in lines
    finally:
        server.over.set()
        server.join()
        server.socket.close()


@contextmanager
def ssh_server(folder: Path) -> Iterator[int]:
    """An sshd of our own for whoever runs the test; yields the port."""
    port = free_port()
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    shutil.copy(folder / "user.pub", folder / "authorized")
    config = f"""\
ListenAddress {HOST}:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
"""
    (folder / "sshd_config").write_text(config)
    separate = Path("/run/sshd")  # root's sshd wants it, and only services make it
    mine = os.geteuid() == 0 and not separate.exists()
    if mine:
        separate.mkdir(mode=0o755)
    try:
        with daemon(["/usr/sbin/sshd", "-D", "-f", folder / "sshd_config"], port):
            yield port
    finally:
        if mine:
            separate.rmdir()


@needs("sshd", "ssh", "git")
def test_ssh(supervised: Supervised, tmp_path: Path) -> None:
    """A command, a copy by its pipe, and a clone over it."""
    with ssh_server(tmp_path) as port:
        made = f"""\
cd {tmp_path}; export GIT_CONFIG_GLOBAL=/dev/null; git init -q -b main up; cd up
git config user.name n; git config user.email e@example; git commit -q --allow-empty -m one
"""
        subprocess.run(["sh", "-ec", made], check=True, timeout=30)
        shutil.copy(tmp_path / "user", supervised.home / "key")
        (supervised.home / "key").chmod(0o600)
        (supervised.home / "known").write_text(
            f"[{HOST}]:{port} " + (tmp_path / "host.pub").read_text()
        )
        options = f"-F none -i {supervised.home}/key -o UserKnownHostsFile={supervised.home}/known"
        ssh = f"ssh {options} -p {port}"
        script = f"""\
{ssh} {HOST} echo there
head -c 3000000 /dev/zero | {ssh} {HOST} wc -c
rm -rf c; GIT_SSH_COMMAND='{ssh}' git clone -q ssh://{HOST}{tmp_path}/up c; git -C c log --format=%s
"""
        lines = both(supervised, ["sh", "-ec", script], port, b"ermission denied")
    assert lines == ["there", "3000000", "one"]


def test_asyncio(supervised: Supervised, tmp_path: Path) -> None:
    """Streams and datagrams with an event loop."""
    (tmp_path / "page").write_text("hello")
    code = """\
import asyncio, sys
async def main():
    r, w = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    w.write(b"GET /page HTTP/1.0\\r\\n\\r\\n")
    print((await r.read())[-5:])
    w.close()
asyncio.run(main())
"""
    with web(tmp_path) as port:
        argv: list[str | Path] = ["/usr/bin/python3", "-c", code, str(port)]
        assert both(supervised, argv, port, b"Errno 13") == ["b'hello'"]
