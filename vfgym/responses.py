"""What a model answers: one assistant message, and what the provider says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vfgym.frozen import Field
from vfgym.messages import AssistantMessage, Message, MessageTypes

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
"""Why a model stopped: it was done, it met the token limit, or it called tools."""


class _Plain:
    """Gives the fields as plain data, as pydantic's models do."""

    __slots__ = ()

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Return the fields as plain data.

        Args:
            exclude_none: Whether fields that are None are left out, at the top.
        """
        fields = {name: _as_plain(getattr(self, name)) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]
        return {name: value for name, value in fields.items() if value is not None} if exclude_none else fields


def _as_plain(value: Any) -> Any:
    if isinstance(value, _Plain):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {key: _as_plain(item) for key, item in value.items()}
    return [_as_plain(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Usage(_Plain):
    """Tokens of one model call, as the provider counted them."""

    prompt_tokens: int = 0
    reasoning_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


@dataclass(slots=True)
class ResponseTokens(_Plain):
    """Token ids, masks (1 for what the model wrote) and log-probabilities (nats) of one model call, for training."""

    prompt_ids: list[int]
    prompt_mask: list[int]
    completion_ids: list[int]
    completion_mask: list[int]
    completion_logprobs: list[float]
    routed_experts: Any = None


class ResponseMessage(AssistantMessage):
    """The assistant message of a `Response`, with what belongs to this one answer and not to the conversation."""

    __slots__ = ()
    finish_reason = Field()
    is_truncated = Field()
    tokens = Field()
    OWN_FIELDS = frozenset({"finish_reason", "is_truncated", "tokens"})


_TEXT_ONLY = ["role", "content"]


def for_conversation(message: AssistantMessage, types: MessageTypes) -> Message:
    """Return an answer's message as it goes into the conversation: without what belongs to this one answer.

    Args:
        message: The message of a `Response`.
        types: The message class for each role.
    """
    own = types["assistant"]
    if [*message] == _TEXT_ONLY and isinstance(message["content"], str):
        return own._of(message)
    return own.of_fields({key: value for key, value in message.items() if key not in ResponseMessage.OWN_FIELDS})


@dataclass(slots=True, init=False)
class Response(_Plain):
    """One answer of a model, whoever the provider is."""

    id: str
    created: int
    """Unix time in seconds."""
    model: str
    usage: Usage | None
    message: AssistantMessage

    def __init__(self, id: str, created: int, model: str, usage: Usage | None, message: Any) -> None:
        """Take an answer.

        Args:
            id: What the provider calls it.
            created: Unix time in seconds.
            model: Name of the model.
            usage: Tokens, where they were reported.
            message: The answer; a mapping of its fields, or its text, becomes a `ResponseMessage`.
        """
        self.id = id
        self.created = created
        self.model = model
        self.usage = usage
        if message.__class__ is not AssistantMessage and not isinstance(message, AssistantMessage):
            message = ResponseMessage(**(message if isinstance(message, Mapping) else {"content": message}))
        self.message = message

    @property
    def tokens(self) -> ResponseTokens | None:
        """Token data of the answer, where the client asked for it."""
        message = self.message
        return message.tokens if isinstance(message, ResponseMessage) else None

    @property
    def is_truncated(self) -> bool:
        """Whether the answer was cut by a token limit."""
        message = self.message
        return isinstance(message, ResponseMessage) and (bool(message.is_truncated) or message.finish_reason == "length")
