"""Types of the fixtures in conftest.py."""

from __future__ import annotations

from collections.abc import Callable

from supervisor.policy.schema import Policy

Load = Callable[..., Policy]
"""Loads one policy text (without its version line)."""
Errors = Callable[..., str]
"""Gives the rendered problems of one policy text that must be refused."""
