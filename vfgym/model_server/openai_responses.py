"""OpenAI's responses: items instead of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vfgym.messages import ToolCall
from vfgym.model_server.exchange import ModelRequest, RequestRefused
from vfgym.model_server.generation import Generation, StreamPiece
from vfgym.model_server.parsed_request import (
    Api,
    ParsedRequest,
    check_tool_answers,
    conversation_tokens,
    event,
    parse_messages,
    parse_tool_choice,
    read_integer,
    read_model,
    read_object,
    read_toolbox,
    without,
)

_UNKNOWN = ("n", "stop", "messages", "max_tokens", "max_completion_tokens")
"""Parameters of chat completions that this API refuses."""

_UNSUPPORTED = ("previous_response_id", "conversation", "background", "prompt")
"""What would need a server that remembers."""


def _read(body: Mapping[str, Any], headers: Mapping[str, str], number: int) -> ParsedRequest:
    model = read_model(body)
    for name in _UNKNOWN:
        if name in body:
            raise RequestRefused(400, f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    for name in _UNSUPPORTED:
        if body.get(name):
            raise RequestRefused(400, f"{name!r} is not supported by this server: send the whole conversation as input", param=name)
    messages = parse_messages(_messages(body), "input")
    check_tool_answers(messages)
    offered = read_toolbox(body.get("tools"), _tool)
    choice = parse_tool_choice(_tool_choice(body.get("tool_choice")), offered.tools)
    sampling_args = without(body, "model", "input", "instructions", "tools", "stream")
    request = ModelRequest("responses", number, model, messages, offered.tools, choice, sampling_args, headers)
    num_tokens = conversation_tokens(messages, offered.text)
    return ParsedRequest(body, [request], [num_tokens], read_integer(body, "max_output_tokens"), tools_text=offered.text)


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool.get("type") != "function":
        raise RequestRefused(400, f"only tools of type function are supported by this server, got {tool!r:.120}", param="tools")
    return {key: tool[key] for key in ("name", "description", "parameters", "strict") if key in tool}


def _tool_choice(given: Any) -> str:
    if given is None:
        return "auto"
    if isinstance(given, str) and given in ("auto", "none", "required"):
        return given
    if isinstance(given, Mapping) and given.get("type") == "function" and isinstance(given.get("name"), str):
        return str(given["name"])
    raise RequestRefused(400, f"tool_choice must be auto, none, required or a function's name, got {given!r:.120}", param="tool_choice")


@dataclass
class _Turn:
    """The items that make one assistant message: reasoning, then text, then calls."""

    reasoning: str | None = None
    content: Any = None
    calls: list[ToolCall] = field(default_factory=list)

    def add(self, kind: str, item: Mapping[str, Any], index: int) -> None:
        if kind == "reasoning":
            self.reasoning = "\n".join(filter(None, (self.reasoning, _reasoning_text(item))))
        elif kind == "function_call":
            self.calls.append(_call(item, index))
        else:
            self.content = _content(item.get("content"))

    def messages(self) -> list[dict[str, Any]]:
        """Return its message; none where there was no item."""
        if not (self.reasoning or self.content is not None or self.calls):
            return []
        return [{"role": "assistant", "content": self.content, "reasoning_content": self.reasoning, "tool_calls": self.calls or None}]


def _messages(body: Mapping[str, Any]) -> list[Any]:
    instructions, given = body.get("instructions"), body.get("input")
    messages: list[Any] = [{"role": "system", "content": instructions}] if instructions else []
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise RequestRefused(400, f"input must be text or a list of at least one item, got {given!r:.120}", param="input")
    turn = _Turn()
    for index, item in enumerate(given):
        if not isinstance(item, Mapping):
            raise RequestRefused(400, f"input[{index}] must be an object, got {item!r:.120}", param=f"input[{index}]")
        kind = item.get("type", "message")
        is_assistant = kind in ("reasoning", "function_call") or (kind == "message" and item.get("role") == "assistant")
        begins = kind in ("reasoning", "message") and (turn.content is not None or turn.calls)
        if not is_assistant or begins:
            messages += turn.messages()
            turn = _Turn()
        if is_assistant:
            turn.add(kind, item, index)
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": _content(item.get("output"))})
        elif kind == "message":
            messages.append({"role": item.get("role"), "content": _content(item.get("content"))})
        else:
            raise RequestRefused(400, f"input[{index}]: items of type {kind!r} are not supported by this server", param=f"input[{index}]")
    return [*messages, *turn.messages()]


def _call(item: Mapping[str, Any], index: int) -> ToolCall:
    fields = [item.get(name) for name in ("call_id", "name", "arguments")]
    if not all(isinstance(value, str) for value in fields):
        raise RequestRefused(400, f"input[{index}]: a function_call needs call_id, name and arguments (texts)", param=f"input[{index}]")
    return ToolCall(*fields)


def _reasoning_text(item: Mapping[str, Any]) -> str:
    parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _content(content: Any) -> Any:
    """Return content in the format of chat messages."""
    if not isinstance(content, list):
        return content
    parts = [_part(part) if isinstance(part, Mapping) else part for part in content]
    if len(parts) == 1 and isinstance(parts[0], Mapping) and parts[0].get("type") == "text":
        return parts[0].get("text")
    return parts


def _part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    match part.get("type"):
        case "input_text" | "output_text" | "text":
            return {"type": "text", "text": part.get("text")}
        case "refusal":
            return {"type": "text", "text": part.get("refusal")}
        case "input_image":
            return {"type": "image_url", "image_url": {"url": part.get("image_url")}}
        case _:
            return part


def _reasoning_item(asked: ParsedRequest, text: str) -> dict[str, Any]:
    return {"id": f"rs_{asked.number}", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _output(asked: ParsedRequest, generation: Generation) -> list[dict[str, Any]]:
    status = "completed" if generation.is_whole else "incomplete"
    items: list[dict[str, Any]] = []
    if generation.reasoning:
        items.append(_reasoning_item(asked, generation.reasoning))
    if generation.text:
        content = [_text_part(generation.text)]
        items.append({"id": f"msg_{asked.number}", "type": "message", "role": "assistant", "status": status, "content": content})
    for index, call in enumerate(generation.calls):
        fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({"id": f"fc_{asked.number}_{index}", "type": "function_call", "status": status, **fields})
    return items


def _head(asked: ParsedRequest) -> dict[str, Any]:
    body = asked.body
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": asked.created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": read_object(body, "metadata"),
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None, **read_object(body, "reasoning")},
        "store": False,
        "temperature": body.get("temperature"),
        "text": {"format": {"type": "text"}, **read_object(body, "text")},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": None,
    }


_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _write(asked: ParsedRequest, generations: Sequence[Generation]) -> dict[str, Any]:
    (generation,) = generations
    usage, reason = generation.usage, _INCOMPLETE.get(generation.finish_reason)
    return {
        **_head(asked),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _output(asked, generation),
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.total_tokens,
        },
    }


def _stream(asked: ParsedRequest, generations: Sequence[Generation]) -> Iterator[bytes]:
    for number, (name, fields) in enumerate(_events(asked, generations)):
        yield event({"type": name, "sequence_number": number, **fields}, name)


def _events(asked: ParsedRequest, generations: Sequence[Generation]) -> Iterator[tuple[str, dict[str, Any]]]:
    (generation,) = generations
    head = _head(asked)
    yield "response.created", {"response": head}
    yield "response.in_progress", {"response": head}
    pieces = list(generation.pieces())
    for index, item in enumerate(_output(asked, generation)):
        place = {"item_id": item["id"], "output_index": index}
        yield "response.output_item.added", {"output_index": index, "item": _announce(item)}
        if item["type"] == "reasoning":
            yield from _reasoning_events(item, place, pieces)
        elif item["type"] == "message":
            yield from _text_events(item, place, pieces)
        else:
            call_index = int(item["id"].rpartition("_")[2])
            for piece in pieces:
                if piece.kind == "arguments" and piece.call == call_index:
                    yield "response.function_call_arguments.delta", {**place, "delta": piece.text}
            yield "response.function_call_arguments.done", {**place, "name": item["name"], "arguments": item["arguments"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    response = _write(asked, generations)
    yield f"response.{response['status']}", {"response": response}


def _announce(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as it is announced, with nothing in it yet."""
    empty: dict[str, Any] = {"status": "in_progress", "summary": [], "content": [], "arguments": ""}
    return {key: empty.get(key, value) for key, value in item.items()}


def _reasoning_events(
    item: Mapping[str, Any], place: dict[str, Any], pieces: Sequence[StreamPiece]
) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {**place, "summary_index": 0}
    (part,) = item["summary"]
    yield "response.reasoning_summary_part.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces:
        if piece.kind == "reasoning":
            yield "response.reasoning_summary_text.delta", {**place, "delta": piece.text}
    yield "response.reasoning_summary_text.done", {**place, "text": part["text"]}
    yield "response.reasoning_summary_part.done", {**place, "part": part}


def _text_events(item: Mapping[str, Any], place: dict[str, Any], pieces: Sequence[StreamPiece]) -> Iterator[tuple[str, dict[str, Any]]]:
    place = {**place, "content_index": 0}
    (part,) = item["content"]
    yield "response.content_part.added", {**place, "part": _text_part("")}
    for piece in pieces:
        if piece.kind == "text":
            yield "response.output_text.delta", {**place, "delta": piece.text, "logprobs": []}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


RESPONSES = Api("responses", _read, _write, _stream)
