"""What the APIs have in common: a request read from its body, and how its fields are checked."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vfgym.bounded_json import dump_json, parse_json
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import Message, Usage, as_messages
from vfgym.model_server.exchange import ApiName, ModelRequest, RequestRefused
from vfgym.model_server.generation import Generation
from vfgym.model_server.tokenizer import count, prompt_pieces, token_ids
from vfgym.tools import Tool, as_tool


@dataclass
class ParsedRequest:
    """A request: one `ModelRequest` for each answer to it, and what its answers need."""

    body: Mapping[str, Any]
    requests: list[ModelRequest]
    prompt_tokens: list[int]
    """Length of the prompt, for each of the requests."""
    max_tokens: int | None = None
    stops: Sequence[str] = ()
    num_choices: int = 1
    """Answers to each prompt."""
    tools_text: str = ""
    """The tools as they are rendered."""
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def number(self) -> int:
        """Number of the HTTP request."""
        return self.requests[0].number

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.requests[0].model

    @property
    def is_stream(self) -> bool:
        """Whether the answer is streamed."""
        return bool(self.body.get("stream"))

    @property
    def wants_usage(self) -> bool:
        """Whether a stream of OpenAI's completions ends with the usage."""
        return bool(read_object(self.body, "stream_options").get("include_usage"))

    def prompt_ids(self, index: int = 0) -> list[int]:
        """Return the token ids of the prompt of one of the requests."""
        request = self.requests[index]
        if request.prompt_ids is not None:
            return list(request.prompt_ids)
        if request.api == "completions":
            return token_ids(message["content"] for message in request.messages)
        return token_ids(prompt_pieces(request.messages, self.tools_text))

    def usage(self, generations: Sequence[Generation]) -> Usage:
        """Return the tokens of all answers together; a prompt counts once."""
        if len(generations) == 1:
            return generations[0].usage
        prompt = sum(generation.usage.prompt_tokens for generation in generations[:: self.num_choices])
        completion = sum(generation.usage.completion_tokens for generation in generations)
        return Usage(prompt, sum(generation.usage.reasoning_tokens for generation in generations), completion, prompt + completion)


class Api(NamedTuple):
    """One of the APIs: how its requests are read, and how its answers are written."""

    name: ApiName
    read: Callable[[Mapping[str, Any], Mapping[str, str], int], ParsedRequest]
    """From body, headers and number of a request."""
    write: Callable[[ParsedRequest, Sequence[Generation]], dict[str, Any]]
    stream: Callable[[ParsedRequest, Sequence[Generation]], Iterator[bytes]]
    """The events of a streamed answer."""


class Toolbox(NamedTuple):
    """The tools of a request, and how they are rendered in its prompt."""

    tools: list[Tool]
    text: str


_NO_TOOLS = Toolbox([], "")


