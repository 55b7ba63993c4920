"""What published environments ask of the rollout API, through ``import verifiers as vf``: a test for each need, named after what holds.

The first part is hooks: whichever the documents name is what is called, overridden in a class or put on an object, plain or async.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from tests.verifiers_compat.environments import ROW, Countdown, Talk, look, right, single
from tests.verifiers_compat.models import Model, calling, evaluated, roles, rolled_out, texts
from verifiers_compat.alias import install, uninstall


@pytest.fixture(scope="module")
def vf() -> Iterator[Any]:
    """The package as published environments import it."""
    install()
    import verifiers

    yield verifiers
    uninstall()


# Hooks

ENVIRONMENT_HOOKS = (
    "add_model_response",
    "add_trajectory_step",
    "cleanup",
    "env_response",
    "get_model_response",
    "get_prompt_messages",
    "init_state",
    "is_completed",
    "render_completion",
    "rollout",
    "run_group",
    "setup_state",
)
WAYS = ("a plain method", "an async method", "a plain function put on the object", "an async function put on the object")


def replacing(cls: Any, name: str, way: str, calls: list[str], *args: Any, **kwargs: Any) -> Any:
    """Return an object of a class, one of whose hooks notes that it was called and goes on to the library's own."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return own(*args, **kwargs)

    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        result = own(*args, **kwargs)
        return await result if hasattr(result, "__await__") else result

    func = awaiting if "async" in way else plain
    if "put on" in way:
        made = cls(*args, **kwargs)
        own = getattr(made, name)
        setattr(made, name, func)
        return made
    own = getattr(cls, name)
    return type("Own", (cls,), {name: func})(*args, **kwargs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ENVIRONMENT_HOOKS)
