"""The formats of chat completions and completions, as a server speaks them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vfgym.interception.wire import Request, Wire, finish_reason, message_of, plain_data, request_fields, split_into_pieces
from vfgym.messages import Response, TextMessage, as_messages, content_text
from vfgym.tools import as_tool

_EARLIER = ("functions", "function_call")


def _parse_chat(body: Mapping[str, Any]) -> Request:
    fields, sampling_args, aside = request_fields(body, "messages", "tools", *_EARLIER)
    for name in _EARLIER:
        if fields.get(name):
            raise ValueError(f"{name!r} is an earlier form of tools: use those")
    tools = [as_tool(tool) for tool in fields.get("tools") or []]
    return Request(as_messages(fields["messages"]), tools, sampling_args, bool(body.get("stream")), _wants_usage(body), aside)


def _wants_usage(body: Mapping[str, Any]) -> bool:
    """Say whether the last chunk of a stream shall have the usage; its ``choices`` are empty, which only programs that ask expect."""
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


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


def _events_chat(response: Response, request: Request) -> Iterator[str]:
    deltas = ({"delta": delta, "finish_reason": None} for delta in _deltas(plain_data(message_of(response))))
    choices: tuple[dict[str, Any], ...] = (*deltas, {"delta": {}, "finish_reason": finish_reason(response)})
    return _chunks(response, request, "chat.completion.chunk", choices)


def _chunks(response: Response, request: Request, kind: str, choices: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Return the events of a stream, one for each state of its only choice."""
    envelope = _envelope(response, kind)
    no_usage = {"usage": None} if request.stream_usage else {}
    for choice in choices:
        yield f"data: {json.dumps({**envelope, 'choices': [{'index': 0, 'logprobs': None, **choice}], **no_usage})}\n\n"
    if request.stream_usage and response.usage is not None:
        yield f"data: {json.dumps({**envelope, 'choices': [], 'usage': _usage(response)})}\n\n"
    yield "data: [DONE]\n\n"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return what the chunks of a stream add to a message: its texts in pieces, and what has none at once."""
    texts = {name: content_text(message.pop(name, None)) for name in ("reasoning_content", "content")}
    calls = message.pop("tool_calls", None) or []
    yield {**message, "content": "" if texts["content"] or not calls else None}
    for name, text in texts.items():
        for piece in split_into_pieces(text):
            yield {name: piece}
    for index, call in enumerate(calls):
        yield {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]}
        for piece in split_into_pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _parse_text(body: Mapping[str, Any]) -> Request:
    fields, sampling_args, aside = request_fields(body, "prompt")
    prompt = fields["prompt"]
    if not isinstance(prompt, str):
        raise ValueError(f"the prompt must be one text, got {type(prompt).__name__}")
    return Request([TextMessage(prompt)], [], sampling_args, bool(body.get("stream")), _wants_usage(body), aside)


def _text(response: Response) -> str:
    return content_text(message_of(response).get("content"))


def _answer_text(response: Response) -> dict[str, Any]:
    choice = {"index": 0, "text": _text(response), "finish_reason": finish_reason(response), "logprobs": None}
    return {**_envelope(response, "text_completion"), "choices": [choice], "usage": _usage(response)}


def _events_text(response: Response, request: Request) -> Iterator[str]:
    pieces = ({"text": piece, "finish_reason": None} for piece in split_into_pieces(_text(response)))
    return _chunks(response, request, "text_completion", (*pieces, {"text": "", "finish_reason": finish_reason(response)}))


CHAT = Wire(_parse_chat, _answer_chat, _events_chat)
TEXT = Wire(_parse_text, _answer_text, _events_text)
