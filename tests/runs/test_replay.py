"""Saved rollouts are played again: in any process, with the same rewards, and with a word on where they differ."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from tests.environments import Echo, Talk
from tests.registered import playable_ids
from vfgym import MultiTurnEnv, Response, ResponseMessage, Rubric, State, ToolEnv
from vfgym.errors import ConfigurationError, ModelError, OverlongPromptError
from vfgym.results import load_results

IDS = ("gymnasium/FrozenLake-v1", "textarena/LiarsDice-v0", "pettingzoo/tictactoe-v3", "gymnasium/LunarLander-v3")
TRAJECTORY = ["trajectory"]
SAID = {"role": "assistant", "content": "x"}


def saved(env: Any, agent: Any, folder: Path, **arguments: Any) -> list[dict[str, Any]]:
    """Return the rows of a run as they come back from the disk."""
    vfgym.evaluate(env, agent, **{"num_examples": 2, "results_path": folder, "progress": False, **arguments})
    return load_results(folder)["outputs"]


def differences(rows: list[dict[str, Any]], env: Any) -> list[str]:
    return [str(difference) for row in rows if (difference := vfgym.replay(row, env).difference) is not None]


@pytest.mark.parametrize("columns", [[], TRAJECTORY])
@pytest.mark.parametrize("env_id", IDS)
def test_rows_of_games_earn_the_same_again(env_id: str, columns: list[str], tmp_path: Path) -> None:
    rows = saved(env_id, "random", tmp_path, rollouts_per_example=2, state_columns=columns)
    assert {row["env_id"] for row in rows} == {env_id}
    assert len({row["seed"] for row in rows}) == 4
    assert differences(rows, rows[0]["env_id"]) == []


PROGRAM = """
import json, sys, vfgym
from vfgym.results import load_results
rows = load_results(sys.argv[1])["outputs"]
print(json.dumps([[row["env_id"], str(vfgym.replay(row, row["env_id"]).difference)] for row in rows]))
"""


def replayed_elsewhere(folder: Path) -> list[list[str]]:
    """Play rows again in another process: of the Python that VFGYM_OTHER_PYTHON names, if it does, else of this one."""
    python = os.environ.get("VFGYM_OTHER_PYTHON", sys.executable)
    process = subprocess.run([python, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True)
    return json.loads(process.stdout)  # type: ignore[no-any-return]


def test_another_process_gets_the_same(tmp_path: Path) -> None:
    saved("textarena/LiarsDice-v0", "random", tmp_path, state_columns=TRAJECTORY)
    assert replayed_elsewhere(tmp_path) == [["textarena/LiarsDice-v0", "None"]] * 2


DRAWN_ANEW = {
    f"reasoning-gym/{name}-v0"
    for name in (
        *("codeio", "intermediate_integration", "isomorphic_strings", "knight_swap", "polynomial_multiplication", "ransom_note"),
        "word_ladder",
    )
}
"""Of these, reasoning-gym makes other items in every process, as `vfgym.ReasoningGymEnv` says."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "env_id", [env_id for env_id in playable_ids() if not env_id.endswith(("-train", "-raw")) and env_id not in DRAWN_ANEW][::6]
)
def test_rows_of_many_ids_earn_the_same_in_another_process(env_id: str, tmp_path: Path) -> None:
    rows = saved(env_id, "random", tmp_path, num_examples=5, rollouts_per_example=2, state_columns=TRAJECTORY)
    assert replayed_elsewhere(tmp_path) == [[env_id, "None"]] * len(rows)


def value(state: State) -> float:
    """Return a number of the episode's own."""
    return float(state.rng.integers(1000))


class Rolls(Talk):
    """Earns a random number of the episode at each turn."""

    def __init__(self, **kwargs: Any) -> None:
        rubric = Rubric(value)
        rubric.add_step_reward_func(value)
        super().__init__(**{"max_turns": 3, "rubric": rubric, **kwargs})


def test_random_numbers_of_the_episode_are_those_of_its_seed(tmp_path: Path) -> None:
    """The environment's own episode is left alone."""
    env = Rolls(dataset=[{"question": str(number)} for number in range(4)])
    env.reset(seed=0)
    rows = saved(env, "random", tmp_path, state_columns=TRAJECTORY)
    replay = vfgym.replay(rows[0], env)
    assert replay.difference is None
    assert replay.rewards == [step["extras"]["reward"] for step in rows[0]["trajectory"]]
    assert sum(replay.rewards) == rows[0]["reward"]
    assert (env.state["trajectory"], env.cleaned) == ([], 3)


@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_task_is_found_in_the_split_that_was_played(split: Any, tmp_path: Path) -> None:
    env = Echo(
        dataset=[{"question": "train"}] * 2,
        eval_dataset=[{"question": "eval"}] * 2,
        max_turns=1,
        rubric=Rubric(lambda prompt: len(prompt[-1].content)),
    )
    rows = saved(env, "random", tmp_path, split=split)
    assert vfgym.replay(rows[0], env).rewards == [float(len(split))]
    with pytest.raises(ConfigurationError, match="another task than example 0"):
        vfgym.replay(rows[0], Echo(dataset=[{"question": "other"}]))


