"""The client that turns conversations into tokens itself, and asks for tokens.

A model that is trained has to see the same token ids in training as when it was sampled. So the chat template is applied here,
by the package `renderers <https://pypi.org/project/renderers/>`_, and vLLM's route ``/inference/v1/generate`` is given ids and
gives ids back. From the second turn on the ids of the turn before are extended, never made again from text.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from vfgym.clients.client import SamplingArgs
from vfgym.clients.config import ClientConfig, EndpointClientConfig
from vfgym.clients.earlier_turn import earlier_turn
from vfgym.clients.formats.openai_chat import request_headers, tokens_of
from vfgym.clients.formats.renderer import has_media, renderer_config, renderer_message, renderer_tool, sampling_params
from vfgym.clients.provider import OpenAISDKClient
from vfgym.errors import EmptyModelResponseError, InvalidModelResponseError, MissingExtra, OverlongPromptError
from vfgym.messages import FinishReason, Message, Response, ResponseMessage, ToolCall, Usage
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

if TYPE_CHECKING:
    import openai

NativeMessages: TypeAlias = "list[dict[str, Any]]"
NativeTool: TypeAlias = "dict[str, Any]"
NativeResponse: TypeAlias = "dict[str, Any]"

_OF_ONE_CLIENT = frozenset({"_package", "_made", "_making", "_threads", "_of_thread"})

_FINISH_REASONS: Mapping[str, FinishReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}


@dataclass(slots=True)
class BridgeCounts:
    """How often the ids of an earlier turn could be extended."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0
    """The renderer could not tell that the extension would be right, and the whole conversation was rendered."""


