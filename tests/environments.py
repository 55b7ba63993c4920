"""Tiny environments that many tests play: conversations without an end of their own."""

from __future__ import annotations

import asyncio
from typing import Any

from vfgym import Message, MultiTurnEnv, State, UserMessage, cleanup


class Talk(MultiTurnEnv):
    """Says "go on" after each answer, and counts the episodes that were cleaned up."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": "?"}], **kwargs})
        self.cleaned = 0

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage("go on")]

    @cleanup
    def count(self, state: State) -> None:
        self.cleaned += 1


class RandomTalk(Talk):
    """Says a random number of the episode after each answer."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage(f"go on {state.rng.integers(1000)}")]


class AsyncRandomTalk(RandomTalk):
    """The same with an async hook, which needs the background event loop of its process."""

    async def env_response(self, messages: list[Message], state: State) -> Any:
        await asyncio.sleep(0)
        return super().env_response(messages, state)


class Echo(Talk):
    """Repeats each answer."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage(f"you said {messages[-1].content}")]
