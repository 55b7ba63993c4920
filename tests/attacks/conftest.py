"""What attacks on endpoints need."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.attacks.endpoints import Answers
from vfgym.interception import Endpoint, open_endpoint


@pytest.fixture
async def answers() -> Answers:
    return Answers()


@pytest.fixture
async def endpoint(answers: Answers) -> AsyncIterator[Endpoint]:
    endpoint = await open_endpoint(answers)
    yield endpoint
    await endpoint.close()
