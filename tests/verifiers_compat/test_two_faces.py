"""The same scripted answers give the same state through `step()` and through `generate()`, for every class of environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import verifiers_compat as vf
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


class Editing(Hearing):
    """Shortens an earlier message in place."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        if len(messages) > 3:
            messages[-2]["content"] = "(cut)"
        return await super().env_response(messages, state)


class Forgetful(Hearing):
    """Shows the model the last two messages only."""

    async def get_prompt_messages(self, state: vf.State) -> vf.Messages:
        messages = await super().get_prompt_messages(state)
        return messages[-2:]

    async def render_completion(self, state: vf.State) -> None:
        state["completion"] = [step["completion"][0] for step in state["trajectory"]]


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


class Ledger(vf.StatefulToolEnv):
    """A tool that works on the rollout's state."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_turns=4, **kwargs)
        self.add_tool(self.note, args_to_skip=["book"])

    async def setup_state(self, state: vf.State, **kwargs: Any) -> None:
        await super().setup_state(state)
        state["book"] = []

    async def note(self, text: str, book: list[str]) -> int:
        """Write something down."""
        book.append(text)
        return len(book)

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: vf.State, **kwargs: Any) -> Any:
        return {**tool_args, "book": state["book"]}


class Custom(vf.Environment):
    """The documented way to own the whole loop."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        state = await self.init_state(input, client, model, sampling_args)
        response = await self.get_model_response(state, prompt=state["prompt"])
        state["completion"] = response.message
        state["is_completed"] = True
        return state


class Debate(vf.Environment):
    """Two calls at once, then a third."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        state = await self.init_state(input, client, model, sampling_args)

        async def voice(name: str) -> str:
            response = await self.get_model_response(state, [*state["prompt"], vf.UserMessage(name)])
            return f"{name}: {response.message.content}"

        voices = await asyncio.gather(voice("for"), voice("against"))
        state["completion"] = [vf.AssistantMessage(" ".join([*voices, await voice("verdict")]))]
        state["is_completed"], state["stop_condition"] = True, "debated"
        return state


class Retold(Hearing):
    """Adds to what the library's own loop played."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        state = await super().rollout(input, client, model, sampling_args)
        state["retold"] = [message["role"] for message in state["completion"]]
        return state


class Raising(vf.Environment):
    """Breaks off with an error of the API's own."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        state = await self.init_state(input, client, model, sampling_args)
        state["got"] = (await self.get_model_response(state, state["prompt"])).message.content
        raise vf.ToolCallError("no such tool")

    @vf.cleanup
    def tidy(self, state: vf.State) -> None:
        state["tidied"] = True


def calling(name: str, arguments: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": name, "arguments": arguments}]}


def reasoning(rubric: vf.Rubric) -> vf.Environment:
    env = vf.ReasoningGymEnv("leg_counting", num_train_examples=3, num_eval_examples=2)
    env.add_rubric(rubric)
    return env


Make = Callable[[vf.Rubric], vf.Environment]

CASES: dict[str, tuple[Make, Sequence[Any]]] = {
    "single turn": (lambda rubric: vf.SingleTurnEnv(dataset=ROWS, rubric=rubric), ["1"]),
    "multi turn to its limit": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=3), ["a", "1", "c"]),
    "final response": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=5), ["a", "end"]),
    "stop condition": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=5), ["a", "hush"]),
    "error": (lambda rubric: Hearing(dataset=ROWS, rubric=rubric, max_turns=5), ["a", "break"]),
    "edited in place": (lambda rubric: Editing(dataset=ROWS, rubric=rubric, max_turns=4), ["a", "b", "c", "d"]),
    "rewritten history": (lambda rubric: Forgetful(dataset=ROWS, rubric=rubric, max_turns=4), ["a", "b", "c", "d"]),
    "tools": (
        lambda rubric: vf.ToolEnv(tools=[add], dataset=ROWS, rubric=rubric, system_prompt="Use tools."),
        [calling("add", '{"a": 1}'), calling("add", "not json"), calling("nope", "{}"), "2"],
    ),
    "stateful tools": (lambda rubric: Ledger(dataset=ROWS, rubric=rubric), [calling("note", '{"text": "x"}'), "1"]),
    "own rollout": (lambda rubric: Custom(dataset=ROWS, rubric=rubric), ["1"]),
    "own rollout with calls at once": (lambda rubric: Debate(dataset=ROWS, rubric=rubric), ["1", "2", "3"]),
    "own rollout around the library's": (lambda rubric: Retold(dataset=ROWS, rubric=rubric, max_turns=3), ["a", "b", "c"]),
    "own rollout that raises": (lambda rubric: Raising(dataset=ROWS, rubric=rubric), ["a"]),
    "reasoning-gym": (reasoning, ["<answer>4</answer>"]),
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


def test_a_failed_overlong_or_late_model_gives_equal_states_too() -> None:
    class Failing(vf.MultiTurnEnv):
        def env_response(self, messages: vf.Messages, state: vf.State) -> vf.Messages:
            return [vf.UserMessage("go on")]

    for error in (vf.OverlongPromptError("too long"), vf.ModelError("down")):
        seen: list[vf.State] = []
        env = Failing(dataset=ROWS, rubric=scoring(seen), max_turns=4)

        class Fails(ScriptedClient):
            async def get_response(self, *args: Any, error: Exception = error, **kwargs: Any) -> vf.Response:
                if self.calls == 1:
                    raise error
                return await super().get_response(*args, **kwargs)

        env.reset(options={"example_id": 0})
        env.step("a")
        env.fail(error)
        stepped = comparable(seen.pop())
        env.evaluate_sync(Fails(["a", "b"]), "model", num_examples=1)
        assert comparable(seen.pop()) == stepped
