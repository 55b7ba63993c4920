"""OpenAI's completions of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.messages import Message, TextMessage
from vfgym.model_server.exchange import ModelRequest, RequestRefused
from vfgym.model_server.generation import Generation
from vfgym.model_server.openai_chat import alternatives, token_text, usage_fields
from vfgym.model_server.parsed_request import (
    DONE,
    MOST_CHOICES,
    MOST_LOGPROBS,
    MOST_PROMPTS,
    Api,
    ParsedRequest,
    event,
    read_integer,
    read_model,
    read_stops,
    without,
)
from vfgym.model_server.tokenizer import count, parse_prompt


def _read(body: Mapping[str, Any], headers: Mapping[str, str], number: int) -> ParsedRequest:
    model = read_model(body)
    for name in ("echo", "suffix"):
        if body.get(name):
            raise RequestRefused(400, f"{name!r} is not supported by this server", param=name)
    num_choices = read_integer(body, "n", 1, high=MOST_CHOICES) or 1
    best_of = read_integer(body, "best_of")
    if best_of not in (None, num_choices):
        raise RequestRefused(400, f"'best_of' other than n is not supported by this server, got {best_of}", param="best_of")
    read_integer(body, "logprobs", low=0, high=MOST_LOGPROBS)
    sampling_args = without(body, "model", "prompt", "stream", "stream_options")
    requests: list[ModelRequest] = []
    prompt_tokens: list[int] = []
    prompts = _prompts(body.get("prompt"))
    if len(prompts) * num_choices > MOST_PROMPTS:
        problem = f"a request may have {MOST_PROMPTS} answers, got {len(prompts)} prompts with n = {num_choices}"
        raise RequestRefused(400, problem, param="prompt")
    for messages, ids in prompts:
        num_tokens = count([message["content"] for message in messages]) if ids is None else len(ids)
        for _ in range(num_choices):
            requests.append(ModelRequest("completions", number, model, messages, [], "none", sampling_args, headers, len(requests), ids))
            prompt_tokens.append(num_tokens)
    return ParsedRequest(body, requests, prompt_tokens, read_integer(body, "max_tokens"), read_stops(body), num_choices)


def _prompts(given: Any) -> list[tuple[list[Message], Sequence[int] | None]]:
    if isinstance(given, str):
        return [([TextMessage(given)], None)]
    if isinstance(given, list) and given:
        if all(isinstance(prompt, str) for prompt in given):
            return [([TextMessage(prompt)], None) for prompt in given]
        if all(isinstance(token, int) for token in given):
            return [_of_ids(given)]
        if all(isinstance(prompt, list) and prompt for prompt in given):
            return [_of_ids(prompt) for prompt in given]
    raise RequestRefused(400, f"prompt must be text, token ids, or a list of either, got {given!r:.120}", param="prompt")


def _of_ids(ids: Sequence[int]) -> tuple[list[Message], Sequence[int]]:
    try:
        messages, _ = parse_prompt(ids)
    except (ValueError, TypeError) as error:
        raise RequestRefused(400, f"prompt: {error}", param="prompt") from None
    return messages or [TextMessage("")], ids


def _check_text(generation: Generation) -> str:
    if generation.calls or generation.reasoning:
        raise ConfigurationError("the completions API carries text only, and the policy answered with tool calls or reasoning")
    return generation.text or ""


def _logprobs(asked: ParsedRequest, generation: Generation) -> dict[str, Any] | None:
    number = asked.body.get("logprobs")
    if number is None or number is False:
        return None
    tokens = [token_text(token) for token in generation.token_ids]
    likeliest = [
        {token_text(other): value for other, value in alternatives(token, logprob, number)}
        for token, logprob in zip(generation.token_ids, generation.logprobs, strict=True)
    ]
    return {
        "tokens": tokens,
        "token_logprobs": generation.logprobs,
        "top_logprobs": likeliest if number else None,
        "text_offset": list(accumulate((_width(token) for token in generation.token_ids), initial=0))[:-1],
    }


def _width(token: int) -> int:
    """Return how many characters begin with a token."""
    return int(token < 0x80 or 0xC0 <= token < 0x100)


def _choice(asked: ParsedRequest, generation: Generation, index: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"index": index, "logprobs": _logprobs(asked, generation), "finish_reason": generation.finish_reason}
    if asked.body.get("return_token_ids"):
        fields |= {"token_ids": generation.token_ids, "prompt_token_ids": asked.prompt_ids(index)}
    return fields


def _head(asked: ParsedRequest) -> dict[str, Any]:
    return {"id": f"cmpl-{asked.number}", "object": "text_completion", "created": asked.created, "model": asked.model}


def _write(asked: ParsedRequest, generations: Sequence[Generation]) -> dict[str, Any]:
    choices = [{"text": _check_text(each), **_choice(asked, each, index)} for index, each in enumerate(generations)]
    return {**_head(asked), "choices": choices, "usage": usage_fields(asked.usage(generations))}


def _stream(asked: ParsedRequest, generations: Sequence[Generation]) -> Iterator[bytes]:
    head = _head(asked)
    rest: dict[str, Any] = {"usage": None} if asked.wants_usage else {}
    for index, generation in enumerate(generations):
        _check_text(generation)
        for piece in generation.pieces():
            choice = {"text": piece.text, "index": index, "logprobs": None, "finish_reason": None}
            yield event({**head, "choices": [choice], **rest})
        yield event({**head, "choices": [{"text": "", **_choice(asked, generation, index)}], **rest})
    if asked.wants_usage:
        yield event({**head, "choices": [], "usage": usage_fields(asked.usage(generations))})
    yield DONE


COMPLETIONS = Api("completions", _read, _write, _stream)