def read_toolbox(given: Any, convert: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Toolbox:
    """Return the tools that a body offers.

    Args:
        given: What stands there.
        convert: Returns one of them as the mapping that `as_tool` takes.

    Raises:
        RequestRefused: If they are not tools.
    """
    if not given:
        return _NO_TOOLS
    if not isinstance(given, list) or not all(isinstance(tool, Mapping) for tool in given):
        raise RequestRefused(400, f"tools must be a list of objects, got {given!r:.120}", param="tools")
    tools = _convert_tools(json.dumps(given), convert)
    return Toolbox(list(tools.tools), tools.text)


@functools.lru_cache(maxsize=256)  # a client offers the same tools all the time
def _convert_tools(given: str, convert: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Toolbox:
    try:
        return toolbox([as_tool(convert(tool)) for tool in parse_json(given)])
    except ConfigurationError as error:
        raise RequestRefused(400, f"invalid tools: {error}", param="tools") from None


def toolbox(tools: Sequence[Tool]) -> Toolbox:
    """Return tools with their rendering."""
    return Toolbox(list(tools), json.dumps([tool.to_openai() for tool in tools], sort_keys=True) if tools else "")


def read_model(body: Mapping[str, Any]) -> str:
    """Return the name of the model that is asked.

    Raises:
        RequestRefused: If there is none.
    """
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestRefused(400, f"you must provide a model parameter: the name of a model (a string), got {model!r}", param="model")
    return model


def parse_messages(given: Any, name: str = "messages") -> list[Message]:
    """Return the conversation of a body.

    Raises:
        RequestRefused: If it is none, or empty.
    """
    if not isinstance(given, list) or not given:
        raise RequestRefused(400, f"{name} must be a list of at least one message, got {given!r:.120}", param=name)
    try:
        messages = as_messages(given, name=name)
    except InvalidMessage as error:
        raise RequestRefused(400, str(error), param=name) from None
    if any(message["role"] == "text" for message in messages):
        raise RequestRefused(400, f"{name}: the role 'text' is none of a conversation", param=name)
    return messages


def check_tool_answers(messages: Sequence[Message]) -> None:
    """Refuse a conversation in which tool calls and tool messages do not belong together, as the providers do.

    Raises:
        RequestRefused: If a call has no answer before the conversation goes on, or an answer no call.
    """
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                raise RequestRefused(
                    400,
                    f"messages[{index}] answers the tool call {message['tool_call_id']!r}, which the assistant message before it does"
                    f" not make (open calls: {', '.join(open_ids) or 'none'})",
                    param="messages",
                )
            open_ids.remove(message["tool_call_id"])
            continue
        _check_all_answered(open_ids, index)
        calls = message.get("tool_calls")
        open_ids = [call["id"] for call in calls] if calls else []
    _check_all_answered(open_ids, len(messages))


def _check_all_answered(open_ids: Sequence[str], index: int) -> None:
    if open_ids:
        raise RequestRefused(
            400,
            "an assistant message with tool_calls must be followed by tool messages responding to each tool_call_id; before"
            f" messages[{index}] these have no answer: {', '.join(open_ids)}",
            param="messages",
        )


def parse_tool_choice(choice: str, tools: Sequence[Tool]) -> str:
    """Return a tool choice.

    Raises:
        RequestRefused: If it asks for a tool that is not offered.
    """
    names = [tool.name for tool in tools]
    if choice == "required" and not names:
        raise RequestRefused(400, "tool_choice asks for a tool call, but no tools are offered", param="tool_choice")
    if choice not in ("auto", "none", "required") and choice not in names:
        raise RequestRefused(400, f"tool_choice names {choice!r}; the tools are: {', '.join(names) or 'none'}", param="tool_choice")
    return choice


MOST_CHOICES = 128
"""Answers to each prompt that a request may ask for, as at OpenAI."""
MOST_PROMPTS = 2048
"""Answers to all prompts of a request together: as many as OpenAI takes prompts."""
MOST_LOGPROBS = 20
"""Alternatives to each token that a request may ask for, as at OpenAI."""


def read_integer(body: Mapping[str, Any], name: str, default: int | None = None, *, low: int = 1, high: float = math.inf) -> int | None:
    """Return a whole number of a body, or the default where it is absent or null.

    Raises:
        RequestRefused: If it is something else, below `low` or above `high`.
    """
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        allowed = f"from {low}" if high == math.inf else f"from {low} to {high}"
        raise RequestRefused(400, f"{name} must be an integer {allowed}, got {value!r:.40}", param=name)
    return value


def read_object(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a body, empty where it is absent or null.

    Raises:
        RequestRefused: If it is something else.
    """
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RequestRefused(400, f"{name} must be an object, got {value!r:.120}", param=name)
    return value


_MOST_STOPS = 64
"""Each is looked for in the whole answer."""


def read_stops(body: Mapping[str, Any], name: str = "stop") -> Sequence[str]:
    """Return the stop sequences of a body.

    Raises:
        RequestRefused: If they are not texts.
    """
    value = body.get(name)
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops) or len(stops) > _MOST_STOPS:
        expected = f"a text that is not empty, or a list of such, {_MOST_STOPS} at most"
        raise RequestRefused(400, f"{name} must be {expected}, got {value!r:.120}", param=name)
    return stops


def without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of a body but those named."""
    return {key: value for key, value in body.items() if key not in names}


def conversation_tokens(messages: Sequence[Message], tools_text: str) -> int:
    """Return the length of a prompt, up to the beginning of the answer."""
    return count(prompt_pieces(messages, tools_text))


def dumps(value: Any) -> bytes:
    """Return JSON as it goes over the wire."""
    return dump_json(value).encode("ascii")


def event(data: Any, name: str | None = None) -> bytes:
    """Return one server-sent event."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + dumps(data) + b"\n\n"


DONE = b"data: [DONE]\n\n"
"""The last event of OpenAI's streams."""
