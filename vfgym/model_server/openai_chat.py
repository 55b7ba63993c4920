"""OpenAI's chat completions, and the same with a prompt of token ids (``/v1/chat/completions/tokens``).

On the token route the ids are the prompt, and the policy sees the conversation that they render; ``messages`` beside them say the same
to servers without the route, and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.messages import ToolCall, Usage
from vfgym.model_server.exchange import ApiName, ModelRequest, RequestRefused
from vfgym.model_server.generation import Generation, StreamPiece
from vfgym.model_server.parsed_request import (
    DONE,
    MOST_CHOICES,
    MOST_LOGPROBS,
    Api,
    ParsedRequest,
    Toolbox,
    check_tool_answers,
    conversation_tokens,
    event,
    parse_messages,
    parse_tool_choice,
    read_integer,
    read_model,
    read_stops,
    read_toolbox,
    toolbox,
    without,
)
from vfgym.model_server.tokenizer import FIRST_SPECIAL, IDS, VOCABULARY_SIZE, detokenize, parse_prompt
from vfgym.tools import as_tool

_READ_APART = ("model", "messages", "tools", "tokens", "stream", "stream_options")


def _read_chat(body: Mapping[str, Any], headers: Mapping[str, str], number: int) -> ParsedRequest:
    model = read_model(body)
    messages = parse_messages(body.get("messages"))
    check_tool_answers(messages)
    offered = read_chat_tools(body)
    return _make_request("chat", model, body, headers, number, messages, offered, None, conversation_tokens(messages, offered.text))


def _read_tokens(body: Mapping[str, Any], headers: Mapping[str, str], number: int) -> ParsedRequest:
    model = read_model(body)
    ids = body.get("tokens")
    if not isinstance(ids, list) or not ids:
        raise RequestRefused(400, f"tokens must be a list of at least one token id, got {ids!r:.120}", param="tokens")
    try:
        messages, tools_text = parse_prompt(ids)
        in_prompt = toolbox([as_tool(tool) for tool in (parse_json(tools_text) if tools_text else ())])
    except (ValueError, TypeError) as error:
        raise RequestRefused(400, f"tokens: {error}", param="tokens") from None
    if not messages:
        raise RequestRefused(400, "tokens: there is no message in the prompt", param="tokens")
    if messages[0]["role"] != "text" and ids[-1] != IDS["assistant"]:
        raise RequestRefused(400, "tokens: the prompt must end with the beginning of an assistant message", param="tokens")
    offered = read_chat_tools(body)
    return _make_request("tokens", model, body, headers, number, messages, offered if offered.tools else in_prompt, ids, len(ids))


def read_chat_tools(body: Mapping[str, Any]) -> Toolbox:
    """Return the tools of a body in the format of chat completions.

    Raises:
        RequestRefused: If they are not tools.
    """
    if body.get("functions"):
        raise RequestRefused(400, "'functions' is deprecated and not supported here: use 'tools'", param="functions")
    return read_toolbox(body.get("tools"), _chat_tool)


def _chat_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool.get("type") != "function" or not isinstance(tool.get("function"), Mapping):
        raise RequestRefused(400, f'a tool is {{"type": "function", "function": {{...}}}}, got {tool!r:.120}', param="tools")
    return tool


def _make_request(
    api: ApiName,
    model: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    number: int,
    messages: list[Any],
    offered: Toolbox,
    prompt_ids: Sequence[int] | None,
    prompt_tokens: int,
) -> ParsedRequest:
    num_choices = read_integer(body, "n", 1, high=MOST_CHOICES) or 1
    choice = parse_tool_choice(_tool_choice(body.get("tool_choice")), offered.tools)
    sampling_args = without(body, *_READ_APART)
    requests = [
        ModelRequest(api, number, model, messages, offered.tools, choice, sampling_args, headers, index, prompt_ids)
        for index in range(num_choices)
    ]
    limit = read_integer(body, "max_completion_tokens")
    if limit is None:
        limit = read_integer(body, "max_tokens")
    read_integer(body, "top_logprobs", low=0, high=MOST_LOGPROBS)
    return ParsedRequest(body, requests, [prompt_tokens] * num_choices, limit, read_stops(body), num_choices, offered.text)


def _tool_choice(given: Any) -> str:
    if given is None:
        return "auto"
    if isinstance(given, str) and given in ("auto", "none", "required"):
        return given
    function = given.get("function") if isinstance(given, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise RequestRefused(400, f"tool_choice must be auto, none, required or a function's name, got {given!r:.120}", param="tool_choice")
    return name


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Return usage as OpenAI's completions report it."""
    fields: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if usage.reasoning_tokens:
        fields["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return fields


def token_text(token: int) -> str:
    """Return a token as log-probabilities name it: a byte that is not a character of its own by its value."""
    return f"bytes:\\x{token:02x}" if 0x80 <= token < FIRST_SPECIAL else _token_bytes_name(token)


def _token_bytes_name(token: int) -> str:
    # A policy may give ids of another vocabulary.
    return detokenize([token]) if 0 <= token < VOCABULARY_SIZE else f"token_id:{token}"


def alternatives(token: int, logprob: float, number: int) -> list[tuple[int, float]]:
    """Return the `number` likeliest tokens at a place: the one that was chosen, and made-up others below it."""
    return [((token + step) % VOCABULARY_SIZE if step else token, logprob - step) for step in range(number)]


def _chat_logprobs(asked: ParsedRequest, generation: Generation, start: int = 0, end: int | None = None) -> dict[str, Any] | None:
    if not asked.body.get("logprobs"):
        return None
    number = asked.body.get("top_logprobs") or 0
    pairs = zip(generation.token_ids[start:end], generation.logprobs[start:end], strict=True)
    content = [
        {**_as_logprob(token, logprob), "top_logprobs": [_as_logprob(*other) for other in alternatives(token, logprob, number)]}
        for token, logprob in pairs
    ]
    return {"content": content, "refusal": None}


def _as_logprob(token: int, logprob: float) -> dict[str, Any]:
    return {"token": token_text(token), "logprob": logprob, "bytes": [token] if token < FIRST_SPECIAL else None}


def _call_fields(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _write(asked: ParsedRequest, generations: Sequence[Generation]) -> dict[str, Any]:
    wants_ids = asked.body.get("return_token_ids")
    choices = []
    for index, generation in enumerate(generations):
        message: dict[str, Any] = {"role": "assistant", "content": generation.text, "refusal": None}
        if generation.calls:
            message["tool_calls"] = [_call_fields(call) for call in generation.calls]
        if generation.reasoning:
            message["reasoning_content"] = generation.reasoning
        choice: dict[str, Any] = {"index": index, "message": message, "logprobs": _chat_logprobs(asked, generation)}
        choice["finish_reason"] = generation.finish_reason
        if wants_ids:
            choice["token_ids"] = generation.token_ids
        choices.append(choice)
    fields = {**_head(asked, "chat.completion"), "choices": choices, "usage": usage_fields(asked.usage(generations))}
    if wants_ids:
        fields["prompt_token_ids"] = asked.prompt_ids()
    return fields


def _head(asked: ParsedRequest, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{asked.number}", "object": kind, "created": asked.created, "model": asked.model}


def _stream(asked: ParsedRequest, generations: Sequence[Generation]) -> Iterator[bytes]:
    head = _head(asked, "chat.completion.chunk")
    wants_ids = bool(asked.body.get("return_token_ids"))
    rest: dict[str, Any] = {"usage": None} if asked.wants_usage else {}
    for index, generation in enumerate(generations):
        first = {"prompt_token_ids": asked.prompt_ids()} if wants_ids and index == 0 else {}
        opening = {"index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        yield event({**head, "choices": [opening], **rest, **first})
        start = 0
        for piece in generation.pieces():
            choice = {"index": index, "delta": _delta(piece, generation), "finish_reason": None}
            choice |= _token_fields(asked, generation, wants_ids, start, start + piece.num_tokens)
            yield event({**head, "choices": [choice], **rest})
            start += piece.num_tokens
        closing = {"index": index, "delta": {}, "finish_reason": generation.finish_reason}
        closing |= _token_fields(asked, generation, wants_ids, start, None)
        yield event({**head, "choices": [closing], **rest})
    if asked.wants_usage:
        yield event({**head, "choices": [], "usage": usage_fields(asked.usage(generations))})
    yield DONE


def _token_fields(asked: ParsedRequest, generation: Generation, wants_ids: bool, start: int, end: int | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"logprobs": _chat_logprobs(asked, generation, start, end)}
    if wants_ids:
        fields["token_ids"] = generation.token_ids[start:end]
    return fields


def _delta(piece: StreamPiece, generation: Generation) -> dict[str, Any]:
    if piece.kind == "text":
        return {"content": piece.text}
    if piece.kind == "reasoning":
        return {"reasoning_content": piece.text}
    if piece.kind == "arguments":
        return {"tool_calls": [{"index": piece.call, "function": {"arguments": piece.text}}]}
    call = generation.calls[piece.call]
    return {"tool_calls": [{"index": piece.call, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}]}


CHAT = Api("chat", _read_chat, _write, _stream)
TOKENS = Api("tokens", _read_tokens, _write, _stream)
