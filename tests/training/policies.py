"""A policy whose answers are scripted, as a client that gives tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import vfgym
from tests.training.trainers import environments
from vfgym.messages import ResponseMessage


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
    """Go over the lake."""
    return f"<action>{environments.ACROSS[turn % 6]}</action>"
