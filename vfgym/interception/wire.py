"""What the formats share: a question as this library understands it, and how a format is read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
    set_aside: tuple[str, ...] = ()
    """Fields that are not passed on, by their names: they are no part of a conversation, or not the program's to say."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those that the program sent, whose names are found in any case, without its key."""


@dataclass(frozen=True)
class Wire:
    """One format: how a request is read, and how an answer is written, whole or as a stream of events."""

    parse: Callable[[Mapping[str, Any]], Request]
    answer: Callable[[Response], dict[str, Any]]
    events: Callable[[Response, Request], Iterator[str]]
    """Returns the events of an answer to a request, whose texts come in pieces, as those of a model that is still writing do."""


_NUMBER, _TEXT = (int, float), (str,)
_SAMPLING: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"), _NUMBER),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "top_k", "seed", "logprobs", "top_logprobs"), (int,)),
    **dict.fromkeys(("reasoning_effort", "verbosity"), _TEXT),
    "parallel_tool_calls": (bool,),
    "stop": (str, list),
    "tool_choice": (str, Mapping),
    "response_format": (Mapping,),
    "logit_bias": (Mapping,),
    "thinking": (Mapping,),
}
"""The generation parameters that a program may ask with, as chat completions and Anthropic document them, and what each may be."""
_MAY_BE_BOOL = frozenset({"logprobs", "parallel_tool_calls"})
_CHOICES = frozenset({"auto", "none", "required", "any"})
_FUNCTION_CHOICES = frozenset({"function", "allowed_tools"})
_THINKING = frozenset({"type", "budget_tokens", "display"})
_OF_THE_ROLLOUT = frozenset({"model", "stream", "stream_options", "metadata", "user", "n"})
"""What nearly every request has: it is the rollout's, or says how the answer is to be written. Nobody need be told of it."""


def request_fields(body: Any, *own: str) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Return what passes of a request: the fields that a format knows, and generation parameters. Only what is named here passes.

    Model, account and route are the rollout's, whatever a request says of them.

    Args:
        body: The request.
        *own: The fields that its format reads by itself.

    Returns:
        The fields, the generation parameters, and the names of all others, which are set aside.

    Raises:
        ValueError: If the request is not a JSON object, asks for several answers, or a parameter is not what it must be.
    """
    if not isinstance(body, Mapping):
        raise ValueError(f"expected a JSON object, got {type(body).__name__}")
    if body.get("n") not in (None, 1):
        raise ValueError("n must be 1: each answer is a turn of the rollout")
    sampling_args = {key: value for key, value in body.items() if key in _SAMPLING and key not in own and value is not None}
    check_parameters(sampling_args)
    aside = sorted(key for key in body if key not in _SAMPLING and key not in _OF_THE_ROLLOUT and key not in own)
    return {key: body[key] for key in own if key in body}, sampling_args, tuple(aside)


def check_parameters(sampling_args: dict[str, Any]) -> dict[str, Any]:
    """Return generation parameters, if each is what it may be: nothing else travels in its place.

    Raises:
        ValueError: If one is not.
    """
    for name, value in sampling_args.items():
        if not _fits(name, value):
            raise ValueError(f"{name} can't be {str(value)[:100]!r}")
    return sampling_args


def _fits(name: str, value: Any) -> bool:
    fits = isinstance(value, _SAMPLING[name]) and (not isinstance(value, bool) or name in _MAY_BE_BOOL)
    if fits and name == "stop" and not isinstance(value, str):
        fits = all(isinstance(each, str) for each in value)
    elif fits and name == "tool_choice":
        fits = value in _CHOICES if isinstance(value, str) else value.get("type") in _FUNCTION_CHOICES and _names_an_object(value)
    elif fits and name == "logit_bias":
        fits = all(isinstance(each, _NUMBER) for each in value.values())
    elif fits and name == "thinking":
        fits = value.keys() <= _THINKING
    return fits


def _names_an_object(choice: Mapping[str, Any]) -> bool:
    return isinstance(choice.get(choice["type"]), Mapping)


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
    """Return dicts and lists of any kind as fresh plain ones, all the way down.

    Raises:
        ValueError: If they are nested more deeply than can be gone through.
    """
    try:
        if isinstance(value, Mapping):
            return {key: plain_data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain_data(item) for item in value]
    except RecursionError:
        raise ValueError("the data are nested too deeply") from None
    return value
