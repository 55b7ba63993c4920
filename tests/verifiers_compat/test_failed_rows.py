"""Rows of failed rollouts are marked, and the documented numbers stay as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import verifiers_compat as vf
import vfgym
from tests.verifiers_compat.models import Model
from vfgym.results import load_results, summarize


def brief(completion: Any) -> float:
    return float(len(completion) < 2)


def careless(completion: Any, info: dict[str, Any]) -> float:
    return 1.0 / info["number"]


def environment(rubric: vf.Rubric) -> vf.SingleTurnEnv:
    rows = [{"question": f"{number}?", "answer": "x", "info": {"number": number}} for number in range(4)]
    return vf.SingleTurnEnv(dataset=rows, rubric=rubric, failure_reward=-1.0)


def test_failed_rows_are_marked_and_count_with_their_rewards(tmp_path: Path) -> None:
    """An API that gives up is an error, which a reward for short answers rewards, as documented."""

    def fails_once(number: int, state: vf.State) -> str:
        if state["example_id"] == 1:
            raise vf.ModelError("gone")
        return "x"

    env = environment(vf.Rubric(funcs=[brief]))
    env.evaluate_sync(Model(fails_once), "m", results_path=tmp_path, rollouts_per_example=2, max_retries=0)
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [row["failed"] for row in rows] == [False, False, True, True, False, False, False, False]
    assert not any("counted_reward" in row for row in rows)
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert (metadata["avg_reward"], metadata["avg_reward_finished"], metadata["num_failed"]) == (1.0, 1.0, 2)
    assert (metadata["mean_of"], metadata["pass_at_k"]) == ("reward", {"1": 1.0, "2": 1.0})
    summary = summarize(tmp_path)
    assert summary == {name: metadata[name] for name in summary}
    assert load_results(tmp_path)["outputs"][2]["failed"]


def test_a_reward_function_with_a_weight_that_raises_is_a_mark_too() -> None:
    results = environment(vf.Rubric(funcs=[careless])).evaluate_sync(Model(lambda number, state: "x"), "m")
    assert [row["failed"] for row in results["outputs"]] == [True, False, False, False]
    assert results["metadata"]["avg_reward"] == (0.0 + 1.0 + 1 / 2 + 1 / 3) / 4


def test_the_core_counts_what_it_goes_on_with(tmp_path: Path) -> None:
    """A run of `verifiers_compat` that `vfgym.evaluate` finishes is one of `vfgym` then: its failed rows count as declared."""
    results = environment(vf.Rubric(funcs=[careless])).evaluate_sync(
        Model(lambda number, state: "x"), "m", results_path=tmp_path, num_examples=4
    )
    assert results["metadata"]["avg_reward"] > 0
    path = tmp_path / "metadata.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "is_model": False, "seed": 0}))
    env = environment(vf.Rubric(funcs=[careless]))
    resumed = vfgym.evaluate(env, lambda observation, info: "x", model="m", results_path=tmp_path, resume=True, progress=False)
    assert [row["counted_reward"] for row in resumed["outputs"]] == [-1.0, 1.0, 1 / 2, 1 / 3]
    assert summarize(tmp_path)["mean_of"] == resumed["metadata"]["mean_of"] == "counted_reward"
