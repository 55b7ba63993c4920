"""`score`: the rows of a run with another rubric are those of a fresh run with it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym.results
from vfgym import Client, EnvGroup, JudgeRubric, Response, Rubric, SingleTurnEnv, State, ToolEnv, evaluate, reward
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs
from vfgym.results.files import METADATA, ROWS, write_results
from vfgym.wrappers.games.turns import game_reward

TASKS = [{"question": f"{n} + {n}?", "answer": str(2 * n), "hardness": n % 3} for n in range(6)]


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


def length(completion: Any) -> float:
    return len(str(completion[-1].content)) / 10


def turns(state: State) -> float:
    return float(len(state["trajectory"]))


def hardness(completion: Any, hardness: int) -> float:
    return float(hardness)


def share(completions: Any) -> list[float]:
    """Score a group: each answer by how many others are the same."""
    texts = [completion[-1].content for completion in completions]
    return [texts.count(text) / len(texts) for text in texts]


def raises_of_six(completion: Any, answer: str) -> float:
    if answer == "6":
        raise ValueError("a bug of mine")
    return 1.0


async def awaited(completion: Any) -> float:
    return 0.25


def calculator(observation: Any, info: Any) -> str:
    number = int(observation[-1].content.split()[0])
    return str(2 * number) if number % 2 else "?"


def fails_sometimes(observation: Any, info: Any) -> str:
    if observation[-1].content.startswith("4"):
        raise RuntimeError("out of order")
    return calculator(observation, info)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adder(observation: Any, info: Any) -> Any:
    if observation[-1]["role"] == "tool":
        return observation[-1]["content"]
    number = int(observation[-1]["content"].split()[0])
    call = {"id": "1", "function": {"name": "add", "arguments": json.dumps({"a": number, "b": number})}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def single(rubric: Rubric, **kwargs: Any) -> SingleTurnEnv:
    return SingleTurnEnv(TASKS, rubric=rubric, **kwargs)


def with_tools(rubric: Rubric) -> ToolEnv:
    return ToolEnv(tools=[add], dataset=TASKS, rubric=rubric)


def with_tools_of(tasks: list[dict[str, Any]]) -> ToolEnv:
    return ToolEnv(tools=[add], dataset=tasks)


def lake(rubric: Rubric | None = None) -> gym.Env[Any, Any]:
    return gym.make("gymnasium/FrozenLake-v1", **({} if rubric is None else {"rubric": rubric}))


def played(env: Any, agent: Any = calculator, **kwargs: Any) -> GenerateOutputs:
    return evaluate(env, agent, **{"progress": False, "rollouts_per_example": 2, **kwargs})


def without_time(results: GenerateOutputs) -> list[dict[str, Any]]:
    return [json.loads(json.dumps({key: value for key, value in row.items() if key != "timing"})) for row in results["outputs"]]


def assert_equal(scored: GenerateOutputs, fresh: GenerateOutputs) -> None:
    """Check that two runs have the same rows, with their keys in the same order, and the same statistics."""
    assert json.dumps(without_time(scored)) == json.dumps(without_time(fresh))
    for name in ("avg_reward", "std_error", "avg_metrics", "num_failed", "pass_at_k", "pass_all_k", "metrics_errors", "avg_return"):
        assert scored["metadata"][name] == fresh["metadata"][name], name  # type: ignore[literal-required]


RUBRICS: Mapping[str, Callable[[], Rubric]] = {
    "functions": lambda: Rubric(funcs=[length, exact, turns], weights=[0.3, 0.5, 0.0]),
    "async": lambda: Rubric(awaited),
    "one that raises": lambda: Rubric(raises_of_six),
    "groups": lambda: Rubric(funcs=[exact, share]),
}


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
@pytest.mark.parametrize(("env", "agent"), [(single, calculator), (single, fails_sometimes), (with_tools, adder)])
def test_rows_are_those_of_a_fresh_run(env: Any, agent: Any, rubric: Callable[[], Rubric]) -> None:
    old = played(env(Rubric(exact)), agent)
    before = json.dumps(old["outputs"])
    scored = vfgym.score(old, rubric())
    assert_equal(scored, played(env(rubric()), agent))
    assert json.dumps(old["outputs"]) == before
    assert scored["metadata"]["path_to_save"] is None


@pytest.mark.parametrize("columns", [[], ["trajectory"]])
def test_a_run_on_disk_gives_the_same(tmp_path: Path, columns: list[str]) -> None:
    played(with_tools(Rubric(exact)), adder, results_path=tmp_path, state_columns=columns)
    before = (tmp_path / ROWS).read_bytes(), (tmp_path / METADATA).read_bytes()
    scored = vfgym.score(tmp_path, RUBRICS["functions"]())
    fresh = played(with_tools(RUBRICS["functions"]()), adder, state_columns=[])
    for row in scored["outputs"]:
        row.pop("trajectory", None)
    assert_equal(scored, fresh)
    assert ((tmp_path / ROWS).read_bytes(), (tmp_path / METADATA).read_bytes()) == before


def test_columns_that_rows_do_not_have_are_read_by_playing_again() -> None:
    old = played(single(Rubric(exact)))
    assert_equal(vfgym.score(old, Rubric(hardness), env=single(Rubric(exact))), played(single(Rubric(hardness))))


@pytest.mark.parametrize(
    "asks", [hardness, lambda state: state["found"], lambda state: "found" in state, lambda state: state.get("found", 0)]
)
def test_what_rows_do_not_have_is_refused_without_an_environment(asks: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"which rows do not have, and the environment 'SingleTurnEnv' cannot be made .* env="):
        vfgym.score(played(single(Rubric(exact))), Rubric(asks))


def at_goal(state: State) -> float:
    """Look into the game itself, which is in no row."""
    return float(state["turn"].terminated and state["turn"].reward > 0)


def test_a_game_is_played_again_by_the_id_in_the_metadata() -> None:
    settings: dict[str, Any] = {"num_examples": 5, "rollouts_per_example": 1}
    old = played("gymnasium/FrozenLake-v1", "random", env_args={"map_name": "8x8"}, **settings)
    scored = vfgym.score(old, Rubric(at_goal))
    fresh = played(gym.make("gymnasium/FrozenLake-v1", rubric=Rubric(at_goal), map_name="8x8"), "random", **settings)
    assert_equal(scored, fresh)
    assert "invalid_answers" in scored["outputs"][0]["metrics"]


def test_rewards_of_turns_are_those_of_the_game() -> None:
    rubric = Rubric(turns)
    rubric.add_step_reward_func(game_reward, weight=2.0)
    again = Rubric(turns)
    again.add_step_reward_func(game_reward, weight=2.0)
    for columns in ([], ["trajectory"]):
        settings: dict[str, Any] = {"num_examples": 5, "rollouts_per_example": 1, "state_columns": columns}
        scored = vfgym.score(played("gymnasium/CliffWalking-v1", "random", env_args={"max_turns": 9}, **settings), rubric)
        fresh = played(gym.make("gymnasium/CliffWalking-v1", rubric=again, max_turns=9), "random", **settings)
        for results in (scored, fresh):
            for row in results["outputs"]:
                row.pop("trajectory", None)
        assert_equal(scored, fresh)


class Marked(SingleTurnEnv):
    @reward
    def short(self, completion: Any) -> float:
        return 1.0 / len(completion[-1].content)


def test_functions_of_the_environments_own_class_score_too_where_it_is_given() -> None:
    old = played(Marked(TASKS, rubric=Rubric(exact)))
    assert_equal(vfgym.score(old, Rubric(length), env=Marked(TASKS)), played(Marked(TASKS, rubric=Rubric(length))))


def test_an_episode_that_goes_another_way_is_refused() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b + 1

    old = played(with_tools(Rubric(exact)), adder)
    with pytest.raises(ConfigurationError, match=r"rollout . of example . cannot be played again: it went another way"):
        vfgym.score(old, Rubric(hardness), env=ToolEnv(tools=[add], dataset=TASKS))
    with pytest.raises(ConfigurationError, match=r"rollout . of example . cannot be played again: the row is of another task"):
        vfgym.score(old, Rubric(hardness), env=with_tools_of(TASKS[::-1]))


@pytest.mark.parametrize(
    ("run", "rubric", "text"),
    [
        (42, Rubric(exact), "score takes the directory of a run or what vfgym.evaluate returned, got int"),
        (None, Rubric(exact), "what vfgym.evaluate returned, got NoneType"),
        ({"outputs": [{}]}, Rubric(exact), "what vfgym.evaluate returned, got dict"),
        ({"metadata": {}}, Rubric(exact), "what vfgym.evaluate returned, got dict"),
        ({"outputs": [], "metadata": {}}, Rubric(exact), "the run has no rollouts to score"),
        ({"outputs": [], "metadata": {}}, [exact], "rubric must be a vfgym.Rubric, got list"),
    ],
)
def test_wrong_arguments_are_named(run: Any, rubric: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        vfgym.score(run, rubric)


def test_failing_and_passing_count_as_the_run_had_them() -> None:
    settings: dict[str, Any] = {"failure_reward": -2.0}
    old = played(single(Rubric(exact), **settings), fails_sometimes, pass_threshold=0.0)
    fresh = played(single(Rubric(length), **settings), fails_sometimes, pass_threshold=0.0)
    for env in (None, single(Rubric(exact), **settings)):
        scored = vfgym.score(old, Rubric(length), env=env)
        assert_equal(scored, fresh)
        assert {row["counted_reward"] for row in scored["outputs"] if row["failed"]} == {-2.0}
    assert scored["metadata"]["pass_at_k"] == {"1": pytest.approx(5 / 6), "2": pytest.approx(5 / 6)}
    assert (scored["metadata"]["scored_again"], scored["metadata"]["num_failed"]) == (True, 2)


class Closing(SingleTurnEnv):
    closed = 0

    def __init__(self, tasks: Any = TASKS) -> None:
        super().__init__(tasks)

    def close(self) -> None:
        Closing.closed += 1
        super().close()


@pytest.mark.parametrize("goes_well", [True, False])
def test_an_environment_that_was_made_is_closed_and_one_that_was_given_is_not(goes_well: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kwargs = {} if goes_well else {"tasks": TASKS[::-1]}
    monkeypatch.setitem(gym.registry, "t/Closing-v0", EnvSpec("t/Closing-v0", entry_point=Closing, kwargs=kwargs, disable_env_checker=True))
    old = played(single(Rubric(exact)))
    for env, closed in (("t/Closing-v0", 1), (gym.spec("t/Closing-v0"), 1), (Closing(**kwargs), 0)):
        monkeypatch.setattr(Closing, "closed", 0)
        with contextlib.nullcontext() if goes_well else pytest.raises(ConfigurationError, match="the row is of another task"):
            vfgym.score(old, Rubric(hardness), env=env)
        assert Closing.closed == closed


def test_an_episode_whose_row_has_no_seed_and_a_group_of_environments_are_refused() -> None:
    old = played(single(Rubric(exact)))
    seedless: Any = {**old, "outputs": [{**row, "seed": None} for row in old["outputs"]]}
    with pytest.raises(ConfigurationError, match=r"rollout . of example . cannot be played again: its row does not say with which seed"):
        vfgym.score(seedless, Rubric(hardness), env=single(Rubric(exact)))
    group = EnvGroup([single(Rubric(exact)), single(Rubric(length))])
    with pytest.raises(ConfigurationError, match="the environments of a group have rubrics of their own: score the rows of one of them"):
        vfgym.score(old, Rubric(length), env=group)


class Doubled(gym.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return observation, 2 * float(reward), *rest


def test_what_wrappers_made_of_a_return_is_not_known_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    old = played(Doubled(single(Rubric(exact))))
    assert {row["return"] for row in old["outputs"]} == {0.0, 2.0}
    scored = vfgym.score(old, Rubric(exact))
    assert [row["return"] for row in scored["outputs"]] == [row["reward"] for row in old["outputs"]]
    assert caplog.text.count("what wrappers around the environment made of it is not known") == 1


def test_a_run_that_was_scored_again_is_not_gone_on_with(tmp_path: Path) -> None:
    """Its rows and new ones would have been scored by different rubrics."""
    played(single(Rubric(length)), results_path=tmp_path / "run", num_examples=3)
    write_results(tmp_path / "out", vfgym.score(tmp_path / "run", Rubric(exact)))
    before = (tmp_path / "out" / ROWS).read_bytes()
    with pytest.raises(ConfigurationError, match="its scored_again is True"):
        played(single(Rubric(length)), results_path=tmp_path / "out", resume=True)
    assert (tmp_path / "out" / ROWS).read_bytes() == before


class Scripted(Client):
    """A judge that says yes of answers in which there is a 2."""

    asked = 0

    async def get_response(self, prompt: Any, model: Any, tools: Any = None, sampling_args: Any = None, **kwargs: Any) -> Response:
        Scripted.asked += 1
        text = "yes" if "2" in str(prompt[-1]["content"]).rpartition("Response")[2] else "no"
        return Response(id="1", created=0, model="judge", usage={"prompt_tokens": 7, "completion_tokens": 1}, message=text)


async def judged(judge: Any, prompt: Any, completion: Any, answer: Any, state: State) -> float:
    return float("yes" in await judge(prompt, completion, answer, state))


def test_judges_are_asked_anew_and_their_tokens_are_counted() -> None:
    old = played(single(JudgeRubric(judged, judge_client=Scripted())))
    Scripted.asked = 0
    scored = vfgym.score(old, JudgeRubric(judged, judge_client=Scripted()))
    assert Scripted.asked == 12
    assert_equal(scored, old)
    assert_equal(vfgym.score(old, Rubric(exact)), played(single(Rubric(exact))))
