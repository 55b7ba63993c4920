"""Stepping an `Env` and generating with it give the same states: whatever plays, all that is kept of a rollout is compared."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import calling
from tests.verifiers_compat.models import response
from tests.verifiers_compat.v1.playing import ROWS, get
from vfgym import aevaluate
from vfgym.clients import Client
from vfgym.messages import Response

OF_ONE_PLAY = frozenset({"timing", "trajectory_id", "response", "usage", "token_usage", "group_key"})
"""Times, ids, and what a provider says of an answer and nobody who steps can."""
OF_STEPPING = frozenset({"counted_reward", "env_id", "fingerprint", "return", "seed"})
"""What rows have of a stepped play only (``return`` is what `step` returned, which knows nothing of a group yet)."""


def reply(messages: Any) -> Any:
    """Answer as every player here does: look up what is asked, say what was found."""
    last = messages[-1]
    if last["role"] == "user" and "?" in last["content"]:
        return calling(("get", {"key": last["content"]}))
    return f"answer {last['content']}"


class Replying(Client):
    """A model that answers with `reply`."""

    async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> Response:
        return response(reply(prompt))


def user(state: vf.State, transcript: list[Any]) -> str | None:
    state["heard"] = len(transcript)
    return "go on" if len(transcript) < 6 else None


async def program(task: vf.Task, state: vf.State) -> dict[str, Any]:
    client, tools = state.get_client("responses"), state.get_tools()
    first = await client.responses.create(model="m", instructions="be kind", input=task["prompt"])
    found = await tools["get"](key=first.output[0].call_id)
    second = await client.responses.create(model="m", input=found)
    return {"found": found, "said": second.output_text}


COMMAND = """
import json, os, sys, urllib.request
for question in sys.argv[1:]:
    body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": question}]}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
    print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
"""

PLAYERS: dict[str, dict[str, Any]] = {
    "base loop": {"system_prompt": "be kind"},
    "turn limit": {"max_turns": 1},
    "user": {"user": user},
    "function": {"program": program},
    "command": {"program": {"command": [sys.executable, "-c", COMMAND, "one", "task.answer"]}},
}


class Tasks(vf.Taskset):
    @vf.setup
    def prepare(self, task: vf.Task, state: vf.State) -> None:
        state["prepared"] = task["answer"]

    @vf.update
    async def count(self, task: vf.Task, state: vf.State) -> None:
        state["artifacts"]["turns"] = len(state["trajectory"])

    @vf.reward(weight=0.5)
    async def length(self, task: vf.Task, state: vf.State) -> float:
        return float(len(state["completion"]))

    @vf.metric
    def asked(self, task: vf.Task, state: vf.State) -> float:
        return float(state["num_model_requests"])


class Keeping(vf.Harness):
    """Keeps the states of its rollouts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(model="m", **kwargs)
        self.states: list[vf.State] = []

    async def run(self, task: Any, state: vf.State | None = None) -> vf.State:
        self.states.append(await super().run(task, state))
        return self.states[-1]


def comparable(value: Any, without: frozenset[str] = OF_ONE_PLAY) -> Any:
    """Return a state or a row, or what is in one, without what is of one play only."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items() if key not in without}
    return [comparable(item) for item in value] if isinstance(value, list) else value


async def play_both_ways(make: Any, **options: Any) -> list[list[Any]]:
    """Return the states and the rows of a run that steps, and of one that generates."""
    both = []
    for steps in (True, False):
        env = make()
        if steps:
            run = await aevaluate(env, lambda observation, info: reply(observation), progress=False, max_concurrent=1, **options)
        else:
            run = await env.evaluate(Replying(), "m", max_concurrent=1, **options)
        states = [comparable(dict(state)) for state in env.harness.states]
        both.append([*states, *(comparable(dict(row), OF_ONE_PLAY | OF_STEPPING) for row in run["outputs"])])
    return both


@pytest.mark.parametrize("name", PLAYERS)
async def test_stepping_and_generating_give_the_same_states(name: str) -> None:
    stepped, generated = await play_both_ways(lambda: vf.Env(Tasks(ROWS[:2], toolsets=[get]), Keeping(**PLAYERS[name])))
    assert len(stepped) == 4
    assert stepped == generated
    assert [state["error"] for state in generated] == [None] * 4
    assert all(state["trajectory"] for state in generated[:2])
