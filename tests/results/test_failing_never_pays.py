"""No agent ranks above itself without failing, whatever its game or its rubric and its way to fail are."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import vfgym
from vfgym import Rubric, SingleTurnEnv
from vfgym.messages import Message, UserMessage
from vfgym.results import GenerateOutputs, load_results, summarize
from vfgym.results.intervals import interval_of
from vfgym.results.statistics import pass_all, pass_at
from vfgym.runs import evaluate
from vfgym.state import State
from vfgym.wrappers.games.game import GameEnv
from vfgym.wrappers.games.turns import Turn

MOVES = 3
"""Moves of a game."""
FAILING = ("always", "sometimes", "at the last turn", "when losing", "rubbish", "rubbish when losing")


class Points(GameEnv):
    """A game of three moves: the seed says what each of them gives, and the answers whether it is doubled."""

    def __init__(self, points: list[list[float]], **kwargs: Any) -> None:
        super().__init__(blocking=False, max_invalid_moves=2, **kwargs)
        self.points = points

    def open_game(self) -> dict[str, Any]:
        return {}

    def begin_game(self, game: dict[str, Any], state: State, seed: int | None, options: Any) -> list[Message]:
        game.update(left=[*self.points[(seed or 0) % len(self.points)]])
        return [UserMessage("single or double?")]

    def make_move(self, game: dict[str, Any], message: Message, state: State) -> Turn:
        if message["content"] not in ("single", "double"):
            return Turn([UserMessage("single or double?")], is_valid=False)
        reward = game["left"].pop(0) * (2.0 if message["content"] == "double" else 1.0)
        return Turn([UserMessage("and now?")], reward, terminated=not game["left"])

    @property
    def lowest(self) -> float:
        """The lowest sum of rewards of an episode."""
        return min(sum(min(number, 2.0 * number) for number in each) for each in self.points)


class Player:
    """Plays each example in one way, and may fail in another."""

    def __init__(self, way: str, last_turn: int, losing: set[int]) -> None:
        self.way, self.last_turn, self.losing = way, last_turn, losing

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> str:
        example_id, turn = info["example_id"], sum(message["role"] == "assistant" for message in observation)
        fails = {
            "never": False,
            "always": True,
            "sometimes": example_id % 2 == 0,
            "at the last turn": turn == self.last_turn,
            "when losing": example_id in self.losing,
            "rubbish": True,
            "rubbish when losing": example_id in self.losing,
        }[self.way]
        if fails and self.way.startswith("rubbish"):
            return "hmm"
        if fails:
            raise RuntimeError("I give up")
        return ("single", "double")[(example_id + turn) % 2]


numbers = st.floats(-10, 10, allow_nan=False).map(lambda number: round(number, 3))


def losing(results: GenerateOutputs) -> set[int]:
    rewards = [row["reward"] for row in results["outputs"]]
    middle = sorted(rewards)[len(rewards) // 2]
    return {row["example_id"] for row in results["outputs"] if row["reward"] <= middle}


def recomputed(rows: list[dict[str, Any]], rollouts_per_example: int, pass_threshold: float) -> dict[str, Any]:
    """Compute what is published from the lines of ``results.jsonl``, by the documented rule and nothing of the library."""
    numbers = [row["counted_reward"] for row in rows]
    finished = [row["reward"] for row in rows if not row["failed"]]
    has_mean = None not in numbers
    by_example: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_example[row["example_id"]].append(row)
    passed = [sum(not row["failed"] and row["reward"] >= pass_threshold for row in each) for each in by_example.values()]
    means = [sum(row["counted_reward"] for row in each) / len(each) for each in by_example.values()] if has_mean else []
    centre = sum(means) / len(means) if means else 0.0
    return {
        "avg_reward": pytest.approx(sum(numbers) / len(numbers)) if has_mean else None,
        "avg_reward_finished": pytest.approx(sum(finished) / len(finished)) if finished else None,
        "interval": interval_of({example: [row["counted_reward"] for row in each] for example, each in by_example.items()}, None)
        if has_mean
        else None,
        "num_failed": len(rows) - len(finished),
        "avg_error": pytest.approx(sum(row["error"] is not None for row in rows) / len(rows)),
        "std_error": pytest.approx(math.sqrt(sum((mean - centre) ** 2 for mean in means) / (len(means) - 1) / len(means)))
        if len(means) > 1
        else None,
        **{
            name: {
                str(k): pytest.approx(sum(share(k, count, 2) for count in passed) / len(passed))
                for k in (1, 2)
                if rollouts_per_example == 2
            }
            for name, share in (("pass_at_k", pass_at), ("pass_all_k", pass_all))
        },
    }


def check_runs(env: Any, directory: Path, rollouts_per_example: int, *, ways: Sequence[str], last_turn: int) -> None:
    """Let an agent play with and without failing, and compare what is said of both with what the rows say."""
    directory.mkdir(exist_ok=True)
    run = len(list(directory.iterdir()))
    num_examples = 4

    def played(way: str, loses: set[int]) -> GenerateOutputs:
        options = {"num_examples": num_examples, "rollouts_per_example": rollouts_per_example, "progress": False}
        return evaluate(env, Player(way, last_turn, loses), results_path=directory / f"{run} {way}", **options)

    itself = played("never", set())
    table = {"never": itself, **{way: played(way, losing(itself)) for way in ways}}
    best = itself["metadata"]["avg_reward"]
    assert best is not None
    for way, results in table.items():
        path = directory / f"{run} {way}"
        rows = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
        metadata = json.loads((path / "metadata.json").read_text())
        expected = recomputed(rows, rollouts_per_example, env.pass_threshold)
        assert {name: metadata[name] for name in expected} == expected
        summary = summarize(path)
        assert summary == {name: metadata[name] for name in summary}
        assert load_results(path)["outputs"] == [{**row} for row in results["outputs"]]
        mean = metadata["avg_reward"]
        assert mean is None or mean <= best + 1e-9, way
        for name in ("pass_at_k", "pass_all_k"):
            assert all(metadata[name][k] <= itself["metadata"][name][k] + 1e-9 for k in metadata[name]), way  # type: ignore[literal-required]
        if env.failure_reward is None:
            assert (mean is None) == (metadata["num_failed"] > 0)


quick = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@quick
@given(
    points=st.lists(st.lists(numbers, min_size=MOVES, max_size=MOVES), min_size=2, max_size=4),
    margin=st.none() | st.floats(0, 5, allow_nan=False),
    rollouts_per_example=st.sampled_from([1, 2]),
)
@example(points=[[-1.0] * MOVES, [-2.0] * MOVES], margin=0.0, rollouts_per_example=2)
@example(points=[[-100.0, 0.0, 50.0], [1.0, 1.0, 1.0]], margin=None, rollouts_per_example=1)
def test_in_games(tmp_path: Path, points: list[list[float]], margin: float | None, rollouts_per_example: int) -> None:
    """Games that reward moves, of which failing early spares some, and whose author declares the lowest reward, less, or none."""
    env = Points(points)
    env.failure_reward = None if margin is None else env.lowest - margin
    check_runs(env, tmp_path / "runs", rollouts_per_example, ways=FAILING, last_turn=MOVES - 1)


@quick
@given(st.lists(numbers.filter(bool), min_size=1, max_size=3), numbers, st.booleans(), st.booleans(), st.sampled_from([1, 2]))
@example([1.0], 1.0, True, False, 2)
@example([-1.0], -5.0, True, True, 1)
def test_under_any_rubric(
    tmp_path: Path, weights: list[float], offset: float, declares: bool, careless: bool, rollouts_per_example: int
) -> None:
    """Rubrics of any sign and offset, some of which raise where there is no answer: a reward for short answers pays silence."""

    def length(completion: list[Message], parser: vfgym.Parser) -> float:
        if careless and not completion:
            raise IndexError("nothing was said")
        return len(parser.parse_answer(completion) or "") / 6

    def says_double(completion: list[Message], parser: vfgym.Parser) -> float:
        return float(parser.parse_answer(completion) == "double")

    rows = [{"question": f"{number}: single or double?"} for number in range(4)]
    lowest = offset + sum(min(weight, 0.0) for weight in weights)
    rubric = Rubric([*[length, says_double, length][: len(weights)], lambda: 1.0], weights=[*weights, offset])
    env = SingleTurnEnv(rows, rubric=rubric, failure_reward=lowest - 1e-9 if declares else None, pass_threshold=offset)
    check_runs(env, tmp_path / "runs", rollouts_per_example, ways=FAILING[:4], last_turn=0)
