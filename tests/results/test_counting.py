"""Failing never pays: which rollouts failed, what they count with, and that everything that is published is taken from that."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import vfgym
from vfgym import EnvGroup, Rubric, SingleTurnEnv, evaluate
from vfgym.endings import Ending
from vfgym.errors import ConfigurationError, InfraError
from vfgym.messages import Message
from vfgym.results import GenerateOutputs, ResultsError, load_results, rollout_output, summarize
from vfgym.results.counting import Tally, count_rewards, counted_reward, is_failed, settle
from vfgym.state import State
from vfgym.wrappers.gymnasium.game import GymnasiumGame

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(4)]


def brief(completion: list[Message], parser: vfgym.Parser) -> float:
    return float(len(parser.parse_answer(completion) or "") < 3)


def worth(completion: list[Message], parser: vfgym.Parser) -> float:
    return float(parser.parse_answer(completion) or 0.0)


def fails(observation: list[Message], info: dict[str, Any]) -> str:
    raise InfraError("gone")


def fails_at(*example_ids: int, says: Callable[[int], str] = str) -> Callable[..., str]:
    def agent(observation: list[Message], info: dict[str, Any]) -> str:
        if info["example_id"] in example_ids:
            raise InfraError("gone")
        return says(info["example_id"])

    return agent


def played(env: Any, agent: Any, **options: Any) -> GenerateOutputs:
    return evaluate(env, agent, **{"progress": False, **options})


def tasks(rubric: Any = brief, **options: Any) -> SingleTurnEnv:
    return SingleTurnEnv(ROWS, rubric=rubric if isinstance(rubric, Rubric) else Rubric(rubric), **options)


LOSING = fails_at(0, says=lambda example_id: str(-example_id))
"""Fails at the first task, and gets as much less than nothing as the number of each other one is."""
WORTH = tasks(worth, failure_reward=-1.0)


def counted(results: GenerateOutputs) -> list[float | None]:
    return [row["counted_reward"] for row in results["outputs"]]


# Which rollouts failed


def failed(env: Any, agent: Any, **options: Any) -> list[bool]:
    return [row["failed"] for row in played(env, agent, **options)["outputs"]]


def test_an_error_is_a_failure_whoever_raised_it() -> None:
    def broken(observation: list[Message], info: dict[str, Any]) -> str:
        raise KeyError("a bug")

    class Unready(SingleTurnEnv):
        def setup_state(self, state: State) -> State:
            raise InfraError("not today")

    assert failed(tasks(), fails_at(1)) == [False, True, False, False]
    assert failed(tasks(), broken) == [True] * 4
    assert failed(tasks(), lambda observation, info: 7) == [True] * 4
    assert failed(Unready(ROWS, rubric=Rubric(brief)), "oracle") == [True] * 4


def test_answers_that_cannot_be_read_are_a_failure() -> None:
    """However few of them a limit of turns allows: nothing was played."""
    for options in ({}, {"max_turns": 3}, {"on_invalid": "terminate"}):
        env = vfgym.to_chat("CliffWalking-v1", **options)
        (row,) = played(env, lambda observation, info: "hmm", num_examples=1)["outputs"]
        assert (row["failed"], row["stop_condition"]) == (True, "too_many_invalid_moves")


def test_a_reward_function_that_raises_is_a_failure_where_it_has_a_weight() -> None:
    def careless(completion: list[Message]) -> float:
        raise ValueError("no")

    def careless_for_all(completions: list[Any]) -> list[float]:
        raise ValueError("no")

    def careless_step(step: Any) -> float:
        raise ValueError("no")

    by_step = Rubric()
    by_step.add_step_reward_func(careless_step, 0.5)
    assert failed(tasks(Rubric([brief, careless], weights=[1.0, 0.5])), "oracle") == [True] * 4
    assert failed(tasks(Rubric([brief, careless], weights=[1.0, 0.0])), "oracle") == [False] * 4
    assert failed(tasks(Rubric(careless_for_all)), "oracle", rollouts_per_example=2) == [True] * 8
    assert failed(tasks(by_step), "oracle") == [True] * 4


def test_an_error_of_the_opponent_is_a_failure_that_nobody_wins(caplog: pytest.LogCaptureFixture) -> None:
    def resigns(observation: list[Message], info: dict[str, Any]) -> str:
        raise InfraError("the opponent is gone")

    def babbles(observation: list[Message], info: dict[str, Any]) -> str:
        return "hmm"

    for opponent, ending, counts_with in ((resigns, "infrastructure_failed", None), (babbles, "environment_failed", -1.0)):
        env = vfgym.PettingZooEnv("classic/tictactoe_v3", opponents=opponent)
        (row,) = played(env, "random", num_examples=1)["outputs"]
        assert row["error"] is not None
        assert (row["ending"], row["failed"], row["reward"], row["counted_reward"]) == (ending, True, 0.0, counts_with)


# What failed rollouts count with


def test_an_agent_that_fails_is_below_every_play_in_a_known_game() -> None:
    """An agent that always raises was the best of Blackjack, and one that says "hmm" of CliffWalking."""
    for env_id, worst in (("gymnasium/Blackjack-v1", -1.0), ("gymnasium/MountainCar-v0", -200.0)):
        results = played(env_id, fails, num_examples=3)
        assert counted(results) == [worst] * 3
        assert (results["metadata"]["avg_reward"], results["metadata"]["avg_reward_finished"]) == (worst, None)
    cliff = played("gymnasium/CliffWalking-v1", lambda observation, info: "hmm", num_examples=2)
    assert (cliff["metadata"]["avg_reward"], cliff["metadata"]["num_failed"]) == (None, 2)


def test_a_failed_rollout_never_passes() -> None:
    """A reward for short answers gave 1.0 to an agent that never answered, and pass@1 of 1.0."""
    results = played(tasks(failure_reward=0.0), fails_at(0, 1), rollouts_per_example=2)
    assert [row["reward"] for row in results["outputs"]] == [1.0] * 8, "as the rubric gave it"
    assert counted(results) == [0.0] * 4 + [1.0] * 4
    metadata = results["metadata"]
    assert (metadata["avg_reward"], metadata["avg_reward_finished"], metadata["num_failed"]) == (0.5, 1.0, 4)
    assert metadata["pass_at_k"] == metadata["pass_all_k"] == {"1": 0.5, "2": 0.5}
    assert metadata["avg_metrics"]["brief"] == 1.0, "of those that did not fail"


def test_without_a_declared_number_there_is_no_mean() -> None:
    metadata = played(tasks(), fails_at(0))["metadata"]
    assert (metadata["avg_reward"], metadata["std_error"], metadata["avg_return"]) == (None, None, None)
    assert (metadata["avg_reward_finished"], metadata["num_failed"], metadata["avg_error"]) == (1.0, 1, 0.25)


def test_the_lowest_finished_reward_counts_where_it_is_below_the_declared_one(caplog: pytest.LogCaptureFixture) -> None:
    results = played(WORTH, LOSING)
    assert counted(results) == [-3.0, -1.0, -2.0, -3.0]
    assert results["metadata"]["avg_reward"] == -2.25
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "vfgym.results.counting"]
    assert "was rewarded with -3, which is less than the failure_reward of -1" in warning
    caplog.clear()
    played(tasks(worth, failure_reward=-3.0), LOSING)
    played(WORTH, lambda observation, info: "-3")
    assert [record for record in caplog.records if record.name == "vfgym.results.counting"] == []


def test_numbers_that_are_none_are_no_lowest_reward() -> None:
    answers = {1: "nan", 2: "-inf", 3: "inf"}
    results = played(WORTH, fails_at(0, 2, 3, says=lambda example_id: answers[example_id]))
    assert counted(results)[0] == -1.0
    results = played(WORTH, fails_at(0, 1, 3, says=lambda example_id: answers[example_id]))
    assert counted(results)[0] == -math.inf


def test_rollouts_of_a_group_count_with_what_their_environment_declares() -> None:
    low = tasks(worth, failure_reward=-9.0)
    high = WORTH
    none = tasks(worth)
    group = EnvGroup([low, high, none], env_names=["low", "high", "none"])
    results = played(group, fails_at(0, 4, 8, says=lambda example_id: "-5" if example_id < 4 else "0"))
    assert counted(results) == [-9.0, -5.0, -5.0, -5.0, -1.0, 0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0]
    assert results["metadata"]["avg_reward"] is None
    assert [row["info"]["env_id"] for row in results["outputs"][::4]] == ["low", "high", "none"]
    joined = EnvGroup([high, none], failure_reward=-7.0)
    assert counted(played(joined, fails)) == [-1.0] * 4 + [-7.0] * 4


# What environments declare


def test_every_environment_takes_a_failure_reward() -> None:
    env = vfgym.to_chat("Blackjack-v1", failure_reward=np.float32(-2.0))
    assert (env.failure_reward, env.fork().failure_reward) == (-2.0, -2.0)
    made = gymnasium.make("reasoning-gym/leg_counting-v0", failure_reward=-0.5)
    assert made.get_wrapper_attr("failure_reward") == made.unwrapped.failure_reward == -0.5
    env.failure_reward = None
    assert env.failure_reward == -1.0, "known again"


@pytest.mark.parametrize("wrong", ["-1", True, math.nan, -math.inf, [0.0]])
def test_a_failure_reward_is_a_finite_number(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="failure_reward must be a finite number"):
        tasks(failure_reward=wrong)
    env = tasks()
    with pytest.raises(ConfigurationError, match="failure_reward must be a finite number"):
        env.failure_reward = wrong


@pytest.mark.parametrize(
    ("make", "lowest"),
    [
        (lambda: vfgym.to_chat("Blackjack-v1"), -1.0),
        (lambda: vfgym.to_chat("Blackjack-v1", natural=True), -1.0),
        (lambda: vfgym.to_chat("MountainCar-v0"), -200.0),
        (lambda: vfgym.to_chat(gymnasium.make("MountainCar-v0", max_episode_steps=50)), -50.0),
        (lambda: vfgym.to_chat(lambda: gymnasium.make("MountainCar-v0")), -200.0),
        (lambda: vfgym.to_chat("MountainCar-v0", max_turns=10), -10.0),
        (lambda: vfgym.to_chat("MountainCar-v0", invalid_reward=-1.0, max_turns=10), -20.0),
        (lambda: vfgym.to_chat("Taxi-v4"), -2000.0),
        (lambda: vfgym.to_chat("CliffWalking-v1"), None),
        (lambda: vfgym.to_chat("CliffWalking-v1", max_turns=10), -1000.0),
        (lambda: vfgym.to_chat("FrozenLake-v1", is_slippery=False), 0.0),
        (lambda: vfgym.to_chat("FrozenLake-v1", reward_schedule=(1, -1, 0)), None),
        (lambda: vfgym.to_chat("CartPole-v1", sutton_barto_reward=True), None),
        (lambda: vfgym.to_chat(gymnasium.wrappers.TransformReward(gymnasium.make("Blackjack-v1"), abs)), None),
        (lambda: vfgym.to_chat("Blackjack-v1", rubric=Rubric(brief)), None),
        (lambda: vfgym.to_chat("classic/chess_v6"), -1.0),
        (lambda: vfgym.PettingZooEnv("classic/tictactoe_v3", invalid_reward=-0.5, max_moves=10), -6.0),
        (lambda: vfgym.PettingZooEnv("classic/rps_v2"), -15.0),
        (lambda: vfgym.PettingZooEnv("classic/rps_v2", game_options={"max_cycles": 30}), None),
        (lambda: vfgym.TextArenaEnv("TicTacToe-v0"), -1.0),
        (lambda: vfgym.ReasoningGymEnv("leg_counting"), 0.0),
    ],
)
def test_the_lowest_reward_of_a_known_game_follows_from_how_it_is_made(make: Callable[[], Any], lowest: float | None) -> None:
    assert make().failure_reward == lowest


def test_what_is_known_of_a_game_holds_while_nothing_else_scores_it() -> None:
    env = vfgym.ReasoningGymEnv("leg_counting")
    env.add_rubric(Rubric(lambda completion: -1.0, weights=[0.0]))
    assert env.failure_reward == 0.0, "a metric"
    env.add_rubric(Rubric(lambda completion: -1.0))
    assert env.failure_reward is None

    class Harder(GymnasiumGame):
        def make_move(self, *args: Any) -> Any:
            turn = super().make_move(*args)
            turn.reward -= 5.0
            return turn

    assert Harder(lambda: gymnasium.make("Blackjack-v1")).failure_reward is None


# What is published


def test_a_disk_that_is_full_when_rows_are_rewritten_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stands until the new one is whole, and says as much: what it holds is settled as it is read."""
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).name == "results.jsonl":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(ResultsError, match="No space left on device") as raised:
        played(WORTH, LOSING, results_path=tmp_path)
    assert raised.value.outputs is not None
    assert counted(raised.value.outputs) == [-3.0, -1.0, -2.0, -3.0]
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metadata.json", "results.jsonl"]
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert sorted(row["counted_reward"] for row in rows) == [-3.0, -2.0, -1.0, -1.0]
    assert summarize(tmp_path)["avg_reward"] == -2.25
    assert counted(played(WORTH, LOSING, results_path=tmp_path, resume=True)) == [-3.0, -1.0, -2.0, -3.0]


