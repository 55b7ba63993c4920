"""A run of `generate`: groups, limits, retries, errors, what is on disk, and what is let go of."""

from __future__ import annotations

import gc
import json
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.verifiers_compat.environments import ROW, ROWS, Talk, four, right
from tests.verifiers_compat.models import Counting, Model
from vfgym.errors import ConfigurationError
from vfgym.results import load_results, summarize
from vfgym.testing import ScriptedClient


def test_outputs_stand_in_order_of_example_and_rollout_and_metadata_sums_them_up() -> None:
    results = four().evaluate_sync(Model(), "model-1", rollouts_per_example=2)
    outputs, metadata = results["outputs"], results["metadata"]
    assert [(output["example_id"], output["rollout"]) for output in outputs] == [(i, r) for i in range(4) for r in range(2)]
    assert results["reward"] == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert results["metrics"]["right"] == results["reward"]
    assert results["stop_conditions"] == ["max_turns_reached"] * 8
    assert results["task"] == ["default"] * 8
    assert results.metadata is metadata
    expected = {"model": "model-1", "num_examples": 4, "rollouts_per_example": 2, "avg_reward": 0.25, "avg_error": 0.0}
    assert {key: metadata[key] for key in expected} == expected
    assert metadata["pass_at_k"] == {"1": 0.25, "2": 0.25}


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 8, -1])
def test_max_concurrent_counts_rollouts_whatever_the_size_of_groups(limit: int, independent: bool) -> None:
    client = Counting()
    four().evaluate_sync(client, "m", rollouts_per_example=4, max_concurrent=limit, independent_scoring=independent)
    assert client.most_at_once == (16 if limit == -1 else limit)
    assert client.calls == 16


def test_only_what_failed_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)
    failures = {
        "1": [vf.SandboxError("gone"), vf.EmptyModelResponseError("nothing")],
        "2": [vf.InfraError("down")] * 9,
        "3": [vf.ToolError("no")],
    }
    asked: Counter[str] = Counter()

    def answer(number: int, state: vf.State) -> Any:
        asked[state["answer"]] += 1
        left = failures.get(state["answer"], [])
        return left.pop(0) if left else state["answer"]

    outputs = four().evaluate_sync(Model(answer), "m", max_retries=3)["outputs"]
    assert asked == {"0": 1, "1": 3, "2": 4, "3": 1}
    assert [output["error"] and output["error"]["error"] for output in outputs] == [None, None, "InfraError", "ToolError"]
    assert [output["reward"] for output in outputs[:2]] == [1.0, 1.0]


def test_a_repeated_rollout_starts_from_a_fresh_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)

    class Writes(vf.SingleTurnEnv):
        async def setup_state(self, state: vf.State) -> None:
            assert "note" not in state["info"]
            state["info"]["note"] = "written"
            state["prompt"].append(vf.UserMessage("more"))

    env = Writes(dataset=[{"question": "q", "info": {"x": 1}}])
    client = Model(lambda number, state: vf.InfraError("down") if number == 0 else "1")
    output = env.evaluate_sync(client, "m", max_retries=1)["outputs"][0]
    assert output["error"] is None
    assert [message["content"] for message in output["prompt"]] == ["q", "more"]


def test_a_row_that_cannot_be_read_is_the_error_of_its_rollouts(tmp_path: Path) -> None:
    rows = [*ROWS[:2], {"prompt": [{"role": "nobody", "content": "x"}]}, ROWS[3]]
    for path in (None, tmp_path / "run"):
        results = four(rows).evaluate_sync(Model(), "m", results_path=path, on_start=lambda raw, left: None)
        errors = [output["error"] and output["error"]["error"] for output in results["outputs"]]
        assert errors == [None, None, "ConfigurationError", None]
    with pytest.raises(ConfigurationError, match="nobody"):
        four(rows).evaluate_sync(Model(), "m", strict=True)


class Unbegun(vf.SingleTurnEnv):
    """An author's own `init_state` that raises for the task whose answer is "2", as often as there are errors."""

    def __init__(self, *errors: Exception, rows: Any = ROWS) -> None:
        super().__init__(dataset=rows, rubric=vf.Rubric(right))
        self.errors = [*errors]

    async def init_state(self, input: Any, client: Any = None, model: str = "", sampling_args: Any = None) -> vf.State:
        if input["answer"] == "2" and self.errors:
            raise self.errors.pop(0)
        return await super().init_state(input, client, model, sampling_args)


