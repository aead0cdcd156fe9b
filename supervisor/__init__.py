"""Run a program tree under one policy, decided on real objects by native code.

The public names are loaded on first use (PEP 562), so that importing the
package costs nothing: see ``__all__``.
"""

from __future__ import annotations

import os as _os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.errors import SupervisorError
    from supervisor.native import Session, decide
    from supervisor.run.session import Outcome, Plan

__version__ = "0.1.0"
__all__ = ["Outcome", "Plan", "Session", "SupervisorError", "__version__", "decide"]

_HOMES = {
    "Outcome": "supervisor.run.session",
    "Plan": "supervisor.run.session",
    "Session": "supervisor.native",
    "SupervisorError": "supervisor.errors",
    "decide": "supervisor.native",
}

if _os.path.exists(_os.path.join(_os.path.dirname(__file__), "supervisord.py")):
    raise ImportError(
        "supervisord (the distribution `supervisor`) is installed over this package and the two "
        "overwrite each other's files: install them in separate virtual environments"
    )


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use.

    Args:
        name: the attribute that was asked for.

    Raises:
        AttributeError: the package has no such public name.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Names for ``dir()``: what is loaded and what can be."""
    return sorted({*globals(), *__all__})
