"""`SandboxPool`: sandboxes of one spec that are leased; where the spec is reusable, they are kept warm between leases."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncIterator

from vfgym.errors import SandboxError
from vfgym.sandboxes.base import Sandbox, close_quietly
from vfgym.sandboxes.creation import check_spec, create
from vfgym.sandboxes.spec import SandboxSpec


class SandboxPool:
    """Sandboxes of one spec. A reusable one is reset after a lease: nothing of it is left for the next."""

    def __init__(self, spec: SandboxSpec, backend: str | None = None, *, most_idle: int | None = None) -> None:
        """Check the spec.

        Args:
            spec: What each sandbox is to have.
            backend: As for `create`.
            most_idle: How many are kept while nobody has them; one for each core by default.

        Raises:
            ConfigurationError: As of `create`.
        """
        self.spec = spec
        self.backend = check_spec(spec, backend).name
        self._most_idle = (os.cpu_count() or 1) if most_idle is None else most_idle
        self._idle: list[Sandbox] = []
        self._lock = threading.Lock()
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[Sandbox]:
        """Give a sandbox that nobody else has, as if it were new, until the block ends.

        Raises:
            SandboxError: If none can be created, or the pool is closed.
        """
        sandbox = await self._take()
        try:
            yield sandbox
        finally:
            await self._give_back(sandbox)

    async def _take(self) -> Sandbox:
        while True:
            with self._lock:
                if self._is_closed:
                    raise SandboxError("the pool of sandboxes is closed")
                sandbox = self._idle.pop() if self._idle else None
            if sandbox is None:
                return await create(self.spec, self.backend)
            if sandbox.is_alive:
                return sandbox
            await close_quietly(sandbox)

    async def _give_back(self, sandbox: Sandbox) -> None:
        is_kept = False
        try:
            if self.spec.reusable and sandbox.is_alive:
                await sandbox.reset()
                with self._lock:
                    is_kept = not self._is_closed and len(self._idle) < self._most_idle
                    if is_kept:
                        self._idle.append(sandbox)
        except SandboxError:  # its commands have harmed it: the next lease gets another
            pass
        finally:
            if not is_kept:
                await close_quietly(sandbox)

    async def close(self) -> None:
        """Close the sandboxes that nobody has; those that are leased are closed when they come back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for sandbox in idle:
            await close_quietly(sandbox)
