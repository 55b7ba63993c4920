"""The client of Anthropic's Messages API."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from vfgym.clients.client import SamplingArgs
from vfgym.clients.config import ClientConfig, EndpointClientConfig
from vfgym.clients.formats.anthropic_messages import API, native_prompt, native_tool, read_blocks
from vfgym.clients.formats.native_output import FIELD, native_output, wire_form
from vfgym.clients.formats.sampling import check_sampling_args, create_arguments
from vfgym.clients.formats.usage import TellUnusable, are_counts
from vfgym.clients.http.chat_sdk import is_the_sdks_own
from vfgym.clients.provider import ProviderClient
from vfgym.errors import ConfigurationError, EmptyModelResponseError, InvalidModelResponseError, did_you_mean
from vfgym.messages import FinishReason, Message, Response, ResponseMessage, Usage
from vfgym.output.redaction import excerpt
from vfgym.tools import Tool

if TYPE_CHECKING:
    import anthropic
    import anthropic.types

logger = logging.getLogger(__name__)

NativeMessages: TypeAlias = "list[Mapping[str, Any]]"
NativeTool: TypeAlias = "dict[str, Any]"

DEFAULT_MAX_TOKENS = 4096
"""Tokens that an answer may have where nobody says: the API wants to be told."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "refusal": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
"""The API's ``stop_reason``, in OpenAI's words. ``pause_turn`` has none: the answer goes on when it is sent back."""

_TOOL_CHOICES = {"auto": "auto", "required": "any", "any": "any", "none": "none"}
_PLAIN_FIELDS = {"text": {"type", "text"}, "tool_use": {"type", "id", "name", "input"}}
_ORDER = {"thinking": 0, "redacted_thinking": 0, "text": 1, "tool_use": 2}


class AnthropicMessagesClient(ProviderClient["anthropic.AsyncAnthropic", NativeMessages, "anthropic.types.Message", NativeTool]):
    """Asks Claude through Anthropic's Messages API.

    Images go by URL or as data, in tool results too; audio is an error. Thinking comes back as ``reasoning_content``, and as
    it was given (with its signatures) in ``thinking_blocks``, which are sent back first in the turn. ``reasoning_content``
    alone, as other providers give it, has no signature and is not sent. An answer in which thinking, text and calls alternate,
    or in which the provider ran tools of its own, is kept as it came (see `vfgym.clients.formats.native_output`) and sent back so.

    Sampling arguments may be spelled as in OpenAI's API: ``stop``, ``max_completion_tokens``, ``tool_choice``,
    ``parallel_tool_calls``; all others are sent as they are. ``tools`` among them (those that the provider runs itself) are
    added to the environment's. ``usage.prompt_tokens`` counts all input: what was read from the prompt cache and what was
    written to it as well.
    """

    def __init__(self, client_or_config: anthropic.AsyncAnthropic | ClientConfig | EndpointClientConfig) -> None:
        """Take an ``AsyncAnthropic`` as it is, or a configuration to make one of."""
        super().__init__(client_or_config)
        self._told_of_max_tokens = False

    @functools.cached_property
    def _bounded(self) -> anthropic.AsyncAnthropic:
        """A client that was given, with an end to its pauses."""
        from vfgym.clients.http.sdk import with_bounded_pauses

        return with_bounded_pauses(self.client)

    def setup_client(self, config: ClientConfig) -> anthropic.AsyncAnthropic:
        """Make the SDK's client."""
        from vfgym.clients.http.sdk import anthropic_client

        return anthropic_client(config, self.connections)

    async def to_native_prompt(self, messages: Sequence[Message]) -> tuple[NativeMessages, dict[str, Any]]:
        """Return the turns, and ``system`` where there are system messages (several are joined by a blank line).

        Raises:
            InvalidMessage: If a message has something in it that the API does not take.
        """
        return native_prompt(messages)

    async def to_native_tool(self, tool: Tool) -> NativeTool:
        """Return a tool in the API's format."""
        return native_tool(tool)

    async def get_native_response(
        self, prompt: NativeMessages, model: str, sampling_args: SamplingArgs, tools: list[NativeTool] | None = None, **kwargs: Any
    ) -> anthropic.types.Message:
        """Call the API (see `ProviderClient.get_native_response`).

        Raises:
            ConfigurationError: If a sampling argument asks for what the API cannot do.
        """
        parameters, options = check_sampling_args(sampling_args, "Anthropic's Messages API")
        limit = parameters.pop("max_completion_tokens", None)
        parameters["max_tokens"] = self._default_max_tokens() if limit is None else limit
        _take_stop(parameters)
        _take_tool_choice(parameters)
        all_tools = [*(tools or ()), *parameters.pop("tools", ())]
        if all_tools:
            parameters["tools"] = all_tools
        if "system" in kwargs:
            parameters["system"] = kwargs["system"]
        create = self._messages().create
        arguments = create_arguments(create, parameters, options, kwargs)
        return await create(model=model, messages=prompt, **arguments)  # type: ignore[arg-type]

    def _messages(self) -> anthropic.resources.AsyncMessages:
        given = self.client.messages
        if self.config is not None or not is_the_sdks_own(given, "anthropic"):
            return given
        return self._bounded.messages

    def _default_max_tokens(self) -> int:
        if not self._told_of_max_tokens:
            self._told_of_max_tokens = True
            logger.warning("no max_tokens among the sampling arguments: answers are cut after %d tokens", DEFAULT_MAX_TOKENS)
        return DEFAULT_MAX_TOKENS

    async def raise_from_native_response(self, response: anthropic.types.Message) -> None:
        """Raise for a response without text, tool calls and thinking (see `ProviderClient.raise_from_native_response`)."""
        if response is None:
            raise EmptyModelResponseError(f"{self._where()} gave no response")
        native = wire_form(response)
        if not isinstance(native, Mapping) or not isinstance(native.get("content"), list):
            raise InvalidModelResponseError(
                f"{self._where()} gave something that is not a message of Anthropic's API: {excerpt(native, 200)}"
            )
        if not any(block.get("type") != "text" or block.get("text") for block in native["content"]) and not _explanation(native):
            raise EmptyModelResponseError(
                f"{self._where()} gave an answer without text, tool calls and thinking (stop_reason {native.get('stop_reason')!r})"
            )

    async def from_native_response(self, response: anthropic.types.Message) -> Response:
        """Return the API's response as a `Response`. A refusal without text says the provider's explanation."""
        native = wire_form(response)
        blocks, stop_reason = native["content"], native.get("stop_reason")
        fields = read_blocks(blocks)
        if _has_to_be_kept(blocks):
            fields[FIELD] = native_output(API, blocks)
        elif not blocks:
            fields["content"] = _explanation(native)
        finish_reason = FINISH_REASONS.get(stop_reason)
        message = ResponseMessage(**fields, finish_reason=finish_reason, is_truncated=finish_reason == "length")
        model = native.get("model") or ""
        usage = _usage(native.get("usage"), self._tell_unusable(model))
        return Response(native.get("id") or "", int(time.time()), model, usage, message)