class RendererClient(OpenAISDKClient[NativeMessages, NativeResponse, NativeTool]):
    """Asks a vLLM server for tokens, with the chat template applied on this side.

    Needs ``pip install 'vfgym[renderers]'``. The configuration's ``renderer`` names the template's renderer (``auto`` chooses by
    the model's name), ``renderer_model_name`` the model whose tokenizer it is, where that is not the model that is asked.
    ``tool_parser`` and ``reasoning_parser`` belong to ``renderer="default"``. ``preserve_all_thinking`` and
    ``preserve_thinking_between_tool_calls`` become the renderer's ``thinking_retention``: ``all`` and ``tool_cycle``.
    ``renderer_pool_size`` is a number of threads that render, each with a renderer of its own; without it, conversations are
    rendered on the event loop, which takes little time where only the new messages of a turn are.

    A turn is extended where its conversation begins with the prompt and the answer of a step of ``state["trajectory"]`` that
    has all its token ids, and is text. The tools must be those of that step. Every answer has token ids and log-probabilities.
    """

    def __init__(self, client_or_config: openai.AsyncOpenAI | ClientConfig | EndpointClientConfig) -> None:
        """Take an ``AsyncOpenAI`` as it is, or a configuration to make one of.

        Raises:
            MissingExtra: If the package ``renderers`` is not installed.
        """
        super().__init__(client_or_config)
        self.bridges = BridgeCounts()
        self._prepare()

    def _prepare(self) -> None:
        self._package = _import_renderers()
        self._made: dict[str, Any] = {}
        self._making = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._of_thread = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        # A copy has threads and renderers of its own.
        return {name: value for name, value in super().__getstate__().items() if name not in _OF_ONE_CLIENT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def make_renderer(self, model: str) -> Any:
        """Make the renderer of a model; override it for a tokenizer of your own.

        Raises:
            MissingExtra: If what loads tokenizers is not installed.
            ConfigurationError: If the configuration does not fit the renderer.
        """
        settings = self._settings()
        config = renderer_config(self._package, settings)
        try:
            tokenizer = self._package.base.load_tokenizer(settings.renderer_model_name or model)
        except ImportError as error:
            raise _missing() from error
        return self._package.create_renderer(tokenizer, config)

    async def close(self) -> None:
        """Close the SDK's client and its connections, and end the threads that render. A second call does nothing."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)
        await super().close()

    async def to_native_prompt(self, messages: Sequence[Message]) -> tuple[NativeMessages, dict[str, Any]]:
        """Return the conversation as the renderer takes it."""
        return convert_all(messages, renderer_message), {}

    async def to_native_tool(self, tool: Tool) -> NativeTool:
        """Return a tool as the renderer takes it."""
        return renderer_tool(tool)

    async def get_native_response(
        self, prompt: NativeMessages, model: str, sampling_args: SamplingArgs, tools: list[NativeTool] | None = None, **kwargs: Any
    ) -> NativeResponse:
        """Render the conversation, ask for tokens, and parse them (see `ProviderClient.get_native_response`).

        Raises:
            OverlongPromptError: If there are more tokens than the server takes.
            InvalidModelResponseError: If the server's tokens cannot be used.
            ConfigurationError: If a sampling argument asks for what the route cannot do.
        """
        parameters, options, with_tools = sampling_params(sampling_args)
        tools = tools if with_tools else None
        renderer = await self._renderer(model)
        rendered = await self._render(model, prompt, tools, kwargs.get("state"))
        client = self._package.client
        try:
            result: NativeResponse = await client.generate(
                client=self.client,
                renderer=renderer,
                messages=prompt,
                model=model,
                prompt_ids=None if rendered is None else rendered.token_ids,
                prompt_attribution=rendered,
                tools=tools,
                sampling_params=parameters,
                extra_headers=request_headers(sampling_args, kwargs) or None,
                **options,
            )
        except client.OverlongPromptError as error:
            raise OverlongPromptError(f"the prompt is longer than the context of {model}: {error}") from error
        except client.MalformedGenerateResponseError as error:
            raise InvalidModelResponseError(f"{self._where()} gave tokens that cannot be used: {error}") from error
        return {**result, "model": model}

    async def raise_from_native_response(self, response: NativeResponse) -> None:
        """Raise for an answer without text, tool calls and reasoning (see `ProviderClient.raise_from_native_response`)."""
        if not (response.get("content") or response.get("tool_calls") or response.get("reasoning_content")):
            raise EmptyModelResponseError(
                f"{self._where()} gave an answer without text, tool calls and reasoning"
                f" ({len(response['completion_ids'])} tokens, finish_reason {response.get('finish_reason')!r})"
            )

    async def from_native_response(self, response: NativeResponse) -> Response:
        """Return the parsed tokens as a `Response`.

        A tool call that could not be parsed is still a call, with the text as its arguments, so that the environment can say
        what is wrong with it; without a name, it is part of the content.
        """
        prompt_ids, completion_ids = response["prompt_ids"], response["completion_ids"]
        fields: dict[str, Any] = {"content": response.get("content") or "", "reasoning_content": response.get("reasoning_content") or None}
        parsed = response.get("tool_calls") or ()
        calls = [_tool_call(index, call) for index, call in enumerate(parsed) if call.name]
        fields["content"] += "".join(call.raw for call in parsed if not call.name)
        if calls:
            fields["tool_calls"] = calls
        reason = response.get("finish_reason")
        message = ResponseMessage(
            **fields,
            finish_reason=_FINISH_REASONS.get(reason or ""),
            is_truncated=reason == "length",
            tokens=tokens_of(prompt_ids, completion_ids, response["completion_logprobs"], response),
        )
        usage = Usage(len(prompt_ids), 0, len(completion_ids), len(prompt_ids) + len(completion_ids))
        return Response(response.get("request_id") or "", int(time.time()), response["model"], usage, message)

    async def prompt_ids(
        self, prompt: Sequence[Message], model: str, tools: Sequence[Tool] | None = None, *, state: Any = None
    ) -> list[int] | None:
        """Return the token ids of a conversation (see `Client.prompt_ids`); None where it has images."""
        native, _ = await self.to_native_prompt(prompt)
        rendered = await self._render(model, native, [await self.to_native_tool(tool) for tool in tools or ()] or None, state)
        return None if rendered is None else list(rendered.token_ids)

    async def _render(self, model: str, prompt: NativeMessages, tools: list[NativeTool] | None, state: Any) -> Any:
        """Return the tokens of a conversation; None where it has images, which have to be rendered where they are sent."""
        if has_media(prompt):
            return None
        known, step = earlier_turn(prompt, state, renderer_message) or (0, None)
        tokens = None if step is None else step["tokens"]
        if tokens and not tokens["is_truncated"] and tokens["completion_ids"]:
            self.bridges.attempts += 1
            bridged = await self._run(
                model, "bridge_to_next_turn", tokens["prompt_ids"], tokens["completion_ids"], prompt[known:], tools=tools
            )
            if bridged is not None:
                self.bridges.successes += 1
                return bridged
            self.bridges.failures += 1
        return await self._run(model, "render", prompt, tools=tools, add_generation_prompt=True)

    async def _run(self, model: str, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a renderer's method, on a thread of the pool where there is one."""
        size = self._settings().renderer_pool_size
        if size is None:
            return getattr(await self._renderer(model), method)(*arguments, **options)

        def on_thread() -> Any:
            made = self._of_thread.__dict__
            if model not in made:
                made[model] = self.make_renderer(model)
            return getattr(made[model], method)(*arguments, **options)

        if self._threads is None:
            self._threads = ThreadPoolExecutor(size, thread_name_prefix="vfgym-renderer")
        return await asyncio.get_running_loop().run_in_executor(self._threads, on_thread)

    async def _renderer(self, model: str) -> Any:
        """Return the renderer that is used on event loops. A tokenizer takes seconds to load: the first time off the loop."""
        return self._made[model] if model in self._made else await asyncio.to_thread(self._make_once, model)

    def _make_once(self, model: str) -> Any:
        with self._making:
            if model not in self._made:
                self._made[model] = self.make_renderer(model)
            return self._made[model]

    def _settings(self) -> EndpointClientConfig:
        return self.config if self.config is not None else ClientConfig(client_type="renderer")


def _tool_call(index: int, call: Any) -> ToolCall:
    arguments = call.raw if call.arguments is None else call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(call.id or f"call_{index}", call.name, text)


def _import_renderers() -> ModuleType:
    try:
        for module in ("renderers.base", "renderers.client"):
            importlib.import_module(module)
        return importlib.import_module("renderers")
    except ImportError as error:
        raise _missing() from error


def _missing() -> MissingExtra:
    return MissingExtra("renderers", "RendererClient (client_type='renderer')")