class OwnLoop(Unbegun):
    """The same where the rollout is the author's."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        return await super().rollout(input, client, model, sampling_args)


@pytest.mark.parametrize("kind", [Unbegun, OwnLoop])
@pytest.mark.parametrize("error", [RuntimeError("quota"), vf.InfraError("quota")])
def test_a_state_that_cannot_be_made_is_the_error_of_its_rollout(kind: type[Unbegun], error: Exception, tmp_path: Path) -> None:
    results = kind(error).evaluate_sync(Model(), "m", results_path=tmp_path / "run")
    errors = [output["error"] and output["error"]["error_chain_repr"] for output in results["outputs"]]
    assert errors == [None, None, repr(error), None]
    assert [output["reward"] for output in results["outputs"]] == [0.0, 1.0, 0.0, 0.0]
    assert results["outputs"][2]["answer"] == "2"


@pytest.mark.parametrize("kind", [Unbegun, OwnLoop])
def test_what_is_wrong_with_a_task_or_an_update_is_the_error_of_its_rollout(kind: type[Unbegun]) -> None:
    env = kind(rows=[{"question": "q", "answer": "1", "info": {"tool_defs": ["nonsense"]}}, ROWS[1]])
    outputs = env.evaluate_sync(Model(), "m")["outputs"]
    assert [output["error"] and output["error"]["error"] for output in outputs] == ["ConfigurationError", None]

    class Broken(kind):  # type: ignore[misc, valid-type]
        @vf.update
        def count(self, state: vf.State) -> None:
            state["count"] = len(state["trajektory"])

    (output,) = Broken(rows=ROWS[:1]).evaluate_sync(Model(), "m")["outputs"]
    assert output["error"]["error_chain_repr"] == "KeyError('trajektory')"
    with pytest.raises(KeyError, match="trajektory"):
        Broken(rows=ROWS[:1]).evaluate_sync(Model(), "m", strict=True)


async def test_strict_raises_what_scoring_raises_too(tmp_path: Path) -> None:
    class Unscorable(vf.Rubric):
        def group_scoring_steps(self, states: list[vf.State]) -> Any:
            raise ZeroDivisionError("a bug of the rubric")

    env = vf.SingleTurnEnv(dataset=ROWS[:1], rubric=Unscorable(right))
    outputs = (await env.evaluate(Model(), "m"))["outputs"]
    assert "a bug of the rubric" in str(outputs[0]["error"])
    with pytest.raises(ZeroDivisionError, match="a bug of the rubric"):
        await env.evaluate(Model(), "m", strict=True, results_path=tmp_path)


async def test_states_are_let_go_once_their_rows_are_made() -> None:
    class Big: ...

    alive: list[weakref.ref[Any]] = []

    class Holds(Talk):
        async def setup_state(self, state: vf.State) -> None:
            state["big"] = Big()
            alive.append(weakref.ref(state["big"]))

    await Holds(dataset=[ROW] * 6, max_turns=2).evaluate(ScriptedClient(["a", "b"]), "m", max_concurrent=1)
    gc.collect()
    assert [each() for each in alive] == [None] * 6


def test_results_are_saved_and_a_second_run_goes_on_where_the_first_was(tmp_path: Path) -> None:
    env = four()
    lines: list[str] = []
    client = Model(lambda number, state: RuntimeError("oops") if number == 5 else "1")
    path = tmp_path / "run"
    first = env.evaluate_sync(
        client,
        "m",
        num_examples=2,
        rollouts_per_example=3,
        max_concurrent=1,
        results_path=path,
        state_columns=["trajectory"],
        on_log=lines.append,
    )
    assert sorted(file.name for file in path.iterdir()) == ["metadata.json", "results.jsonl"]
    on_disk = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    assert [(row["example_id"], row["rollout"], row["reward"]) for row in on_disk] == [
        (output["example_id"], output["rollout"], output["reward"]) for output in first["outputs"]
    ]
    metadata = json.loads((path / "metadata.json").read_text())
    assert {"date", "path_to_save"}.isdisjoint(metadata)
    assert metadata["avg_error"] == first["metadata"]["avg_error"] == pytest.approx(1 / 6)

    starts: list[Any] = []
    options: dict[str, Any] = {"rollouts_per_example": 3, "results_path": path, "state_columns": ["trajectory"]}
    again = env.evaluate_sync(client, "m", num_examples=2, on_start=lambda *args: starts.append(args), **options)
    assert (client.calls, starts) == (6, [])
    assert again["outputs"] == json.loads(json.dumps(first["outputs"]))
    # A group is scored as a whole, so the group of the rollout that failed is played again as a whole.
    more = env.evaluate_sync(
        client, "m", num_examples=3, rollouts_per_example=3, results_path=path, state_columns=["trajectory"], redo_errors=True
    )
    assert client.calls == 12
    assert [output["error"] for output in more["outputs"]] == [None] * 9
    assert [line.partition(" ")[0] for line in lines] == ["results"]


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
