"""A streamed chat completion, put together again: for servers that only stream, and callers who ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from vfgym.clients.formats.openai_chat import as_fields

_TEXTS = ("content", "refusal", "reasoning", "reasoning_content")


async def collect_stream(chunks: AsyncIterable[Any]) -> dict[str, Any]:
    """Return the completion that the chunks of a stream make, as its JSON would be without streaming.

    Args:
        chunks: The SDK's ``ChatCompletionChunk`` objects, or their JSON as dicts.
    """
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    async for chunk in chunks:
        fields = as_fields(chunk)
        whole.update({name: value for name, value in fields.items() if name != "choices" and value is not None})
        for part in fields.get("choices") or ():
            _add(choices.setdefault(part.get("index", 0), {"message": {"role": "assistant", "content": None}}), part)
    for choice in choices.values():
        message = choice["message"]
        message.update({name: "".join(value) for name, value in message.items() if isinstance(value, _Pieces)})
        calls = message.get("tool_calls")
        if calls:
            for call in calls.values():
                call["function"]["arguments"] = "".join(call["function"]["arguments"])
            message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {**whole, "object": "chat.completion", "choices": [choices[index] for index in sorted(choices)]}


class _Pieces(list[str]):
    """Pieces of a text, put together when the stream has ended: to make the text longer by each of them takes quadratic time."""


def _add(choice: dict[str, Any], part: dict[str, Any]) -> None:
    """Add one part of a choice to what came of it before."""
    for name, value in part.items():
        if value is None or name == "delta":
            continue
        if name == "token_ids":
            choice.setdefault(name, []).extend(value)
        elif name == "logprobs":
            content = choice.setdefault("logprobs", {"content": []})["content"]
            content.extend(value.get("content") or ())
        else:
            choice[name] = value
    message = choice["message"]
    for name, value in (part.get("delta") or {}).items():
        if value is None:
            continue
        if name in _TEXTS and isinstance(value, str):
            if not isinstance(message.get(name), _Pieces):
                message[name] = _Pieces()
            message[name].append(value)
        elif name == "reasoning_details" and isinstance(value, list):
            message.setdefault(name, []).extend(value)
        elif name == "tool_calls":
            for call in value:
                _add_call(message.setdefault("tool_calls", {}), call)
        else:
            message[name] = value


def _add_call(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    index = part.get("index")
    call = calls.setdefault(len(calls) if index is None else index, {"type": "function", "function": {"arguments": _Pieces()}})
    function = part.get("function") or {}
    call.update({name: value for name, value in part.items() if name not in ("function", "index") and value not in (None, "")})
    call["function"]["arguments"].append(function.get("arguments") or "")
    # Some servers repeat id and name as empty texts in each piece but the first.
    call["function"].update({name: value for name, value in function.items() if name != "arguments" and value not in (None, "")})
