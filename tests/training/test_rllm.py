"""rLLM's gateway, stood in for by what is recorded here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.training.trainers import environments
from vfgym.messages import ResponseMessage
from vfgym.training import samples
from vfgym.training.recording import open_recording
from vfgym.training.rllm import play_session


class Policy(vfgym.Client):
    """Answers the nth turn with what a function says of it, and with tokens: a byte each, the prompt behind what was written before."""

    policy_version = 7

    def __init__(self, answer: Callable[[int], str | Exception], *, with_tokens: bool = True) -> None:
        self.answer, self.with_tokens = answer, with_tokens
        self.asked: list[Any] = []
        self.is_closed = False

    async def get_response(self, prompt: Any, model: str, sampling_args: Any = None, tools: Any = None, **kwargs: Any) -> Any:
        self.asked.append((model, sampling_args, tools))
        answer = self.answer(sum(message["role"] == "assistant" for message in prompt))
        if isinstance(answer, Exception):
            raise answer
        told = [step["tokens"] for step in kwargs["state"]["trajectory"][-1:] if self.with_tokens]
        before = [[*tokens["prompt_ids"], *tokens["completion_ids"]] for tokens in told]
        ids, written = [*(before[0] if before else []), *str(prompt[-1]["content"]).encode()], list(answer.encode())
        tokens = vfgym.ResponseTokens(ids, [0] * len(ids), written, [1] * len(written), [-0.5] * len(written))
        return vfgym.Response("", 0, model, message=ResponseMessage(answer, tokens=tokens if self.with_tokens else None))

    async def close(self) -> None:
        self.is_closed = True


def across(turn: int) -> str:
    return f"<action>{environments.ACROSS[turn % 6]}</action>"


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