def test_a_task_that_has_another_answer_each_time_is_found_by_its_prompt(tmp_path: Path) -> None:
    """As some of reasoning-gym's, whose answer depends on the hashes of the process."""
    rubric = Rubric(lambda completion: 1.0)
    rows = saved(Echo(dataset=[{"question": "?", "answer": "a"}] * 2, max_turns=1, rubric=rubric), "random", tmp_path)
    assert differences(rows, Echo(dataset=[{"question": "?", "answer": "b"}] * 2, max_turns=1, rubric=rubric)) == []


def test_a_game_that_is_over_before_the_first_turn_is_scored(tmp_path: Path) -> None:
    """The opponent folds at once, which earns the policy the blind."""
    rows = saved("pettingzoo/texas_holdem-v4", "random", tmp_path, num_examples=8, state_columns=TRAJECTORY)
    assert any(not row["trajectory"] and row["reward"] for row in rows)
    assert differences(rows, "pettingzoo/texas_holdem-v4") == []


def test_a_turn_that_earns_something_else_is_named(tmp_path: Path) -> None:
    env = Rolls()
    [row] = saved(env, "random", tmp_path, num_examples=1, state_columns=TRAJECTORY)
    row["trajectory"][1]["extras"]["reward"] += 1
    difference = vfgym.replay(row, env).difference
    assert difference is not None
    assert difference.turn == 1
    assert str(difference).startswith("turn 1: it earned ")


def test_without_the_trajectory_the_whole_reward_is_compared(tmp_path: Path) -> None:
    env = Rolls()
    [row] = saved(env, "random", tmp_path, num_examples=1)
    assert vfgym.replay(row, env).difference is None
    row["reward"] += 1
    difference = vfgym.replay(row, env).difference
    assert difference is not None
    assert (difference.turn, "all turns together" in str(difference)) == (3, True)


def test_an_episode_that_ends_earlier_or_later_is_a_difference(tmp_path: Path) -> None:
    [row] = saved(Rolls(), "random", tmp_path, num_examples=1, state_columns=TRAJECTORY)
    goes_on = "turn 3: the episode goes on, and that of the row was over (max_turns_reached)"
    assert str(vfgym.replay(row, Rolls(max_turns=4)).difference) == goes_on
    assert str(vfgym.replay(row, Rolls(max_turns=2)).difference).startswith("turn 1: it earned")
    quiet = Talk(max_turns=3)
    [row] = saved(quiet, "random", tmp_path / "quiet", num_examples=1, state_columns=TRAJECTORY)
    assert (
        str(vfgym.replay(row, Talk(max_turns=2)).difference) == "turn 2: the episode is over (max_turns_reached), and the row has 3 turns"
    )
    assert "turn 3: the episode goes on" in str(vfgym.replay({**row, "stop_condition": "game_over"}, Talk(max_turns=4)).difference)


def fails(error: Exception) -> Any:
    """Return an agent that answers once and then raises."""

    def answer(observation: Any, info: Any) -> str:
        if len(observation) > 1:
            raise error
        return "x"

    return answer


@pytest.mark.parametrize("error", [ModelError("refused"), OverlongPromptError("too long"), TimeoutError("late"), ValueError("own")])
def test_an_episode_that_its_agent_ended_is_ended_again(error: Exception, tmp_path: Path) -> None:
    env = Rolls()
    rows = saved(env, fails(error), tmp_path, state_columns=TRAJECTORY)
    assert len(rows[0]["trajectory"]) == 1
    assert differences(rows, env) == []


def test_an_episode_that_a_wrapper_ended_is_ended_again(tmp_path: Path) -> None:
    env = gym.wrappers.TimeLimit(Rolls(), 2)
    rows = saved(env, "random", tmp_path, state_columns=TRAJECTORY)
    assert [row["stop_condition"] for row in rows] == ["truncated"]
    assert differences(rows, env) == []


class Raising(Talk):
    """Raises something at its second turn."""

    def env_response(self, messages: Any, state: State) -> Any:
        if len(state["trajectory"]) == 2:
            raise KeyError("lost")
        return super().env_response(messages, state)


def test_an_environment_that_raises_again_does_not_differ_and_another_does(tmp_path: Path) -> None:
    rows = saved(Raising(), "random", tmp_path, state_columns=TRAJECTORY)
    assert rows[0]["error"]["error"] == "KeyError"
    assert differences(rows, Raising()) == []
    [row] = saved(Talk(max_turns=3), "random", tmp_path / "other", state_columns=TRAJECTORY)
    assert str(vfgym.replay(row, Raising()).difference) == "turn 2: the environment raised KeyError('lost')"


