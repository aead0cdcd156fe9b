"""The exit codes of a run."""

from __future__ import annotations

import errno

import pytest

from supervisor.model import Status
from supervisor.run.status import exec_failure, exit_code


@pytest.mark.parametrize(
    ("status", "options", "expected"),
    [
        (Status(exited=1, code=0), {}, 0),
        (Status(exited=1, code=7), {}, 7),
        (Status(exited=1, code=255), {}, 255),
        (Status(exited=2, code=9), {}, 137),
        (Status(exited=2, code=15), {}, 143),
        (Status(exited=1, code=127, exec_err=errno.ENOENT), {}, 127),
        (Status(exited=1, code=127, exec_err=errno.ENOTDIR), {}, 127),
        (Status(exited=1, code=127, exec_err=errno.EACCES), {}, 126),
        (Status(exited=1, code=127, exec_err=errno.EPERM), {}, 126),
        (Status(exited=1, code=127, exec_err=errno.ENOEXEC), {}, 126),
        (Status(exited=2, code=15), {"timed_out": True}, 124),
        (Status(exited=1, code=0), {"timed_out": True}, 124),
        (Status(exited=1, code=0), {"fail_on_deny": True, "denied": 1}, 123),
        (Status(exited=1, code=0), {"fail_on_deny": True, "denied": 0}, 0),
        (Status(exited=1, code=3), {"fail_on_deny": True, "denied": 1}, 3),
        (Status(exited=1, code=0), {"denied": 1}, 0),
        (Status(exited=2, code=6), {"fail_on_deny": True, "denied": 1}, 134),
        (Status(), {}, 125),
    ],
)
def test_exit_code(status: Status, options: dict[str, int], expected: int) -> None:
    """Every row of the documented table holds."""
    found = exit_code(
        status,
        timed_out=bool(options.get("timed_out")),
        fail_on_deny=bool(options.get("fail_on_deny")),
        denied=options.get("denied", 0),
    )
    assert found == expected


def test_exec_failure_names_the_reason() -> None:
    """A missing program reads as such, any other errno as its text, a started one as nothing."""
    assert exec_failure(Status(exec_err=errno.ENOENT)) == "not found"
    assert exec_failure(Status(exec_err=errno.EACCES)) == "Permission denied"
    assert exec_failure(Status(exited=1)) == ""
