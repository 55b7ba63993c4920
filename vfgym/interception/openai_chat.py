"""The formats of chat completions and completions, as a server speaks them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vfgym.interception.wire import Request, Wire, finish_reason, message_of, plain_data, request_fields
from vfgym.messages import Response, TextMessage, as_messages, content_text
from vfgym.tools import as_tool


def _parse_chat(body: Mapping[str, Any]) -> Request:
    fields, sampling_args = request_fields(body, "messages", "tools")
    if sampling_args.get("n", 1) != 1:
        raise ValueError("n must be 1: each answer is a turn of the rollout")
    tools = [as_tool(tool) for tool in fields.get("tools") or []]
    return Request(as_messages(fields["messages"]), tools, sampling_args, bool(body.get("stream")))


def _usage(response: Response) -> dict[str, int] | None:
    usage = response.usage
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
    }


def _envelope(response: Response, kind: str) -> dict[str, Any]:
    return {"id": response.id or "rollout", "object": kind, "created": response.created, "model": response.model}


def _answer_chat(response: Response) -> dict[str, Any]:
    message = plain_data(message_of(response))
    message.setdefault("content", None)
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(response), "logprobs": None}
    return {**_envelope(response, "chat.completion"), "choices": [choice], "usage": _usage(response)}


def _events_chat(response: Response) -> Iterator[str]:
    envelope = _envelope(response, "chat.completion.chunk")
    delta = plain_data(message_of(response))
    if delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": number, **call} for number, call in enumerate(delta["tool_calls"])]
    for choice in ({"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": finish_reason(response)}):
        yield f"data: {json.dumps({**envelope, 'choices': [{'index': 0, **choice}]})}\n\n"
    if response.usage is not None:
        yield f"data: {json.dumps({**envelope, 'choices': [], 'usage': _usage(response)})}\n\n"
    yield "data: [DONE]\n\n"


def _parse_text(body: Mapping[str, Any]) -> Request:
    fields, sampling_args = request_fields(body, "prompt")
    prompt = fields["prompt"]
    if not isinstance(prompt, str):
        raise ValueError(f"the prompt must be one text, got {type(prompt).__name__}")
    return Request([TextMessage(prompt)], [], sampling_args, bool(body.get("stream")))


def _text_choice(response: Response) -> dict[str, Any]:
    text = content_text(message_of(response).get("content"))
    return {"index": 0, "text": text, "finish_reason": finish_reason(response), "logprobs": None}


def _answer_text(response: Response) -> dict[str, Any]:
    return {**_envelope(response, "text_completion"), "choices": [_text_choice(response)], "usage": _usage(response)}


def _events_text(response: Response) -> Iterator[str]:
    yield f"data: {json.dumps(_answer_text(response))}\n\n"
    yield "data: [DONE]\n\n"


CHAT = Wire(_parse_chat, _answer_chat, _events_chat)
TEXT = Wire(_parse_text, _answer_text, _events_text)
