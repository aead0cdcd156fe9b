"""Micro benchmarks of what Python pays at the boundary: pytest-benchmark, relative only.

``python -m pytest bench/micro`` prints them side by side; compare within one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgpack
import pytest

from supervisor import native
from supervisor.cli.request import Request
from supervisor.policy import cache
from supervisor.run.events import few_records, unpacker

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

RECORD = (1, 2, 1_700_000_000_000, 9_000_000, 4242, 257, 2, 0, 3, 5, 0, b"/a/b", b"", b"cat", b"")


@pytest.fixture(name="request_here")
def _request_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Request(["agent-dev"])


def test_abi(benchmark: BenchmarkFixture) -> None:
    """The smallest call through cffi."""
    benchmark(native.call_name, 0)


def test_decide(benchmark: BenchmarkFixture, request_here: Request) -> None:
    """Load the blob of agent-dev and ask one question, as `policy explain` does."""
    blob = request_here.compiled().blob
    benchmark(native.decide, blob, 1, b"/usr/bin/python3", tmp=b"/tmp/x")


def test_warm_lookup(benchmark: BenchmarkFixture, request_here: Request) -> None:
    """What a warm start does to get its policy."""
    request_here.compiled()
    assert benchmark(request_here.compiled).blob


@pytest.mark.parametrize("count", [1, 20])
def test_few_records(benchmark: BenchmarkFixture, count: int) -> None:
    """Decode a small batch without msgpack."""
    data = msgpack.packb(RECORD) * count
    assert len(benchmark(few_records, data)) == count


@pytest.mark.parametrize("count", [20, 1000])
def test_records(benchmark: BenchmarkFixture, count: int) -> None:
    """Decode a batch, with msgpack where it is large."""
    data = memoryview(msgpack.packb(RECORD) * count)
    decode = unpacker(1 << 20)
    assert len(list(benchmark(lambda: list(decode(data))))) == count


def test_key(benchmark: BenchmarkFixture) -> None:
    """The fingerprint that a cache key holds."""
    benchmark(cache.fingerprint, native.fingerprint())
