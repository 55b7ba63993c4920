"""The model of a running rollout, as programs reach it over HTTP with real SDKs."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import openai
import pytest

import verifiers_compat.v1 as vf
from tests.models import Failing, Mute, Recording
from vfgym.clients import Client, ClientConfig
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Response, ToolCall
from vfgym.model_server import ModelServer
from vfgym.testing import ScriptedClient

TOOL = {"type": "object", "properties": {"a": {"type": "integer"}}}


CALL = AssistantMessage(None, tool_calls=[ToolCall("c1", "add", '{"a": 1}')])


async def test_an_async_program_asks_through_the_openai_sdk() -> None:
    async def program(task: vf.Task, state: vf.State) -> dict[str, Any]:
        client = state.get_client()
        messages: list[Any] = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "go ✓"}]
        tools: Any = [{"type": "function", "function": {"name": "add", "description": "Add.", "parameters": TOOL}}]
        first = await client.chat.completions.create(model="any", messages=messages, tools=tools, temperature=0.5, max_tokens=7)
        call = first.choices[0].message.tool_calls[0]
        assert (call.function.name, first.choices[0].finish_reason, first.usage.total_tokens) == ("add", "tool_calls", 8)
        messages += [first.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "2"}]
        second = await client.chat.completions.create(model="any", messages=messages)
        return {"said": second.choices[0].message.content}

    client = Recording([CALL, "done ✓"])
    state = await vf.Harness(program, client=client, model="m", sampling_args={"temperature": 1.0}).run({"prompt": "go"})
    assert (state["said"], state["stop_condition"], state["num_model_requests"]) == ("done ✓", "program_completed", 2)
    assert [message["role"] for message in state["completion"]] == ["assistant", "tool", "assistant"]
    assert client.asked[0]["model"] == "m"
    assert client.asked[0]["sampling_args"] == {"temperature": 1.0, "max_tokens": 7}
    assert [tool.name for tool in client.asked[0]["tools"]] == ["add"]
    assert client.asked[1]["prompt"][-1] == {"role": "tool", "content": "2", "tool_call_id": "c1"}


async def test_a_plain_program_may_use_a_synchronous_client() -> None:
    def program(task: vf.Task, state: vf.State) -> None:
        client = state.get_client("messages", sync=True)
        messages: list[Any] = [{"role": "user", "content": "go"}]
        tools: Any = [{"name": "add", "description": "Add.", "input_schema": TOOL}]
        choice: Any = {"type": "any"}
        first = client.messages.create(model="any", max_tokens=9, system="be kind", messages=messages, tools=tools, tool_choice=choice)
        block = next(block for block in first.content if block.type == "tool_use")
        assert (block.name, block.input, first.stop_reason) == ("add", {"a": 1}, "tool_use")
        messages += [
            {"role": "assistant", "content": [block.model_dump(include={"type", "id", "name", "input"})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block.id, "content": "2"}]},
        ]
        second = client.messages.create(model="any", max_tokens=9, messages=messages)
        state["said"] = second.content[0].text

    client = Recording([CALL, "done"])
    state = await vf.Harness(program, client=client, model="m").run({"prompt": "go"})
    assert state["said"] == "done"
    assert [message["role"] for message in client.asked[0]["prompt"]] == ["system", "user"]
    assert client.asked[0]["sampling_args"] == {"max_tokens": 9, "tool_choice": "required"}
    assert client.asked[1]["prompt"][-1] == {"role": "tool", "content": "2", "tool_call_id": "c1"}


async def test_answers_can_be_streamed() -> None:
    async def program(task: vf.Task, state: vf.State) -> dict[str, Any]:
        chat, texts = state.get_client(), []
        async for chunk in await chat.chat.completions.create(model="x", messages=[{"role": "user", "content": "go"}], stream=True):
            texts += [choice.delta.content or "" for choice in chunk.choices]
        completion = await state.get_client("completions").completions.create(model="x", prompt="go")
        claude = state.get_client("anthropic_messages")
        async with claude.messages.stream(model="x", max_tokens=9, messages=[{"role": "user", "content": "go"}]) as stream:
            final = await stream.get_final_message()
        return {"chat": "".join(texts), "text": completion.choices[0].text, "call": final.content[-1].input}

    state = await vf.Harness(program, client=ScriptedClient(["one", "two", CALL]), model="m").run({"prompt": "go"})
    assert (state["chat"], state["text"], state["call"]) == ("one", "two", {"a": 1})


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize(("error", "stop"), [(vf.ModelError("down"), "has_error"), (vf.OverlongPromptError("too long"), "prompt_too_long")])
async def test_a_model_that_fails_ends_the_rollout_with_its_own_error(error: Exception, stop: str, api: str) -> None:
    """Streamed or not: the SDK is told before a stream begins."""
    messages: Any = [{"role": "user", "content": "go"}]
    told: list[Any] = []

    async def program(state: vf.State) -> None:
        client = state.get_client(api)
        asks = {
            "chat": lambda: client.chat.completions.create(model="m", messages=messages, stream=True),
            "responses": lambda: client.responses.create(model="m", input="go", stream=True),
            "messages": lambda: client.messages.create(model="m", max_tokens=9, messages=messages, stream=True),
        }
        try:
            await asks[api]()
        except Exception as raised:
            told.append(getattr(raised, "status_code", None))
            raise

    state = await vf.Harness(program, client=Failing(error), model="m").run({"prompt": "go"})
    assert state["stop_condition"] == stop
    assert (state["error"] or {}).get("error") == ("ModelError" if stop == "has_error" else None)
    assert told == [424 if stop == "has_error" else 400]


async def test_what_a_program_raises() -> None:
    def broken(task: Any, state: Any) -> None:
        raise ValueError("a bug")

    def tool_error(task: Any, state: Any) -> None:
        raise vf.ToolError("broken")

    with pytest.raises(ValueError, match="a bug"):
        await vf.Harness(program=broken).run({"prompt": "go"})
    state = await vf.Harness(program=tool_error).run({"prompt": "go"})
    assert (state["stop_condition"], state["is_completed"], state["error"]["error"]) == ("has_error", True, "ToolError")


async def test_requests_that_cannot_be_read_are_refused() -> None:
    answers: list[tuple[int, str]] = []

    async def program(state: vf.State) -> None:
        import aiohttp

        root = state.get_endpoint_config("messages")["base_url"]
        async with aiohttp.ClientSession() as session:
            for path, body in (
                ("v1/chat/completions", "{"),
                ("v1/chat/completions", "[]"),
                ("v1/chat/completions", '{"model": "m"}'),
                ("v1/chat/completions", '{"messages": [], "n": 2}'),
                ("v1/messages", '{"messages": [{"role": "user", "content": [{"type": "video"}]}]}'),
                ("v1/responses", "{}"),
                ("v1/responses", '{"input": ["go"]}'),
                ("v1/responses", '{"input": "go", "reasoning": "high"}'),
                ("v1/responses", '{"input": [{"type": "item_reference", "id": "x"}]}'),
                ("v1/responses", '{"input": "go", "previous_response_id": "x"}'),
                ("v1/responses", '{"input": "go", "tools": [{"type": "web_search"}]}'),
                ("v1/embeddings", "{}"),
                ("../nobody/v1/messages", "{}"),
            ):
                async with session.post(f"{root}/{path}", data=body) as response:
                    answers.append((response.status, (await response.json())["error"]["type"]))

    await vf.Harness(program, client=ScriptedClient([]), model="m").run({"prompt": "go"})
    assert [status for status, _ in answers] == [400] * 11 + [404, 404]
    assert {kind for _, kind in answers} == {"invalid_request_error", "not_found_error"}


async def test_the_endpoint_is_gone_after_the_rollout() -> None:
    kept: list[Any] = []

    async def program(state: vf.State) -> None:
        kept.append(state.get_endpoint_config())

    await vf.Harness(program, client=ScriptedClient(["x"]), model="m").run({"prompt": "go"})
    import aiohttp

    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{kept[0]['base_url']}/chat/completions", json={"messages": []}) as response,
    ):
        assert response.status == 404


@pytest.mark.parametrize(
    ("api", "says"),
    [
        ("openai_chat_completions_token", "does not speak"),
        ("renderer", "does not speak"),
        ("nemorl_chat_completions", "does not speak"),
        ("chats", "no API"),
    ],
)
async def test_other_apis_are_refused(api: str, says: str) -> None:
    async def program(state: vf.State) -> None:
        state.get_client(api)

    with pytest.raises(ValueError, match=says):
        await vf.Harness(program, client=ScriptedClient([]), model="m").run({"prompt": "go"})


async def test_many_rollouts_share_one_server() -> None:
    async def program(task: vf.Task, state: vf.State) -> dict[str, Any]:
        answer = await state.get_client().chat.completions.create(model="m", messages=[{"role": "user", "content": task["question"]}])
        return {"said": answer.choices[0].message.content}

    class Echo(Client):
        async def get_response(self, prompt: Any, *args: Any, **kwargs: Any) -> Response:
            await asyncio.sleep(0)
            return Response("r", 0, "m", None, AssistantMessage(f"echo {prompt[-1]['content']}"))

    player = vf.Harness(program, client=Echo(), model="m")
    states = await asyncio.gather(*(player.run({"question": str(number)}) for number in range(5)))
    assert [state["said"] for state in states] == [f"echo {number}" for number in range(5)]
    assert json.dumps(states[0])


@pytest.mark.parametrize(
    ("api", "sync"), [("chat", False), ("completions", True), ("responses", False), ("messages", True), ("messages", False)]
)
async def test_a_refused_key_is_told_as_the_provider_tells_it_and_ends_the_rollout_as_what_it_is(api: str, sync: bool) -> None:
    """The program gets 401 or 403 from its SDK; a run of many rollouts ends with the first, as everywhere."""
    told: list[Any] = []
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}], "model": "m"}
    create = {
        "chat": lambda client: client.chat.completions.create(**asked),
        "completions": lambda client: client.completions.create(model="m", prompt="go"),
        "responses": lambda client: client.responses.create(model="m", input="go"),
        "messages": lambda client: client.messages.create(**asked, max_tokens=9),
    }[api]

    async def program(state: vf.State) -> None:
        try:
            await create(state.get_client(api))
        except Exception as error:
            told.append(error)
            raise

    def plain_program(state: vf.State) -> None:
        try:
            create(state.get_client(api, sync=True))
        except Exception as error:
            told.append(error)
            raise

    with ModelServer(api_keys=["right"], forbidden_keys=["poor"]) as server:
        for key, name in (("wrong", "AuthenticationError"), ("poor", "PermissionDeniedError")):
            client = ClientConfig(api_base_url=server.openai_url, api_key=key, max_retries=0)
            player = vf.Harness(plain_program if sync else program, client=client, model="echo")
            with pytest.raises(openai.APIStatusError) as raised:
                await player.run({"prompt": "go"})
            assert (type(raised.value).__name__, type(told[-1]).__name__) == (name, name)
            assert raised.value is not told[-1], "it is that of the provider's client"
            with pytest.raises(openai.APIStatusError):
                await vf.Env(vf.Taskset([{"question": "?"}] * 2), vf.Harness(program)).evaluate(client, "echo", max_concurrent=1)


async def test_the_model_s_error_keeps_its_own_cause() -> None:
    """And not that of the SDK, which only heard of it."""
    error = vf.ModelError("down")
    error.__cause__ = TimeoutError("no answer")

    async def program(state: vf.State) -> None:
        await state.get_client("responses").responses.create(model="m", input="go")

    state = await vf.Harness(program, client=Failing(error), model="m").run({"prompt": "go"})
    assert state["error"]["error_chain_str"] == "ModelError -> TimeoutError"


async def test_the_sdks_clients_are_closed_with_the_rollout() -> None:
    kept: list[Any] = []

    async def program(state: vf.State) -> None:
        kept.extend(state.get_client(api, sync=sync) for api in ("chat_completions", "messages") for sync in (False, True))
        assert not any(client.is_closed() for client in kept)

    await vf.Harness(program, client=ScriptedClient([]), model="m").run({"prompt": "go"})
    assert [client.is_closed() for client in kept] == [True] * 4


async def test_a_program_that_waits_for_the_model_is_told_when_its_rollout_is_cancelled() -> None:
    """Also one on a thread, which nothing else could end; what was asked of the model is cancelled, too."""
    client = Mute()
    told: list[Any] = []
    has_ended = threading.Event()

    def program(state: vf.State) -> None:
        try:
            state.get_client(sync=True).chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
        except Exception as error:
            told.append(error)
            raise
        finally:
            has_ended.set()

    run = asyncio.ensure_future(vf.Harness(program, client=client, model="m").run({"prompt": "go"}))
    async with asyncio.timeout(60):
        await client.asked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await client.left.wait()
        assert await asyncio.to_thread(has_ended.wait, 60)
    assert len(told) == 1


async def test_the_model_is_reached_over_http_only_while_the_program_runs() -> None:
    async def score(task: Any, state: vf.State) -> float:
        state.get_endpoint_config()
        return 1.0

    with pytest.raises(ConfigurationError, match="only while the program"):
        await harness("x", rewards=[score]).run({"prompt": "go"})


def harness(*answers: Any, **kwargs: Any) -> vf.Harness:
    return vf.Harness(client=ScriptedClient(answers), model="m", **kwargs)
