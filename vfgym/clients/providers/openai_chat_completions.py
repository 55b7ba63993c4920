"""`OpenAIChatCompletionsClient`: the chat completions API, which most servers speak.

Made of a configuration, it posts the JSON itself (`vfgym.clients.http.json_http`): the conversation's JSON is put together from that of
its messages, which is kept with them, so a turn encodes only what is new. A subclass that overrides a conversion is asked
through the SDK, as is a client made of an SDK's client; both ways send the same and raise the same.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vfgym.clients.client import SamplingArgs
from vfgym.clients.formats.openai_chat import (
    REQUEST_OPTIONS,
    as_fields,
    check_completion,
    is_streamed,
    native_message,
    read_completion,
    request_headers,
    split_sampling_args,
)
from vfgym.clients.http.chat_sdk import create_completion
from vfgym.clients.http.json_http import JsonRoute, encode_json
from vfgym.clients.provider import OpenAISDKClient
from vfgym.messages import Message, Response
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

ChatMessages: TypeAlias = "list[dict[str, Any]]"
ChatCompletion: TypeAlias = Any
"""The SDK's ``ChatCompletion``, or its JSON as a dict."""
ChatTool: TypeAlias = "dict[str, Any]"

_KEPT_TOOL_LISTS = 64


class OpenAIChatCompletionsClient(OpenAISDKClient[ChatMessages, ChatCompletion, ChatTool]):
    """Asks over the OpenAI chat completions API."""

    @functools.cached_property
    def _route(self) -> JsonRoute:
        return JsonRoute(self.connections, "chat/completions")

    @functools.cached_property
    def _tool_json(self) -> dict[tuple[int, ...], tuple[tuple[Tool, ...], bytes, list[dict[str, object]] | None]]:
        """The JSON of the last tool lists, by the identities of their tools (which are kept, so that these stay theirs)."""
        return {}

    async def to_native_prompt(self, messages: Sequence[Message]) -> tuple[ChatMessages, dict[str, Any]]:
        """Return the conversation as the API takes it."""
        return convert_all(messages, native_message), {}

    async def to_native_tool(self, tool: Tool) -> ChatTool:
        """Return a tool as the API takes it."""
        return tool.to_openai()

    async def get_native_response(
        self, prompt: ChatMessages, model: str, sampling_args: SamplingArgs, tools: list[ChatTool] | None = None, **kwargs: Any
    ) -> ChatCompletion:
        """Call the API through the SDK."""
        parameters, options = request_arguments(sampling_args, kwargs)
        if tools:
            parameters.setdefault("tools", tools)
        return await create_completion(self.client, model, prompt, parameters, options)

    async def raise_from_native_response(self, response: ChatCompletion) -> None:
        """Raise an error for a response that is not one answer with text, tool calls or reasoning."""
        check_completion(as_fields(response), self._where())

    async def from_native_response(self, response: ChatCompletion) -> Response:
        """Return the response as the library's own."""
        fields = as_fields(response)
        return read_completion(fields, self._tell_unusable(fields.get("model")))

    async def _ask(
        self, messages: list[Message], model: str, sampling_args: SamplingArgs, tools: Sequence[Tool] | None, kwargs: dict[str, Any]
    ) -> Response:
        if self.config is None or not self._is_plain() or is_streamed(sampling_args):
            return await super()._ask(messages, model, sampling_args, tools, kwargs)
        parameters, options = request_arguments(sampling_args, kwargs)
        body = self._body(messages, {"model": model, **parameters, **options.pop("extra_body", {})}, tools)
        response = await self._route.post(body, options.get("extra_headers"), options.get("extra_query"), options.get("timeout"))
        check_completion(response, self._where())
        return read_completion(response, self._tell_unusable(model), model)

    def _is_plain(self) -> bool:
        """Say whether every step is this class's own, so that the whole way can be taken without the SDK."""
        cls = type(self)
        return _STEPS.keys().isdisjoint(self.__dict__) and all([getattr(cls, name) is step for name, step in _STEPS.items()])

    def _body(self, messages: list[Message], parameters: dict[str, Any], tools: Sequence[Tool] | None) -> bytes:
        """Return the request's JSON. The parameters win, as the SDK has it with ``extra_body``."""
        parts = [b""]
        if "messages" not in parameters:
            parts += b',"messages":[', b",".join(convert_all(messages, _message_json)), b"]"
        if tools and "tools" not in parameters:
            parts += b',"tools":', self._tools_as_json(tools)
        parts[0] = encode_json(parameters)[:-1]
        parts.append(b"}")
        return b"".join(parts)

    def _tools_as_json(self, tools: Sequence[Tool]) -> bytes:
        key = tuple(map(id, tools))
        kept = self._tool_json.get(key)
        if kept is None or (kept[2] is not None and kept[2] != [tool.to_openai() for tool in tools]):
            if len(self._tool_json) >= _KEPT_TOOL_LISTS:
                self._tool_json.clear()
            definitions = [tool.to_openai() for tool in tools]
            can_change = not all([tool.model_config.get("frozen") for tool in tools])
            kept = self._tool_json[key] = (tuple(tools), encode_json(definitions), copy.deepcopy(definitions) if can_change else None)
        return kept[1]


_STEPS = {
    name: getattr(OpenAIChatCompletionsClient, name)
    for name in (
        "client",
        "setup_client",
        "to_native_prompt",
        "to_native_tool",
        "to_native_tools",
        "get_native_response",
        "raise_from_native_response",
        "from_native_response",
    )
}


def request_arguments(sampling_args: SamplingArgs, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the API's parameters and the options of a request.

    Args:
        sampling_args: The caller's parameters, which win over what the conversation needs.
        kwargs: What the conversation needs, headers, and what is not sent (``state``).
    """
    parameters, options = split_sampling_args(sampling_args)
    for name, value in kwargs.items():
        if name == "extra_headers":
            options[name] = request_headers(options, kwargs)
        elif name in REQUEST_OPTIONS:
            options[name] = value
        elif name != "state" and value is not None:
            parameters.setdefault(name, value)
    return parameters, options


def _message_json(message: Message) -> bytes:
    return encode_json(native_message(message))
