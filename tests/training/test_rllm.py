"""rLLM's gateway, stood in for by what is recorded here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.training.policies import Policy, across
from tests.training.trainers import environments
from vfgym.training import samples
from vfgym.training.recording import open_recording
from vfgym.training.rllm import play_session


class Gateway:
    """Sessions whose model is recorded, with the interface of rLLM's ``AsyncGatewayClient``."""

    def __init__(self, model: Any, lost: int = 0) -> None:
        self.model, self.lost = model, lost

    async def create_session(self, session_id: str | None = None, metadata: dict[str, Any] | None = None) -> str:
        return "session"

    def get_session_url(self, session_id: str) -> str:
        return str(self.model.base_url)

    async def flush(self, timeout: float = 30.0) -> bool:
        return True

    async def get_session_traces(self, session_id: str) -> list[Any]:
        found = [
            SimpleNamespace(
                timestamp=place,
                prompt_token_ids=step["tokens"]["prompt_ids"],
                completion_token_ids=step["tokens"]["completion_ids"],
                logprobs=step["tokens"]["completion_logprobs"],
            )
            for place, step in enumerate(self.model.trajectory)
        ]
        return found[: len(found) - self.lost][::-1]


@pytest.mark.parametrize("lost", [0, 1])
def test_turns_have_the_tokens_that_the_gateway_recorded(lost: int) -> None:
    async def play() -> Any:
        async with open_recording(Policy(across), "m") as model:
            return await play_session(Gateway(model, lost), environments.make_lake(), model="m", example_id=0)

    if lost:
        with pytest.raises(vfgym.errors.InfraError, match="recorded 5 answers of a rollout of 6 turns"):
            asyncio.run(play())
        return
    [sample] = samples([asyncio.run(play())])
    written = [index for index, kept in zip(sample.ids, sample.mask, strict=True) if kept]
    assert bytes(written).decode() == "".join(across(turn) for turn in range(6))
