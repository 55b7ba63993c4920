"""`OpenAIChatCompletionsTokenClient`: chat completions whose later turns are asked with the very tokens of the earlier ones.

A conversation that is sent as text is tokenized again, and not always as the model wrote it. Here the prompt of a later turn is the
ids of an earlier turn and of its answer, followed by those of the messages since (the bridge). The server needs the routes
``/tokenize`` and ``/chat/completions/tokens``.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.clients.client import SamplingArgs
from vfgym.clients.earlier_turn import earlier_turn
from vfgym.clients.faults import is_authentication_error, is_overlong_prompt
from vfgym.clients.formats.openai_chat import is_streamed, native_message
from vfgym.clients.http.chat_sdk import post_options
from vfgym.clients.http.json_http import JsonRoute, encode_json
from vfgym.clients.providers.openai_chat_completions import (
    ChatCompletion,
    ChatMessages,
    ChatTool,
    OpenAIChatCompletionsClient,
    request_arguments,
)
from vfgym.messages import Message
from vfgym.output.redaction import excerpt
from vfgym.tools import Tool

logger = logging.getLogger(__name__)

TOKENS_ROUTE = "chat/completions/tokens"
TOKENIZE_ROUTE = "tokenize"


class OpenAIChatCompletionsTokenClient(OpenAIChatCompletionsClient):
    """Asks over the chat completions API for tokens, and goes on from them.

    Where the ids of a prompt cannot be had (the first turn, images, an answer that was cut, a history that was rewritten, a server
    without the routes) the messages are sent. What fails unexpectedly is said in a warning, once for each client.
    """

    _has_warned = False

    @functools.cached_property
    def _json_routes(self) -> dict[str, JsonRoute]:
        return {}

    @functools.cached_property
    def _closings(self) -> dict[str, list[int]]:
        """What follows an answer in each model's chat template."""
        return {}

    async def get_native_response(
        self, prompt: ChatMessages, model: str, sampling_args: SamplingArgs, tools: list[ChatTool] | None = None, **kwargs: Any
    ) -> ChatCompletion:
        """Call the route for tokens, or that for messages; either answer brings the ids of its tokens."""
        state = kwargs.get("state")
        with_tokens = {
            **sampling_args,
            "logprobs": True,
            "extra_body": {**(sampling_args.get("extra_body") or {}), "return_token_ids": True},
        }
        if is_streamed(with_tokens):
            return await super().get_native_response(prompt, model, with_tokens, tools, **kwargs)
        ids = await self._ids_of(prompt, model, state, tools)
        parameters, options = request_arguments(with_tokens, kwargs)
        body: dict[str, Any] = {"model": model, "messages": prompt, **({"tools": tools} if tools else {}), **parameters}
        body.update(options.pop("extra_body", {}))
        if ids is not None:
            try:
                return await self._post(TOKENS_ROUTE, {**body, "tokens": ids}, options)
            except Exception as error:
                if is_authentication_error(error) or is_overlong_prompt(error):
                    raise
                self._warn(error)
        return await self._post("chat/completions", body, options)

    async def prompt_ids(
        self, prompt: Sequence[Message], model: str, tools: Sequence[Tool] | None = None, *, state: Any = None
    ) -> list[int] | None:
        """Return the token ids of a conversation that goes on from a turn (see `Client.prompt_ids`); None where it does not."""
        native, _ = await self.to_native_prompt(prompt)
        return await self._ids_of(native, model, state, [await self.to_native_tool(tool) for tool in tools or ()] or None)

    async def _ids_of(self, prompt: ChatMessages, model: str, state: Any, tools: list[ChatTool] | None) -> list[int] | None:
        """Return the ids of a prompt that goes on from an earlier turn; None where it cannot."""
        earlier = None if any(map(_is_multimodal, prompt)) else earlier_turn(prompt, state, native_message)
        if earlier is None:
            return None
        known, step = earlier
        tokens, tail = step["tokens"], prompt[known:]
        if tokens is None or tokens["is_truncated"] or step["is_truncated"] or not _can_be_bridged(tail):
            return None
        try:
            return await self._extend(tokens, tail, model, tools)
        except Exception as error:
            if is_authentication_error(error):
                raise
            self._warn(error)
            return None

    async def _extend(self, tokens: Mapping[str, Any], tail: ChatMessages, model: str, tools: list[ChatTool] | None) -> list[int]:
        """Return the ids of a turn and its answer, followed by those of `tail` as the chat template has them there."""
        calls = [
            {"id": message["tool_call_id"], "type": "function", "function": {"name": "call", "arguments": "{}"}}
            for message in tail
            if message["role"] == "tool"
        ]
        answer = {"role": "assistant", "content": "0", **({"tool_calls": calls} if calls else {})}
        before, after, closing = await asyncio.gather(
            self._tokenize([answer], model, tools, goes_on=False),
            self._tokenize([answer, *tail], model, tools, goes_on=True),
            self._closing_ids(model),
        )
        if after[: len(before)] != before:
            raise ValueError("the chat template renders an answer in another way once messages follow it")
        written = tokens["completion_ids"]
        overlap = next(size for size in range(min(len(closing), len(written)), -1, -1) if written[len(written) - size :] == closing[:size])
        return [*tokens["prompt_ids"], *written, *closing[overlap:], *after[len(before) :]]

    async def _closing_ids(self, model: str) -> list[int]:
        """Return what the chat template puts after an answer: in what two answers with different texts end alike."""
        if model not in self._closings:
            one, other = await asyncio.gather(
                *(self._tokenize([{"role": "assistant", "content": text}], model, None, goes_on=False) for text in "01")
            )
            size = 0
            while size < min(len(one), len(other)) and one[-1 - size] == other[-1 - size]:
                size += 1
            self._closings[model] = one[len(one) - size :]
        return self._closings[model]

    async def _tokenize(self, messages: ChatMessages, model: str, tools: list[ChatTool] | None, *, goes_on: bool) -> list[int]:
        body: dict[str, Any] = {"model": model, "messages": messages, "add_generation_prompt": goes_on}
        if tools:
            body["tools"] = tools
        answer = await self._post(TOKENIZE_ROUTE, body, {})
        tokens = answer.get("tokens") if isinstance(answer, Mapping) else None
        if not isinstance(tokens, list):
            raise ValueError(f"/tokenize should answer with a list of tokens, got {excerpt(answer, 200)}")
        return tokens

    async def _post(self, path: str, body: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Return the JSON that a route answers."""
        if self.config is None:
            url = f"{_root(str(self.client.base_url))}/{path}" if path == TOKENIZE_ROUTE else f"/{path}"
            sent: Any = post_options(options)
            return await self.client.post(url, cast_to=object, body=body, options=sent)
        if path not in self._json_routes:
            root = _root(self.config.api_base_url) if path == TOKENIZE_ROUTE else None
            self._json_routes[path] = JsonRoute(self.connections, path, root=root)
        route = self._json_routes[path]
        return await route.post(encode_json(body), options.get("extra_headers"), options.get("extra_query"), options.get("timeout"))

    def _warn(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("prompts are sent as messages, not as tokens: %s: %s", type(error).__name__, error)


def _is_multimodal(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(part["type"] != "text" for part in content)


def _can_be_bridged(tail: ChatMessages) -> bool:
    """Say whether messages are the results of tools and at most one user message after them."""
    roles = [message["role"] for message in tail]
    return bool(roles) and all(role == "tool" for role in roles[:-1]) and roles[-1] in ("tool", "user")


def _root(url: str) -> str:
    """Return the URL of a server, whose tokenizer is not below ``/v1``."""
    return url.rstrip("/").removesuffix("/v1")
