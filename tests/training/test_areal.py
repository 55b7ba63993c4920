"""AReaL's workflow, which asks at the URL that it is told (`pytest -m peers` plays through AReaL's own proxy)."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

import vfgym
from tests.training.trainers import environments
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.training.areal import ChatWorkflow, dataset


def test_arael_is_told_where_its_model_is() -> None:
    with pytest.raises(ConfigurationError, match="where its model is with base_url="):
        asyncio.run(ChatWorkflow("gymnasium/FrozenLake-v1").run({"example_id": 0}))
    with pytest.raises(ConfigurationError, match="chat environment"):
        ChatWorkflow("CartPole-v1")
    with pytest.raises(ConfigurationError, match=r"as example_id .* \['question'\]"):
        asyncio.run(ChatWorkflow("gymnasium/FrozenLake-v1").run({"question": "?"}, base_url="http://127.0.0.1:1/v1"))


def test_arael_sends_a_workflow_to_another_process() -> None:
    assert isinstance(pickle.loads(pickle.dumps(ChatWorkflow("gymnasium/FrozenLake-v1", temperature=1.0))), ChatWorkflow)


@pytest.mark.parametrize(
    ("told", "variables", "key"),
    [
        ({"api_key": "told"}, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "variable"}, "told"),
        ({}, {"OPENAI_API_KEY": "variable"}, "variable"),
        (None, {"OPENAI_API_KEY": "variable"}, "variable"),
        ({}, {}, "EMPTY"),
    ],
)
def test_the_proxy_is_asked_for_the_model_with_its_key(
    told: dict[str, str] | None, variables: dict[str, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What AReaL says of it wins over environment variables."""

    async def play() -> Any:
        async with ModelServer({"mine": lambda request: "19"}) as server:
            url = {"base_url": server.openai_url}
            for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
                monkeypatch.delenv(name, raising=False)
            for name, value in {**variables, **({"OPENAI_BASE_URL": url["base_url"]} if told is None else {})}.items():
                monkeypatch.setenv(name, value)
            env = environments.make_guess(eval_dataset=[{"question": "9 + 10?", "answer": "19"}], sampling_args={"temperature": 0.5})
            workflow = ChatWorkflow(env, model="mine", temperature=0.0, max_completion_tokens=7)
            row = {"example_id": 0, "split": "eval", "messages": []}
            reward = await workflow.run(row, **({} if told is None else {**url, **told}))
        return reward, server.requests

    reward, [request] = asyncio.run(play())
    assert (reward, request.headers["Authorization"]) == (1.0, f"Bearer {key}")
    body = {name: request.body[name] for name in ("model", "temperature", "max_completion_tokens")}
    assert body == {"model": "mine", "temperature": 0.0, "max_completion_tokens": 7}
    assert request.body["messages"][-1]["content"] == "9 + 10?"


def test_rows_have_their_prompt_and_their_task() -> None:
    env = vfgym.SingleTurnEnv([{"question": "a?"}], eval_dataset=[{"question": f"{number}?"} for number in range(3)])
    assert list(dataset(env, split="eval", num_examples=2)) == [
        {"messages": [{"role": "user", "content": f"{number}?"}], "example_id": number, "split": "eval"} for number in range(2)
    ]
