"""Responses, asked by OpenAI's SDK."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import openai
import pytest

from tests.model_server.asked import CALLS, CHAT_TOOL, FULL, post
from vfgym.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from vfgym.model_server import ModelRequest, ModelServer, Reply, RequestRefused
from vfgym.model_server.openai_responses import RESPONSES


async def test_responses_carry_reasoning_text_and_calls(gpt: openai.AsyncOpenAI) -> None:
    tool: Any = {"type": "function", **CHAT_TOOL["function"], "strict": None}
    response = await gpt.responses.create(model="full", input="add", instructions="Be brief.", tools=[tool], temperature=0.5)
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert (response.output_text, response.status, response.instructions) == (FULL.text, "completed", "Be brief.")
    assert response.usage is not None
    assert response.usage.output_tokens_details.reasoning_tokens == len(str(FULL.reasoning))


async def test_a_response_can_be_sent_back_as_input() -> None:
    asked: list[ModelRequest] = []

    def policy(request: ModelRequest) -> Reply:
        asked.append(request)
        return FULL if len(asked) == 1 else Reply("done")

    async with ModelServer({"m": policy}) as server, openai.AsyncOpenAI(base_url=server.openai_url, api_key="k") as gpt:
        first = await gpt.responses.create(model="m", input="add")
        parts = [{"type": "input_text", "text": "4"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]
        outputs = [
            {"type": "function_call_output", "call_id": call.id, "output": output} for call, output in zip(CALLS, ("3", parts), strict=True)
        ]
        items: Any = [{"role": "user", "content": "add"}, *first.output, *outputs]
        second = await gpt.responses.create(model="m", input=items, instructions="Be brief.")
        assert second.output_text == "done"
    system, user, assistant, *results = asked[1].messages
    assert (system.role, system.content, user.content) == ("system", "Be brief.", "add")
    assert (assistant.content, assistant.reasoning_content, list(assistant.tool_calls)) == (FULL.text, FULL.reasoning, CALLS)
    seen = [{"type": "text", "text": "4"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    assert [(result.tool_call_id, result.content) for result in results] == [("c1", "3"), ("c2", seen)]


async def test_a_response_stream_has_the_documented_events(gpt: openai.AsyncOpenAI) -> None:
    events = [event async for event in await gpt.responses.create(model="full", input="add", stream=True)]
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    for kind in ("response.reasoning_summary_text.delta", "response.output_text.delta", "response.function_call_arguments.delta"):
        assert kind in kinds
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == FULL.text
    told: defaultdict[str, str] = defaultdict(str)
    for event in events:
        if event.type == "response.function_call_arguments.delta":
            told[event.item_id] += event.delta
    assert [*told.values()] == [call.arguments for call in CALLS]  # each call is told its own
    async with gpt.responses.stream(model="full", input="add") as stream:
        final = await stream.get_final_response()
    assert final.output_text == FULL.text
    assert [item.arguments for item in final.output if item.type == "function_call"] == [call.arguments for call in CALLS]


async def test_responses_refuse_parameters_of_chat(gpt: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="Unknown parameter: 'stop'"):
        await gpt.responses.create(model="echo", input="a", extra_body={"stop": ["x"]})
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        await gpt.responses.create(model="echo", input="a", previous_response_id="resp_1")


def thought(*summary: str, content: Any = None) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in summary], "content": content}


def called(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "add", "arguments": "{}"}


def result(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "3"}


CALL_1, CALL_2 = (ToolCall(call_id, "add", "{}") for call_id in ("c1", "c2"))
RESULT_1, RESULT_2 = (ToolMessage("3", tool_call_id=call_id) for call_id in ("c1", "c2"))


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        ("hi", [UserMessage("hi")]),
        ([{"role": "developer", "content": "d"}, {"type": "message", "role": "user", "content": "u"}], ["developer:d", "user:u"]),
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}], [AssistantMessage("a"), AssistantMessage("b")]),
        ([{"role": "assistant", "content": ""}], [AssistantMessage("")]),
        (
            [thought("a"), thought(), thought("b"), {"role": "assistant", "content": "c"}],
            [AssistantMessage("c", reasoning_content="a\nb")],
        ),
        ([thought(), {"role": "user", "content": "u"}], [UserMessage("u")]),
        (
            [thought("a", "b", content=[{"type": "reasoning_text", "text": "c"}, "odd", {"text": None}]), {"role": "user", "content": "u"}],
            [AssistantMessage(None, reasoning_content="a\nb\nc"), UserMessage("u")],
        ),
        (
            [thought("one"), called("c1"), called("c2"), result("c2"), result("c1"), thought("two"), {"role": "assistant", "content": "b"}],
            [
                *[AssistantMessage(None, reasoning_content="one", tool_calls=[CALL_1, CALL_2]), RESULT_2, RESULT_1],
                AssistantMessage("b", reasoning_content="two"),
            ],
        ),
        (
            [{"role": "assistant", "content": "a"}, thought("two"), called("c1"), result("c1")],
            [AssistantMessage("a"), AssistantMessage(None, reasoning_content="two", tool_calls=[CALL_1]), RESULT_1],
        ),
    ],
)
def test_items_are_read_as_messages(items: Any, messages: list[Any]) -> None:
    """Reasoning, text and calls that follow each other are one assistant message."""
    asked = RESPONSES.read({"model": "m", "input": items}, {}, 3)
    found = [
        f"{message.role}:{message.content}" if isinstance(expected, str) else message
        for message, expected in zip(asked.requests[0].messages, messages, strict=True)
    ]
    assert found == messages
    instructed = RESPONSES.read({"model": "m", "input": items, "instructions": "Be brief."}, {}, 3)
    assert instructed.requests[0].messages == [SystemMessage("Be brief."), *asked.requests[0].messages]


def test_the_parts_of_a_content_are_those_of_chat_messages() -> None:
    parts = [{"type": kind, "text": kind} for kind in ("input_text", "output_text", "text")]
    parts += [{"type": "refusal", "refusal": "no"}, {"type": "input_audio", "input_audio": {"data": "AA=="}}]
    (message,) = RESPONSES.read({"model": "m", "input": [{"role": "user", "content": parts}]}, {}, 1).requests[0].messages
    assert message.content == [*[{"type": "text", "text": text} for text in ("input_text", "output_text", "text", "no")], parts[-1]]


@pytest.mark.parametrize(
    ("change", "param", "says"),
    [
        *[({name: 0}, name, f"Unknown parameter: '{name}'.") for name in ("n", "stop", "messages", "max_tokens", "max_completion_tokens")],
        *[({name: True}, name, f"'{name}' is not supported") for name in ("previous_response_id", "conversation", "background", "prompt")],
        *[({"input": value}, "input", "input must be text or a list of at least one item") for value in (None, [], 5)],
        ({"input": [{"role": "user", "content": "u"}, "x"]}, "input[1]", "input[1] must be an object, got 'x'"),
        ({"input": [{"type": "computer_call"}]}, "input[0]", "input[0]: items of type 'computer_call' are not supported"),
        *[({"input": [{**called("c1"), name: None}]}, "input[0]", "needs call_id, name and arguments") for name in ("call_id", "name")],
        ({"input": [{**called("c1"), "arguments": {}}]}, "input[0]", "needs call_id, name and arguments"),
        ({"input": [called("c1")]}, "messages", "these have no answer: c1"),
        ({"tools": [{"type": "web_search"}]}, "tools", "only tools of type function are supported"),
        *[
            ({"tool_choice": value}, "tool_choice", "tool_choice must be auto, none")
            for value in ("add", {"type": "mcp", "name": "add"}, 0)
        ],
        ({"tool_choice": {"type": "function", "name": 3}}, "tool_choice", "tool_choice must be auto, none"),
        ({"max_output_tokens": 0}, "max_output_tokens", "max_output_tokens must be an integer from 1"),
    ],
    ids=str,
)
def test_what_a_response_cannot_be_asked_is_named(change: dict[str, Any], param: str, says: str) -> None:
    RESPONSES.read({"model": "m", "input": "hi", "previous_response_id": None, "background": False, "max_output_tokens": None}, {}, 1)
    with pytest.raises(RequestRefused) as refused:
        RESPONSES.read({"model": "m", "input": "hi", **change}, {}, 1)
    assert (refused.value.status, refused.value.param) == (400, param)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("given", "choice"),
    [(None, "auto"), *[(name, name) for name in ("auto", "none", "required")], ({"type": "function", "name": "add"}, "add")],
)
def test_what_is_asked_arrives(given: Any, choice: str) -> None:
    tool = {"type": "function", **CHAT_TOOL["function"], "other": 1}
    body = {"model": "m", "input": "hi", "tools": [tool], "tool_choice": given, "temperature": 0, "stream": True, "max_output_tokens": 7}
    asked = RESPONSES.read(body, {"x-a": "b"}, 9)
    (request,) = asked.requests
    assert (request.api, request.number, request.model, request.tool_choice, request.headers) == ("responses", 9, "m", choice, {"x-a": "b"})
    assert request.sampling_args == {"tool_choice": given, "temperature": 0, "max_output_tokens": 7}
    assert [(each.name, each.description, each.parameters) for each in request.tools] == [
        ("add", "Add.", CHAT_TOOL["function"]["parameters"])
    ]
    assert (asked.max_tokens, asked.is_stream, asked.number, asked.model) == (7, True, 9, "m")


async def test_a_response_says_what_it_was_asked_and_why_it_is_incomplete() -> None:
    answers = {"length": Reply("abc", finish_reason="length"), "content_filter": Reply("abc", finish_reason="content_filter")}
    given = {"metadata": {"a": "b"}, "parallel_tool_calls": False, "reasoning": {"effort": "low"}, "temperature": 0.0, "top_p": 0.5}
    given |= {"text": {"verbosity": "low"}, "instructions": "Be brief.", "max_output_tokens": 9}
    async with ModelServer({**{name: lambda _, name=name: answers[name] for name in answers}, "calls": lambda _: FULL}) as server:
        _, plain = await post(server, "/v1/responses", {"model": "calls", "input": "hi"})
        assert {name: plain[name] for name in given} == {
            **{"metadata": {}, "parallel_tool_calls": True, "reasoning": {"effort": None, "summary": None}, "temperature": None},
            **{"text": {"format": {"type": "text"}}, "instructions": None, "max_output_tokens": None, "top_p": None},
        }
        assert (plain["status"], plain["incomplete_details"], plain["tool_choice"], plain["tools"]) == ("completed", None, "auto", [])
        assert [(item["id"], item.get("status")) for item in plain["output"]] == [
            *[("rs_1", None), ("msg_1", "completed"), ("fc_1_0", "completed"), ("fc_1_1", "completed")]
        ]
        for name, reason in (("length", "max_output_tokens"), ("content_filter", "content_filter")):
            _, answer = await post(server, "/v1/responses", {"model": name, "input": "hi", **given})
            assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": reason})
            assert [item["status"] for item in answer["output"]] == ["incomplete" if name == "length" else "completed"]
            assert {key: answer[key] for key in given} == {
                **given,
                "reasoning": {"effort": "low", "summary": None},
                "text": {"format": {"type": "text"}, "verbosity": "low"},
            }
            _, streamed = await post(server, "/v1/responses", {"model": name, "input": "hi", "stream": True})
            assert "event: response.incomplete" in streamed
