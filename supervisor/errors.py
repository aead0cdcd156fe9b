"""Every exception this package raises on purpose.

Each carries its own exit code and, where there is one, a hint that says what to
do next. Only ``supervisor.cli`` prints them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not typing's: a warm start does not pay for that import
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.policy.problems import Problem

EXIT_FAULT = 125
"""Exit code of ``run`` for a failure of our own, bad flags and bad policies included."""


class SupervisorError(Exception):
    """Base of all errors of this package.

    Args:
        message: One sentence for people, without a trailing newline.
        exit_code: The code the command line ends with.
        hint: What to do next, or "".
    """

    def __init__(self, message: str, *, exit_code: int = EXIT_FAULT, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.hint = hint


class UsageError(SupervisorError):
    """The caller asked for something that cannot be meant: a bad flag or argument."""


class EnvironmentFault(SupervisorError):
    """This machine lacks something that is needed: a library or a kernel facility."""


class SessionError(SupervisorError):
    """A supervised run could not start or could not go on."""


class PolicyError(SupervisorError):
    """One or more policy files are wrong; all problems are reported at once.

    Args:
        problems: Every problem found, in the order they are to be shown.
        exit_code: The code the command line ends with.
    """

    def __init__(self, problems: Sequence[Problem], *, exit_code: int = EXIT_FAULT) -> None:
        super().__init__("\n".join(p.render() for p in problems), exit_code=exit_code)
        self.problems = tuple(problems)
