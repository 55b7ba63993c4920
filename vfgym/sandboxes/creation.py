"""`create`: a sandbox of a spec, of the backend that is named or of the first that works; and what is said where none does."""

from __future__ import annotations

import functools
import warnings
from importlib.metadata import entry_points

from vfgym.aio.threads import on_thread
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.sandboxes.base import Backend, Sandbox
from vfgym.sandboxes.bwrap import BwrapBackend
from vfgym.sandboxes.container import ContainerBackend
from vfgym.sandboxes.registry import remove_left
from vfgym.sandboxes.spec import SandboxSpec
from vfgym.sandboxes.unsafe import UnsafeBackend

_ENTRY_POINTS = "vfgym.sandboxes"
_CHOSEN = ("bwrap", "container")
"""Backends that are chosen where none is named, the first that works."""


@functools.cache
def backends() -> dict[str, Backend]:
    """Return the known backends by name: those of this library, and those that are registered as entry points."""
    found: dict[str, Backend] = {"bwrap": BwrapBackend(), "container": ContainerBackend(), "unsafe": UnsafeBackend()}
    for point in entry_points(group=_ENTRY_POINTS):
        try:
            found.setdefault(point.name, point.load()())
        except Exception as error:  # somebody else's mistake, which must not keep anybody from the other backends
            warnings.warn(
                f"the backend of sandboxes in the entry point {point.name} = {point.value} (group {_ENTRY_POINTS}) can't be used:"
                f" {type(error).__name__}: {error}",
                stacklevel=2,
            )
    return found


def find_backend(name: str | None = None) -> Backend:
    """Return a backend by name, or the one that is chosen on this machine.

    Raises:
        ConfigurationError: If there is none of this name, or it does not work here, or no safe one does: the text says what to install.
    """
    known = backends()
    if name is None:
        for chosen in _CHOSEN:
            if known[chosen].probe().works:
                return known[chosen]
        raise ConfigurationError(what_to_install())
    if name not in known:
        raise ConfigurationError(f"there is no backend {name!r} of sandboxes, but {', '.join(known)}.{did_you_mean(name, known)}")
    probe = known[name].probe()
    if not probe.works:
        raise ConfigurationError(f"the backend {name} of sandboxes does not work here: {probe.problem}. To install it: {probe.install}")
    return known[name]


def what_to_install() -> str:
    """Return the one text on a machine without a backend that is chosen by itself: why none works, and what to install."""
    lines = ["commands of a model run in a sandbox, and none works on this machine:"]
    for name in _CHOSEN:
        probe = backends()[name].probe()
        lines.append(f"  {name}: {probe.problem}. To install it: {probe.install}")
    lines.append('`vfgym sandboxes` shows more; backend="unsafe" runs them without one, with all that you may do yourself.')
    return "\n".join(lines)


def check_spec(spec: SandboxSpec, backend: str | None = None) -> Backend:
    """Return the backend that can make sandboxes of a spec: what an environment asks when it is made.

    Raises:
        ConfigurationError: If none works here, or it can't keep what the spec asks for.
    """
    if not isinstance(spec, SandboxSpec):
        raise ConfigurationError(f"a sandbox is made of a SandboxSpec, got {spec!r}")
    found = find_backend(backend)
    found.check(spec)
    return found


async def create(spec: SandboxSpec | None = None, backend: str | None = None) -> Sandbox:
    """Create a sandbox.

    Args:
        spec: What it is to have, and what it may use.
        backend: ``bwrap``, ``container``, ``unsafe``, or one that is registered; None for the first safe one that works here.

    Raises:
        ConfigurationError: If the backend does not work here, or can't keep what the spec asks for.
        SandboxError: If the sandbox can't be started.
    """
    spec = SandboxSpec() if spec is None else spec
    chosen = check_spec(spec, backend)
    await on_thread(_remove_left_once)
    return await chosen.create(spec)


@functools.cache
def _remove_left_once() -> None:
    remove_left(dict(backends()))
