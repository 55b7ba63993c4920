"""What programs say to the endpoint of their rollout reaches the model, and what it answers reaches them, in every format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import Recording
from vfgym.clients import Client
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ToolCall

PNG = "iVBORw0KGgo="
TWO_CALLS = AssistantMessage("both", tool_calls=[ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "add", '{"a": 2}')])
THINKING = [{"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "redacted_thinking", "data": "d1"}]


async def run(ask: Callable[[Any], Awaitable[Any]], api: str, *answers: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return what a program got that asks with the SDK's client, and what the model was asked."""
    got: list[Any] = []

    async def program(state: vf.State) -> None:
        got.append(await ask(state.get_client(api)))

    client = Recording(answers)
    await vf.Harness(program, client=client, model="m").run({"prompt": "go"})
    return got[0], client.asked


async def test_all_that_a_message_of_anthropics_can_say_reaches_the_model() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    link = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, image, link]},
        {
            "role": "assistant",
            "content": [
                *THINKING,
                {"type": "text", "text": "I "},
                {"type": "text", "text": "add"},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "and now?"},
            ],
        },
        {"role": "assistant", "content": "wait"},
    ]

    async def ask(client: Any) -> Any:
        return await client.messages.create(
            model="any",
            max_tokens=9,
            system=[{"type": "text", "text": "be"}, {"type": "text", "text": "kind"}],
            messages=messages,
            stop_sequences=["END"],
            tools=[{"name": "add", "input_schema": {"type": "object"}}],
            tool_choice={"type": "tool", "name": "add"},
        )

    answer, [asked] = await run(ask, "messages", ResponseMessage("cut", finish_reason="length"))
    assert asked["sampling_args"] == {
        "max_tokens": 9,
        "stop": ["END"],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
    }
    assert [(tool.name, tool.description, tool.parameters) for tool in asked["tools"]] == [("add", "", {"type": "object"})]
    system, look, thought, result, now, wait = asked["prompt"]
    assert (system["role"], system["content"]) == ("system", "be\nkind")
    urls = [f"data:image/png;base64,{PNG}", "https://example.com/a.png"]
    assert look["content"] == [{"type": "text", "text": "look"}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]
    assert (thought["content"], thought["thinking_blocks"]) == ("I add", THINKING)
    assert [(call.id, call.name, call.arguments) for call in thought.tool_calls] == [("c1", "add", '{"a": 1}')]
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "2"}
    assert (now["role"], now["content"], wait["role"], wait["content"]) == ("user", "and now?", "assistant", "wait")
    assert (answer.content[0].text, answer.stop_reason) == ("cut", "max_tokens")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 5)


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_all_that_an_answer_can_hold_reaches_a_program_that_speaks_anthropics_format(is_streamed: bool) -> None:
    said = AssistantMessage("both", tool_calls=[*TWO_CALLS.tool_calls, ToolCall("c3", "add", "[3]")], thinking_blocks=THINKING)

    async def ask(client: Any) -> Any:
        asked: Any = {"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
        if not is_streamed:
            return await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            return await stream.get_final_message()

    answer, _ = await run(ask, "messages", said)
    thinking, redacted, text, *calls = answer.content
    assert (thinking.thinking, thinking.signature, redacted.data, text.text) == ("hm", "s1", "d1", "both")
    assert [(call.id, call.name, call.input) for call in calls] == [
        *[("c1", "add", {"a": 1}), ("c2", "add", {"a": 2})],
        ("c3", "add", {"arguments": [3]}),
    ]
    assert (answer.stop_reason, answer.usage.output_tokens) == ("tool_use", 5)


async def test_all_that_a_request_of_the_responses_api_can_say_reaches_the_model() -> None:
    """Items of every kind that a conversation has; those of one answer are one assistant message."""
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"}
    text = {"type": "output_text", "text": "I add", "annotations": []}
    items: list[Any] = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, image]},
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [text]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "add", "arguments": '{"a": 2}'},
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "3"}]},
        {"role": "assistant", "content": "wait"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "and now?"},
    ]
    schema = {"type": "json_schema", "name": "sum", "schema": {"type": "object"}, "strict": True}

    async def ask(client: Any) -> Any:
        return await client.responses.create(
            model="any",
            instructions="be kind",
            input=items,
            tools=[{"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": None}],
            tool_choice={"type": "function", "name": "add"},
            max_output_tokens=9,
            temperature=0.5,
            reasoning={"effort": "low"},
            text={"format": schema, "verbosity": "low"},
            store=False,
        )

    answer, [asked] = await run(ask, "responses", ResponseMessage("cut", finish_reason="length"))
    assert asked["sampling_args"] == {
        "temperature": 0.5,
        "max_completion_tokens": 9,
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "reasoning_effort": "low",
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "sum", "schema": {"type": "object"}, "strict": True}},
    }
    assert [(tool.name, tool.parameters) for tool in asked["tools"]] == [("add", {"type": "object"})]
    prompt = asked["prompt"]
    assert [message["role"] for message in prompt] == [
        "system",
        "developer",
        "user",
        "assistant",
        "tool",
        "tool",
        *["assistant"] * 2,
        "user",
    ]
    assert prompt[2]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
    ]
    assert (prompt[3]["content"], prompt[3]["reasoning_content"]) == ("I add", "hm")
    assert [(call.id, call.name, call.arguments) for call in prompt[3].tool_calls] == [("c1", "add", '{"a": 1}'), ("c2", "add", '{"a": 2}')]
    assert [message["content"] for message in prompt[4:]] == ["2", "3", "wait", "done", "and now?"]
    assert (answer.output_text, answer.status, answer.incomplete_details.reason) == ("cut", "incomplete", "max_output_tokens")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (3, 5, 8)


