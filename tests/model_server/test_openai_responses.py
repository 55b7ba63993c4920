"""Responses, asked by OpenAI's SDK."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import openai
import pytest

from tests.model_server.asked import CALLS, CHAT_TOOL, FULL
from vfgym.model_server import ModelRequest, ModelServer, Reply


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
