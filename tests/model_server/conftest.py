"""A server, and the SDKs' clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anthropic
import openai
import pytest

from tests.model_server.asked import MODELS
from vfgym.model_server import ModelServer


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(MODELS) as server:
        yield server


@pytest.fixture
async def gpt(server: ModelServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
async def claude(server: ModelServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        yield client
