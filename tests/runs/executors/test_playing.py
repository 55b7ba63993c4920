"""Runs in other processes: their rows are those of one process, whatever is asked of a run, and whoever dies meanwhile."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, deadly, noting, processes, without_drawn
from vfgym import RunSpec
from vfgym.errors import ConfigurationError
from vfgym.results import load_results

NAME = "tests.runs.executors.players:counting"


@pytest.fixture
def threads() -> Iterator[concurrent.futures.Executor]:
    """An executor of two workers that cost no process."""
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory where agents leave traces."""
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    return folder


def evaluate(*args: Any, **kwargs: Any) -> Any:
    return vfgym.evaluate(*args, **{"progress": False, **kwargs})


@pytest.mark.parametrize(
    ("env", "agent", "settings"),
    [
        (counting, answer, {"rollouts_per_example": 2}),
        (NAME, "random", {"rollouts_per_example": 3, "independent_scoring": False, "env_args": {"num_tasks": 5}}),
        ("textarena/TicTacToe-v0", "random", {"num_examples": 2, "both_seats": True}),
        ("gymnasium/FrozenLake-v1", "random", {"num_examples": 5, "shard": (1, 2), "seed": 7}),
        ("gymnasium/FrozenLake-v1", "random", {"example_ids": [3, 1], "split": "train", "limits_each": {"turns": 3}, "tags": ["a"]}),
        (counting, answer, {"state_columns": ["trajectory", "question"], "max_concurrent": 3, "pass_threshold": 2.0}),
    ],
)
def test_rows_are_those_of_one_process(threads: Any, env: Any, agent: Any, settings: dict[str, Any]) -> None:
    here = evaluate(env, agent, **settings)
    there = evaluate(env, agent, executor=threads, **settings)
    assert without_drawn(there["outputs"]) == without_drawn(here["outputs"])
    kept = {"avg_reward", "pass_at_k", "num_examples", "rollouts_per_example", "spec", "env_id", "model", "limits_each", "max_concurrent"}
    assert {name: there["metadata"].get(name) for name in kept} == {name: here["metadata"].get(name) for name in kept}
    assert "redone" not in there["metadata"]


def test_what_is_written_is_what_one_process_writes(threads: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"rollouts_per_example": 2, "state_columns": ["trajectory"]}
    here = evaluate(counting, answer, results_path=tmp_path / "here", **settings)
    there = evaluate(counting, answer, results_path=tmp_path / "there", executor=threads, **settings)
    assert without_drawn(load_results(tmp_path / "there")["outputs"]) == without_drawn(load_results(tmp_path / "here")["outputs"])
    steps = [[row["trajectory"][0]["completion"] for row in each["outputs"]] for each in (here, there)]
    assert steps[0] == steps[1]
    assert [type(row["prompt"][0]) for row in there["outputs"]] == [type(row["prompt"][0]) for row in here["outputs"]]


def test_a_run_is_resumed_by_other_workers(threads: Any, traces: Path, tmp_path: Path) -> None:
    whole = evaluate(counting, noting, rollouts_per_example=2)
    for trace in traces.iterdir():
        trace.unlink()
    evaluate(counting, noting, rollouts_per_example=2, num_examples=5, results_path=tmp_path / "run", executor=threads)
    assert len(list(traces.iterdir())) == 10
    again = evaluate(counting, noting, rollouts_per_example=2, results_path=tmp_path / "run", resume=True, executor=threads)
    assert len(list(traces.iterdir())) == 24
    assert without_drawn(again["outputs"]) == without_drawn(whole["outputs"])
    evaluate(counting, noting, rollouts_per_example=2, results_path=tmp_path / "run", resume=True, executor=threads)
    assert len(list(traces.iterdir())) == 24, "nothing was left to play"


