"""What published environments ask of the rollout API, through ``import verifiers as vf``: a test for each need, named after what holds.

The first part is hooks: whichever the documents name is what is called, overridden in a class or put on an object, plain or async.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from tests.verifiers_compat.environments import ROW, Countdown, Talk, asking, look, right, single
from tests.verifiers_compat.models import Model, calling, evaluated, roles, rolled_out, texts
from verifiers_compat.alias import install, uninstall
from vfgym.model_server import ModelServer


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


def test_hooks_that_are_put_on_an_environment_are_called_where_it_is_stepped_and_taken_off_again(vf: Any) -> None:
    async def env_response(messages: Any, state: Any) -> Any:
        return [{"role": "user", "content": "put on"}]

    async def rollout(*args: Any) -> Any:
        calls.append("rollout")
        return await own_rollout(*args)

    env, calls = Talk(dataset=[ROW], max_turns=2), []
    for _ in range(2):
        env.reset()
        assert env.step("1")[0][-1].content == "turn 1"
        env.env_response = env_response
        env.reset()
        assert env.step("1")[0][-1].content == "put on"
        del env.env_response
    own_rollout, env.rollout = env.rollout, rollout
    env.reset()
    assert [env.step("1").terminated, env.step("1").truncated, calls] == [False, True, ["rollout"]]
    env.close()


async def test_a_hook_that_was_put_on_env_rubric_stays_when_a_rubric_is_added(vf: Any) -> None:
    async def score_group(states: Any) -> None:
        for state in states:
            state["reward"], state["metrics"] = 3.0, {"own": 3.0}

    env = single()
    env.rubric.score_group = score_group
    env.add_rubric(vf.Rubric(lambda: 0.5))
    (output,) = await evaluated(env, "2")
    assert (output["reward"], output["metrics"]) == (3.5, {"own": 3.0, "<lambda>": 0.5})


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


@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="the extra reasoning-gym is not installed")
async def test_reasoning_gym_asks_in_its_own_words_and_numbers_its_rows(vf: Any) -> None:
    from reasoning_gym.utils import SYSTEM_PROMPTS

    env = vf.ReasoningGymEnv("leg_counting", num_train_examples=2, num_eval_examples=2)
    assert env.get_dataset()[0]["prompt"][0] == {"role": "system", "content": SYSTEM_PROMPTS["default"]}
    assert (env.get_dataset()["answer"][:], env.get_eval_dataset()["answer"][:]) == (["0", "1"], ["2", "3"])
    assert env.get_eval_dataset()["example_id"][:] == [0, 1]
    env.reset(options={"split": "eval"})
    assert env.step(env.oracle(env.state)).reward == 1.0
    silent = vf.ReasoningGymEnv("leg_counting", num_train_examples=1, num_eval_examples=0, system_prompt=None)
    assert roles(silent.get_dataset()[0]["prompt"]) == ["user"]


# Who plays


class Elsewhere:
    """Plays rollouts elsewhere: it notes what it was given, and returns rows."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    async def run_group(self, *given: Any) -> list[dict[str, Any]]:
        self.given.append(given)
        return [{"example_id": row["example_id"], "reward": 0.5} for row in given[0]]

    async def run_rollout(self, *given: Any) -> dict[str, Any]:
        self.given.append(given)
        return {"example_id": given[0]["example_id"], "reward": 0.25}


async def test_an_env_client_plays_the_rollouts_with_the_configuration_that_was_given(vf: Any) -> None:
    env, elsewhere = single(), Elsewhere()
    env.env_client = elsewhere
    config = asking("http://localhost:1/v1")
    grouped = await env.evaluate(config, "m", {"temperature": 0.5}, rollouts_per_example=2, max_retries=3, state_columns=["x"])
    assert [output["reward"] for output in grouped["outputs"]] == [0.5, 0.5]
    inputs, *others = elsewhere.given[0]
    assert [row["prompt"][0]["content"] for row in inputs] == ["1 + 1?"] * 2
    assert others[:2] + others[3:] == [config, "m", 3, ["x"]]
    assert others[2]["temperature"] == 0.5
    alone = await env.evaluate(config, "m", independent_scoring=True)
    assert [output["reward"] for output in alone["outputs"]] == [0.25]
    env.env_client = None
    row = env.get_dataset()[0]
    assert (await env.run_rollout(row, config, "m", env_client=elsewhere))["reward"] == 0.25
    assert [output["reward"] for output in await env.run_group([row], config, "m", env_client=elsewhere)] == [0.5]


def test_an_env_client_that_cannot_play_is_refused_at_once(vf: Any) -> None:
    with pytest.raises(ValueError, match="env_client must be an object with the async methods run_rollout and run_group, got object"):
        single().env_client = object()