def test_what_was_cut_off_is_cut_off_again(tmp_path: Path) -> None:
    """A game reads an answer that the limit of its length cut off in another way."""

    def answer(observation: Any, info: Any) -> Response:
        message = ResponseMessage("I go left, or perhaps right", finish_reason="length")
        return Response(id="", created=0, model="", usage={"prompt_tokens": 3, "completion_tokens": 2}, message=message)

    env = vfgym.to_chat("CartPole-v1", max_turns=2, invalid_reward=-1.0)
    rows = saved(env, answer, tmp_path, state_columns=TRAJECTORY)
    assert rows[0]["reward"] == -2.0
    assert differences(rows, env) == []


def test_tools_are_called_again(tmp_path: Path) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    env = ToolEnv([add], dataset=[{"question": "?"}], max_turns=6, rubric=Rubric(lambda completion: float(len(str(completion)))))
    rows = saved(env, "random", tmp_path, num_examples=1, rollouts_per_example=5)
    assert differences(rows, env) == []


def test_self_play_needs_its_turns(tmp_path: Path) -> None:
    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents="self")
    assert differences(saved(env, "random", tmp_path, state_columns=TRAJECTORY), env) == []
    rows = saved(env, "random", tmp_path / "without")
    with pytest.raises(ConfigurationError, match=r"state_columns=\[\"trajectory\"\]"):
        vfgym.replay(rows[0], env)


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    [row] = saved(Talk(max_turns=1), "random", tmp_path)
    del row["seed"]
    with pytest.raises(ConfigurationError, match="no 'seed'"):
        vfgym.replay(row, Talk())
    with pytest.raises(ConfigurationError, match="a row of vfgym"):
        vfgym.replay([], Talk())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="replay takes the id"):
        vfgym.replay({**row, "seed": 1}, MultiTurnEnv)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="FrozenLake"):
        vfgym.replay({**row, "seed": 1}, "gymnasium/FrozenLak-v1")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"trajectory": [{"completion": [SAID], "extras": {}}, {"completion": [], "extras": {}}]},
            "step 1 of its trajectory has no completion",
        ),
        ({"trajectory": [7]}, "the row cannot be played again: "),
        ({"completion": "x"}, r"cannot be played again: its completion is one text.* state_columns=\[\"trajectory\"\]"),
        ({"completion": [7]}, "the row cannot be played again: its completion must be a list of messages"),
        ({"metrics": 3}, "the row cannot be played again: "),
        ({"seed": None}, "this one has no 'seed'"),
        ({"metrics": {"num_turns": 2.0}}, "the row has 1 answers of 2 turns in its completion"),
        ({"example_id": 9}, "the row is of another task than example 9 of this Talk"),
    ],
)
def test_a_row_that_is_not_as_a_run_wrote_it_is_refused(changed: dict[str, Any], text: str) -> None:
    [row] = vfgym.evaluate(Talk(max_turns=1), lambda observation, info: "x", progress=False)["outputs"]
    assert vfgym.replay({**row, "seed": 0}, Talk(max_turns=1)).difference is None
    with pytest.raises(ConfigurationError, match=text):
        vfgym.replay({**row, **changed}, Talk(max_turns=1))


def test_what_is_not_a_number_is_equal_to_itself() -> None:
    def env() -> Talk:
        return Talk(max_turns=1, rubric=Rubric(lambda: float("nan")))

    [row] = vfgym.evaluate(env(), lambda observation, info: "x", progress=False)["outputs"]
    assert vfgym.replay({**row, "reward": float("nan")}, env()).difference is None
    assert "earned 0.0 in the row, and nan now" in str(vfgym.replay({**row, "reward": 0.0}, env()).difference)


class Closing(Talk):
    closed = 0

    def close(self) -> None:
        Closing.closed += 1
        super().close()


@pytest.mark.parametrize("example_id", [0, 9])
def test_an_environment_that_was_made_is_closed_and_one_that_was_given_is_not(example_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EnvSpec("t/Closing-v0", entry_point=Closing, kwargs={"max_turns": 1}, disable_env_checker=True)
    monkeypatch.setitem(gym.registry, spec.id, spec)
    given = Closing(max_turns=1)
    [row] = vfgym.evaluate(Talk(max_turns=1), lambda observation, info: "x", progress=False)["outputs"]
    for env, closed in ((spec.id, 1), (spec, 1), (given, 0)):
        monkeypatch.setattr(Closing, "closed", 0)
        with contextlib.nullcontext() if example_id == 0 else pytest.raises(ConfigurationError, match="another task"):
            vfgym.replay({**row, "example_id": example_id}, env)
        assert Closing.closed == closed


def test_an_older_run_goes_on_with_rows_that_have_no_seed(tmp_path: Path) -> None:
    saved(Talk(max_turns=1, dataset=[{"question": "a"}, {"question": "b"}]), "random", tmp_path, num_examples=1)
    file = tmp_path / "results.jsonl"
    older = {key: value for key, value in json.loads(file.read_text()).items() if key not in ("seed", "env_id")}
    file.write_text(json.dumps(older) + "\n")
    rows = saved(Talk(max_turns=1, dataset=[{"question": "a"}, {"question": "b"}]), "random", tmp_path, resume=True)
    assert ["seed" in row for row in rows] == [False, True]
