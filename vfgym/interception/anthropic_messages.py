"""The format of Anthropic messages, as a server speaks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.interception.wire import (
    Request,
    Wire,
    check_parameters,
    finish_reason,
    message_of,
    plain_data,
    request_fields,
    split_into_pieces,
)
from vfgym.messages import Response, as_messages, content_text
from vfgym.tools import Tool

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def _parse(body: Mapping[str, Any]) -> Request:
    fields, sampling_args, aside = request_fields(body, "messages", "system", "tools", "tool_choice", "stop_sequences")
    messages: list[dict[str, Any]] = []
    if fields.get("system"):
        messages.append({"role": "system", "content": _system_text(fields["system"])})
    for message in fields["messages"]:
        messages += _user_messages(message) if message["role"] == "user" else [_assistant_message(message)]
    tools = [
        Tool(name=tool["name"], description=tool.get("description") or "", parameters=tool["input_schema"])
        for tool in fields.get("tools") or []
    ]
    if fields.get("tool_choice"):
        sampling_args["tool_choice"] = _tool_choice(fields["tool_choice"])
        if fields["tool_choice"].get("disable_parallel_tool_use"):
            sampling_args["parallel_tool_calls"] = False
    if fields.get("stop_sequences"):
        sampling_args["stop"] = fields["stop_sequences"]
    return Request(as_messages(messages), tools, check_parameters(sampling_args), bool(body.get("stream")), set_aside=aside)


def _tool_choice(choice: Mapping[str, Any]) -> Any:
    """Return which tools may be called, as chat completions spell it."""
    if choice["type"] == "tool":
        return {"type": "function", "function": {"name": choice["name"]}}
    return {"auto": "auto", "any": "required", "none": "none"}[choice["type"]]


def _system_text(system: Any) -> str:
    return system if isinstance(system, str) else "\n".join(block["text"] for block in system)


def _user_messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tool messages, and then the user message, that one user message of Anthropic's stands for."""
    content = message["content"]
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    results = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _parts_or_text(block.get("content") or "")}
        for block in content
        if block["type"] == "tool_result"
    ]
    rest = [block for block in content if block["type"] != "tool_result"]
    return [*results, {"role": "user", "content": _parts_or_text(rest)}] if rest else results


def _parts_or_text(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts = [_part(block) for block in content]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    if block["type"] == "image":
        source = block["source"]
        url = source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    raise ValueError(f"a content block of type {block['type']!r} is not understood")


def _assistant_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    text = "".join(block["text"] for block in content if block["type"] == "text")
    calls = [
        {"id": block["id"], "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
        for block in content
        if block["type"] == "tool_use"
    ]
    thinking = [dict(block) for block in content if block["type"] in ("thinking", "redacted_thinking")]
    known = ("text", "tool_use", "thinking", "redacted_thinking")
    for block in content:
        if block["type"] not in known:
            raise ValueError(f"a content block of type {block['type']!r} is not understood")
    return {"role": "assistant", "content": text or None, "tool_calls": calls or None, "thinking_blocks": thinking or None}


def _blocks(response: Response) -> list[dict[str, Any]]:
    message = plain_data(message_of(response))
    blocks = list(message.get("thinking_blocks") or [])
    text = content_text(message.get("content"))
    if text or not message.get("tool_calls"):
        blocks.append({"type": "text", "text": text})
    for call in message.get("tool_calls") or []:
        function = call["function"]
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"], "input": _input(function["arguments"])})
    return blocks


def _input(arguments: str) -> dict[str, Any]:
    """Return the arguments as an object; what is not a JSON object stands in it as text."""
    try:
        value = parse_json(arguments or "{}")
    except ValueError:
        value = arguments
    return value if isinstance(value, dict) else {"arguments": value}


def _answer(response: Response) -> dict[str, Any]:
    usage = response.usage
    return {
        "id": response.id or "rollout",
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": _blocks(response),
        "stop_reason": _STOP_REASONS.get(finish_reason(response), "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": usage.prompt_tokens if usage else 0, "output_tokens": usage.completion_tokens if usage else 0},
    }


def _events(response: Response, request: Request) -> Iterator[str]:
    answer = _answer(response)
    usage = answer["usage"]
    yield _event("message_start", message={**answer, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}})
    for index, block in enumerate(answer["content"]):
        begun, deltas = _as_deltas(block)
        yield _event("content_block_start", index=index, content_block=begun)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": answer["stop_reason"], "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _as_deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return how a block begins, and what is then added to it."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in split_into_pieces(block["text"])]
    if block["type"] == "tool_use":
        pieces = split_into_pieces(json.dumps(block["input"]))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text} for text in pieces]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": text} for text in split_into_pieces(block.get("thinking", ""))]
        deltas.append({"type": "signature_delta", "signature": block.get("signature", "")})
        return {**block, "thinking": "", "signature": ""}, deltas
    return block, []


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


MESSAGES = Wire(_parse, _answer, _events)
