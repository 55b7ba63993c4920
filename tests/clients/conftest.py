"""A server with prepared answers for each test of a client that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.clients.canned_server import CannedServer, canned_server


@pytest.fixture
async def server() -> AsyncIterator[CannedServer]:
    async with canned_server() as running:
        yield running