def _take_stop(parameters: dict[str, Any]) -> None:
    stop = parameters.pop("stop", [])
    sequences = [*parameters.pop("stop_sequences", ()), *([stop] if isinstance(stop, str) else stop)]
    if sequences:
        parameters["stop_sequences"] = sequences


def _take_tool_choice(parameters: dict[str, Any]) -> None:
    choice = parameters.pop("tool_choice", None)
    in_parallel = parameters.pop("parallel_tool_calls", True)
    if isinstance(choice, str):
        if choice not in _TOOL_CHOICES:
            raise ConfigurationError(
                f"tool_choice must be {', '.join(_TOOL_CHOICES)}, or a dict that names a function; got {choice!r}."
                f"{did_you_mean(choice, _TOOL_CHOICES)}"
            )
        choice = {"type": _TOOL_CHOICES[choice]}
    elif isinstance(choice, Mapping) and choice.get("type") == "function":
        choice = {"type": "tool", "name": (choice.get("function") or choice).get("name")}
    if not in_parallel and (choice is None or choice.get("type") != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    if choice is not None:
        parameters["tool_choice"] = choice


def _has_to_be_kept(blocks: list[dict[str, Any]]) -> bool:
    """Say whether an answer is more than thinking, then one text, then calls: what a message's own fields can say again."""
    order = [_ORDER.get(block["type"], -1) for block in blocks]
    if -1 in order or order != sorted(order) or order.count(1) > 1:
        return True
    return any(block["type"] in _PLAIN_FIELDS and not _is_plain(block) for block in blocks)


def _is_plain(block: dict[str, Any]) -> bool:
    extra = block.keys() - _PLAIN_FIELDS[block["type"]]
    return not extra or (extra == {"caller"} and block["caller"] == {"type": "direct"})


def _explanation(native: Mapping[str, Any]) -> str:
    details = native.get("stop_details")
    return (details.get("explanation") or "") if native.get("stop_reason") == "refusal" and isinstance(details, Mapping) else ""


_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _usage(usage: Any, tell: TellUnusable) -> Usage | None:
    if not isinstance(usage, Mapping) or usage.get("input_tokens") is None or usage.get("output_tokens") is None:
        return None
    details = usage.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if isinstance(details, Mapping) else None
    if not are_counts({**{name: usage.get(name) for name in (*_INPUT, "output_tokens")}, "thinking_tokens": thinking}, tell):
        return None
    prompt, completion = sum(usage.get(name) or 0 for name in _INPUT), usage["output_tokens"]
    return Usage(prompt, thinking or 0, completion, prompt + completion)
