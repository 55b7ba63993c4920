"""The same scripted answers give the same state through `step()` and through `generate()`, for every class of environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.models import calling
from tests.verifiers_compat.v1.playing import add
from vfgym.testing import ScriptedClient

ROWS = [{"question": f"question {index}", "answer": str(index), "info": {"level": index}} for index in range(3)]

EXCLUDED = {"client", "model", "sampling_args", "trajectory_id", "timing", "usage", "usage_tracker", "advantage"}
"""What may differ: who answered, ids, clocks and token counts; and what only a group has."""


def comparable(state: vf.State) -> dict[str, Any]:
    """Return the state without what may differ."""
    assert type(state) is vf.State
    filled = {"response", "trajectory_id", "reward", "advantage"}  # a scored group fills the last two
    steps = [{key: value for key, value in step.items() if key not in filled} for step in state["trajectory"]]
    error = None if state["error"] is None else repr(state["error"])
    kept = {key: value for key, value in state.items() if key not in EXCLUDED}
    return {**kept, "trajectory": steps, "error": error, "emitted": state.emitted, "rewards": state.rewards}


def scoring(seen: list[vf.State]) -> vf.Rubric:
    """Return a rubric that keeps the states it scored."""

    def length(completion: vf.Messages) -> float:
        return len(completion) / 10

    async def right(completion: vf.Messages, answer: str, state: vf.State) -> float:
        seen.append(state)
        await asyncio.sleep(0)
        return float(answer in str(completion))

    return vf.Rubric([length, right], weights=[0.3, 0.7])


class Hearing(vf.MultiTurnEnv):
    """The older generation's hooks: `setup_state` returns a state, raw dicts are messages."""

    async def setup_state(self, state: vf.State, **kwargs: Any) -> vf.State:
        state["heard"] = []
        return await super().setup_state(state)

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        state["heard"].append(messages[-1]["content"])
        if "end" in state["heard"]:
            state["final_env_response"] = [{"role": "user", "content": "bye"}]
        if "break" in state["heard"]:
            raise vf.InfraError("broken")
        return [{"role": "user", "content": f"{len(messages)}"}]

    @vf.stop
    async def hushed(self, state: vf.State) -> bool:
        return bool(state["trajectory"]) and state["trajectory"][-1]["completion"][0]["content"] == "hush"

    @vf.cleanup
    async def note_the_end(self, state: vf.State) -> None:
        state["ended_with"] = len(state["completion"])


class Custom(vf.Environment):
    """The documented way to own the whole loop."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        state = await self.init_state(input, client, model, sampling_args)
        response = await self.get_model_response(state, prompt=state["prompt"])
        state["completion"] = response.message
        state["is_completed"] = True
        return state


CASES: dict[str, tuple[Callable[[vf.Rubric], vf.Environment], Sequence[Any]]] = {
    "single turn": (lambda rubric: vf.SingleTurnEnv(dataset=ROWS, rubric=rubric), ["1"]),
    "final response": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=5), ["a", "end"]),
    "stop condition": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=5), ["a", "hush"]),
    "error": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=5), ["a", "break"]),
    "tools": (
        lambda rubric: vf.ToolEnv(tools=[add], dataset=ROWS, rubric=rubric, system_prompt="Use tools."),
        [calling(("add", {"a": 1, "b": 1})), calling(("add", "not json")), calling(("nope", {})), "2"],
    ),
    "own rollout": (lambda rubric: Custom(dataset=ROWS, rubric=rubric), ["1"]),
    "group": (
        lambda rubric: vf.EnvGroup(
            [
                vf.SingleTurnEnv(dataset=[{"question": "other"}]),
                vf.EnvGroup([Hearing(dataset=ROWS, rubric=rubric, max_turns=2)], env_names=["talk"]),
            ],
            env_names=["other", "inner"],
        ),
        ["a", "2"],
    ),
}


class InOrder(ScriptedClient):
    """Gives the answers in the order of the calls, whatever turn they are for."""

    async def get_response(self, *args: Any, **kwargs: Any) -> vf.Response:
        self.calls += 1
        given = self.answers[self.calls - 1]
        return vf.Response("", 0, "", None, vf.AssistantMessage(given) if isinstance(given, str) else vf.AssistantMessage(**given))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("independent", [False, True])
def test_a_stepped_and_a_generated_episode_have_equal_states(name: str, independent: bool) -> None:
    make, answers = CASES[name]
    seen: list[vf.State] = []
    env = make(scoring(seen))
    example = len(env.get_dataset()) - 1

    env.reset(seed=0, options={"example_id": example})
    for answer in answers:
        outcome = env.step(answer)
    assert outcome.terminated or outcome.truncated
    stepped = comparable(seen.pop())

    row = env.get_dataset()[example]
    results = env.generate_sync([row], InOrder(answers), "model", independent_scoring=independent)
    generated = comparable(seen.pop())

    assert generated == stepped
    output = results["outputs"][0]
    assert output["reward"] == stepped["reward"] == outcome.reward
    assert output["metrics"] == stepped["metrics"]
    assert output["stop_condition"] == outcome.info["stop_condition"]
