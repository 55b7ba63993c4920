"""`SeededGameEnv`: tasks that are seeds."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import Score
from tests.verifiers_compat.models import Model
from vfgym.errors import ConfigurationError


def test_rows_of_games_are_numbered_like_those_of_any_dataset() -> None:
    env = vf.GymEnv(Score, num_train_episodes=3, num_eval_episodes=2, seed=5, system_prompt="Play.")
    train, evaluation = env.get_dataset(), env.get_eval_dataset()
    assert (train["example_id"][:], train["answer"][:]) == ([0, 1, 2], ["5", "6", "7"])
    assert (evaluation["example_id"][:], evaluation["answer"][:]) == ([0, 1], ["8", "9"])
    assert train[1]["prompt"] == [{"role": "system", "content": "Play."}, {"role": "user", "content": "6"}]
    assert [env.reset(seed=seed)[1]["example_id"] for seed in (6, 8)] == [1, -1]
    env.close()


@pytest.mark.parametrize(
    ("numbers", "train", "evaluation"),
    [((2, 2), ["3", "4"], ["5", "6"]), ((2, 0), ["3", "4"], ["3", "4"]), ((0, 2), None, ["3", "4"]), ((1, 1), ["3"], ["4"])],
)
def test_evaluation_goes_on_where_training_ends(numbers: tuple[int, int], train: Any, evaluation: Any) -> None:
    env = vf.GymEnv(Score, num_train_episodes=numbers[0], num_eval_episodes=numbers[1], seed=3)
    assert env.get_eval_dataset()["answer"][:] == evaluation
    assert [output["answer"] for output in env.evaluate_sync(Model(), "m")["outputs"]] == evaluation
    if train is None:
        with pytest.raises(ConfigurationError, match="no train tasks"):
            env.get_dataset()
    else:
        assert (env.get_dataset()["answer"][:], env.get_dataset(n=1)["answer"][:]) == (train, train[:1])
        assert sorted(env.get_dataset(n=1, seed=0)["answer"][:] + env.get_dataset(seed=0)["answer"][1:]) == train


@pytest.mark.parametrize(
    ("row", "seed"),
    [
        ({"answer": "7"}, 7),
        ({"answer": " 7 "}, 7),
        ({"answer": 7}, 7),
        ({"answer": "0"}, 0),
        ({"answer": "7", "seed": 0}, 0),
        ({"answer": "7", "seed": None}, 7),
        ({"seed": -1}, None),
        ({"answer": "-1"}, None),
        ({"answer": ""}, None),
        ({"answer": True}, None),
        ({"answer": 1.5}, None),
        ({}, None),
    ],
)
def test_the_seed_of_a_row_is_its_own_or_its_answer(row: dict[str, Any], seed: int | None) -> None:
    env = vf.GymEnv(Score)
    if seed is None:
        with pytest.raises(ConfigurationError, match="seed of its game in its answer"):
            env.reset(options={"task": row})
        return
    env.reset(options={"task": row})
    assert (env.state.session.game.seed, env.state["prompt"][-1].content) == (seed, str(seed))
    env.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"game_options": {}}, "give a seed"),
        ({"game_options": 3, "example_id": 0}, "'game_options' must be a dict, got int"),
        ({"split": "test"}, "split"),
    ],
)
def test_reset_options_that_do_not_fit(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        vf.GymEnv(Score).reset(options=options)


@pytest.mark.parametrize("number", [-1, 1.5, True, None, "2"])
def test_numbers_that_are_none_are_refused(number: Any) -> None:
    for name in ("num_train_episodes", "num_eval_episodes", "seed"):
        with pytest.raises(ConfigurationError, match=f"{name} must be a whole number from 0, got {number!r}"):
            vf.GymEnv(Score, **{name: number})


def test_numbers_that_leave_no_task_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^num_train_episodes and num_eval_episodes are both 0, so there would be no task$"):
        vf.GymEnv(Score, num_train_episodes=0, num_eval_episodes=0)
    with pytest.raises(ConfigurationError, match=r"^seed must be a whole number from 0, got -1$"):
        vf.GymEnv(Score, seed=-1)