async def test_a_group_finds_its_environments_by_name_and_gives_zero_for_the_functions_of_the_others(vf: Any) -> None:
    def of_first(completion: Any) -> float:
        return 1.0

    def of_second(completion: Any) -> float:
        return 2.0

    first, second = single(rubric=vf.Rubric(of_first)), single(rubric=vf.Rubric(of_second))
    group = vf.EnvGroup([first, second], env_names=["first", "second"])
    assert group.get_env_for_name("second") is second
    with pytest.raises(ValueError, match="Did you mean `second`"):
        group.get_env_for_name("secnd")
    state = await rolled_out(group, "2", row=1)
    for scoring in (group.rubric.score_rollout(state), group.rubric.score_group([state])):
        await scoring
        assert (state["reward"], state["metrics"]) == (2.0, {"of_first": 0.0, "of_second": 2.0, "num_turns": 1.0})
    assert [sorted(output["metrics"]) for output in await evaluated(group, "2")] == [["num_turns", "of_first"], ["num_turns", "of_second"]]

    async def halve(state: Any) -> None:
        state["reward"], state["metrics"] = 0.5, {"of_second": 0.5}

    second.rubric.score_rollout = halve
    await group.rubric.score_rollout(state)
    assert (state["reward"], state["metrics"]["of_second"]) == (0.5, 0.5)


# Inputs, states and types


@pytest.mark.parametrize("as_given", [json.dumps, dict], ids=["as JSON text", "as data"])
async def test_an_input_whose_task_is_a_whole_row_is_read_as_that_row(vf: Any, as_given: Any) -> None:
    whole = {"prompt": [{"role": "user", "content": "inner"}], "answer": "A", "example_id": 4}
    env, model, seen = single(rubric=vf.Rubric(lambda task, answer: seen.append((task["answer"], answer)) or 1.0)), Model(), []
    row = {"prompt": [{"role": "user", "content": "outer"}], "example_id": 0, "task": as_given(whole)}
    state = await env.rollout(row, model, "m")
    assert (state["answer"], state["example_id"], state["task"]["answer"]) == ("A", 4, "A")
    (output,) = (await env.generate([{"task": as_given(whole)}], model, "m"))["outputs"]
    assert (output["example_id"], seen) == (4, [("A", "A")])
    assert model.prompts == [whole["prompt"]] * 2


@pytest.mark.parametrize("label", ["math", "{not JSON", '{"level": 1}', "[1]"])
async def test_a_task_that_is_no_row_stays_a_label(vf: Any, label: str) -> None:
    (output,) = (await single().generate([{**ROW, "task": label}], Model(), "m"))["outputs"]
    assert (output["task"], output["prompt"][0]["content"]) == (label, "1 + 1?")


async def test_a_state_made_by_hand_can_be_asked_whether_it_is_completed(vf: Any) -> None:
    def by_hand(*steps: dict[str, Any]) -> Any:
        return vf.State(trajectory=list(steps), prompt=[], timing=vf.RolloutTiming())

    step = {"prompt": [], "completion": [vf.AssistantMessage(content="done")], "is_truncated": True}
    assert not await Talk(dataset=[ROW], max_turns=2).is_completed(by_hand())
    limited, called = by_hand(step, step), by_hand(step)
    assert await Talk(dataset=[ROW], max_turns=2).is_completed(limited)
    assert await vf.ToolEnv(dataset=[ROW], tools=[look]).is_completed(called)
    assert (limited["stop_condition"], limited["is_truncated"]) == ("max_turns_reached", True)
    assert called["stop_condition"] == "no_tools_called"


def test_environments_without_the_hook_that_they_must_have_are_abstract(vf: Any) -> None:
    class Unfinished(vf.MultiTurnEnv):
        pass

    for cls, hook in (
        (vf.MultiTurnEnv, "env_response"),
        (Unfinished, "env_response"),
        (vf.Environment, "rollout"),
        (vf.StatefulToolEnv, "update_tool_args"),
    ):
        with pytest.raises(TypeError, match=f"{cls.__name__} must write {hook}"):
            cls(dataset=[ROW])


def test_content_parts_hold_documented_sources(vf: Any) -> None:
    from verifiers.types import ImageUrlContentPart, ImageUrlSource, InputAudioContentPart, InputAudioSource

    image = ImageUrlContentPart(image_url=ImageUrlSource(url="https://example.org/a.png"))
    audio = InputAudioContentPart(input_audio=InputAudioSource(data="UklG", format="wav"))
    assert (image.image_url.url, audio.input_audio.data, audio.input_audio.format) == ("https://example.org/a.png", "UklG", "wav")
    assert image.model_dump() == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    plain = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "input_audio", "input_audio": {"data": "y", "format": "mp3"}}]
    content = vf.UserMessage(content=plain).content
    assert (type(content[0].image_url), type(content[1].input_audio)) == (ImageUrlSource, InputAudioSource)
    assert vf.UserMessage(content=[image, audio]).content == [image, audio]
    assert ImageUrlSource.model_validate({"url": "x"}) == content[0].image_url
    with pytest.raises(ValueError, match="expected the fields of a InputAudioSource"):
        InputAudioSource.model_validate({"data": "y"})


