"""What the formats share: a question as this library understands it, and how a format is read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vfgym.messages import MESSAGE_TYPES, Message, Response
from vfgym.messages.responses import for_conversation
from vfgym.tools import Tool


@dataclass(frozen=True)
class Request:
    """What a program asks the model."""

    messages: list[Message]
    tools: list[Tool]
    sampling_args: dict[str, Any]
    """Generation parameters, as chat completions spell them."""
    stream: bool
    stream_usage: bool = False
    """Whether the events of its answer end with the usage, where programs ask for that."""


@dataclass(frozen=True)
class Wire:
    """One format: how a request is read, and how an answer is written, whole or as a stream of events."""

    parse: Callable[[Mapping[str, Any]], Request]
    answer: Callable[[Response], dict[str, Any]]
    events: Callable[[Response, Request], Iterator[str]]
    """Returns the events of an answer to a request, whose texts come in pieces, as those of a model that is still writing do."""


def request_fields(body: Any, *own: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of a request that a format knows, and the others, which are generation parameters.

    Raises:
        ValueError: If the request is not a JSON object.
    """
    if not isinstance(body, Mapping):
        raise ValueError(f"expected a JSON object, got {type(body).__name__}")
    known = {"model", "stream", "stream_options", "metadata", "user", *own}
    return {key: body[key] for key in own if key in body}, {key: value for key, value in body.items() if key not in known}


def finish_reason(response: Response) -> str:
    """Return why the model stopped, in the words of chat completions."""
    message = response.message
    return message.get("finish_reason") or ("tool_calls" if message.get("tool_calls") else "stop")


def message_of(response: Response) -> Message:
    """Return the message of a response as it goes into a conversation, without what belongs to this one answer."""
    return for_conversation(response.message, MESSAGE_TYPES)


_PIECE = 16
"""Characters of one piece of a stream, at least."""
_MOST_PIECES = 256
"""Pieces of a text; those of a longer one are bigger."""


def split_into_pieces(text: str) -> Iterator[str]:
    """Return a text in pieces, as a stream delivers it."""
    size = max(_PIECE, -(-len(text) // _MOST_PIECES))
    return (text[start : start + size] for start in range(0, len(text), size))


def plain_data(value: Any) -> Any:
    """Return dicts and lists of any kind as fresh plain ones, all the way down."""
    if isinstance(value, Mapping):
        return {key: plain_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return value
