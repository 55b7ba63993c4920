"""Sandboxes for tests, and what is skipped where they can't be made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vfgym.aio.background import run_to_end
from vfgym.sandboxes import Sandbox, SandboxSpec, backends, create


def need(backend: str) -> None:
    """Skip a test whose backend does not work on this machine, saying why."""
    probe = backends()[backend].probe()
    if not probe.works:
        pytest.skip(f"containment is not tested with {backend}: {probe.problem}")


@contextmanager
def opened(backend: str, **spec: Any) -> Iterator[Sandbox]:
    """Open a sandbox for tests on several event loops."""
    need(backend)
    sandbox = run_to_end(create(SandboxSpec(**spec), backend))
    try:
        yield sandbox
    finally:
        run_to_end(sandbox.close())
