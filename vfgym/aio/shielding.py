"""`await_shielded`: what must come to its end whoever is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any


async def await_shielded(awaitable: Any) -> Any:
    """Await to the end, even if we are cancelled meanwhile; the cancellation is raised then."""
    task = asyncio.ensure_future(awaitable)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