def test_a_run_that_was_cut_is_summed_up_as_far_as_it_got_without_a_headline(tmp_path: Path) -> None:
    played(WORTH, LOSING, results_path=tmp_path)
    file = tmp_path / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    unsettled = json.dumps({**json.loads(lines[0]), "counted_reward": -1.0}) + "\n"
    file.write_text("".join([unsettled, *lines[1:3]]) + lines[3][:40])
    summary = summarize(tmp_path)
    assert (summary["avg_reward"], summary["avg_reward_finished"]) == (None, pytest.approx((-1.0 - 2.0) / 2))
    rows = load_results(tmp_path)["outputs"]
    assert summarize(rows, 1, 1.0)["avg_reward"] == pytest.approx((-2.0 - 1.0 - 2.0) / 3), "of rows that are all there is"


def test_a_resumed_run_settles_all_its_rows_again(tmp_path: Path) -> None:
    whole = played(WORTH, LOSING, results_path=tmp_path / "whole")
    first = played(WORTH, LOSING, results_path=tmp_path / "run", num_examples=2)
    assert counted(first) == [-1.0, -1.0]
    resumed = played(WORTH, LOSING, results_path=tmp_path / "run", resume=True)
    assert counted(resumed) == counted(whole) == [-3.0, -1.0, -2.0, -3.0]
    assert [row["counted_reward"] for row in load_results(tmp_path / "run")["outputs"]] == counted(whole)
    declared = played(tasks(worth, failure_reward=-8.0), LOSING, results_path=tmp_path / "run", resume=True)
    assert counted(declared)[0] == -8.0, "what is declared now"