async def test_a_replaced_hook_of_an_environment_is_what_is_called(vf: Any, name: str, way: str) -> None:
    calls: list[str] = []
    rubric = vf.Rubric(lambda completion: float(len(completion)))
    env = replacing(Talk, name, way, calls, dataset=[ROW], max_turns=2, rubric=rubric)
    (output,) = await evaluated(env, "1", "2")
    assert set(calls) == {name}
    assert (output["error"], output["reward"], output["stop_condition"]) == (None, 3.0, "max_turns_reached")
    assert roles(output["completion"]) == ["assistant", "user", "assistant"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_replaced_run_rollout_is_what_is_called_where_rollouts_are_scored_alone(vf: Any, way: str) -> None:
    calls: list[str] = []
    env = replacing(vf.SingleTurnEnv, "run_rollout", way, calls, dataset=[ROW], rubric=vf.Rubric(right))
    (output,) = await evaluated(env, "2", independent_scoring=True)
    assert (calls, output["reward"]) == (["run_rollout"], 1.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["call_tool", "update_tool_args"])
async def test_a_replaced_hook_of_tools_is_what_is_called(vf: Any, name: str, way: str) -> None:
    class Stateful(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return tool_args

    calls: list[str] = []
    env = replacing(Stateful, name, way, calls, dataset=[ROW], tools=[look])
    (output,) = await evaluated(env, calling(("look", {"key": "a"})), "done")
    assert (calls, texts(output["completion"])) == ([name], ["value of a"])


@pytest.mark.parametrize("of_group", [False, True], ids=["of the rubric that was given", "of env.rubric"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["score_group", "score_rollout", "cleanup", "teardown"])
async def test_a_replaced_hook_of_a_rubric_is_what_is_called(vf: Any, name: str, way: str, of_group: bool) -> None:
    calls: list[str] = []
    env = single(rubric=vf.Rubric(right) if of_group else replacing(vf.Rubric, name, way, calls, right))
    if of_group:
        env.rubric = replacing(vf.RubricGroup, name, way, calls, env.rubric.rubrics)
    (output,) = await evaluated(env, "2", independent_scoring=name == "score_rollout")
    await env.aclose()
    assert (calls, output["reward"], output["metrics"]["num_turns"]) == ([name], 1.0, 1.0)


async def test_hooks_of_environments_and_rubrics_can_be_made_tasks_of(vf: Any) -> None:
    ran: list[str] = []

    class Cleaning(vf.Rubric):
        @vf.cleanup
        async def clean_up(self, state: Any) -> None:
            await asyncio.sleep(0)
            ran.append("cleanup")

        @vf.teardown
        async def tear_down(self) -> None:
            await asyncio.sleep(0)
            ran.append("teardown")

    env, rubric = Talk(dataset=[ROW], max_turns=1), Cleaning()
    group = vf.RubricGroup([rubric, vf.Rubric()])
    state = await rolled_out(env, "1")
    assert await asyncio.create_task(env.setup_state(state)) in (None, state)
    assert roles(await asyncio.create_task(env.get_prompt_messages(state))) == ["user", "assistant", "user"]
    assert await asyncio.create_task(env.is_completed(state))
    for begun in (
        env.add_trajectory_step(state, state["trajectory"][0]),
        env.render_completion(state),
        env.cleanup(state),
        rubric.cleanup(state),
        group.cleanup(state),
        rubric.teardown(),
        group.teardown(),
        vf.Rubric().cleanup(state),
        vf.Rubric().teardown(),
        group.score_rollout(state),
        group.score_group([state]),
    ):
        assert await asyncio.create_task(begun) is None
    assert ran == ["cleanup", "cleanup", "teardown", "teardown"]


async def test_a_task_of_a_hook_that_waits_can_be_cancelled(vf: Any) -> None:
    class Waiting(vf.Rubric):
        @vf.cleanup
        async def clean_up(self, state: Any) -> None:
            began.set()
            await asyncio.Event().wait()

    began, state = asyncio.Event(), await rolled_out(single(), "2")
    task = asyncio.create_task(Waiting().cleanup(state))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before_it_ran = asyncio.create_task(Waiting().cleanup(state))
    before_it_ran.cancel()
    with pytest.raises(asyncio.CancelledError):
        await before_it_ran


async def test_env_cleanup_runs_the_handlers_by_priority_with_the_arguments_that_they_name(vf: Any) -> None:
    ran: list[Any] = []

    class Cleaning(Talk):
        @vf.cleanup
        async def last(self, state: vf.State) -> None:
            ran.append("last")

        @vf.cleanup(priority=5)
        async def after_rendering(self, state: vf.State, task: Any) -> None:
            ran.append((state["completion"], task["answer"]))

        @vf.cleanup(priority=200)
        def first(self, env: Any, state: vf.State) -> None:
            ran.append((env, state["completion"]))
            raise RuntimeError("this one fails")

    env = Cleaning(dataset=[ROW])
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    await env.cleanup(state)
    assert ran == [(env, None), ([], "2"), "last"]
    assert state["cleanup_errors"] == {"first": "RuntimeError('this one fails')"}


async def test_a_rubrics_own_cleanup_that_fails_stops_nothing(vf: Any) -> None:
    class Failing(vf.Rubric):
        def cleanup(self, state: vf.State) -> None:
            raise RuntimeError("this one fails")

    (output,) = await evaluated(single(rubric=vf.RubricGroup([Failing(), vf.Rubric(right)])), "2", state_columns=["cleanup_errors"])
    assert (output["reward"], output["error"]) == (1.0, None)
    assert list(output["cleanup_errors"].values()) == ["RuntimeError('this one fails')"]


async def test_an_overridden_env_response_of_a_game_is_what_the_model_is_shown(vf: Any) -> None:
    class Polite(vf.GymEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            shown = await super().env_response(messages, state)
            return [*shown, {"role": "user", "content": "Your move, please."}]

    (output,) = await evaluated(Polite(Countdown, action_parser=int, num_train_episodes=1, num_eval_episodes=0), "0", "0", "0")
    assert texts(output["completion"], "user") == ["2", "Your move, please.", "1", "Your move, please.", "0"]


# Judges, prompts and datasets


async def test_a_judge_prompt_may_be_any_text_and_only_judge_looks_into_it(vf: Any) -> None:
    template = 'Answer as {"score": 7}. The criteria are {criteria}.'
    rubric = vf.JudgeRubric(judge_prompt=template, judge_client=Model(lambda number, state: "yes"))
    assert (rubric.judge_prompt, rubric.class_objects["judge_prompt"]) == (template, template)
    with pytest.raises(ValueError, match=r'the field \{"score"\}: it may have \{question\}, \{answer\}, \{response\}'):
        await rubric.judge("6 * 7?", "42", "42")
    rubric.judge_prompt = "Is {response} the answer to {question}, which is {answer}?"
    assert await rubric.judge("6 * 7?", "42", "42") == "yes"
    assert rubric.judge_client.prompts == [[{"role": "user", "content": "Is 42 the answer to 6 * 7?, which is 42?"}]]
    with pytest.raises(ValueError, match="must be text"):
        vf.JudgeRubric(judge_prompt=7)


@pytest.mark.parametrize("n", [None, 0, -1])
def test_a_number_of_rows_that_is_not_positive_means_all(vf: Any, n: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers.utils import data_utils

    assert data_utils.EXAMPLE_DATASETS["math"].path == "chiayewken/competition_math"
    rows = [{"problem": f"P{number}", "level": "Level 1", "solution": rf"so $\boxed{{{number}}}$"} for number in range(3)]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    local = dataclasses.replace(data_utils.EXAMPLE_DATASETS["math"], path=str(tmp_path))
    monkeypatch.setitem(data_utils.EXAMPLE_DATASETS, "math", local)
    assert vf.load_example_dataset("math", n=n)["answer"][:] == ["0", "1", "2"]
    assert len(vf.load_example_dataset("math", n=2)) == 2


def test_the_boxed_system_prompt_has_the_documented_wording(vf: Any) -> None:
    from verifiers.utils.data_utils import BOXED_SYSTEM_PROMPT

    assert BOXED_SYSTEM_PROMPT == r"Please reason step by step, and put your final answer within \boxed{}."


async def test_an_empty_system_prompt_adds_no_message_to_a_question(vf: Any) -> None:
    env, model = single({"question": "hi"}, system_prompt=""), Model()
    asked = [{"role": "user", "content": "hi"}]
    assert env.get_dataset()[0]["prompt"] == asked
    await env.evaluate(model, "m")
    await env.generate([env.get_dataset()[0], {"question": "hi"}], model, "m")
    await env.rollout(env.get_dataset()[0], model, "m")
    env.reset()
    env.step("1")
    assert model.prompts == [asked] * 4


async def test_prompts_that_are_given_for_a_rollout_are_left_alone(vf: Any) -> None:
    env, model = single({"prompt": [{"role": "user", "content": "of the dataset"}]}, system_prompt="Be brief."), Model()
    row = {"prompt": [{"role": "user", "content": "given"}], "example_id": 0}
    await env.generate([row], model, "m")
    await env.rollout(row, model, "m")
    await env.run_group([row], model, "m")
    assert model.prompts == [row["prompt"]] * 3
    assert roles(env.get_dataset()[0]["prompt"]) == ["system", "user"]


async def test_prompts_of_completion_mode_are_plain_strings_in_the_dataset(vf: Any) -> None:
    for rows in ([{"prompt": "42"}, {"prompt": "Once upon"}], Dataset.from_list([{"prompt": "42"}, {"prompt": "Once upon"}])):
        env = vf.SingleTurnEnv(dataset=rows, message_type="completion")
        assert env.get_dataset()["prompt"][:] == ["42", "Once upon"]
        state = await rolled_out(env, "a time", row=1)
        assert [(message.role, message.content) for message in state["prompt"]] == [("text", "Once upon")]


# Games


class Score:
    """A game that ends with its second move and shows what was scored."""

    def reset(self, seed: int) -> Any:
        self.moves, self.seed = 0, seed
        return seed, {}

    def step(self, action: str) -> Any:
        self.moves += 1
        return self.moves, 1.0, self.moves == 2, False, {}


async def test_obs_to_text_is_a_hook_and_gym_done_is_in_the_state(vf: Any) -> None:
    class Bracketed(vf.GymEnv):
        def obs_to_text(self, obs: Any) -> str:
            return f"<{obs}>"

        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            seen.append(state["gym_done"])
            return await super().env_response(messages, state)

    seen: list[bool] = []
    state = await rolled_out(Bracketed(Score, num_train_episodes=1), "a", "b")
    assert (texts(state["prompt"], "user"), texts(state["completion"], "user")) == (["<0>"], ["<1>", "<2>"])
    assert (seen, state["gym_done"], state["stop_condition"]) == ([False], True, "is_done")
    assert texts((await rolled_out(vf.GymEnv(Score, obs_to_text="no. {}".format), "a", "b"))["prompt"], "user") == ["no. 0"]
    replaced = vf.GymEnv(Score)
    replaced.obs_to_text = lambda obs: "put on"
    assert texts((await rolled_out(replaced, "a", "b"))["prompt"], "user") == ["put on"]


async def test_a_hook_that_writes_gym_done_ends_the_game(vf: Any) -> None:
    class Short(vf.GymEnv):
        @vf.stop(priority=70)
        async def gave_up(self, state: Any) -> bool:
            if state["trajectory"] and state["trajectory"][-1]["completion"][-1]["content"] == "give up":
                state["gym_done"] = True
            return False

    env = Short(Score)
    state = await rolled_out(env, "give up", "b")
    assert (len(state["trajectory"]), state["stop_condition"]) == (1, "is_done")
    env.reset(seed=0)
    assert env.step("give up")[2:4] == (True, False)


def test_rows_of_games_are_numbered_like_those_of_any_dataset(vf: Any) -> None:
    env = vf.GymEnv(Score, num_train_episodes=3, num_eval_episodes=2, seed=5, system_prompt="Play.")
    train, evaluation = env.get_dataset(), env.get_eval_dataset()
    assert (train["example_id"][:], train["answer"][:]) == ([0, 1, 2], ["5", "6", "7"])
    assert (evaluation["example_id"][:], evaluation["answer"][:]) == ([0, 1], ["8", "9"])
    assert train[1]["prompt"] == [{"role": "system", "content": "Play."}, {"role": "user", "content": "6"}]
    assert [env.reset(seed=seed)[1]["example_id"] for seed in (6, 8)] == [1, -1]
    env.close()
