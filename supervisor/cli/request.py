"""Which policy a command line asks for, and its compiled form: from the cache or made now."""

from __future__ import annotations

import os
import sys

from supervisor import __version__
from supervisor.errors import SupervisorError
from supervisor.policy import cache, packs, private, trust
from supervisor.policy.context import Context
from supervisor.policy.ways import all_ways

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from supervisor.policy.build import Built
    from supervisor.policy.cache import Entry
    from supervisor.policy.schema import Policy

    Protected = tuple[bytes, bool, bool]

OWN_FILE = ".supervise.yaml"
"""A project's policy: used unasked only where ``supervise policy trust`` named it."""


class Request:
    """What the flags -p, --set, --allow-path and --mode ask for, here and now."""

    def __init__(
        self,
        policies: Sequence[str] = (),
        *,
        sets: Sequence[tuple[str, str]] = (),
        allow: Sequence[tuple[str, tuple[str, ...]]] = (),
        mode: str = "",
        protect: Sequence[Protected] = (),
        ways: Sequence[bytes] = (),
    ) -> None:
        """Collect a request.

        Args:
            policies: packs and files; none means the defaults.
            sets: variables and values.
            allow: paths and the operations to allow on them.
            mode: enforce, observe, or "" for what the policy says.
            protect: further paths to keep the command away from.
            ways: further paths, as they were named, that must go on meaning the same.
        """
        self.environ: Mapping[bytes, bytes] = dict(os.environb)
        self.context = Context.current(self.environ)
        self.state = trust.state_folder(self.environ, self.context.home)
        self.own = b""
        self.mode = mode
        self.sets = dict(sets)
        self.inline = self._allow(allow)
        self.names = tuple(policies) or self._defaults()
        self.folder = cache.folder_of(self.environ, self.context.home)
        config = packs.config_folder(self.environ, self.context.home)
        self.protected = (*_protected(self.folder, self.state, config), *protect)
        self.ways = all_ways([*_own_folders(self.environ), *_own_programs(), *ways])

    @classmethod
    def of(cls, args: argparse.Namespace) -> Request:
        """Read the flags that parser adds for policies.

        Args:
            args: parsed command line.
        """
        return cls(args.policy, sets=args.set, allow=args.allow_path)

    def _defaults(self) -> tuple[str, ...]:
        """A trusted project file comes before the user's own policy, and that before ours."""
        if not self.environ.get(b"SUPERVISE_POLICY") and self.context.cwd:
            own = os.path.join(self.context.cwd, os.fsencode(OWN_FILE))
            digest = cache._file_digest(os.fsdecode(own))  # noqa: SLF001
            if digest and trust.is_trusted(self.state, own, digest):
                self.own = own
                return (os.fsdecode(own),)
        return packs.default_names(self.environ, self.context.home)

    def _allow(self, allow: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[tuple[str, bytes], ...]:
        """Write --allow-path as a policy; the paths come in as variables, so as literal text."""
        if not allow:
            return ()
        lines = ["version: 1", "name: allow-path", "files:"]
        for i, (path, ops) in enumerate(allow, 1):
            name = f"allow-path-{i}"
            true = os.path.realpath(os.path.join(os.fsdecode(self.context.cwd), path))
            self.sets[name] = true
            below = "/**" if os.path.isdir(true) else ""
            words = "all" if "all" in ops else f"[{', '.join(ops)}]"
            lines.append(f'  - {{id: {name}, allow: {words}, paths: ["${{{name}}}{below}"]}}')
        return (("--allow-path", "\n".join([*lines, ""]).encode()),)

    def load(self) -> Policy:
        """Read, check and merge the policies, without the cache.

        Raises:
            PolicyError: something is wrong with them.
            UsageError: a --set names an unknown variable.
        """
        from supervisor.policy.merge import load_policy

        return load_policy(
            self.names,
            context=self.context,
            sets=self.sets,
            mode=self.mode,
            inline=self.inline,
        )

    def compiled(self) -> Entry:
        """Get the compiled policy: from the cache where that is still true.

        Raises:
            PolicyError: something is wrong with the policies.
            SupervisorError: a part of this machine is missing.
        """
        from supervisor import native

        key = cache.request_key(
            self.names,
            self.context,
            version=__version__,
            machine=cache.fingerprint(native.fingerprint()),
            sets=self.sets,
            mode=self.mode,
            inline=self.inline,
            protected=self.protected,
            ways=self.ways,
        )
        entry = cache.lookup(self.folder, key, self.environ) or self._compile(key)
        self._check_trust(entry)
        return entry

    def build(self) -> Built:
        """Compile the policies with everything that explaining them needs.

        Raises:
            PolicyError: something is wrong with the policies.
            SupervisorError: a part of this machine is missing.
        """
        from supervisor import native
        from supervisor.policy.build import build

        return build(
            self.names,
            self.context,
            rows=native.rows(),
            tests=native.whens(),
            sets=self.sets,
            mode=self.mode,
            inline=self.inline,
            protected=self.protected,
            ways=self.ways,
        )

    def _compile(self, key: str) -> Entry:
        built = self.build()
        if self.folder:
            used = built.policy.used_env
            cache.store(self.folder, key, built.entry, self.environ, used)
        return built.entry

    def _check_trust(self, entry: Entry) -> None:
        """The project's file may have changed between the look at it and its reading."""
        if not self.own:
            return
        read = {path: digest for _, path, digest in entry.sources}
        digest = read.get(os.fsdecode(self.own), "")
        if not trust.is_trusted(self.state, self.own, digest):
            raise SupervisorError(f"{OWN_FILE} was changed while it was read")


def _own_folders(environ: Mapping[bytes, bytes]) -> list[bytes]:
    """Our folders by the names that the next run will look for them."""
    home = environ.get(b"HOME", b"")
    found = []
    for variable, default in (
        (b"XDG_CONFIG_HOME", b".config"),
        (b"XDG_STATE_HOME", b".local/state"),
        (b"XDG_CACHE_HOME", b".cache"),
    ):
        base = environ.get(variable, b"")
        if not base.startswith(b"/"):
            base = os.path.join(home, default) if home.startswith(b"/") else b""
        if base:
            found.append(os.path.join(base, b"supervise"))
    return found


def make_own_folders(environ: Mapping[bytes, bytes]) -> None:
    """Make our folders where they are missing, so that nobody else makes something of the name.

    Where one cannot be made, no rule lets the command make it either.

    Args:
        environ: the environment of the supervisor.
    """
    for folder in _own_folders(environ):
        if not os.path.isdir(folder):
            try:  # noqa: SIM105 - contextlib is a heavy import for a warm start
                private.make_folders(folder)
            except OSError:
                pass


def _own_programs() -> list[bytes]:
    """What a start of ours runs, as it is called: links to it are as good as it."""
    names = {sys.argv[0], sys.executable, sys.prefix, *_code()}
    return sorted(os.path.abspath(os.fsencode(name)) for name in names if name)


def _code() -> tuple[str, str]:
    """Where our code and our packs lie, as Python found them."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__))), packs.packs_folder()


def _protected(folder: bytes, state: bytes, config: bytes) -> tuple[Protected, ...]:
    """Our own code and policies cannot be changed, our records not even be seen."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = [
        (os.fsencode(package), True, False),
        (os.path.realpath(os.fsencode(packs.packs_folder())), True, False),
        *_interpreter(),
    ]
    if folder:
        found.append((folder, True, False))
    if config:
        found.append((config, True, False))
    if state:
        found.append((state, True, True))
    return tuple(found)


def _interpreter() -> list[Protected]:
    """What the next start of ours runs before any policy: Python and the modules beside us."""
    found: set[Protected] = {(os.path.realpath(os.fsencode(sys.argv[0])), False, False)}
    for prefix in {sys.prefix, sys.base_prefix} - {"/usr", "/usr/local", "/"}:
        root = os.path.realpath(os.fsencode(prefix))
        found.add((os.path.join(root, b"pyvenv.cfg"), False, False))
        found.update((os.path.join(root, name), True, False) for name in (b"bin", b"lib", b"lib64"))
    return sorted(found)
