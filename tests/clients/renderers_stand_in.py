"""The documented interface of the package ``renderers``, as far as a client uses it: for tests where it is not installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel, ConfigDict


class OverlongPromptError(Exception):
    """The rendered prompt exceeds the engine's context window."""


class MalformedGenerateResponseError(Exception):
    """The generate endpoint returned unusable tokens."""


@dataclass
class RenderedTokens:
    token_ids: list[int] = field(default_factory=list)


@dataclass
class ParsedToolCall:
    raw: str
    name: str | None = None
    arguments: dict[str, Any] | str | None = None
    id: str | None = None


@dataclass
class ParsedResponse:
    content: str
    reasoning_content: str | None = None
    tool_calls: list[ParsedToolCall] = field(default_factory=list)


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid")
    thinking_retention: Literal["tool_cycle", "all"] | None = None


class AutoRendererConfig(Config):
    name: Literal["auto"] = "auto"


class Qwen3RendererConfig(Config):
    name: Literal["qwen3"] = "qwen3"


class DefaultRendererConfig(Config):
    name: Literal["default"] = "default"
    tool_parser: str | None = None
    reasoning_parser: str | None = None


def config_from_name(name: str) -> Config | None:
    known = {"auto": lambda: None, "qwen3": Qwen3RendererConfig, "default": DefaultRendererConfig}
    if name not in known:
        raise ValueError(f"No renderer config registered for name={name!r}. Known: {sorted(known)}")
    return known[name]()


async def generate(
    *,
    client: openai.AsyncOpenAI,
    renderer: Any,
    messages: list[Any],
    model: str,
    prompt_ids: list[int] | None = None,
    prompt_attribution: RenderedTokens | None = None,
    tools: list[Any] | None = None,
    sampling_params: dict[str, Any] | None = None,
    cache_salt: str | None = None,
    priority: int | None = None,
    extra_headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    if prompt_ids is None:
        prompt_ids = renderer.render(messages, tools=tools, add_generation_prompt=True).token_ids
    limit = await max_model_len(client, model)
    if limit is not None and len(prompt_ids) > limit:
        raise OverlongPromptError(f"{len(prompt_ids)} tokens > {limit}")
    parameters = {**(sampling_params or {}), "stop_token_ids": renderer.get_stop_token_ids(), "logprobs": 1, "skip_special_tokens": False}
    body = {"model": model, "token_ids": prompt_ids, "sampling_params": parameters}
    body |= {name: value for name, value in (("cache_salt", cache_salt), ("priority", priority)) if value is not None}
    url = str(client.base_url).rstrip("/").removesuffix("/v1") + "/inference/v1/generate"
    result: Any = await client.post(url, cast_to=object, body=body, options={"headers": extra_headers or {}})
    [choice] = result["choices"]
    logprobs = [each["logprob"] for each in choice["logprobs"]["content"]]
    if len(logprobs) != len(choice["token_ids"]):
        raise MalformedGenerateResponseError("as many log-probabilities as tokens are needed")
    parsed = renderer.parse_response(choice["token_ids"], tools=tools, prompt_ids=prompt_ids)
    return {
        "request_id": result["request_id"],
        "prompt_ids": prompt_ids,
        "completion_ids": choice["token_ids"],
        "completion_logprobs": logprobs,
        "content": parsed.content,
        "reasoning_content": parsed.reasoning_content,
        "tool_calls": parsed.tool_calls,
        "finish_reason": "tool_calls" if parsed.tool_calls and choice["finish_reason"] == "stop" else choice["finish_reason"],
        "routed_experts": choice.get("routed_experts"),
    }


async def max_model_len(client: openai.AsyncOpenAI, model: str) -> int | None:
    try:
        listed: Any = await client.get("/models", cast_to=object)
    except openai.NotFoundError:
        return None
    return next((each.get("max_model_len") for each in listed["data"] if each["id"] == model), None)


def install(monkeypatch: pytest.MonkeyPatch, load_tokenizer: Any = None) -> ModuleType:
    """Put the stand-in where ``import renderers`` finds it."""
    package, base, client = (ModuleType(name) for name in ("renderers", "renderers.base", "renderers.client"))
    _put(package, (AutoRendererConfig, DefaultRendererConfig, Qwen3RendererConfig, config_from_name, create_renderer))
    _put(base, (RenderedTokens, ParsedResponse, ParsedToolCall))
    _put(client, (generate, OverlongPromptError, MalformedGenerateResponseError))
    base.load_tokenizer = load_tokenizer  # type: ignore[attr-defined]
    package.base, package.client = base, client  # type: ignore[attr-defined]
    for module in (package, base, client):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return package


def create_renderer(tokenizer: Any, config: Config | None = None) -> Any:
    return tokenizer, config


def _put(module: ModuleType, things: Sequence[Any]) -> None:
    for thing in things:
        setattr(module, thing.__name__, thing)
