"""Spaces of conversations (observations) and of assistant messages (actions).

Both subclass `gymnasium.Space` directly, so vector environments batch them as tuples, one item a sub-environment, through
Gymnasium's generic registrations; `vfgym.shared_conversations` has what processes share in place of memory of a fixed size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_differing_spaces
from gymnasium.wrappers.utils import create_zero_array

from vfgym.bounded_json import parse_json
from vfgym.errors import InvalidMessage
from vfgym.messages import AssistantMessage, Message, Response, ToolCall, UserMessage, as_message, as_messages
from vfgym.tools import Tool, sample_arguments

_ASSISTANTS = (str, AssistantMessage, Response)
"""What is an assistant message whatever it says."""

WORDS = ("yes", "no", "maybe", "left", "right", "one", "two", "three", "red", "blue", "0", "1", "7", "42", "the", "answer", "is")
"""What random text is made of."""


class Sampler(Protocol):
    """Draws messages that mean something to an environment."""

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one message."""
        ...


@dataclass(frozen=True)
class TextSampler:
    """Draws a few random words."""

    words: tuple[str, ...] = WORDS
    longest: int = 6
    """Most words of one message."""

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one to `longest` words."""
        drawn = rng.integers(len(self.words), size=int(rng.integers(1, self.longest + 1)))
        return AssistantMessage(" ".join(self.words[index] for index in drawn))


@dataclass(frozen=True)
class ChoiceSampler:
    """Draws one of a fixed set of texts (the actions of a game, say)."""

    texts: tuple[str, ...]

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one of the texts."""
        return AssistantMessage(self.texts[int(rng.integers(len(self.texts)))])


@dataclass(frozen=True)
class ToolCallSampler:
    """Draws a call of one of the tools, with arguments that fit its JSON schema; every fourth time text instead."""

    tools: Sequence[Tool]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one tool call, or text (with which an episode of a tool environment ends)."""
        if not self.tools or rng.random() < 0.25:
            return TextSampler().sample(rng)
        tool = self.tools[int(rng.integers(len(self.tools)))]
        arguments = json.dumps(sample_arguments(tool.parameters, rng))
        return AssistantMessage(None, tool_calls=[ToolCall(f"call_{int(rng.integers(2**31))}", tool.name, arguments)])


class _MessagesSpace(gym.Space[Any]):
    """What both spaces share: no shape, no dtype, and JSON as plain dicts."""

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Conversations are not arrays."""
        return False

    def to_jsonable(self, sample_n: Iterable[Any]) -> list[Any]:
        """Return samples as plain JSON data."""
        plain_data: list[Any] = parse_json(json.dumps(list(sample_n)))
        return plain_data


class ChatSpace(_MessagesSpace):
    """Conversations: lists of chat messages."""

    def sample(self, mask: None = None, probability: None = None) -> list[Message]:
        """Return a short conversation that ends with a user's message."""
        turns = int(self.np_random.integers(0, 3))
        text = TextSampler()
        messages: list[Message] = []
        for _ in range(turns):
            messages += [UserMessage(text.sample(self.np_random).content), text.sample(self.np_random)]
        return [*messages, UserMessage(text.sample(self.np_random).content)]

    def contains(self, x: Any) -> bool:
        """Say whether `x` is a list of chat messages (any of their raw forms that has a role)."""
        if not isinstance(x, list | tuple):
            return False
        try:
            return all(isinstance(message, Message) or bool(as_message(message)) for message in x)
        except InvalidMessage:
            return False

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[list[Message]]:
        """Return conversations from plain JSON data."""
        return [as_messages(conversation) for conversation in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChatSpace)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "ChatSpace()"


class MessageSpace(_MessagesSpace):
    """Assistant messages: as messages, as dicts with the role ``assistant``, or as plain text."""

    def __init__(self, sampler: Sampler | None = None, seed: int | np.random.Generator | None = None) -> None:
        """Make the space.

        Args:
            sampler: Draws its samples; random words without one.
            seed: Seed of the samples.
        """
        super().__init__(seed)
        self.sampler: Sampler = TextSampler() if sampler is None else sampler

    def sample(self, mask: None = None, probability: None = None) -> AssistantMessage:
        """Return a message that means something to the environment, without knowing its episode."""
        return self.sampler.sample(self.np_random)

    def contains(self, x: Any) -> bool:
        """Say whether `x` is an assistant message, whatever it says."""
        if isinstance(x, _ASSISTANTS):
            return True
        if not isinstance(x, Mapping):
            return False
        try:
            return isinstance(as_message(x), AssistantMessage)
        except InvalidMessage:
            return False

    def to_jsonable(self, sample_n: Iterable[Any]) -> list[Any]:
        """Return samples as plain JSON data; of a `Response`, its message."""
        return super().to_jsonable([sample.message if isinstance(sample, Response) else sample for sample in sample_n])

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[Any]:
        """Return messages from plain JSON data; text stays text."""
        return [sample if isinstance(sample, str) else as_message(sample) for sample in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSpace) and self.sampler == other.sampler

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MessageSpace({self.sampler!r})"


@is_space_dtype_shape_equiv.register(_MessagesSpace)
def _are_of_one_kind(space_1: _MessagesSpace, space_2: gym.Space[Any]) -> bool:
    return type(space_1) is type(space_2)


@create_zero_array.register(ChatSpace)
def _empty_conversation(space: ChatSpace) -> list[Message]:
    return []


@create_zero_array.register(MessageSpace)
def _empty_message(space: MessageSpace) -> AssistantMessage:
    return AssistantMessage("")


# The function takes a sequence of spaces and dispatches on the type of the first one.
@batch_differing_spaces.register(ChatSpace)
@batch_differing_spaces.register(MessageSpace)
def _tuple_of_spaces(spaces: Sequence[gym.Space[Any]]) -> gym.spaces.Tuple[Any]:  # type: ignore[misc]
    return gym.spaces.Tuple(spaces)
