"""What the package `renderers` is given: messages, tools, its configuration, and the parameters of a request for tokens."""

from __future__ import annotations

from typing import Any

import pytest
import renderers

from vfgym.clients import ClientConfig
from vfgym.clients.formats.renderer import has_media, renderer_config, renderer_message, renderer_tool, sampling_params
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, SystemMessage, TextMessage, ToolCall, ToolMessage, UserMessage
from vfgym.tools import Tool

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (SystemMessage("s"), {"role": "system", "content": "s"}),
        (TextMessage("t"), {"role": "user", "content": "t"}),
        (UserMessage("", name="ann", brand_new=1), {"role": "user", "content": "", "name": "ann"}),
        (AssistantMessage(None), {"role": "assistant", "content": ""}),
        (AssistantMessage("a", reasoning_content="hm"), {"role": "assistant", "content": "a", "reasoning_content": "hm"}),
        (ToolMessage("1", tool_call_id="c1"), {"role": "tool", "content": "1", "tool_call_id": "c1"}),
    ],
)
def test_a_message_has_the_fields_that_templates_know(message: Any, fields: dict[str, Any]) -> None:
    assert renderer_message(message) == fields


def test_calls_of_a_message_are_plain() -> None:
    made = renderer_message(AssistantMessage(None, tool_calls=[ToolCall("c1", "add", '{"a": 1}')]))
    assert made["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}]
    assert type(made["tool_calls"]) is list
    assert "native_output" not in renderer_message(AssistantMessage("a", native_output={"api": "x"}))


def test_a_tool() -> None:
    made = renderer_tool(Tool(name="add", description="Add.", parameters={"type": "object"}, strict=True))
    assert made == {"name": "add", "description": "Add.", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("contents", "has"), [([], False), (["a"], False), ([[{"type": "text", "text": "a"}]], False), (["a", [{"type": "text"}, IMAGE]], True)]
)
def test_parts_that_are_not_text(contents: list[Any], has: bool) -> None:
    assert has_media([{"content": content} for content in contents]) is has


@pytest.mark.parametrize(
    ("asked", "parameters", "arguments", "shows_tools"),
    [
        ({}, {}, {}, True),
        ({"max_tokens": 5, "temperature": 0, "top_p": None}, {"max_tokens": 5, "temperature": 0}, {}, True),
        ({"max_completion_tokens": 0}, {"max_tokens": 0}, {}, True),
        ({"tool_choice": "none"}, {}, {}, False),
        ({"tool_choice": "auto"}, {}, {}, True),
        ({"logprobs": 5, "extra_body": {"return_token_ids": False, "min_p": 0.1}}, {"min_p": 0.1}, {}, True),
        ({"extra_body": {"cache_salt": "s", "priority": 0}}, {}, {"cache_salt": "s", "priority": 0}, True),
    ],
)
def test_parameters(asked: dict[str, Any], parameters: dict[str, Any], arguments: dict[str, Any], shows_tools: bool) -> None:
    assert sampling_params(asked) == (parameters, arguments, shows_tools)


NOT_HERE = ("response_format", "modalities", "parallel_tool_calls", "top_logprobs", "stop_token_ids", "extra_query", "timeout")


@pytest.mark.parametrize(
    "wrong", [*({name: 1} for name in NOT_HERE), {"extra_body": {"stop_token_ids": [1]}}, {"n": 2}, {"tool_choice": "required"}]
)
def test_parameters_that_the_route_does_not_have(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        sampling_params(wrong)


def config(**fields: Any) -> Any:
    return renderer_config(renderers, ClientConfig(api_base_url="http://a.example", api_key="k", **fields).single())


def test_configurations_of_the_package() -> None:
    default = config(renderer="default", tool_parser="hermes", reasoning_parser="think")
    assert (default.tool_parser, default.reasoning_parser) == ("hermes", "think")
    assert config(renderer="default", preserve_all_thinking=True).thinking_retention == "all"
    assert config(renderer="default", preserve_thinking_between_tool_calls=True).thinking_retention == "tool_cycle"
    assert config(renderer="default", preserve_all_thinking=True, preserve_thinking_between_tool_calls=True).thinking_retention == "all"
    assert config() == renderers.config_from_name("auto")


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"renderer": "qwem3"}, "no renderer 'qwem3'"), ({"renderer": "qwen3", "tool_parser": "hermes"}, "takes no tool_parser")],
)
def test_configurations_that_it_does_not_have(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        config(**fields)
