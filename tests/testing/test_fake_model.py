"""`FakeModel`: answers by a rule or in order, requests that are remembered, and faults."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import vfgym
from vfgym import AssistantMessage, Response, Usage
from vfgym.errors import ConfigurationError, LimitReached, ModelError
from vfgym.testing import FakeModel, FakeModelRequest, call


async def ask(model: FakeModel, *texts: str, **kwargs: Any) -> list[Response]:
    return [await model.get_response([vfgym.UserMessage(text)], "m", **kwargs) for text in texts]


async def test_a_rule_answers_and_is_told_all() -> None:
    def rule(request: FakeModelRequest) -> str:
        return f"{request.model} {request.text} {request.sampling_args} {len(request.tools)} {dict(request.options)}"

    tool = vfgym.Tool(name="t", description="", parameters={"type": "object"})
    [response] = await ask(FakeModel(rule), "hello", sampling_args={"temperature": 0}, tools=[tool], state=None)
    assert response.message.content == "m hello {'temperature': 0} 1 {'state': None}"
    [response] = await ask(FakeModel(rule), "hello")
    assert response.message.content == "m hello {} 0 {}"


async def test_a_rule_may_be_async_and_sees_the_whole_conversation() -> None:
    async def rule(request: FakeModelRequest) -> str:
        await asyncio.sleep(0)
        return str([message["content"] for message in request.prompt])

    response = await FakeModel(rule).get_response([vfgym.SystemMessage("a"), vfgym.UserMessage("b")], "m")
    assert response.message.content == "['a', 'b']"
    assert (await FakeModel(lambda request: request.text).get_response([], "m")).message.content == ""


async def test_a_request_stays_as_it_was() -> None:
    """Also where whoever asked goes on with the same list; and so do the answers."""
    answers: list[Any] = ["a", "b"]
    model, prompt, args, tools = FakeModel(answers), [vfgym.UserMessage("1")], {"seed": 0}, list[vfgym.Tool]()
    answers.clear()
    response = await model.get_response(prompt, "m", args, tools)  # type: ignore[arg-type]
    assert (response.id, response.model, response.usage, response.message) == ("fake-1", "m", None, AssistantMessage("a"))
    prompt.append(vfgym.UserMessage("2"))
    args["seed"] = 1
    tools.append(vfgym.Tool(name="t", description="", parameters={"type": "object"}))
    [request] = model.requests
    assert (request.prompt, request.sampling_args, request.tools) == ([vfgym.UserMessage("1")], {"seed": 0}, [])


async def test_answers_in_order_are_given_whoever_asks() -> None:
    whole = Response("own", 0, "m", Usage(1, 0, 2, 3), AssistantMessage("whole"))
    model = FakeModel(["text", {"role": "assistant", "content": "dict"}, call("add", a=1), whole])
    responses = await ask(model, "1", "2", "3", "4")
    assert [response.message.content for response in responses] == ["text", "dict", None, "whole"]
    assert responses[2].message.tool_calls[0].arguments == '{"a": 1}'
    assert responses[3] is whole
    assert len({response.id for response in responses}) == 4
    assert [request.text for request in model.requests] == ["1", "2", "3", "4"]
    with pytest.raises(ConfigurationError, match=r"has 4 answer\(s\), and is asked for one more"):
        await ask(model, "5")


@pytest.mark.parametrize("error", [ModelError("gone"), ValueError("a bug"), asyncio.CancelledError()])
@pytest.mark.parametrize("by_rule", [True, False])
async def test_an_exception_is_raised_and_the_request_remembered(error: BaseException, by_rule: bool) -> None:
    model = FakeModel((lambda request: error) if by_rule else [error, "then an answer"])
    with pytest.raises(type(error)):
        await ask(model, "1")
    assert len(model.requests) == 1
    if not by_rule:
        assert (await ask(model, "2"))[0].message.content == "then an answer"


def test_one_text_is_no_list_of_answers() -> None:
    with pytest.raises(ConfigurationError, match="must be a list or a function, got the text 'yes'"):
        FakeModel("yes")


async def test_what_it_is_asked_counts_against_limits() -> None:
    with vfgym.limit(requests=1), pytest.raises(LimitReached):
        await ask(FakeModel(["a", "b"]), "1", "2")
