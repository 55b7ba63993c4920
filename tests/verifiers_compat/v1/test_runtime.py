"""The model of a running rollout, as programs reach it over HTTP with real SDKs. (`tests/interception` has what each API can say.)"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import aiohttp
import openai
import pytest

import verifiers_compat.v1 as vf
from tests.models import Failing, InOrder, Mute, Recording, calling
from tests.verifiers_compat.models import response, roles
from tests.verifiers_compat.v1.playing import ROWS, Counter, counting, harness, noting_groups
from vfgym.clients import ClientConfig
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.testing import ScriptedClient

TOOL = {"type": "object", "properties": {"a": {"type": "integer"}}}
CALL = calling(("add", {"a": 1}))
GO: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "go"}]}
ASKS: dict[str, Any] = {
    "chat": lambda client, **more: client.chat.completions.create(**GO, **more),
    "completions": lambda client, **more: client.completions.create(model="m", prompt="go", **more),
    "responses": lambda client, **more: client.responses.create(model="m", input="go", **more),
    "messages": lambda client, **more: client.messages.create(**GO, max_tokens=9, **more),
}
"""How an SDK asks, by the name of the API."""


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
    assert roles(state["completion"]) == ["assistant", "tool", "assistant"]
    first, second = client.asked
    assert (first["model"], first["sampling_args"]) == ("m", {"temperature": 1.0, "max_tokens": 7})
    assert [tool.name for tool in first["tools"]] == ["add"]
    assert second["prompt"][-1] == {"role": "tool", "content": "2", "tool_call_id": "c0"}


async def test_a_plain_program_may_use_a_synchronous_client() -> None:
    def program(task: vf.Task, state: vf.State) -> None:
        tools: Any = [{"name": "add", "description": "Add.", "input_schema": TOOL}]
        said = ASKS["messages"](state.get_client("messages", sync=True), system="be kind", tools=tools, tool_choice={"type": "any"})
        state["said"] = said.content[-1].input

    client = Recording([CALL])
    state = await vf.Harness(program, client=client, model="m").run({"prompt": "go"})
    assert (state["said"], roles(client.asked[0]["prompt"])) == ({"a": 1}, ["system", "user"])
    assert client.asked[0]["sampling_args"] == {"max_tokens": 9, "tool_choice": "required"}


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize(("error", "stop"), [(vf.ModelError("down"), "has_error"), (vf.OverlongPromptError("too long"), "prompt_too_long")])
async def test_a_model_that_fails_ends_the_rollout_with_its_own_error(error: Exception, stop: str, api: str) -> None:
    """It keeps its own cause, and the SDK is told before a stream begins."""
    error.__cause__ = TimeoutError("no answer")
    told: list[Any] = []

    async def program(state: vf.State) -> None:
        try:
            await ASKS[api](state.get_client(api), stream=True)
        except Exception as raised:
            told.append(getattr(raised, "status_code", None))
            raise

    state = await vf.Harness(program, client=Failing(error), model="m").run({"prompt": "go"})
    assert (state["stop_condition"], told) == (stop, [424 if stop == "has_error" else 400])
    assert (state["error"] or {}).get("error_chain_str") == ("ModelError -> TimeoutError" if stop == "has_error" else None)


async def test_a_sandbox_is_opened_once_for_an_owner_and_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr("verifiers_compat.v1.runtime.open_sandbox", lambda *given, **changes: opened.append((*given, changes)) or [])
    small, large = vf.SandboxConfig(), vf.SandboxConfig(cpu_cores=2)

    async def program(state: vf.State) -> None:
        running = state.live("open sandboxes")
        first, *others = [await running.open_sandbox(*each, env={"A": "1"}) for each in (("a", small), ("b", small), ("a", large))]
        assert await running.open_sandbox("a", vf.SandboxConfig()) is first
        assert all(other is not first for other in others)

    assert (await vf.Harness(program, client=Recording([]), model="m").run({}))["error"] is None
    assert [(config, changes) for config, _, changes in opened] == [(each, {"env": {"A": "1"}}) for each in (small, small, large)]


async def test_a_turn_keeps_its_tokens_and_its_usage() -> None:
    client = InOrder(response("x", tokens=(2, 1), usage=(3, 5)))
    [step] = (await vf.Harness(client=client, model="m").run({"prompt": "go"}))["trajectory"]
    assert (step["tokens"]["prompt_ids"], step["tokens"]["completion_ids"], step["is_truncated"]) == ([0, 1], [0], False)
    assert step["response"]["usage"] == {"prompt_tokens": 3, "reasoning_tokens": 0, "completion_tokens": 5, "total_tokens": 8}


async def test_every_name_of_an_api_leads_to_a_client_that_speaks_it() -> None:
    """With the addresses that verifiers 0.1.14 gives: only that of Anthropic's SDK is without ``/v1``."""
    kinds = {"chat_completions": ["chat", "openai_chat_completions"], "completions": ["openai_completions"]}
    kinds |= {"responses": ["openai_responses"], "messages": ["anthropic_messages"]}
    kept: list[Any] = []

    async def program(state: vf.State) -> None:
        for kind, others in kinds.items():
            owner = "Anthropic" if kind == "messages" else "OpenAI"
            for name in (kind, *others):
                clients = [state.get_client(name, sync=sync) for sync in (False, True)]
                assert [type(client).__name__ for client in clients] == [f"Async{owner}", owner]
                config = state.get_endpoint_config(name)
                assert (config["api_client_type"], config["model"]) == (others[-1], "m")
                assert config["base_url"].endswith("/v1") is ("api_base" in config) is (owner == "OpenAI")
                kept.extend(clients)
        for name, says in (("openai_chat_completions_token", "does not speak"), ("renderer", "does not speak"), ("chats", "no API")):
            with pytest.raises(ValueError, match=says):
                state.get_client(name)
        assert not any(client.is_closed() for client in kept)
        kept.append(state.get_endpoint_config())

    state = await vf.Harness(program, client=Recording([]), model="m").run({"prompt": "go"})
    assert state["error"] is None
    *clients, config = kept
    assert all(client.is_closed() for client in clients), "with the rollout"
    async with aiohttp.ClientSession() as session, session.post(f"{config['base_url']}/chat/completions", json=GO) as response:
        assert response.status == 404


