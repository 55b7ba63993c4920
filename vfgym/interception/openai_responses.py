"""The format of OpenAI's Responses API, as a server speaks it: a conversation is a list of items.

The endpoint keeps no responses, so a program sends the whole conversation, the items of earlier answers among it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vfgym.clients.formats.openai_responses import read_items
from vfgym.interception.wire import Request, Wire, check_parameters, finish_reason, message_of, request_fields, split_into_pieces
from vfgym.messages import Response, as_messages, content_text
from vfgym.tools import Tool, as_tool

_OF_THE_SERVER = ("store", "include", "truncation", "prompt_cache_key", "safety_identifier", "service_tier")
"""What a request says to a server that keeps or bills responses. It is not passed on."""
_NEEDS_MEMORY = ("previous_response_id", "conversation", "prompt", "background")
_OF_AN_ANSWER = ("reasoning", "function_call")
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _parse(body: Mapping[str, Any]) -> Request:
    own = ("input", "instructions", "tools", "tool_choice", "max_output_tokens", "reasoning", "text")
    fields, sampling_args, aside = request_fields(body, *own, *_OF_THE_SERVER, *_NEEDS_MEMORY)
    for name in _NEEDS_MEMORY:
        if fields.get(name):
            raise ValueError(f"{name!r} asks for a server that keeps responses: send the whole conversation as input")
    items = fields["input"]
    messages = [{"role": "system", "content": fields["instructions"]}] if fields.get("instructions") else []
    messages += [{"role": "user", "content": items}] if isinstance(items, str) else _conversation(items)
    tools = [_tool(tool) for tool in fields.get("tools") or []]
    sampling_args |= check_parameters(_chat_parameters(fields))
    return Request(as_messages(messages), tools, sampling_args, bool(body.get("stream")), set_aside=aside)


def _conversation(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that items stand for; the items of one answer are one assistant message."""
    messages: list[dict[str, Any]] = []
    answer: list[Mapping[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        is_text = kind == "message" and item.get("role") == "assistant"
        begins = kind == "reasoning" or is_text
        if answer and (not (begins or kind in _OF_AN_ANSWER) or (begins and any(each.get("type") != "reasoning" for each in answer))):
            messages.append(_answer_message(answer))
            answer = []
        if is_text or kind in _OF_AN_ANSWER:
            answer.append(item)
        elif kind == "message":
            messages.append({"role": item["role"], "content": _content(item["content"])})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])})
        else:
            raise ValueError(f"an item of type {kind!r} is not understood")
    return [*messages, _answer_message(answer)] if answer else messages


def _answer_message(items: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", **read_items([_with_parts(item) for item in items])}


def _with_parts(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an item whose text, which may be sent as it is, stands in a part."""
    text = item.get("content")
    return {**item, "type": "message", "content": [{"type": "output_text", "text": text}]} if isinstance(text, str) else item


def _content(content: Any) -> Any:
    parts = content if isinstance(content, str) else [_part(part) for part in content]
    return parts[0]["text"] if len(parts) == 1 and isinstance(parts, list) and parts[0]["type"] == "text" else parts


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = part["type"]
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": part["text"]}
    if kind == "input_image":
        image = {"url": part["image_url"]}
        return {"type": "image_url", "image_url": {**image, "detail": part["detail"]} if part.get("detail") else image}
    if kind == "input_file":
        return {"type": "file", "file": {key: value for key, value in part.items() if key != "type"}}
    raise ValueError(f"a content part of type {kind!r} is not understood")


def _tool(tool: Mapping[str, Any]) -> Tool:
    if tool["type"] != "function":
        raise ValueError(f"a tool of type {tool['type']!r} is one of OpenAI's servers: a rollout has tools of type 'function' only")
    given = {key: tool[key] for key in ("name", "description", "parameters", "strict") if tool.get(key) is not None}
    return as_tool({"parameters": {}, **given})


def _chat_parameters(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that chat completions spell in another way, as they spell them."""
    parameters: dict[str, Any] = {}
    choice, text = fields.get("tool_choice"), fields.get("text") or {}
    if choice is not None:
        parameters["tool_choice"] = choice if isinstance(choice, str) else {"type": "function", "function": {"name": choice["name"]}}
    if fields.get("max_output_tokens") is not None:
        parameters["max_completion_tokens"] = fields["max_output_tokens"]
    if (fields.get("reasoning") or {}).get("effort"):
        parameters["reasoning_effort"] = fields["reasoning"]["effort"]
    if text.get("verbosity"):
        parameters["verbosity"] = text["verbosity"]
    shape = text.get("format") or {"type": "text"}
    if shape["type"] == "json_schema":
        parameters["response_format"] = {"type": "json_schema", "json_schema": {key: shape[key] for key in shape if key != "type"}}
    elif shape["type"] != "text":
        parameters["response_format"] = shape
    return parameters


def _output(response: Response) -> list[dict[str, Any]]:
    message, name = message_of(response), response.id or "rollout"
    items: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        items.append({"id": f"rs_{name}", "type": "reasoning", "summary": [{"type": "summary_text", "text": message["reasoning_content"]}]})
    text, calls = content_text(message.get("content")), message.get("tool_calls") or []
    status = "incomplete" if finish_reason(response) in _INCOMPLETE else "completed"
    if text or not calls:
        items.append({"id": f"msg_{name}", "type": "message", "role": "assistant", "status": status, "content": [_text_part(text)]})
    for number, call in enumerate(calls):
        fields = {"call_id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        items.append({"id": f"fc_{name}_{number}", "type": "function_call", "status": status, **fields})
    return items


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _answer(response: Response) -> dict[str, Any]:
    usage, reason = response.usage, _INCOMPLETE.get(finish_reason(response))
    return {
        "id": response.id or "rollout",
        "object": "response",
        "created_at": response.created,
        "model": response.model,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _output(response),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage
        and {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
        },
    }


def _events(response: Response, request: Request) -> Iterator[str]:
    for number, (kind, fields) in enumerate(_named_events(_answer(response))):
        yield f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **fields})}\n\n"


def _named_events(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**answer, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(answer["output"]):
        empty = {"status": "in_progress", "summary": [], "content": [], "arguments": ""}
        yield "response.output_item.added", {"output_index": index, "item": {key: empty.get(key, item[key]) for key in item}}
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "reasoning":
            yield from _part_events("response.reasoning_summary", {**place, "summary_index": 0}, item["summary"][0])
        elif item["type"] == "message":
            yield from _part_events("response.content", {**place, "content_index": 0}, item["content"][0])
        else:
            for piece in split_into_pieces(item["arguments"]):
                yield "response.function_call_arguments.delta", {**place, "delta": piece}
            yield "response.function_call_arguments.done", {**place, "name": item["name"], "arguments": item["arguments"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield f"response.{answer['status']}", {"response": answer}


def _part_events(kind: str, place: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the events of the one part of an item: of its text, or of its reasoning."""
    is_text = part["type"] == "output_text"
    text = "response.output_text" if is_text else f"{kind}_text"
    logprobs: dict[str, Any] = {"logprobs": []} if is_text else {}
    yield f"{kind}_part.added", {**place, "part": {**part, "text": ""}}
    for piece in split_into_pieces(part["text"]):
        yield f"{text}.delta", {**place, "delta": piece, **logprobs}
    yield f"{text}.done", {**place, "text": part["text"], **logprobs}
    yield f"{kind}_part.done", {**place, "part": part}


RESPONSES = Wire(_parse, _answer, _events)
