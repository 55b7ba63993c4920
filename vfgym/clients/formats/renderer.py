"""What the package ``renderers`` is given: messages, tools, its configuration, and the parameters of a request for tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from vfgym.clients.client import SamplingArgs
from vfgym.clients.config import EndpointClientConfig
from vfgym.clients.formats.sampling import check_sampling_args
from vfgym.errors import ConfigurationError
from vfgym.messages import Message, plain
from vfgym.tools import Tool

_FIELDS = ("role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name")
_PARSERS = ("tool_parser", "reasoning_parser")
_ARGUMENTS_OF_GENERATE = ("cache_salt", "priority")
_ALWAYS_SO = ("logprobs", "return_token_ids")
_NOT_HERE = ("response_format", "modalities", "parallel_tool_calls", "top_logprobs", "stop_token_ids", "extra_query", "timeout")


def renderer_message(message: Message) -> dict[str, Any]:
    """Return a message in the fields that chat templates know, with parsed tool arguments."""
    [native] = plain([message])
    native = {name: native[name] for name in _FIELDS if native.get(name) is not None}
    native.setdefault("content", "")
    if native["role"] == "text":
        native["role"] = "user"
    return native


def renderer_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as chat templates know it."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def has_media(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a conversation has parts that are not text."""
    contents = [message["content"] for message in messages]
    return any(part["type"] != "text" for content in contents if isinstance(content, list) for part in content)


def renderer_config(package: ModuleType, settings: EndpointClientConfig) -> Any:
    """Return the package's configuration of a renderer.

    Raises:
        ConfigurationError: If there is no renderer of that name, or it does not have what is set.
    """
    try:
        config = package.config_from_name(settings.renderer)
    except ValueError as error:
        raise ConfigurationError(f"there is no renderer {settings.renderer!r}: {error}") from error
    config_class = package.AutoRendererConfig if config is None else type(config)
    fields: dict[str, Any] = {name: value for name in _PARSERS if (value := getattr(settings, name)) is not None}
    for name in fields:
        if name not in config_class.model_fields:
            raise ConfigurationError(f"renderer={settings.renderer!r} parses by itself and takes no {name}; renderer='default' does")
    if settings.preserve_all_thinking:
        fields["thinking_retention"] = "all"
    elif settings.preserve_thinking_between_tool_calls:
        fields["thinking_retention"] = "tool_cycle"
    return config_class(**fields) if fields else config


def sampling_params(sampling_args: SamplingArgs) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Return vLLM's sampling parameters, further arguments of the package's ``generate``, and whether tools are shown.

    What stands in ``extra_body`` are sampling parameters too, but for ``cache_salt`` and ``priority``. Log-probabilities and
    token ids always come.

    Raises:
        ConfigurationError: If an argument asks for what the route cannot do.
    """
    parameters, options = check_sampling_args(sampling_args, "the generate route")
    parameters |= options.pop("extra_body", {})
    for name in _NOT_HERE:
        if name in parameters or name in options:
            raise ConfigurationError(f"the renderer client has no {name}: the generate route takes vLLM's sampling parameters")
    choice = parameters.pop("tool_choice", "auto")
    if choice not in ("auto", "none"):
        raise ConfigurationError(f"the renderer client cannot force a tool call: tool_choice must be 'auto' or 'none', got {choice!r}")
    arguments = {name: parameters.pop(name) for name in _ARGUMENTS_OF_GENERATE if name in parameters}
    for name in _ALWAYS_SO:
        parameters.pop(name, None)
    if "max_completion_tokens" in parameters:
        parameters["max_tokens"] = parameters.pop("max_completion_tokens")
    return parameters, arguments, choice == "auto"
