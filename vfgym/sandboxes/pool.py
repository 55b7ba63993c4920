"""`SandboxPool`: sandboxes of one spec, each of which is leased once; some are made before they are asked for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections import deque
from collections.abc import AsyncIterator

from vfgym.aio.background import background_loop
from vfgym.errors import SandboxError
from vfgym.sandboxes.base import Sandbox, close_quietly
from vfgym.sandboxes.creation import check_spec, create
from vfgym.sandboxes.spec import SandboxSpec


class SandboxPool:
    """Sandboxes of one spec. One that was leased is closed when it comes back: what a program has touched is never leased again.

    When one comes back, another is made for the next lease, which so waits for none.
    """

    def __init__(self, spec: SandboxSpec, backend: str | None = None, *, most_idle: int | None = None) -> None:
        """Check the spec.

        Args:
            spec: What each sandbox is to have.
            backend: As for `create`.
            most_idle: How many are kept that nobody has had yet; one for each core by default.

        Raises:
            ConfigurationError: As of `create`.
        """
        self.spec = spec
        self.backend = check_spec(spec, backend).name
        self._most_idle = (os.cpu_count() or 1) if most_idle is None else most_idle
        self._made: deque[concurrent.futures.Future[Sandbox]] = deque()
        """Those that nobody has had yet, some of which are still being made."""
        self._lock = threading.Lock()
        self._is_closed = False

    @contextlib.asynccontextmanager
    async def lease(self) -> AsyncIterator[Sandbox]:
        """Give a sandbox that nobody has had before, until the block ends.

        Raises:
            SandboxError: If none can be created, or the pool is closed.
        """
        sandbox = await self._take()
        try:
            yield sandbox
        finally:
            await close_quietly(sandbox)
            self._make_another()

    async def _take(self) -> Sandbox:
        while True:
            with self._lock:
                if self._is_closed:
                    raise SandboxError("the pool of sandboxes is closed")
                made = self._made.popleft() if self._made else None
            if made is None:
                return await create(self.spec, self.backend)
            try:
                sandbox = await asyncio.shield(asyncio.wrap_future(made))
            except SandboxError:  # the next may be made all the same
                continue
            except asyncio.CancelledError:
                self._keep(made)
                raise
            if sandbox.is_alive:
                return sandbox
            await close_quietly(sandbox)

    def _make_another(self) -> None:
        with self._lock:
            if not self._is_closed and len(self._made) < self._most_idle:
                self._made.append(asyncio.run_coroutine_threadsafe(create(self.spec, self.backend), background_loop()))

    def _keep(self, made: concurrent.futures.Future[Sandbox]) -> None:
        with self._lock:
            self._made.append(made)
            is_closed = self._is_closed
        if is_closed:
            asyncio.run_coroutine_threadsafe(self.close(), background_loop())

    async def close(self) -> None:
        """Close the sandboxes that nobody has; those that are leased are closed when they come back."""
        with self._lock:
            self._is_closed = True
            all_made, self._made = self._made, deque()
        for made in all_made:
            with contextlib.suppress(SandboxError):
                await close_quietly(await asyncio.wrap_future(made))