@pytest.mark.parametrize("how", ["whole", "stream", "events"])
async def test_all_that_an_answer_can_hold_reaches_a_program_that_speaks_the_responses_api(how: str) -> None:
    """Whole, as the SDK puts a stream together, and as the last event of a stream has it; each can be sent back as it is."""
    said = AssistantMessage("both", tool_calls=TWO_CALLS.tool_calls, reasoning_content="hm")

    async def answer_of(client: Any, items: Any) -> Any:
        if how == "whole":
            return await client.responses.create(model="any", input=items)
        if how == "events":
            events = [event async for event in await client.responses.create(model="any", input=items, stream=True)]
            assert [event.sequence_number for event in events] == list(range(len(events)))
            return events[-1].response
        async with client.responses.stream(model="any", input=items) as stream:
            return await stream.get_final_response()

    async def ask(client: Any) -> Any:
        first = await answer_of(client, "go")
        outputs = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "2"}
            for item in first.output
            if item.type == "function_call"
        ]
        second = await answer_of(client, [{"role": "user", "content": "go"}, *first.output, *outputs])
        return first, second

    (first, second), asked = await run(ask, "openai_responses", said, "done")
    reasoning, text, *calls = first.output
    assert (reasoning.summary[0].text, text.content[0].text, first.output_text) == ("hm", "both", "both")
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [("c1", "add", '{"a": 1}'), ("c2", "add", '{"a": 2}')]
    assert (first.status, first.usage.output_tokens) == ("completed", 5)
    assert asked[1]["prompt"][1] == said
    assert [message["role"] for message in asked[1]["prompt"]] == ["user", "assistant", "tool", "tool"]
    assert second.output_text == "done"


async def test_a_plain_program_may_speak_the_responses_api_too() -> None:
    def program(state: vf.State) -> dict[str, Any]:
        with state.get_client("responses", sync=True).responses.stream(model="any", input="go") as stream:
            texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        return {"said": "".join(texts)}

    state = await vf.Harness(program, client=Recording(["one ✓"]), model="m").run({"prompt": "go"})
    assert (state["said"], state["completion"]) == ("one ✓", [{"role": "assistant", "content": "one ✓"}])


async def test_every_name_of_an_api_leads_to_a_client_that_speaks_it() -> None:
    """With the addresses that verifiers 0.1.14 gives: only that of Anthropic's SDK is without ``/v1``."""
    given: dict[str, Any] = {}
    names = ["chat", "chat_completions", "completions", "responses", "messages"]
    names += ["openai_chat_completions", "openai_completions", "openai_responses", "anthropic_messages"]

    async def program(state: vf.State) -> None:
        for name in names:
            clients = [type(state.get_client(name, sync=sync)).__name__ for sync in (False, True)]
            given[name] = state.get_endpoint_config(name), clients

    await vf.Harness(program, client=Recording([]), model="m").run({"prompt": "go"})
    openai_names, own = {"AsyncOpenAI", "OpenAI"}, ("messages", "anthropic_messages")
    assert all(set(clients) == ({"AsyncAnthropic", "Anthropic"} if name in own else openai_names) for name, (_, clients) in given.items())
    assert all(config["base_url"].endswith("/v1") is (name not in own) for name, (config, _) in given.items())
    assert all(("api_base" in config, config["model"]) == (name not in own, "m") for name, (config, _) in given.items())
    kinds = {name: config["api_client_type"] for name, (config, _) in given.items()}
    assert (kinds["chat"], kinds["responses"], kinds["messages"]) == ("openai_chat_completions", "openai_responses", "anthropic_messages")


async def test_an_exception_of_the_client_is_told_to_the_program_and_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The SDK does not repeat such a request."""
    calls: list[int] = []

    class Broken(Client):
        async def get_response(self, *args: Any, **kwargs: Any) -> Response:
            calls.append(1)
            raise ZeroDivisionError("a bug of the client")

    async def program(state: vf.State) -> dict[str, Any]:
        try:
            await state.get_client().chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
        except Exception as error:
            return {"told": f"{getattr(error, 'status_code', None)}: {error}"}
        return {}

    state = await vf.Harness(program, client=Broken(), model="m").run({"prompt": "go"})
    assert state["told"].startswith("500")
    assert "ZeroDivisionError: a bug of the client" in state["told"]
    assert "a model call of a rollout failed" in caplog.text
    assert len(calls) == 1
