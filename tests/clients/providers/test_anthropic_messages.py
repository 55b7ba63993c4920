"""The Anthropic client over real HTTP: what is sent for every kind of message, tool and sampling argument, how answers are read,
what goes wrong how, and that conversations with thinking and tools come back as the API wants them."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest

from tests.clients.canned_server import CannedServer, canned_server
from vfgym.clients import ClientConfig
from vfgym.clients.providers.anthropic_messages import DEFAULT_MAX_TOKENS, AnthropicMessagesClient, _has_to_be_kept, _usage
from vfgym.errors import ConfigurationError, EmptyModelResponseError, InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import MESSAGE_TYPES, Message, Response, SystemMessage, ToolMessage, Usage, UserMessage, as_message
from vfgym.messages.responses import for_conversation
from vfgym.tools import Tool

TOOL = Tool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
SIZE = {"max_tokens": 100}


def reply(
    *blocks: dict[str, Any], stop_reason: str | None = "end_turn", usage: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": list(blocks)},
        **{"stop_reason": stop_reason, "stop_sequence": None, "usage": usage or {"input_tokens": 10, "output_tokens": 5}, **more},
    }


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(name: str = "add", call_id: str = "toolu_1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def refused(status: int, kind: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


THINKING = {"type": "thinking", "thinking": "Let me see. ", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "ZW5j"}
OK = reply(text("Hello."))


@asynccontextmanager
async def asked(*answers: Any, **config: Any) -> AsyncIterator[tuple[AnthropicMessagesClient, CannedServer]]:
    async with canned_server(*(answers or (OK,))) as server:
        settings = {"client_type": "anthropic_messages", "api_base_url": server.root, "api_key": "key", "api_key_var": "NO_SUCH"}
        client = AnthropicMessagesClient(ClientConfig(**settings, **{"max_retries": 0, **config}))
        try:
            yield client, server
        finally:
            await client.close()


async def answer_of(*blocks: dict[str, Any], **more: Any) -> Response:
    async with asked(reply(*blocks, **more)) as (client, _):
        return await client.get_response([UserMessage("hi")], "claude-x", SIZE)


async def sent_for(*messages: Any) -> dict[str, Any]:
    async with asked() as (client, server):
        await client.get_response(list(messages), "claude-x", SIZE)
        return server.body


async def sent_with(environment_tools: list[Tool] | None = None, /, **sampling_args: Any) -> dict[str, Any]:
    async with asked() as (client, server):
        await client.get_response([UserMessage("hi")], "claude-x", {**SIZE, **sampling_args}, environment_tools)
        return server.body


class TestPrompt:
    async def test_it_is_asked_where_the_configuration_says(self):
        async with asked(extra_headers={"X-A": "1"}, extra_headers_from_state={"X-B": "trajectory_id"}) as (client, server):
            await client.get_response([UserMessage("hi")], "m", {**SIZE, "extra_headers": {"X-C": "3"}}, state={"trajectory_id": "t7"})
        assert server.paths == ["/v1/messages"]
        assert server.headers[0]["authorization"] == "Bearer key"
        assert {name: server.headers[0][name] for name in ("x-a", "x-b", "x-c")} == {"x-a": "1", "x-b": "t7", "x-c": "3"}


class TestTools:
    @pytest.mark.parametrize("tools", [None, []])
    async def test_no_tools(self, tools):
        assert "tools" not in await sent_with(tools)

    async def test_tools_of_the_provider_are_added(self):
        search = {"type": "web_search_20260209", "name": "web_search"}
        assert [tool["name"] for tool in (await sent_with([TOOL], tools=[search]))["tools"]] == ["add", "web_search"]

    @pytest.mark.parametrize(
        ("given_args", "sent"),
        [
            ({"tool_choice": "auto"}, {"type": "auto"}),
            ({"tool_choice": "required"}, {"type": "any"}),
            ({"tool_choice": "any"}, {"type": "any"}),
            ({"tool_choice": "none"}, {"type": "none"}),
            ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
            ({"tool_choice": {"type": "function", "function": {"name": "add"}}}, {"type": "tool", "name": "add"}),
            ({"tool_choice": {"type": "function", "name": "add"}}, {"type": "tool", "name": "add"}),
            (
                {"tool_choice": {"type": "tool", "name": "add"}, "parallel_tool_calls": False},
                {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
            ),
            ({"tool_choice": {"type": "none"}, "parallel_tool_calls": False}, {"type": "none"}),
            ({"tool_choice": {"type": "tool", "name": "add"}}, {"type": "tool", "name": "add"}),
            ({"tool_choice": "required", "parallel_tool_calls": False}, {"type": "any", "disable_parallel_tool_use": True}),
            ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ],
    )
    async def test_tool_choice(self, given_args, sent):
        body = await sent_with([TOOL], **given_args)
        assert body["tool_choice"] == sent
        assert "parallel_tool_calls" not in body

    async def test_parallel_calls_are_the_default(self):
        assert "tool_choice" not in await sent_with([TOOL], parallel_tool_calls=True)


class TestSamplingArguments:
    async def test_all_are_sent(self):
        passed = {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "metadata": {"user_id": "u"}, "brand_new": 1}
        body = await sent_with(**passed, seed=None, n=1, extra_body={"newer": 2}, stream=False)
        assert {key: body[key] for key in body if key not in ("model", "messages")} == {"max_tokens": 100, **passed, "newer": 2}

    @pytest.mark.parametrize(
        ("stop", "sent"), [("END", ["END"]), (["a", "b"], ["a", "b"]), ([], None), (None, None)], ids=["text", "list", "empty", "none"]
    )
    async def test_stop(self, stop, sent):
        assert (await sent_with(stop=stop)).get("stop_sequences") == sent
        assert (await sent_with(stop=stop, stop_sequences=["z"]))["stop_sequences"] == ["z", *(sent or [])]

    async def test_max_completion_tokens(self):
        assert (await sent_with(max_tokens=None, max_completion_tokens=128_000))["max_tokens"] == 128_000  # and needs no stream

    async def test_without_a_limit_one_is_sent_and_said_once(self, caplog):
        async with asked() as (client, server):
            with caplog.at_level(logging.WARNING, "vfgym"):
                for _ in range(2):
                    await client.get_response([UserMessage("hi")], "m", None)
        assert [body["max_tokens"] for body in server.bodies] == [DEFAULT_MAX_TOKENS] * 2
        assert [record.getMessage() for record in caplog.records if "max_tokens" in record.getMessage()] == [
            f"no max_tokens among the sampling arguments: answers are cut after {DEFAULT_MAX_TOKENS} tokens"
        ]

    @pytest.mark.parametrize(
        ("wrong", "says"), [({"n": 2}, "n=2"), ({"stream": True}, "stream"), ({"tool_choice": "requird"}, "Did you mean `required`")]
    )
    async def test_what_the_api_cannot_do(self, wrong, says):
        async with asked() as (client, server):
            with pytest.raises(ConfigurationError, match=says):
                await client.get_response([UserMessage("hi")], "m", {**SIZE, **wrong})
            assert server.bodies == []

    async def test_the_arguments_stay_as_they_were(self):
        given_args = {**SIZE, "stop": ["a"], "tool_choice": "auto", "extra_body": {"x": 1}}
        before = pickle.dumps(given_args)
        async with asked() as (client, _):
            await client.get_response([UserMessage("hi")], "m", given_args)
        assert pickle.dumps(given_args) == before


class TestAnswers:
    async def test_text(self):
        response = await answer_of(text("Hello, "), text("you."), usage={"input_tokens": 3, "output_tokens": 2})
        assert (response.id, response.model, response.tokens) == ("msg_1", "claude-x", None)
        message = response.message
        assert (message.content, message.finish_reason, message.is_truncated) == ("Hello, you.", "stop", False)
        assert (message.tool_calls, message.reasoning_content, message.thinking_blocks) == (None, None, None)
        assert response.created > 1_600_000_000

    @pytest.mark.parametrize(
        ("stop_reason", "finish_reason", "is_truncated"),
        [
            *(("end_turn", "stop", False), ("stop_sequence", "stop", False), ("max_tokens", "length", True)),
            *(("model_context_window_exceeded", "length", True), ("tool_use", "tool_calls", False), ("refusal", "stop", False)),
            *(("pause_turn", None, False), ("something_new", None, False)),
        ],
    )
    async def test_stop_reasons(self, stop_reason, finish_reason, is_truncated):
        response = await answer_of(text("a"), stop_reason=stop_reason)
        message = response.message
        assert (message.finish_reason, message.is_truncated, response.is_truncated) == (finish_reason, is_truncated, is_truncated)

    async def test_usage_counts_the_cache(self):
        usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000, "output_tokens": 7}
        assert (await answer_of(text("a"), usage={**usage, "output_tokens_details": {"thinking_tokens": 3}})).usage == Usage(
            1110, 3, 7, 1117
        )

    @pytest.mark.parametrize(
        ("usage", "read"),
        [
            ({"input_tokens": 0, "output_tokens": 0}, Usage(0, 0, 0, 0)),
            ({"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": None}, Usage(5, 0, 2, 7)),
            ({"input_tokens": 0, "output_tokens": 2, "cache_read_input_tokens": 5}, Usage(5, 0, 2, 7)),
            ({"input_tokens": 5, "output_tokens": 2, "output_tokens_details": {"thinking_tokens": None}}, Usage(5, 0, 2, 7)),
            ({"input_tokens": None, "output_tokens": 2}, None),
            ({"input_tokens": 5}, None),
            (None, None),
            *(
                ({"input_tokens": 5, "output_tokens": 2, field: -1}, field)
                for field in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            ),
            ({"input_tokens": 5, "output_tokens": 2, "output_tokens_details": {"thinking_tokens": -1}}, "thinking_tokens"),
        ],
    )
    def test_usage_that_is_not_told_whole_or_can_not_be(self, usage, read):
        told: list[Any] = []
        is_wrong = isinstance(read, str)
        assert _usage(usage, lambda *what: told.append(what)) == (None if is_wrong else read)
        assert told == ([(read, -1)] if is_wrong else [])

    @pytest.mark.parametrize(
        ("blocks", "is_kept"),
        [
            ([], False),
            ([REDACTED, THINKING, text("a"), use(), use("add", "toolu_2")], False),
            ([use()], False),
            ([text("a"), text("b")], True),
            ([text("a"), THINKING], True),
            ([use(), text("a")], True),
            ([use(), REDACTED], True),
            ([text("a"), {"type": "brand_new"}], True),
            ([{**text("a"), "citations": [{"cited_text": "a"}]}], True),
            ([use(), {**use(), "caller": {"type": "direct"}}], False),
            ([use(), {**use(), "caller": {"type": "code_execution", "tool_id": "x"}}], True),
            ([{**use(), "caller": {"type": "direct"}, "brand_new": 1}], True),
        ],
    )
    def test_what_a_messages_own_fields_can_not_say_again_is_kept(self, blocks, is_kept):
        assert _has_to_be_kept(blocks) is is_kept

    async def test_only_a_refusal_without_blocks_says_the_explanation(self):
        details = {"type": "refusal", "category": None, "explanation": "I may not."}
        response = await answer_of(text("No."), stop_reason="refusal", stop_details=details)
        assert response.message.content == "No."
        for reason, more in (("end_turn", details), ("refusal", {**details, "explanation": None})):
            with pytest.raises(EmptyModelResponseError):
                await answer_of(stop_reason=reason, stop_details=more)

    async def test_a_refusal_says_why(self):
        details = {"type": "refusal", "category": "bio", "explanation": "I may not."}
        response = await answer_of(stop_reason="refusal", stop_details=details)
        assert (response.message.content, response.message.finish_reason) == ("I may not.", "stop")

    @pytest.mark.parametrize("blocks", [(), (text(""),)], ids=["no blocks", "empty text"])
    @pytest.mark.parametrize("stop_reason", ["end_turn", "refusal"])
    async def test_an_empty_answer_is_an_error(self, blocks, stop_reason):
        with pytest.raises(EmptyModelResponseError, match=stop_reason):
            await answer_of(*blocks, stop_reason=stop_reason)

    async def test_thinking_alone_is_an_answer(self):
        response = await answer_of(REDACTED, stop_reason="max_tokens")
        assert (response.message.content, response.message.reasoning_content, response.message.thinking_blocks) == ("", None, [REDACTED])

    async def test_a_page_that_is_no_answer(self):
        async with asked("<html>It works!</html>") as (client, _):
            with pytest.raises(InvalidModelResponseError, match="It works"):
                await client.get_response([UserMessage("hi")], "m", SIZE)


class TestConversations:
    async def test_a_tool_loop_with_thinking(self):
        first = reply(THINKING, REDACTED, text("I add."), use(a=1), use("add", "toolu_2", a=2), stop_reason="tool_use")
        async with asked(first, reply({**THINKING, "thinking": "Done."}, text("3"))) as (client, server):
            conversation = [SystemMessage("s"), UserMessage("1+2?")]
            response = await client.get_response(conversation, "m", SIZE, [TOOL])
            conversation += [_recorded(response), ToolMessage("1", tool_call_id="toolu_1"), ToolMessage("2", tool_call_id="toolu_2")]
            conversation.append(_recorded(await client.get_response(conversation, "m", SIZE, [TOOL])))
            conversation.append(UserMessage("sure?"))
            await client.get_response(conversation, "m", SIZE, [TOOL])
        assert server.body["messages"] == [
            {"role": "user", "content": "1+2?"},
            {"role": "assistant", "content": first["content"]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "2"},
                ],
            },
            {"role": "assistant", "content": [{**THINKING, "thinking": "Done."}, text("3")]},
            {"role": "user", "content": "sure?"},
        ]

    ALTERNATING = (
        THINKING,
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "é"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "brand_new", "data": {"x": 1}}]},
        text("It says "),
        {**THINKING, "thinking": "Now add."},
        text("so."),
        {**use(a=1), "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}},
    )

    async def test_blocks_that_alternate_come_back_as_they_were(self):
        response = await answer_of(*self.ALTERNATING, stop_reason="tool_use")
        message = pickle.loads(pickle.dumps(_recorded(response)))
        message = as_message(json.loads(json.dumps(message)))
        assert message.content == "It says so."
        body = await sent_for(UserMessage("hi"), message, ToolMessage("1", tool_call_id="toolu_1"))
        assert body["messages"][1]["content"] == list(self.ALTERNATING)

    async def test_an_edited_message_is_sent_as_it_says_now(self):
        message = _recorded(await answer_of(text("a"), THINKING, text("b")))
        assert message["native_output"]["api"] == "anthropic_messages"
        body = await sent_for(UserMessage("hi"), message.replace(content="c"), UserMessage("?"))
        assert body["messages"][1]["content"] == [THINKING, text("c")]

    async def test_a_direct_caller_is_nothing_to_keep(self):
        response = await answer_of({**use(a=1), "caller": {"type": "direct"}})
        assert "native_output" not in response.message


class TestErrors:
    @pytest.mark.parametrize(
        ("answer", "cause"),
        [
            (refused(400, "invalid_request_error", "max_tokens: 999999 > 64000"), anthropic.BadRequestError),
            (refused(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), OverlongPromptError),
            (refused(429, "rate_limit_error", "slow down"), anthropic.RateLimitError),
            (refused(529, "overloaded_error", "Overloaded"), anthropic.InternalServerError),
        ],
    )
    async def test_other_errors(self, answer, cause):
        async with asked(answer) as (client, _):
            with pytest.raises((ModelError, OverlongPromptError)) as caught:
                await client.get_response([UserMessage("hi")], "claude-x", SIZE)
        assert isinstance(caught.value if cause is OverlongPromptError else caught.value.__cause__, cause)

    @pytest.mark.parametrize(("status", "error"), [(401, anthropic.AuthenticationError), (403, anthropic.PermissionDeniedError)])
    async def test_a_refused_key_passes_as_it_is(self, status, error):
        async with asked(refused(status, "authentication_error", "invalid x-api-key")) as (client, _):
            with pytest.raises(error) as caught:
                await client.get_response([UserMessage("hi")], "m", SIZE)
        assert any("refused the API key" in note for note in caught.value.__notes__)


def _recorded(response: Response) -> Message:
    """Return the message as an episode records it."""
    return for_conversation(response.message, MESSAGE_TYPES)
