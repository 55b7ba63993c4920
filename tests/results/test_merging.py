"""Parts of a run: together they are the run, and what is missing, twice there or of another run is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vfgym import evaluate
from vfgym.cli.app import app
from vfgym.cli.merge import merge_runs
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError, load_results, merge
from vfgym.results.files import write_results

GAME = "gymnasium/FrozenLake-v1"
DUEL = "textarena/TicTacToe-v0"
UNTIMED = ("timing", "trajectory_id")
OF_THE_CLOCK = ("date", "time", "time_ms", "path_to_save")


def play(folder: Path, shard: Any = None, env: str = GAME, **settings: Any) -> Path:
    """Play a run, or a part of it, and return its directory."""
    path = folder / ("whole" if shard is None else str(shard).replace("/", "-of-"))
    said: dict[str, Any] = {"num_examples": 5, "seed": 3, **settings}
    evaluate(env, "random", progress=False, results_path=path, shard=shard, **said)
    return path


def contents(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return what the files of a run say, without times and drawn names."""
    rows = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    metadata = json.loads((path / "metadata.json").read_text())
    return (
        [{name: value for name, value in row.items() if name not in UNTIMED} for row in rows],
        {name: value for name, value in metadata.items() if name not in OF_THE_CLOCK},
    )


def command(*arguments: object) -> tuple[int, str]:
    """Run a command; return its exit code and what it printed."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rollouts_per_example": 3},
        {"rollouts_per_example": 3, "independent_scoring": False},
        {"env": DUEL, "both_seats": True, "rollouts_per_example": 2},
        {"example_ids": [4, 0, 2, 1], "num_examples": -1},
        {"limits_each": {"turns": 2}, "state_columns": ["prompt"], "tags": ["x"]},
    ],
    ids=str,
)
def test_the_parts_together_are_the_run(settings: dict[str, Any], tmp_path: Path) -> None:
    whole = play(tmp_path, **settings)
    parts = [play(tmp_path, f"{number}/3", **settings) for number in range(3)]
    assert command("merge", *reversed(parts), "-o", tmp_path / "merged")[0] == 0
    assert contents(tmp_path / "merged") == contents(whole)


def test_each_rollout_is_in_one_part_and_groups_stay_together(tmp_path: Path) -> None:
    alone = [load_results(play(tmp_path / "alone", f"{number}/2", rollouts_per_example=3))["outputs"] for number in range(2)]
    assert [[(row["example_id"], row["rollout"]) for row in part] for part in alone] == [
        [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2), (3, 1), (4, 0), (4, 2)],
        [(0, 1), (1, 0), (1, 2), (2, 1), (3, 0), (3, 2), (4, 1)],
    ]
    together = play(tmp_path / "together", (1, 2), rollouts_per_example=3, independent_scoring=False)
    assert [(row["example_id"], row["rollout"]) for row in load_results(together)["outputs"]] == [
        (example, number) for example in (1, 3) for number in range(3)
    ]
    pairs = load_results(play(tmp_path / "pairs", (0, 2), env=DUEL, both_seats=True, rollouts_per_example=2, num_examples=1))["outputs"]
    assert [row["pair"] for row in pairs] == [0, 0]


def test_a_gap_is_told_and_resumed(tmp_path: Path) -> None:
    whole = play(tmp_path)
    parts = [play(tmp_path, f"{number}/3") for number in (0, 2)]
    merged = tmp_path / "merged"
    code, told = command("merge", *parts, "-o", merged)
    assert code == 1
    assert "2 rollouts are missing (shards that were not given: 1/3)" in told
    assert f"vfgym eval {merged} --resume plays them" in told
    assert load_results(merged)["metadata"]["avg_reward"] is None
    assert command("eval", merged, "--resume")[0] == 0
    assert contents(merged) == contents(whole)


def test_a_part_that_was_stopped_goes_on_as_that_part(tmp_path: Path) -> None:
    part = play(tmp_path, "0/2")
    file = part / "results.jsonl"
    before = contents(part)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:1]))
    with pytest.raises(ConfigurationError, match="its shard is"):
        evaluate(GAME, "random", num_examples=5, seed=3, progress=False, results_path=part, resume=True, shard="1/2")
    with pytest.raises(ConfigurationError, match="its shard is"):
        evaluate(GAME, "random", num_examples=5, seed=3, progress=False, results_path=part, resume=True)
    evaluate(GAME, "random", num_examples=5, seed=3, progress=False, results_path=part, resume=True, shard="0/2")
    assert contents(part) == before


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"shard": "1/2", "seed": 4}, "of different runs: their seed is 3 and 4"),
        ({"shard": "1/3"}, "one of 2 parts, and .* is one of 3 parts: they are not of one run"),
        ({}, "one of 2 parts, and .* is a whole run"),
        ({"shard": "1/2", "num_examples": 6}, "of different runs: their num_examples is 5 and 6"),
        ({"shard": "1/2", "pass_threshold": 0.0}, "of different runs: their pass_threshold is"),
        ({"shard": "1/2", "max_retries": 2}, "of different runs: their max_retries is 0 and 2"),
    ],
)
def test_parts_of_different_runs_are_refused(other: dict[str, Any], message: str, tmp_path: Path) -> None:
    one, two = play(tmp_path, "0/2"), play(tmp_path / "other", **other)
    with pytest.raises(ConfigurationError, match=message):
        merge([one, two])


def test_a_rollout_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    one, two = play(tmp_path, "0/2"), play(tmp_path / "again", "0/2")
    with pytest.raises(ConfigurationError, match="both have rollout 0 of example 0"):
        merge([one, two])


def test_what_it_took_adds_up(tmp_path: Path) -> None:
    parts = [play(tmp_path, f"{number}/2") for number in range(2)]
    for seconds, cost, part in ((1.5, 0.25, parts[0]), (2.0, 0.5, parts[1])):
        file = part / "metadata.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "time": seconds, "cost": cost}))
    metadata = merge(parts).results["metadata"]
    assert (metadata["time"], metadata["cost"]) == (3.5, 0.75)


def test_wrong_directories_are_refused(tmp_path: Path) -> None:
    part = play(tmp_path, "0/2")
    with pytest.raises(ConfigurationError, match="there is nothing to merge"):
        merge([])
    with pytest.raises(ResultsError, match="nowhere"):
        merge([part, tmp_path / "nowhere"])
    with pytest.raises(ConfigurationError, match="is one of the parts: the whole run goes into a directory of its own"):
        merge_runs([part], part, as_json=False)
    with pytest.raises(ResultsError, match="holds"):
        write_results(part, merge([part]).results)
