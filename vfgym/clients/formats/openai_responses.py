"""Conversations, tools and sampling arguments as OpenAI's Responses API takes them.

A conversation is a list of items: messages, function calls and their outputs. An assistant message that came from this API is
sent back as the items that it was, reasoning included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from vfgym.clients.formats.native_output import replayable
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import Message, ToolCall
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

API = "openai_responses"

Item: TypeAlias = "Mapping[str, Any]"
"""One item of the API's input or output."""

_TEXT_TYPES = ("output_text", "refusal")
_LOGPROBS = "message.output_text.logprobs"


def native_prompt(messages: Iterable[Message]) -> list[Item]:
    """Return the items of a conversation. Only messages that were not converted before are converted.

    Raises:
        InvalidMessage: If a message has something in it that the API does not take.
    """
    return list(chain.from_iterable(convert_all(messages, _items)))


def native_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as the API takes it: flat."""
    native: dict[str, Any] = {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.strict is not None:
        native["strict"] = tool.strict
    return native


def read_items(items: Sequence[Item]) -> dict[str, Any]:
    """Return what the items of an answer say as the fields of an assistant message.

    ``content`` is all text in one piece (what the model refuses included), ``reasoning_content`` the summaries and texts of
    its reasoning, a line each.
    """
    fields: dict[str, Any] = {"content": None}
    texts = [part.get("text") or part.get("refusal") or "" for item in items for part in _as_output_items(item)]
    if texts:
        fields["content"] = "".join(texts)
    reasoning = [
        part["text"] for item in items if item.get("type") == "reasoning" for part in (*_parts(item, "summary"), *_parts(item, "content"))
    ]
    if reasoning:
        fields["reasoning_content"] = "\n".join(reasoning)
    calls = [ToolCall(item["call_id"], item["name"], item["arguments"]) for item in items if item.get("type") == "function_call"]
    if calls:
        fields["tool_calls"] = calls
    return fields


def native_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters in the API's spelling, given those of chat completions or its own.

    Raises:
        ConfigurationError: If one asks for what the API cannot do.
    """
    native = dict(parameters)
    if native.pop("stop", None):
        raise ConfigurationError(f"the Responses API has no stop sequences, got stop={parameters['stop']!r}; chat completions have them")
    if set(native.pop("modalities", ())) - {"text"}:
        raise ConfigurationError(f"the Responses API answers in text, got modalities={parameters['modalities']!r}")
    if "max_completion_tokens" in native:
        limit = native.pop("max_completion_tokens")
        native.setdefault("max_output_tokens", limit)
    if "reasoning_effort" in native:
        native["reasoning"] = {"effort": native.pop("reasoning_effort"), **(native.get("reasoning") or {})}
    text = dict(native.pop("text", {}))
    if "verbosity" in native:
        text.setdefault("verbosity", native.pop("verbosity"))
    if "response_format" in native:
        text.setdefault("format", _text_format(native.pop("response_format")))
    if text:
        native["text"] = text
    if native.pop("logprobs", False):
        native["include"] = [*native.get("include", ()), *([] if _LOGPROBS in native.get("include", ()) else [_LOGPROBS])]
    choice = native.get("tool_choice")
    if isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        native["tool_choice"] = {"type": "function", "name": choice["function"].get("name")}
    return native


def _text_format(response_format: Any) -> Any:
    schema = response_format.get("json_schema") if isinstance(response_format, Mapping) else None
    return {"type": "json_schema", **schema} if isinstance(schema, Mapping) else response_format


def _as_output_items(item: Item) -> Sequence[Item]:
    return [part for part in _parts(item, "content") if part.get("type") in _TEXT_TYPES] if item.get("type") == "message" else ()


def _parts(item: Item, field: str) -> Sequence[Item]:
    return item.get(field) or ()


def _items(message: Message) -> Sequence[Item]:
    role = message["role"]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": _content(message)}]
    if role == "assistant":
        return replayable(message, API, read_items) or _assistant_items(message)
    return [{"type": "message", "role": "user" if role == "text" else role, "content": _content(message)}]


def _assistant_items(message: Message) -> list[Item]:
    items: list[Item] = []
    if message["content"]:
        items.append({"type": "message", "role": "assistant", "content": _content(message)})
    for call in message.get("tool_calls") or ():
        items.append({"type": "function_call", "call_id": call["id"], "name": call.name, "arguments": call.arguments})
    return items


def _content(message: Message) -> Any:
    content, role = message["content"], message["role"]
    return content if isinstance(content, str) else [_part(part, role) for part in content]


def _part(part: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    kind = part["type"]
    if kind == "text":
        return {**part, "type": "output_text" if role == "assistant" else "input_text"}
    if kind == "image_url":
        image = part["image_url"]
        if not isinstance(image.get("url"), str):
            raise InvalidMessage(f"an image needs a URL (https://... or data:...), got {image!r:.100}")
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
    if kind == "file" and isinstance(part.get("file"), Mapping):
        return {"type": "input_file", **part["file"]}
    if kind == "input_audio":
        raise InvalidMessage(f"the Responses API takes no audio, and a {role} message has a part of type 'input_audio'")
    return part
