"""A model as the agent: what it is shown, what its errors do to an episode, over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest

import vfgym
from vfgym.agents.model import ModelAgent
from vfgym.clients import ClientConfig
from vfgym.clients.scripted import ScriptedClient
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused, scripted
from vfgym.model_server.faults import FAULTS


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def right(completion: list[Any], answer: str) -> float:
    """Say whether the last message is the answer."""
    return float(bool(completion) and completion[-1].content == answer)


def environment(**fields: Any) -> vfgym.ToolEnv:
    return vfgym.ToolEnv([add], dataset=[{"question": "1 + 2?", "answer": "3"}], rubric=vfgym.Rubric(right), **fields)


CALL = AssistantMessage(None, tool_calls=[ToolCall("c1", "add", '{"a": 1, "b": 2}')])


def config(server: ModelServer, **fields: Any) -> ClientConfig:
    return ClientConfig(api_base_url=server.openai_url, api_key="k", max_retries=0, **fields)


async def test_an_evaluation() -> None:
    async with ModelServer({"m": scripted([CALL, "3"])}) as server:
        agent = ModelAgent(config(server, extra_headers_from_state={"X-Example": "example_id"}), "m", {"max_tokens": 50})
        results = await vfgym.aevaluate(environment(system_prompt="Add.", sampling_args={"temperature": 0.5, "max_tokens": 9}), agent)
        await agent.close()
        await agent.close()
    output = results["outputs"][0]
    assert output["reward"] == 1.0
    assert output["token_usage"]["output_tokens"] > 0
    first, second = server.requests
    assert [message["role"] for message in second.body["messages"]] == ["system", "user", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["add"]
    assert (first.body["temperature"], first.body["max_completion_tokens"]) == (0.5, 50)
    assert (first.headers["X-Example"], agent.name) == ("0", "m")


async def test_the_model_sees_what_wrappers_show() -> None:
    async with ModelServer({"m": scripted([CALL, "3"])}) as server:
        agent = ModelAgent(config(server), "m")
        await vfgym.aevaluate(vfgym.wrappers.NewMessages(environment()), agent)
        await agent.close()
    assert [[message["role"] for message in request.body["messages"]] for request in server.requests] == [["user"], ["assistant", "tool"]]


@pytest.mark.parametrize(
    ("fault", "error", "ending"),
    [
        ("overlong", None, "cut"),
        ("server_error", "ModelError", "infrastructure_failed"),
        ("rate_limited", "ModelError", "infrastructure_failed"),
        ("cut_in_body", "ModelError", "infrastructure_failed"),
        ("nobody answers", "ModelError", "infrastructure_failed"),
        ("refused", "ModelError", "policy_failed"),
        ("empty_reply", "EmptyModelResponseError", "policy_failed"),
        ("malformed_json", "InvalidModelResponseError", "policy_failed"),
    ],
)
async def test_errors_end_the_episode(fault: str, error: str | None, ending: str) -> None:
    def refuse(request: ModelRequest) -> str:
        raise RequestRefused(400, "not that")

    async with ModelServer({"m": refuse if fault == "refused" else scripted(["3"])}) as server:
        place = {"api_base_url": "http://127.0.0.1:9/v1"} if fault == "nobody answers" else {}
        headers = {"X-Fault": fault} if fault in FAULTS else {}
        agent = ModelAgent(config(server, extra_headers=headers).model_copy(update=place), "m")
        results = await vfgym.aevaluate(environment(), agent)
        await agent.close()
    (row,) = results["outputs"]
    assert (row["error"] and row["error"]["error"], row["ending"]) == (error, ending)
    assert row["stop_condition"] == ("has_error" if error else "prompt_too_long")


async def test_endpoints_take_turns() -> None:
    async with ModelServer({"m": scripted([CALL, "3"])}) as one, ModelServer({"m": scripted([CALL, "3"])}) as other:
        several = ClientConfig(api_key="k", endpoint_configs=[{"api_base_url": each.openai_url} for each in (one, other)])
        agent = ModelAgent(several, "m")
        await vfgym.aevaluate(environment(), agent, rollouts_per_example=4)
        await agent.close()
    assert (one.num_requests, other.num_requests) == (4, 4)


def test_what_is_known_of_who_plays() -> None:
    """A version of 0 is one; the parameters are copied."""
    arguments = {"temperature": 0.0}
    given = ClientConfig(api_base_url="http://127.0.0.1:9/v1", api_key="k")
    agent = ModelAgent(given, "m", arguments)
    arguments["temperature"] = 1.0
    assert agent.as_spec() == {"model": "m", "client": given, "sampling_args": {"temperature": 0.0}}
    assert (agent.config, agent.base_urls, agent.policy_version) == (given, "http://127.0.0.1:9/v1", None)

    class Versioned(ScriptedClient):
        policy_version = 0

    client = Versioned([])
    own = ModelAgent(client, "m")
    assert (own.as_spec(), own.config, own.base_urls, own.policy_version) == (None, None, "", 0)
    assert (own.clients, own.sampling_args) == ([client], {})


async def test_prompts_are_made_tokens_by_the_client_with_the_tools_of_the_episode() -> None:
    class Tokenizing(ScriptedClient):
        async def prompt_ids(self, *args: Any, **kwargs: Any) -> Any:
            asked.append((args, kwargs))
            return [1, 2]

    asked: list[Any] = []
    agent = ModelAgent(Tokenizing([]), "m")
    for env, names in ((environment(), ["add"]), (vfgym.SingleTurnEnv([{"question": "?"}]), None)):
        observation, _ = env.reset(seed=0)
        assert await agent.prompt_ids(observation, env.state) == [1, 2]
        (shown, model, tools), state = asked.pop()
        assert (shown, model, tools and [tool.name for tool in tools]) == (observation, "m", names)
        assert state == {"state": env.state}


@pytest.mark.parametrize(
    ("client", "model", "arguments", "says"),
    [
        ("gpt", "m", None, "expected"),
        (ScriptedClient([]), "", None, "model must be the name of a model, as its provider calls it; got ''"),
        (ScriptedClient([]), None, None, "as its provider calls it; got None"),
        (ScriptedClient([]), "m", [], "sampling_args must be a dict of generation parameters, got list"),
    ],
)
def test_what_it_cannot_be_made_of(client: Any, model: Any, arguments: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        ModelAgent(client, model, arguments)
