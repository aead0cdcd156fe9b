"""What a policy may know of the moment: folders, user, environment.

Plain classes and few imports: a warm start needs this to find its cache entry.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Context:
    """The values behind ``${CWD}``, ``${HOME}``, ``${UID}`` and ``${ENV:NAME}``.

    Attributes:
        cwd: True path of the current folder; empty when it has none.
        home: True path of the home folder; empty when there is none.
        uid: The effective user id.
        environ: The environment that ``${ENV:NAME}`` reads.
    """

    __slots__ = ("cwd", "environ", "home", "uid")

    def __init__(
        self, *, cwd: bytes, home: bytes, uid: int, environ: Mapping[bytes, bytes]
    ) -> None:
        """Hold the given values as they are; :meth:`current` finds them."""
        self.cwd = cwd
        self.home = home
        self.uid = uid
        self.environ = environ

    @classmethod
    def current(cls, environ: Mapping[bytes, bytes] | None = None) -> Context:
        """Return the context of this process.

        Rules are matched against true paths, so links in the folders are resolved
        here. HOME falls back to the user database where it is unset or relative.

        Args:
            environ: The environment to read; None means that of the process.
        """
        environ = os.environb if environ is None else environ
        try:
            cwd = os.getcwdb()
        except OSError:
            cwd = b""
        uid = os.geteuid()
        home = environ.get(b"HOME", b"")
        if not home.startswith(b"/"):
            home = _database_home(uid)
        return cls(cwd=cwd, home=os.path.realpath(home) if home else b"", uid=uid, environ=environ)


def _database_home(uid: int) -> bytes:
    import pwd

    try:
        home = os.fsencode(pwd.getpwuid(uid).pw_dir)
    except KeyError:
        return b""
    return home if home.startswith(b"/") else b""