# Results of others


def test_results_of_older_versions_count_as_they_did(tmp_path: Path) -> None:
    results = played(tasks(), fails_at(0), results_path=tmp_path)
    rows = [{key: value for key, value in row.items() if key not in ("failed", "counted_reward")} for row in results["outputs"]]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = load_results(tmp_path)["outputs"]
    assert [(row["failed"], row["reward"], "counted_reward" in row) for row in loaded] == [(True, 1.0, False), *[(False, 1.0, False)] * 3]
    summary = summarize(tmp_path)
    assert (summary["mean_of"], summary["avg_reward"], summary["num_failed"]) == ("reward", 1.0, 1)
    resumed = played(tasks(failure_reward=-1.0), fails, results_path=tmp_path, resume=True, model="agent")
    assert counted(resumed) == [-1.0, 1.0, 1.0, 1.0]
    assert [json.loads(line)["counted_reward"] for line in file.read_text().splitlines()] == counted(resumed)


def test_a_metric_may_have_the_name_of_a_key_that_older_rows_did_not_have(tmp_path: Path) -> None:
    state = State(input={"example_id": 0}, reward=0.5, metrics={"failed": 0.25, "counted_reward": 3.0}, error=None)
    row = rollout_output(state)
    assert (row["failed"], row["counted_reward"], row["metrics"]) == (False, 0.5, {"failed": 0.25, "counted_reward": 3.0})
    older = {"example_id": 0, "reward": 0.5, "error": None, "metrics": row["metrics"], "failed": 0.25, "counted_reward": 3.0}
    (tmp_path / "results.jsonl").write_text(json.dumps(older) + "\n")
    (tmp_path / "metadata.json").write_text("{}")
    (loaded,) = load_results(tmp_path)["outputs"]
    assert (loaded["failed"], "counted_reward" in loaded) == (False, False)


