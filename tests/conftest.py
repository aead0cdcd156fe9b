"""What every suite shares: in CI a skipped test is a failed one."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

MUST_WORK = os.environ.get("SUPERVISE_MUST_WORK", "") not in ("", "0")


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
