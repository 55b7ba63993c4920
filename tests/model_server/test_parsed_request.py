"""What of a request is wrong, and how that is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model_server.asked import BODIES, CALLS, CHAT_TOOL, HELLO, PATHS, post
from vfgym.messages import AssistantMessage, ToolCall, ToolMessage, Usage, UserMessage
from vfgym.model_server import ModelServer, Reply
from vfgym.model_server.exchange import RequestRefused
from vfgym.model_server.generation import generate
from vfgym.model_server.openai_completions import COMPLETIONS
from vfgym.model_server.parsed_request import (
    check_tool_answers,
    dumps,
    event,
    parse_messages,
    parse_tool_choice,
    read_integer,
    read_model,
    read_object,
    read_stops,
    read_toolbox,
    without,
)
from vfgym.tools import Tool


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (b"", 400, "no body"),
        (b"{not json", 400, "could not parse the JSON body"),
        (b"\xff\xfe\xfa", 400, "could not parse the JSON body"),
        (b"[" * 100_000, 400, "could not parse the JSON body"),
        ([1], 400, "must be a JSON object, got list"),
        ({"model": "ecko"}, 404, "Did you mean `echo`"),
        ({"model": 3}, 400, "must provide a model"),
        ({"model": "echo"}, 400, ""),
    ],
)
async def test_bad_bodies_are_explained_in_the_providers_shape(
    server: ModelServer, path: str, body: Any, status: int, problem: str
) -> None:
    if isinstance(body, dict) and body["model"] == "ecko":
        body = {**BODIES[path], **body}
    elif body == {"model": "echo"}:
        body = {"model": "echo", "max_tokens": 1} if path == "/v1/messages" else body
    got, answer = await post(server, path, body)
    assert got == status
    assert problem in answer["error"]["message"]
    assert ("param" in answer["error"]) == (path != "/v1/messages")
    assert (answer.get("type") == "error") == (path == "/v1/messages")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "text", "content": "x"}]}, "'text'"),
        ({"messages": [*HELLO, {"role": "tool", "tool_call_id": "x", "content": ""}]}, "answers the tool call 'x'"),
        ({"messages": [*HELLO, AssistantMessage(tool_calls=CALLS), UserMessage("?")]}, "c1, c2"),
        ({"n": 0}, "n must be an integer from 1 to 128, got 0"),
        ({"n": 129}, "n must be an integer from 1 to 128, got 129"),
        ({"n": 10**9}, "n must be an integer from 1 to 128"),
        ({"n": 10**400}, "n must be an integer from 1 to 128"),
        ({"top_logprobs": 10**9}, "top_logprobs must be an integer from 0 to 20"),
        ({"max_tokens": "many"}, "max_tokens must be an integer"),
        ({"stop": 3}, "stop must be"),
        ({"tools": [{"type": "magic"}]}, "a tool is"),
        ({"tools": "add"}, "tools must be a list"),
        ({"tool_choice": "required"}, "no tools are offered"),
        ({"tool_choice": {"type": "function", "function": {"name": "sub"}}, "tools": [CHAT_TOOL]}, "'sub'"),
        ({"functions": [{}]}, "use 'tools'"),
        ({"stream": True, "stream_options": "all"}, "stream_options"),
    ],
)
async def test_bad_fields_are_explained(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/chat/completions", {**BODIES["/v1/chat/completions"], **change})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert problem in answer["error"]["message"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n": 10**9}, "n must be an integer from 1 to 128"),
        ({"n": 10**9, "best_of": 10**9}, "n must be an integer from 1 to 128"),
        ({"logprobs": 10**9}, "logprobs must be an integer from 0 to 20"),
        ({"prompt": ["a"] * 17, "n": 128}, "a request may have 2048 answers, got 17 prompts with n = 128"),
        ({"prompt": ["a"] * 2049}, "a request may have 2048 answers, got 2049 prompts with n = 1"),
    ],
)
async def test_a_request_asks_for_so_many_answers_at_most(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/completions", {**BODIES["/v1/completions"], **change})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert problem in answer["error"]["message"]


async def test_so_many_answers_are_given(server: ModelServer) -> None:
    most = {"prompt": ["a"] * 16, "n": 128, "logprobs": 20}
    status, answer = await post(server, "/v1/completions", {**BODIES["/v1/completions"], **most})
    assert (status, len(answer["choices"])) == (200, 2048)


@pytest.mark.parametrize(
    ("value", "bounds", "read"),
    [(None, {}, None), (None, {"default": 0}, 0), (1, {}, 1), (0, {"low": 0, "default": 5}, 0), (20, {"low": 0, "high": 20}, 20)],
)
def test_integers(value: Any, bounds: dict[str, Any], read: int | None) -> None:
    assert read_integer({"n": value}, "n", **bounds) == read
    assert read_integer({}, "n", **bounds) == bounds.get("default")


@pytest.mark.parametrize(
    ("value", "bounds", "says"),
    [(0, {}, "from 1"), (21, {"low": 0, "high": 20}, "from 0 to 20"), (True, {}, "True"), (1.0, {}, "1.0"), ("1", {}, "'1'")],
)
def test_what_is_no_integer_within_the_bounds(value: Any, bounds: dict[str, Any], says: str) -> None:
    with pytest.raises(RequestRefused, match=says) as caught:
        read_integer({"n": value}, "n", **bounds)
    assert (caught.value.status, caught.value.param) == (400, "n")


@pytest.mark.parametrize(("value", "stops"), [(None, []), ("E", ["E"]), (["a", "b"], ["a", "b"]), ([], []), (["x"] * 64, ["x"] * 64)])
def test_stop_sequences(value: Any, stops: list[str]) -> None:
    assert list(read_stops({"end": value}, "end")) == stops
    assert list(read_stops({"stop": value})) == stops


@pytest.mark.parametrize("value", ["", [""], [1], ["a", None], {"a": 1}, 7, ["x"] * 65])
def test_what_is_no_stop_sequence(value: Any) -> None:
    with pytest.raises(RequestRefused, match="stop must be") as caught:
        read_stops({"stop": value})
    assert caught.value.param == "stop"


def test_objects_and_names_of_models() -> None:
    assert read_object({"a": None}, "a") == read_object({}, "a") == {}
    assert read_object({"a": {"b": 0}}, "a") == {"b": 0}
    for wrong in (0, "", [], False):
        with pytest.raises(RequestRefused, match="a must be an object"):
            read_object({"a": wrong}, "a")
    assert read_model({"model": "m"}) == "m"
    for wrong in ({}, {"model": ""}, {"model": None}, {"model": 7}):
        with pytest.raises(RequestRefused, match="model parameter"):
            read_model(wrong)


OFFERED = [Tool(name="add", description="", parameters={}), Tool(name="auto", description="", parameters={})]


@pytest.mark.parametrize("choice", ["auto", "none", "required", "add"])
def test_tool_choices(choice: str) -> None:
    assert parse_tool_choice(choice, OFFERED) == choice


@pytest.mark.parametrize(("choice", "tools", "says"), [("required", [], "no tools"), ("sub", OFFERED, "add, auto"), ("sub", [], "none")])
def test_tool_choices_that_cannot_be(choice: str, tools: list[Tool], says: str) -> None:
    with pytest.raises(RequestRefused, match=says):
        parse_tool_choice(choice, tools)


def test_the_tools_of_a_body() -> None:
    def convert(tool: Any) -> Any:
        return {**tool, "description": "", "parameters": {}}

    one, other = [{"name": "add"}], [{"name": "sub"}]
    first = read_toolbox(one, convert)
    first.tools.clear()
    assert [tool.name for tool in read_toolbox(one, convert).tools] == ["add"]
    assert [tool.name for tool in read_toolbox(other, convert).tools] == ["sub"]
    assert "sub" in read_toolbox(other, convert).text
    described = read_toolbox(one, lambda tool: {**convert(tool), "description": "Add."})
    assert [tool.description for tool in described.tools] == ["Add."]
    for none in (None, [], {}):
        assert read_toolbox(none, convert) == ([], "")
    for wrong in ("add", ["add"], [{}]):
        with pytest.raises(RequestRefused, match="tools") as caught:
            read_toolbox(wrong, convert)
        assert caught.value.param == "tools"


ASKED, ANSWERED = UserMessage("?"), ToolMessage("1", tool_call_id="c1")
CALLED = AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "{}")])
CALLED_TWICE = AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "{}"), ToolCall("c2", "add", "{}")])
SECOND = ToolMessage("2", tool_call_id="c2")


@pytest.mark.parametrize("messages", [[ASKED], [ASKED, CALLED, ANSWERED], [CALLED_TWICE, SECOND, ANSWERED, ASKED, CALLED, ANSWERED]])
def test_calls_and_answers_that_belong_together(messages: list[Any]) -> None:
    check_tool_answers(messages)


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([ASKED, CALLED], r"before messages\[2\] these have no answer: c1"),
        ([CALLED, ASKED], r"before messages\[1\]"),
        ([CALLED_TWICE, ANSWERED], "no answer: c2"),
        ([ANSWERED], r"messages\[0\].*open calls: none"),
        ([CALLED, SECOND], "'c2'.*open calls: c1"),
        ([CALLED, ANSWERED, ANSWERED], r"messages\[2\].*none"),
    ],
)
def test_calls_and_answers_that_do_not(messages: list[Any], says: str) -> None:
    with pytest.raises(RequestRefused, match=says):
        check_tool_answers(messages)


@pytest.mark.parametrize("given", [None, [], "hi", {}, [{"role": "text", "content": "hi"}], [{"role": "user"}], ["hi"]])
def test_what_is_no_conversation(given: Any) -> None:
    with pytest.raises(RequestRefused) as caught:
        parse_messages(given, "input")
    assert caught.value.param == "input"


def test_the_prompt_of_several_answers_counts_once() -> None:
    asked = COMPLETIONS.read({"model": "m", "prompt": ["abc", "de"], "n": 2}, {}, 4)
    replies = [Reply("x"), Reply("xy", reasoning="r"), Reply("xyz"), Reply("", reasoning="rrr")]
    answers = [
        generate(reply, prompt_tokens=count, max_tokens=None, stops=()) for reply, count in zip(replies, asked.prompt_tokens, strict=True)
    ]
    completion = sum(answer.usage.completion_tokens for answer in answers)
    assert (asked.prompt_tokens, asked.num_choices, asked.number, asked.model) == ([3, 3, 2, 2], 2, 4, "m")
    assert asked.usage(answers) == Usage(5, 4, completion, 5 + completion)
    reported = Usage(7, 0, 0, 7)
    assert asked.usage([generate(Reply("x", usage=reported), prompt_tokens=3, max_tokens=None, stops=())]) is reported
    assert [asked.prompt_ids(index) for index in (0, 1, 2)] == [[97, 98, 99], [97, 98, 99], [100, 101]]


@pytest.mark.parametrize(
    ("body", "is_stream", "wants_usage"),
    [
        *[({"stream": value}, False, False) for value in (None, False)],
        ({"stream": True}, True, False),
        ({"stream_options": None}, False, False),
        ({"stream": True, "stream_options": {"include_usage": False}}, True, False),
        ({"stream_options": {"include_usage": True}}, False, True),
    ],
)
def test_whether_an_answer_is_streamed_and_with_its_usage(body: dict[str, Any], is_stream: bool, wants_usage: bool) -> None:
    asked = COMPLETIONS.read({"model": "m", "prompt": "p", **body}, {}, 1)
    assert (asked.is_stream, asked.wants_usage) == (is_stream, wants_usage)


def test_what_goes_over_the_wire() -> None:
    assert (dumps({"a": "é"}), event([0]), event({}, "done")) == (b'{"a":"\\u00e9"}', b"data: [0]\n\n", b"event: done\ndata: {}\n\n")
    body = {"a": 0, "b": None, "c": 1}
    assert (without(body, "a", "c", "absent"), without(body)) == ({"b": None}, body)
