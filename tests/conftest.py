"""What every suite shares: in CI a skipped test is a failed one, and signals do what they do."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest

MUST_WORK = os.environ.get("SUPERVISE_MUST_WORK", "") not in ("", "0")


def pytest_configure() -> None:
    """Undo what a shell does to its background jobs and nohup to a command.

    Programs under test inherit an ignored signal, and then no test can send it.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            ours = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
            signal.signal(number, ours)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""


def _refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure, where everything is known to be installed.

    An expected failure is reported as skipped too; it is not one.
    """
    if MUST_WORK and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although SUPERVISE_MUST_WORK is set: {_reason(report)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """See _refuse."""
    report = yield
    _refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """See _refuse; whole modules are skipped while they are collected."""
    report = yield
    _refuse(report)
    return report
