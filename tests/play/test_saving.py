"""Games that were played are runs of one rollout, also where their player left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.play.playing import RULES, Uncopied, make, play, save
from vfgym.endings import Ending, ending_of
from vfgym.messages import Message
from vfgym.play import SavedGame
from vfgym.results import fingerprint_of, load_results


def test_leaving_asks_once_and_saves_the_game_unfinished(tmp_path: Path) -> None:
    game, text = play(make(**RULES), "down", None, "no", "up", None, None, "never read")
    assert text.count("Leave the game?") == 2
    row = save(game, tmp_path, env_args=RULES)
    assert (row["stop_condition"], row["is_completed"], row["is_truncated"], row["failed"]) == ("quit", False, True, False)
    assert ending_of(game.state) is ending_of(row) is Ending.CUT
    assert (game.info["stop_condition"], game.info["ending"]) == ("quit", "cut")
    assert (row["counted_reward"], row["failure_reward"]) == (0.0, 0.0)
    assert [message["content"] for message in row["completion"] if message["role"] == "assistant"] == ["down", "up"]
    assert vfgym.replay(row, make(**RULES)).difference is None


@pytest.mark.parametrize(("failure_reward", "counted"), [(-1.0, -1.0), (9.0, 2.0), (None, None)])
def test_a_game_that_was_left_counts_with_the_lower_of_what_it_earned_and_the_failure_reward(
    failure_reward: float | None, counted: float | None, tmp_path: Path
) -> None:
    class Steady(Uncopied):
        def make_move(self, game: list[str], message: Message, state: Any) -> vfgym.Turn:
            return vfgym.Turn([vfgym.UserMessage("Go on.")], 2.0)

    game, _ = play(Steady(failure_reward=failure_reward), "a", "/quit", "y")
    row = save(game, tmp_path, "steady")
    assert (row["ending"], row["reward"], row["counted_reward"]) == ("cut", 2.0, counted)


def test_a_saved_game_says_what_was_played(tmp_path: Path) -> None:
    game, _ = play(make(**RULES), "down", "/moves", seed=7)
    with SavedGame(game, env_id="lake", env_args=RULES, output_dir=tmp_path) as saved:
        written = saved.write()
    assert saved.path.is_relative_to(tmp_path / "evals")
    results = load_results(saved.path)
    said = {
        key: results["metadata"][key] for key in ("env_id", "env_args", "model", "is_model", "seed", "num_examples", "rollouts_per_example")
    }
    assert said == {
        "env_id": "lake",
        "env_args": RULES,
        "model": "human",
        "is_model": False,
        "seed": 7,
        "num_examples": 1,
        "rollouts_per_example": 1,
    }
    (row,) = results["outputs"]
    assert row["reward"] == written["reward"] == results["metadata"]["avg_reward"]
    assert row["fingerprint"] == fingerprint_of(game.seat.definition.tasks_of("train").input(row["example_id"]))
    assert row["human"] == game.help


def test_what_broke_a_game_off_is_in_its_row(tmp_path: Path) -> None:
    game, _ = play(make(**RULES), "down")
    with SavedGame(game, env_id="lake", env_args={}, output_dir=tmp_path) as saved:
        saved.write(RuntimeError("the game broke"))
    (row,) = load_results(saved.path)["outputs"]
    assert "the game broke" in str(row["error"])


def test_a_game_of_a_group_is_that_of_who_plays_it(tmp_path: Path) -> None:
    group = vfgym.EnvGroup([Dice(), Dice()], env_names=["a", "b"])
    game, _ = play(group, "x", "y", "z", seed=3)
    row = save(game, tmp_path)
    assert row["info"]["env_id"] in ("a", "b")
    played_again = vfgym.replay(row, vfgym.EnvGroup([Dice(), Dice()], env_names=["a", "b"]))
    assert played_again.difference is None


class Dice(vfgym.MultiTurnEnv):
    """What each answer earns is drawn from the episode's random numbers."""

    def __init__(self, **kwargs: Any) -> None:
        rubric = vfgym.Rubric()
        rubric.add_step_reward_func(lambda step, state: float(state.rng.random()))
        super().__init__(dataset=[{"question": f"{number}"} for number in range(20)], max_turns=3, rubric=rubric, **kwargs)

    def env_response(self, messages: Any, state: Any) -> Any:
        return [vfgym.UserMessage("again")]


@pytest.mark.parametrize("make_env", [lambda: make(), Dice, lambda: make("reasoning-gym/leg_counting-v0")])
def test_a_saved_game_replays_to_the_same_reward(make_env: Any, tmp_path: Path) -> None:
    game, _ = play(make_env(), "right", "/undo", "down", "nonsense", "down", "right", *["up"] * 200, seed=11)
    row = save(game, tmp_path)
    assert (row["seed"], row["reward"], row["return"]) == (11, game.state["reward"], pytest.approx(game.episode_return))
    played_again = vfgym.replay(row, make_env())
    assert played_again.difference is None
    assert sum(played_again.rewards) == pytest.approx(row["reward"])
    without = {key: value for key, value in row.items() if key != "trajectory"}
    assert vfgym.replay(without, make_env()).difference is None
