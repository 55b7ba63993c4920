"""A stream is what a provider's is: the official SDKs read it in pieces, it is kept alive while it waits, and a program may go away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from vfgym.errors import ModelError, OverlongPromptError
from vfgym.interception import Endpoint, Request, open_endpoint, server
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ToolCall, Usage

TEXT = "It is no cat, since a cat has whiskers, and a cat would have come when it was called. ✓"
REASONING = "Let me see what there is: a tail, four feet, and no whiskers at all."
ARGUMENTS = '{"what": "a cat with a tail and four feet, but without any whiskers", "where": 1}'
CALLS = [ToolCall("c1", "look", ARGUMENTS), ToolCall("c2", "listen", "{}")]
THINKING = [{"type": "thinking", "thinking": REASONING, "signature": "s1"}]
USAGE = Usage(prompt_tokens=3, completion_tokens=5, total_tokens=8)
GO: Any = [{"role": "user", "content": "go"}]


class Answers:
    """Answers what is asked, as soon as it may: with a message, or an error."""

    def __init__(self, answer: AssistantMessage | Exception) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.may_answer, self.is_cancelled = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.is_cancelled.set()
            raise
        if isinstance(self.answer, Exception):
            raise self.answer
        return Response("r", 0, "m", USAGE, self.answer)


class Asked:
    """An endpoint with the clients of both SDKs."""

    def __init__(self, endpoint: Endpoint, answers: Answers) -> None:
        self.endpoint, self.answers = endpoint, answers
        self.openai: openai.AsyncOpenAI = endpoint.sdk_client("chat", sync=False)
        self.anthropic: anthropic.AsyncAnthropic = endpoint.sdk_client("messages", sync=False)

    async def begin_stream(self, api: str) -> AsyncIterator[Any]:
        """Return the stream of an API, once its headers have come."""
        if api == "chat":
            return await self.openai.chat.completions.create(model="m", messages=GO, stream=True)
        if api == "completions":
            return await self.openai.completions.create(model="m", prompt="go", stream=True)
        if api == "responses":
            return await self.openai.responses.create(model="m", input="go", stream=True)
        return await self.anthropic.messages.create(model="m", messages=GO, max_tokens=9, stream=True)


APIS = ["chat", "completions", "responses", "messages"]


@pytest.fixture
async def asked(request: pytest.FixtureRequest) -> AsyncIterator[Asked]:
    """An endpoint whose answer is the parameter, which is given at once where it is a message."""
    answers = Answers(request.param)
    endpoint = await open_endpoint(answers)
    yield Asked(endpoint, answers)
    await endpoint.close()


def with_answer(answer: AssistantMessage | Exception) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("asked", [answer], indirect=True)


@with_answer(AssistantMessage(TEXT, tool_calls=CALLS, reasoning_content=REASONING))
async def test_chat_completions_come_in_pieces_that_give_the_whole_message(asked: Asked) -> None:
    asked.answers.may_answer.set()
    chunks = [chunk async for chunk in await asked.begin_stream("chat")]
    assert all(len(chunk.choices) == 1 and chunk.usage is None for chunk in chunks)  # as programs read it that do not ask for the usage
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert (deltas[0].role, deltas[0].content) == ("assistant", "")
    texts = [delta.content for delta in deltas if delta.content]
    reasoning = [delta.reasoning_content for delta in deltas if getattr(delta, "reasoning_content", None)]
    calls = [call for delta in deltas for call in delta.tool_calls or []]
    arguments = [call.function.arguments for call in calls if call.index == 0 and call.function.arguments]
    assert ("".join(texts), "".join(reasoning), "".join(arguments)) == (TEXT, REASONING, ARGUMENTS)
    assert min(len(texts), len(reasoning), len(arguments)) > 3
    assert [(call.index, call.id, call.function.name) for call in calls if call.id] == [(0, "c1", "look"), (1, "c2", "listen")]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["tool_calls"]
    options: Any = {"include_usage": True}
    async with asked.openai.chat.completions.stream(model="m", messages=GO, stream_options=options) as stream:
        last = [event.chunk async for event in stream if event.type == "chunk"][-1]
        final = await stream.get_final_completion()
    whole = await asked.openai.chat.completions.create(model="m", messages=GO)
    assert last.choices == []
    assert last.usage == final.usage == whole.usage
    assert (final.usage.prompt_tokens, final.usage.completion_tokens, final.usage.total_tokens) == (3, 5, 8)
    put_together, message = final.choices[0].message, whole.choices[0].message
    assert (put_together.content, put_together.reasoning_content) == (message.content, message.reasoning_content) == (TEXT, REASONING)
    assert [(call.id, call.function.name, call.function.arguments) for call in put_together.tool_calls] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]


@with_answer(ResponseMessage(TEXT, finish_reason="length"))
async def test_completions_come_in_pieces(asked: Asked) -> None:
    asked.answers.may_answer.set()
    options: Any = {"include_usage": True}
    stream = await asked.openai.completions.create(model="m", prompt="go", stop="END", stream=True, stream_options=options)
    *pieces, end, usage = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].text for chunk in pieces) == TEXT
    assert len(pieces) > 3
    assert (end.choices[0].text, end.choices[0].finish_reason) == ("", "length")
    assert (usage.choices, usage.usage.completion_tokens) == ([], 5)
    assert all(chunk.usage is None for chunk in (*pieces, end))
    [request] = asked.answers.requests
    assert (request.messages[0]["content"], request.sampling_args) == ("go", {"stop": "END"})


@with_answer(AssistantMessage(TEXT, tool_calls=CALLS, reasoning_content=REASONING))
async def test_responses_come_in_pieces_that_give_the_whole_response(asked: Asked) -> None:
    asked.answers.may_answer.set()
    events = [event async for event in await asked.begin_stream("responses")]
    of_kind = {
        kind: [event.delta for event in events if event.type == f"response.{kind}.delta"]
        for kind in ("output_text", "reasoning_summary_text", "function_call_arguments")
    }
    assert ["".join(deltas) for deltas in of_kind.values()] == [TEXT, REASONING, ARGUMENTS + "{}"]
    assert min(map(len, of_kind.values())) > 3
    async with asked.openai.responses.stream(model="m", input="go") as stream:
        final = await stream.get_final_response()
    whole = await asked.openai.responses.create(model="m", input="go")
    assert (final.output_text, final.usage, [item.type for item in final.output]) == (
        whole.output_text,
        whole.usage,
        ["reasoning", "message", "function_call", "function_call"],
    )


@with_answer(AssistantMessage(TEXT, tool_calls=CALLS, thinking_blocks=THINKING))
async def test_messages_come_in_pieces_that_give_the_whole_message(asked: Asked) -> None:
    asked.answers.may_answer.set()
    deltas = [event.delta async for event in await asked.begin_stream("messages") if event.type == "content_block_delta"]
    fields = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
    of_kind = {kind: [getattr(delta, name) for delta in deltas if delta.type == kind] for kind, name in fields.items()}
    assert ["".join(each) for each in of_kind.values()] == [TEXT, REASONING, ARGUMENTS + "{}"]
    assert min(map(len, of_kind.values())) > 3
    async with asked.anthropic.messages.stream(model="m", messages=GO, max_tokens=9) as stream:
        final = await stream.get_final_message()
    whole = await asked.anthropic.messages.create(model="m", messages=GO, max_tokens=9)
    assert [block.to_dict() for block in final.content] == [block.to_dict() for block in whole.content]
    assert (final.stop_reason, final.usage.input_tokens, final.usage.output_tokens) == ("tool_use", 3, 5)


@pytest.mark.parametrize("api", APIS)
@with_answer(AssistantMessage("at last"))
async def test_a_stream_begins_before_a_slow_answer_and_is_kept_alive(api: str, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SENDS_WITHIN", 0.01)
    stream = await asked.begin_stream(api)  # its headers have come, and nobody has answered
    asked.answers.may_answer.set()
    assert "at last" in "".join([str(event) async for event in stream])


@pytest.mark.parametrize("api", APIS)
@with_answer(ModelError("the model is gone"))
async def test_what_goes_wrong_after_a_stream_began_is_an_event_that_the_sdks_raise(
    api: str, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_SENDS_WITHIN", 0.01)
    stream = await asked.begin_stream(api)
    asked.answers.may_answer.set()
    with pytest.raises((openai.APIError, anthropic.APIError), match="the model is gone"):
        [event async for event in stream]


@pytest.mark.parametrize("api", APIS)
@with_answer(OverlongPromptError("9 tokens"))
async def test_what_goes_wrong_at_once_has_the_status_of_a_provider(api: str, asked: Asked) -> None:
    asked.answers.may_answer.set()
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError), match="prompt is too long"):
        await asked.begin_stream(api)


@pytest.mark.parametrize("waits", [True, False], ids=["while it waits", "in the middle of its answer"])
@with_answer(AssistantMessage("x" * 2**25))
async def test_a_program_that_goes_away_ends_its_request_and_is_no_error(
    waits: bool, asked: Asked, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_SENDS_WITHIN", 0.01)
    url = f"{asked.endpoint.config('chat', 'm')['base_url']}/chat/completions"
    with caplog.at_level(logging.INFO):
        async with aiohttp.ClientSession() as session:
            response = await session.post(url, json={"messages": GO, "stream": True})
            assert (await response.content.readline()).startswith(b": ")
            if not waits:
                asked.answers.may_answer.set()
                while not (await response.content.readline()).startswith(b"data: "):
                    pass
            response.close()
        if waits:
            await asked.answers.is_cancelled.wait()
        asked.answers.may_answer.set()
        [chunk async for chunk in await asked.begin_stream("chat")]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
