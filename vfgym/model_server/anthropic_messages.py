"""Anthropic's messages: content blocks, thinking with signatures, tool results inside user messages."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError
from vfgym.interception.wire import split_into_pieces
from vfgym.messages import ToolCall
from vfgym.model_server.exchange import ModelRequest, RequestRefused
from vfgym.model_server.generation import Generation
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
    read_stops,
    read_toolbox,
    without,
)

_SIGNED = "vfgym-"
"""How the signatures of this server begin; it checks no others."""


def signature(thinking: str) -> str:
    """Return the signature that this server gives to a thinking block."""
    return _SIGNED + base64.b64encode(hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).digest()).decode()


def _read(body: Mapping[str, Any], headers: Mapping[str, str], number: int) -> ParsedRequest:
    asked = read_prompt(body, headers, number)
    asked.max_tokens = read_integer(body, "max_tokens")
    if asked.max_tokens is None:
        raise RequestRefused(400, "max_tokens: Field required", param="max_tokens")
    asked.stops = read_stops(body, "stop_sequences")
    return asked


def read_prompt(body: Mapping[str, Any], headers: Mapping[str, str], number: int) -> ParsedRequest:
    """Read the prompt of a request, without what concerns the answer.

    Raises:
        RequestRefused: If it is none.
    """
    if "anthropic-version" not in headers:
        raise RequestRefused(400, "anthropic-version: header is required")
    model = read_model(body)
    messages = parse_messages([*_system(body.get("system")), *_messages(body.get("messages"))])
    check_tool_answers(messages)
    offered = read_toolbox(body.get("tools"), _tool)
    choice = parse_tool_choice(_tool_choice(body.get("tool_choice")), offered.tools)
    sampling_args = without(body, "model", "messages", "system", "tools", "stream")
    request = ModelRequest("messages", number, model, messages, offered.tools, choice, sampling_args, headers)
    return ParsedRequest(body, [request], [conversation_tokens(messages, offered.text)], tools_text=offered.text)


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool.get("type", "custom") != "custom":
        raise RequestRefused(400, f"tools: only custom tools are supported by this server, got {tool!r:.120}")
    if not isinstance(tool.get("input_schema"), Mapping):
        raise RequestRefused(400, f"tools: a tool needs name and input_schema, got {tool!r:.120}")
    return {"name": tool.get("name"), "description": tool.get("description"), "parameters": tool["input_schema"]}


def _tool_choice(given: Any) -> str:
    kind = given.get("type") if isinstance(given, Mapping) else None if given is not None else "auto"
    if kind == "tool" and isinstance(given.get("name"), str):
        return str(given["name"])
    if kind in ("auto", "any", "none"):
        return "required" if kind == "any" else kind
    raise RequestRefused(400, f"tool_choice: expected an object of type auto, any, none or tool, got {given!r:.120}")


def _system(given: Any) -> list[Any]:
    if given is None or given == "":
        return []
    if isinstance(given, str):
        return [{"role": "system", "content": given}]
    return [{"role": "system", "content": _content(given, "system")}]


def _messages(given: Any) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise RequestRefused(400, f"messages: at least one message is required, got {given!r:.120}")
    messages: list[Any] = []
    for index, message in enumerate(given):
        where = f"messages.{index}"
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("user", "assistant"):
            raise RequestRefused(400, f'{where}: unexpected role {role!r}; allowed roles are "user" and "assistant"')
        content = message.get("content")
        if isinstance(content, str):
            messages.append({"role": role, "content": content})
        elif not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
            raise RequestRefused(400, f"{where}.content: must be text or a list of content blocks, got {content!r:.120}")
        elif role == "user":
            messages += _user_messages(content, where)
        else:
            messages.append(_assistant_message(content, where))
    return messages


def _user_messages(blocks: Sequence[Mapping[str, Any]], where: str) -> Iterator[dict[str, Any]]:
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        raise RequestRefused(400, f"{where}.content: tool_result blocks must come first in the content")
    for block in results:
        content = block.get("content", "")
        text = content if isinstance(content, str) else _content(content, where)
        failed = {"is_error": True} if block.get("is_error") else {}
        yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": text, **failed}
    if len(blocks) > len(results):
        yield {"role": "user", "content": _content(blocks[len(results) :], where)}


def _assistant_message(blocks: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    calls, thoughts, thinking, others = [], [], [], []
    for block in blocks:
        match block.get("type"):
            case "tool_use":
                calls.append(_tool_call(block, where))
            case "thinking":
                thoughts.append(_check_thinking(block, where))
                thinking.append(block)
            case "redacted_thinking":
                thinking.append(block)
            case _:
                others.append(block)
    return {
        "role": "assistant",
        "content": _content(others, where) if others else None,
        "tool_calls": calls or None,
        "reasoning_content": "".join(thoughts) or None,
        "thinking_blocks": thinking or None,
    }


def _tool_call(block: Mapping[str, Any], where: str) -> ToolCall:
    if not isinstance(block.get("id"), str) or not isinstance(block.get("name"), str) or not isinstance(block.get("input"), Mapping):
        raise RequestRefused(400, f"{where}.content: a tool_use block needs id, name and input (an object), got {block!r:.120}")
    return ToolCall(block["id"], block["name"], json.dumps(block["input"]))


def _check_thinking(block: Mapping[str, Any], where: str) -> str:
    thinking, given = block.get("thinking"), block.get("signature")
    if not isinstance(thinking, str) or not isinstance(given, str):
        raise RequestRefused(400, f"{where}.content: a thinking block needs thinking and signature (texts)")
    if given.startswith(_SIGNED) and given != signature(thinking):
        raise RequestRefused(400, f"{where}.content: Invalid `signature` in `thinking` block")
    return thinking


def _content(blocks: Any, where: str) -> Any:
    """Return content blocks in the format of chat messages."""
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        raise RequestRefused(400, f"{where}: must be text or a list of content blocks, got {blocks!r:.120}")
    parts = [_part(block, where) for block in blocks]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    kind, source = block.get("type"), block.get("source")
    if kind == "text" and isinstance(block.get("text"), str):
        if not block["text"]:
            raise RequestRefused(400, f"{where}: text content blocks must be non-empty")
        return {"type": "text", "text": block["text"]}
    if kind == "image" and isinstance(source, Mapping):
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    raise RequestRefused(400, f"{where}: this server reads text and image blocks here, got {block!r:.120}")


_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _stop_reason(generation: Generation) -> str:
    if generation.stop_sequence is not None:
        return "stop_sequence"
    return _STOP_REASONS.get(generation.finish_reason, generation.finish_reason)


def _blocks(generation: Generation) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if generation.reply.thinking_blocks is not None:
        blocks += [dict(block) for block in generation.reply.thinking_blocks]
    elif generation.reasoning:
        blocks.append({"type": "thinking", "thinking": generation.reasoning, "signature": signature(generation.reasoning)})
    if generation.text:
        blocks.append({"type": "text", "text": generation.text})
    for index, call in enumerate(generation.calls):
        try:
            arguments = parse_json(call.arguments)
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
        elif generation.is_whole or index < len(generation.calls) - 1:
            raise ConfigurationError(
                f"the policy's arguments for the tool {call.name!r} must be a JSON object for this API, got {call.arguments!r:.80}"
            )
    return blocks


def _write(asked: ParsedRequest, generations: Sequence[Generation]) -> dict[str, Any]:
    (generation,) = generations
    return {
        **_head(asked),
        "content": _blocks(generation),
        "stop_reason": _stop_reason(generation),
        "stop_sequence": generation.stop_sequence,
        "usage": {"input_tokens": generation.usage.prompt_tokens, "output_tokens": generation.usage.completion_tokens},
    }


def _head(asked: ParsedRequest) -> dict[str, Any]:
    return {"id": f"msg_{asked.number}", "type": "message", "role": "assistant", "model": asked.model}


def _stream(asked: ParsedRequest, generations: Sequence[Generation]) -> Iterator[bytes]:
    for fields in _events(asked, generations):
        yield event(fields, fields["type"])


def _events(asked: ParsedRequest, generations: Sequence[Generation]) -> Iterator[dict[str, Any]]:
    message = _write(asked, generations)
    usage = message["usage"]
    begun = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(message["content"]):
        begun_block, deltas = _deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": begun_block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stopped = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield {"type": "message_delta", "delta": stopped, "usage": usage}
    yield {"type": "message_stop"}


def _deltas(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it is announced, and what is then added to it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in split_into_pieces(block["text"])]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": text} for text in split_into_pieces(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
        case "tool_use":
            text = json.dumps(block["input"])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in split_into_pieces(text)]
        case _:
            return dict(block), []


MESSAGES = Api("messages", _read, _write, _stream)