def test_settled_rows_stay_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    rows: list[dict[str, Any]] = [
        {"failed": True, "reward": 1.0, "counted_reward": -1.0},
        {"failed": True, "reward": 1.0, "counted_reward": None},
        {"failed": False, "reward": -2.0, "counted_reward": -2.0},
    ]
    settle(rows)
    assert [row["counted_reward"] for row in rows] == [-2.0, None, -2.0]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        settle(rows)
    assert [row["counted_reward"] for row in rows] == [-2.0, None, -2.0]
    assert caplog.records == []


def ended(ending: Ending, reward: float, declared: float | None = -1.0, env: Any = None) -> dict[str, Any]:
    number = counted_reward(ending, reward, declared)
    return {"ending": ending, "reward": reward, "counted_reward": number, "failure_reward": declared, "info": {"env_id": env}}


def test_a_tally_counts_rows_as_they_come() -> None:
    """Those that were cut or failed count with the lowest reward of their own environment, and those that are missing not at all."""
    rows = [
        *(
            ended(Ending.TERMINATED, 1.0, env="a"),
            ended(Ending.POLICY_FAILED, 5.0, env="a"),
            ended(Ending.INFRASTRUCTURE_FAILED, 9.0, env="a"),
        ),
        *(ended(Ending.TRUNCATED, -3.0, env="a"), ended(Ending.CUT, -7.0, env=["b", "c"]), ended(Ending.TERMINATED, -9.0, env=["b"])),
    ]
    tally, found = Tally(), []
    for row in rows:
        tally.add(row)
        found.append((tally.mean, tally.num_failed, tally.num_missing))
    means = [1.0, (1.0 - 1.0) / 2, 0.0, (1.0 - 3.0 - 3.0) / 3, (1.0 - 3.0 - 3.0 - 7.0) / 4, (1.0 - 3.0 - 3.0 - 7.0 - 9.0) / 5]
    assert found == [*zip(means, [0, 1, 2, 2, 2, 2], [0, 0, 1, 1, 1, 1], strict=True)]
    assert count_rewards(rows) == [1.0, -3.0, None, -3.0, -7.0, -9.0]
    assert count_rewards(rows, missing_failed=True)[2] == -3.0
    assert [is_failed(row) for row in rows] == [False, True, True, False, False, False]
    assert Tally(rows, of="reward").mean == sum(row["reward"] for row in rows) / 6
    assert [Tally(each).mean for each in ([], [rows[2]], [rows[0], ended(Ending.CUT, 0.0, None)])] == [0.0, None, None]
