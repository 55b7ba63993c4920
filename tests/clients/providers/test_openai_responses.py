"""The Responses client over real HTTP: what is sent for every kind of message, tool and sampling argument, how answers are read,
what goes wrong how, and that the items of an answer come back unchanged."""

from __future__ import annotations

import json
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from tests.clients.canned_server import CannedServer, canned_server
from vfgym.clients import ClientConfig, resolve_client
from vfgym.clients.providers.openai_responses import OpenAIResponsesClient
from vfgym.errors import ConfigurationError, EmptyModelResponseError, InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import MESSAGE_TYPES, Message, Response, ToolMessage, Usage, UserMessage, as_message
from vfgym.messages.responses import for_conversation
from vfgym.tools import Tool

TOOL = Tool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})


def said(*texts: str, refusal: str | None = None, **more: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
    if refusal is not None:
        parts.append({"type": "refusal", "refusal": refusal})
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts, **more}


def call(name: str = "add", arguments: str = '{"a": 1}', call_id: str = "call_1") -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": arguments, "status": "completed"}


def reasoned(*summary: str, **more: Any) -> dict[str, Any]:
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs_1", "summary": texts, "encrypted_content": "ZW5j", **more}


def reply(*items: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 15}
    return {
        **{"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "gpt-x", "status": status, "error": None},
        **{"incomplete_details": None, "output": list(items), "parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
        **{"usage": {**usage, "input_tokens_details": {"cached_tokens": 0}}, **more},
    }


OK = reply(said("Hello."))


@asynccontextmanager
async def asked(*answers: Any) -> AsyncIterator[tuple[OpenAIResponsesClient, CannedServer]]:
    async with canned_server(*(answers or (OK,))) as server:
        client = resolve_client(
            ClientConfig(
                client_type="openai_responses", api_base_url=server.url, api_key="k", api_key_var="NO_SUCH", max_retries=0,
                extra_headers_from_state={"X-B": "trajectory_id"},
            )
        )  # fmt: skip
        assert isinstance(client, OpenAIResponsesClient)
        try:
            yield client, server
        finally:
            await client.close()


async def answer_of(*items: dict[str, Any], **more: Any) -> Response:
    async with asked(reply(*items, **more)) as (client, _):
        return await client.get_response([UserMessage("hi")], "gpt-x")


async def sent_for(*messages: Any) -> list[Any]:
    async with asked() as (client, server):
        await client.get_response(list(messages), "gpt-x")
        return server.body["input"]


async def sent_with(environment_tools: list[Tool] | None = None, /, **sampling_args: Any) -> dict[str, Any]:
    async with asked() as (client, server):
        await client.get_response([UserMessage("hi")], "gpt-x", sampling_args, environment_tools)
        return {key: value for key, value in server.body.items() if key not in ("model", "input")}


def message_item(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def recorded(response: Response) -> Message:
    """Return the message as an episode records it."""
    return for_conversation(response.message, MESSAGE_TYPES)


class TestPrompt:
    async def test_a_question(self):
        async with asked() as (client, server):
            await client.get_response([UserMessage("hi ü")], "gpt-x", {}, state={"trajectory_id": 7})
        assert server.paths == ["/v1/responses"]
        assert server.headers[0]["x-b"] == "7"
        assert server.body == {"model": "gpt-x", "input": [message_item("user", "hi ü")]}


class TestTools:
    @pytest.mark.parametrize("tools", [None, []])
    async def test_no_tools(self, tools):
        assert await sent_with(tools) == {}

    async def test_tools_of_the_provider_are_added(self):
        assert [tool["type"] for tool in (await sent_with([TOOL], tools=[{"type": "web_search"}]))["tools"]] == ["function", "web_search"]


class TestSamplingArguments:
    @pytest.mark.parametrize(
        ("wrong", "text"),
        [({"n": 2}, "n=2"), ({"stop": ["END"]}, "stop sequences"), ({"stream": True}, "stream"), ({"modalities": ["audio"]}, "text")],
    )
    async def test_what_the_api_cannot_do(self, wrong, text):
        async with asked() as (client, server):
            with pytest.raises(ConfigurationError, match=text) as caught:
                await client.get_response([UserMessage("hi")], "m", wrong)
            assert server.bodies == []
        assert isinstance(caught.value, ValueError)

    async def test_options_of_the_request(self):
        async with asked() as (client, server):
            asked_for = {
                "temperature": 0.5,
                "extra_headers": {"X-C": "3"},
                "extra_query": {"q": "1"},
                "extra_body": {"top_k": 1},
                "timeout": 30,
            }
            await client.get_response([UserMessage("hi")], "m", asked_for, extra_headers={"X-C": "4"})
        assert (server.headers[0]["x-c"], server.paths) == ("4", ["/v1/responses?q=1"])
        assert server.body == {"model": "m", "input": [message_item("user", "hi")], "temperature": 0.5, "top_k": 1}


class TestAnswers:
    async def test_text(self):
        response = await answer_of(said("Hello, ", "you"), said(".", refusal=" No."))
        message = response.message
        assert (response.id, response.created, response.model) == ("resp_1", 1700000000, "gpt-x")
        assert (message.content, message.finish_reason, message.is_truncated) == ("Hello, you. No.", "stop", False)
        assert response.usage == Usage(10, 3, 5, 15)
        assert (message.tool_calls, message.reasoning_content, response.tokens) == (None, None, None)

    @pytest.mark.parametrize(
        ("items", "more", "finish_reason", "is_truncated"),
        [
            ((said("a"),), {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", True),
            ((said("a"),), {"status": "incomplete"}, "length", True),
            ((call(),), {"status": "incomplete"}, "tool_calls", True),
            ((said("a"),), {"incomplete_details": {"reason": "max_output_tokens"}}, "length", True),
            ((said("a"), call()), {}, "tool_calls", False),
            ((reasoned(),), {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", True),
            ((reasoned(),), {}, "stop", False),
            ((said("a"),), {"status": "something_new"}, None, False),
        ],
    )
    async def test_how_it_ended(self, items, more, finish_reason, is_truncated):
        message = (await answer_of(*items, **more)).message
        assert (message.finish_reason, message.is_truncated) == (finish_reason, is_truncated)

    async def test_no_usage(self):
        assert (await answer_of(said("a"), usage=None)).usage is None

    @pytest.mark.parametrize("items", [(), (said(),), (said(""),)], ids=["no items", "no parts", "no text"])
    async def test_an_empty_answer_is_an_error(self, items):
        with pytest.raises(EmptyModelResponseError, match="completed"):
            await answer_of(*items)

    @pytest.mark.parametrize(
        ("more", "text"),
        [
            ({"status": "failed", "error": {"code": "server_error", "message": "Sorry."}}, "server_error: Sorry"),
            ({"status": "failed", "error": "Sorry."}, "Sorry"),
            ({"status": "failed"}, "status failed"),
            ({"output": [said("a")], "error": {"code": "server_error", "message": "Sorry."}}, "status completed.*server_error: Sorry"),
            ({"status": "cancelled"}, "cancelled"),
            ({"status": "queued"}, "background"),
            ({"status": "in_progress"}, "background"),
        ],
    )
    async def test_an_answer_that_is_none(self, more, text):
        with pytest.raises(InvalidModelResponseError, match=text):
            await answer_of(**more)

    async def test_a_failure_that_says_the_prompt_is_too_long(self):
        with pytest.raises(OverlongPromptError):
            await answer_of(status="failed", error={"code": "context_length_exceeded", "message": "Too much."})

    async def test_a_page_that_is_no_answer(self):
        async with asked("<html>It works!</html>") as (client, _):
            with pytest.raises(InvalidModelResponseError, match="It works"):
                await client.get_response([UserMessage("hi")], "m")


class TestConversations:
    ITEMS = (
        reasoned("Let me add."),
        said("I add.", phase="commentary"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "é"}},
        {"type": "brand_new", "id": "bn_1", "data": {"x": [1, 2]}},
        {**call(), "async": False},
    )

    async def test_the_items_come_back_unchanged(self):
        response = await answer_of(*self.ITEMS)
        message = pickle.loads(pickle.dumps(recorded(response)))
        message = as_message(json.loads(json.dumps(message)))
        sent = await sent_for(UserMessage("hi"), message, ToolMessage("1", tool_call_id="call_1"))
        assert sent == [message_item("user", "hi"), *self.ITEMS, {"type": "function_call_output", "call_id": "call_1", "output": "1"}]

    async def test_nulls_do_not_come_back(self):
        response = await answer_of({**reasoned(), "encrypted_content": None, "status": None}, said("a"))
        sent = await sent_for(UserMessage("hi"), recorded(response))
        assert sent[1] == {"type": "reasoning", "id": "rs_1", "summary": []}

    @pytest.mark.parametrize("changes", [{"content": "b"}, {"content": "b", "tool_calls": None}, {"reasoning_content": None}])
    async def test_an_edited_message_is_sent_as_it_says_now(self, changes):
        message = recorded(await answer_of(reasoned("Hm."), said("a"), call())).replace(**changes)
        sent = await sent_for(UserMessage("hi"), message)
        assert [item["type"] for item in sent[1:]] == ["message", *(["function_call"] if message.tool_calls else [])]
        assert sent[1]["content"] == message.content


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "error", "kind"),
        [
            (400, {"message": "Your input exceeds the context window of this model."}, OverlongPromptError),
            (400, {"message": "Unsupported parameter: 'temperature'", "code": "unsupported_parameter"}, ModelError),
            (500, {"message": "boom"}, ModelError),
            (401, {"message": "bad key"}, openai.AuthenticationError),
            (403, {"message": "not for you"}, openai.PermissionDeniedError),
        ],
    )
    async def test_what_the_server_refuses(self, status, error, kind):
        async with asked((status, {"error": error})) as (client, _):
            with pytest.raises(kind) as caught:
                await client.get_response([UserMessage("hi")], "m")
        if kind is ModelError:
            assert isinstance(caught.value.__cause__, openai.APIStatusError)