@pytest.mark.parametrize(("api", "sync"), [("chat", False), ("completions", True), ("responses", False), ("messages", True)])
async def test_a_refused_key_is_told_as_the_provider_tells_it_and_ends_the_rollout_as_what_it_is(api: str, sync: bool) -> None:
    """The program gets 401 or 403 from its SDK; a run of many rollouts ends with the first, as everywhere."""
    told: list[Any] = []

    async def program(state: vf.State) -> None:
        try:
            await ASKS[api](state.get_client(api))
        except Exception as error:
            told.append(error)
            raise

    def plain_program(state: vf.State) -> None:
        try:
            ASKS[api](state.get_client(api, sync=True))
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


async def test_an_exception_of_the_client_is_told_to_the_program_and_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The SDK does not repeat such a request."""

    class Broken(Failing):
        calls = 0

        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return await super().get_response(*args, **kwargs)

    async def program(state: vf.State) -> dict[str, Any]:
        with pytest.raises(openai.APIStatusError) as caught:
            await ASKS["chat"](state.get_client())
        return {"told": f"{caught.value.status_code}: {caught.value}"}

    client = Broken(ZeroDivisionError("a bug of the client"))
    state = await vf.Harness(program, client=client, model="m").run({"prompt": "go"})
    assert (state["told"].startswith("500"), "ZeroDivisionError: a bug of the client" in state["told"], client.calls) == (True, True, 1)
    assert "a model call of a rollout failed" in caplog.text


async def test_a_program_that_waits_for_the_model_is_told_when_its_rollout_is_cancelled() -> None:
    """Also one on a thread, which nothing else could end; what was asked of the model is cancelled, too."""
    client = Mute()
    told: list[Any] = []
    has_ended = threading.Event()

    def program(state: vf.State) -> None:
        try:
            ASKS["chat"](state.get_client(sync=True))
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


@pytest.mark.parametrize(("scope", "made"), [("rollout", 4), ("group", 2), ("global", 1)])
async def test_objects_are_made_once_for_each_rollout_group_or_harness(scope: str, made: int) -> None:
    """Also in rollouts that are played in groups."""
    taskset = vf.Taskset(ROWS[:2], toolsets=[counting(scope)], rewards=[noting_groups([], "best", 1.0)])
    env = vf.Env(taskset)
    await env.evaluate(ScriptedClient([calling(("count", {})), "done"]), "m", rollouts_per_example=2)
    await env.aclose()
    assert (len(Counter.made), {counter.is_closed for counter in Counter.made}) == (made, {True})