def test_a_spec_is_played_by_an_executor_that_it_does_not_name(threads: Any) -> None:
    spec = RunSpec(env_id=NAME, agent="tests.runs.executors.players:answer", env_args={"num_tasks": 3})
    results = evaluate(spec, executor=threads)
    assert without_drawn(results["outputs"]) == without_drawn(evaluate(spec)["outputs"])
    assert RunSpec.from_json(results["metadata"]["spec"]) == spec


def test_progress_tells_of_each_row(threads: Any) -> None:
    told: list[tuple[int, int]] = []
    begun: list[int] = []
    results = evaluate(
        counting,
        answer,
        executor=threads,
        on_start=lambda progress: begun.append(progress.done),
        on_progress=lambda row, progress: told.append((row["example_id"], progress.done)),
    )
    assert begun == [0]
    assert sorted(place for place, _ in told) == [row["example_id"] for row in results["outputs"]]
    assert [done for _, done in told] == list(range(1, 13))


def test_what_whoever_is_told_raises_ends_the_run(threads: Any) -> None:
    def refuse(row: Any, progress: Any) -> None:
        raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        evaluate(counting, answer, executor=threads, on_progress=refuse)


def test_a_worker_that_dies_costs_what_it_was_playing(traces: Path, tmp_path: Path) -> None:
    """Question 3 kills its worker once, and is played again; question 5 does always, and fails."""
    here = without_drawn(evaluate(counting, answer)["outputs"])
    with processes() as executor:
        results = evaluate(counting, deadly, executor=executor, workers=2, results_path=tmp_path / "run", model="answer")
    rows = without_drawn(results["outputs"])
    assert [row["example_id"] for row in rows] == list(range(12))
    assert [row for row in rows if row["example_id"] != 5] == [row for row in here if row["example_id"] != 5]
    lost = rows[5]
    assert (lost["ending"], lost["failed"], lost["counted_reward"]) == ("infrastructure_failed", True, None)
    assert lost["error"]["error"] == "WorkerDied"
    assert "3 workers died while they played it" in lost["error_chain"]
    assert "SIGKILL" in lost["error_chain"]
    assert (lost["seed"], lost["fingerprint"]) == (here[5]["seed"], here[5]["fingerprint"])
    assert results["metadata"]["redone"] >= 3
    assert load_results(tmp_path / "run")["metadata"]["redone"] == results["metadata"]["redone"]


async def test_a_run_that_is_cancelled_leaves_no_worker_and_keeps_what_was_finished(traces: Path, tmp_path: Path) -> None:
    begun = asyncio.Event()
    with processes() as executor:
        run = asyncio.create_task(
            vfgym.aevaluate(
                counting,
                noting,
                env_args={"num_tasks": 3000},
                progress=False,
                results_path=tmp_path / "run",
                executor=executor,
                workers=2,
                on_progress=lambda row, progress: begun.set() if progress.done > 5 else None,
            )
        )
        await begun.wait()
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run
        assert executor._running == {}, "both have ended before the run has"
    players = {int(trace.name.split("-")[1]) for trace in traces.iterdir()}
    assert os.getpid() not in players
    assert len(load_results(tmp_path / "run")["outputs"]) > 5


def test_processes_of_its_own_are_the_executor_process() -> None:
    results = evaluate("gymnasium/FrozenLake-v1", "random", num_examples=3, executor="process", workers=1)
    assert without_drawn(results["outputs"]) == without_drawn(evaluate("gymnasium/FrozenLake-v1", "random", num_examples=3)["outputs"])
    assert (results["metadata"]["spec"]["executor"], results["metadata"]["spec"]["workers"]) == ("process", 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"executor": "cluster"}, "executor must be 'local', 'process' or 'ray', got 'cluster'"),
        ({"executor": "process", "workers": 0}, "workers must be a positive integer, got 0"),
        ({"executor": "process", "workers": 1.5}, "workers must be a positive integer, got 1.5"),
        ({"workers": 2}, "workers=2 says how many processes play, and executor='local' has this one"),
    ],
)
def test_what_cannot_play_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate(counting, answer, **settings)
