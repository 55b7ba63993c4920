r"""Sandboxes: where the commands and the code of a model run, with limits, and without harm to anything outside.

``` python
async with await create(SandboxSpec(memory_mb=512)) as sandbox:
    await sandbox.write_file("numbers.txt", "3\n1\n2\n")
    (await sandbox.exec("sort numbers.txt")).stdout  # '1\n2\n3\n'
    (await sandbox.python("6 * 7")).value  # '42'
```

A backend makes them (`vfgym sandboxes` says which work here): ``bwrap``, the default, ``container``, and ``unsafe``, which is never chosen
by itself. One agent inside does everything (`inside`), whatever the backend.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vfgym.sandboxes.base import Backend, Probe, Sandbox
    from vfgym.sandboxes.creation import backends, check_spec, create, find_backend, what_to_install
    from vfgym.sandboxes.pool import SandboxPool
    from vfgym.sandboxes.spec import CellResult, ExecResult, SandboxSpec, TreeSnapshot

_PLACES = {
    "base": ("Backend", "Probe", "Sandbox"),
    "creation": ("backends", "check_spec", "create", "find_backend", "what_to_install"),
    "pool": ("SandboxPool",),
    "spec": ("CellResult", "ExecResult", "SandboxSpec", "TreeSnapshot"),
}

__all__ = [
    "Backend",
    "CellResult",
    "ExecResult",
    "Probe",
    "Sandbox",
    "SandboxPool",
    "SandboxSpec",
    "TreeSnapshot",
    "backends",
    "check_spec",
    "create",
    "find_backend",
    "what_to_install",
]


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"vfgym.sandboxes.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