async def test_saved_audio_has_no_whitespace_and_a_format_in_lower_case(vf: Any, tmp_path: Path) -> None:
    from verifiers.utils.message_utils import serialize_messages_for_output
    from verifiers.utils.save_utils import load_outputs

    heard = {"type": "input_audio", "input_audio": {"data": " Ukl\nG ", "format": "WAV"}}
    kept = {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}
    env = single({"prompt": [{"role": "user", "content": [{"type": "text", "text": "Listen."}, heard]}]})
    await env.evaluate(Model(), "m", results_path=tmp_path)
    assert load_outputs(tmp_path)[0]["prompt"][0]["content"][1] == kept
    for without in ({"type": "input_audio"}, {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}):
        said = serialize_messages_for_output([{"role": "user", "content": [heard, without]}])
        assert said == [{"role": "user", "content": [kept, {"type": "text", "text": "[audio]"}]}]


# Results


def test_rows_are_read_and_added_with_nothing_but_their_file(vf: Any, tmp_path: Path) -> None:
    from verifiers.utils.save_utils import load_outputs, save_new_outputs

    def rewards() -> list[float]:
        return [output["reward"] for output in load_outputs(tmp_path)]

    save_new_outputs([{"example_id": 0, "reward": 1.0}], tmp_path)
    whole = (tmp_path / "results.jsonl").read_text()
    assert rewards() == [1.0]
    (tmp_path / "results.jsonl").write_text(whole + '{"example_id": 1, "rew')
    assert rewards() == [1.0]
    save_new_outputs([{"example_id": 1, "reward": 0.5}], tmp_path)
    assert rewards() == [1.0, 0.5]
    (tmp_path / "results.jsonl").write_text(f'{whole}{{"example_id": 1, "rew\n{whole}')
    with pytest.raises(vf.Error, match="line 2"):
        rewards()


def test_numbers_of_nothing_are_zero(vf: Any) -> None:
    from verifiers.utils import metric_utils
    from verifiers.utils.usage_utils import compute_context_token_metrics

    assert compute_context_token_metrics([]) == {"final_input_tokens": 0, "final_output_tokens": 0}
    for name in ("Reward", "ErrorRate", "InputTokens", "OutputTokens", "FinalInputTokens", "FinalOutputTokens"):
        assert getattr(metric_utils, f"{name}Metric")().compute() == 0.0
    reward = metric_utils.RewardMetric()
    reward.add_outputs([{"example_id": 0}, {"example_id": 0, "reward": 1.0}])
    assert reward.compute() == 0.5
    passed = metric_utils.PassAtKMetric(2)
    passed.add_outputs([{"example_id": 0}, {"example_id": 0, "reward": 1.0}])
    assert passed.compute() == ({"1": 0.5, "2": 1.0}, {"1": 0.5, "2": 0.0})


async def test_a_state_column_without_a_form_in_json_is_replaced_by_a_text_that_says_so(vf: Any) -> None:
    class Holding(Talk):
        async def setup_state(self, state: Any) -> None:
            state["lock"] = asyncio.Lock()

    (output,) = await evaluated(Holding(dataset=[ROW], max_turns=1), "1", state_columns=["lock"])
    assert (output["lock"], output["error"]) == ("<not kept: Lock has no form in JSON>", None)


# Tools and clients


async def test_the_model_sees_a_title_over_the_arguments_of_a_tool(vf: Any) -> None:
    from verifiers.utils.tool_utils import convert_func_to_tool_def

    class Hiding(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return tool_args

    hiding = Hiding(dataset=[ROW])
    hiding.add_tool(look, args_to_skip=["key"])
    asked: list[Any] = []
    with ModelServer(models={"m": lambda request: asked.extend(request.tools) or "done"}) as server:
        await vf.ToolEnv(dataset=[ROW], tools=[look]).evaluate(asking(server.openai_url), "m")
    assert asked[0].parameters["title"] == "look_args"
    assert hiding.tool_defs[0].parameters["title"] == convert_func_to_tool_def(look).parameters["title"] == "look_args"


def test_an_endpoint_given_as_a_dict_may_have_an_empty_list_of_endpoints(vf: Any) -> None:
    for empty in ([], None):
        config = vf.ClientConfig(endpoint_configs=[{"api_base_url": "http://localhost:1/v1", "endpoint_configs": empty}])
        assert [endpoint.api_base_url for endpoint in config.endpoints()] == ["http://localhost:1/v1"]
    with pytest.raises(ValueError, match="cannot be nested"):
        vf.ClientConfig(endpoint_configs=[{"endpoint_configs": [{"api_base_url": "http://localhost:1/v1"}]}])
