"""`get_dataset` and what is around it: when tasks are built, views of them, and the author's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from datasets import concatenate_datasets

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, ROWS, four, look, right, single
from tests.verifiers_compat.models import Model, calling
from vfgym import ProceduralTasks
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient


def test_datasets_are_built_when_asked_for_and_a_seed_shuffles_a_view() -> None:
    calls = 0

    def build() -> Sequence[Mapping[str, Any]]:
        nonlocal calls
        calls += 1
        return [{"question": str(index), "info": {f"key {index}": index}} for index in range(20)]

    env = vf.SingleTurnEnv(dataset=build)
    assert env.dataset is None
    assert calls == 0
    shuffled = env.get_dataset(seed=3)
    assert shuffled["example_id"][:] != list(range(20))
    assert env.get_dataset(seed=3, n=5)["example_id"][:] == env.get_eval_dataset(seed=3, n=5)["example_id"][:] == shuffled["example_id"][:5]
    assert env.get_dataset(n=50)["example_id"][:] == list(range(20))
    assert env.get_dataset(n=2)[1]["info"] == {"key 1": 1}
    assert env.dataset is env.build_dataset()
    assert (calls, env.build_eval_dataset(), env.eval_dataset) == (1, None, None)
    env.dataset = [{"question": "new"}]
    assert env.get_dataset()[0]["prompt"] == [{"role": "user", "content": "new"}]


def test_an_overridden_get_eval_dataset_chooses_the_rows() -> None:
    class Chosen(vf.SingleTurnEnv):
        def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> Any:
            return super().get_eval_dataset(n=2)

    outputs = Chosen(dataset=ROWS, rubric=vf.Rubric(right)).evaluate_sync(Model(), "m", rollouts_per_example=2)["outputs"]
    assert [output["example_id"] for output in outputs] == [0, 0, 1, 1]


async def test_sources_without_an_end_are_played_as_far_as_is_asked_for() -> None:
    endless = four(ProceduralTasks(lambda number: {"question": f"{number}?", "answer": "1"}))
    with pytest.raises(ConfigurationError, match="no end"):
        await endless.evaluate(Model(), "m")
    with pytest.raises(ConfigurationError, match="no end"):
        endless.get_dataset()
    assert [row["question"] for row in endless.get_dataset(n=2)] == ["0?", "1?"]
    assert len((await endless.evaluate(Model(), "m", num_examples=3))["outputs"]) == 3


async def test_results_of_different_environments_go_into_one_dataset() -> None:
    one = await single({**ROW, "info": {"a": 1}}).evaluate(ScriptedClient(["2"]), "m")
    tool = vf.ToolEnv(tools=[look], dataset=[{"question": "?", "info": {"b": ["x"]}}])
    two = await tool.evaluate(ScriptedClient([calling(("look", {"key": "a"})), "done"]), "m")
    both = concatenate_datasets([vf.Environment.make_dataset(one), vf.Environment.make_dataset(two)])
    assert both["reward"][:] == [1.0, 0.0]
    assert len(both) == 2


def test_only_the_split_that_is_played_is_built() -> None:
    built: list[str] = []

    def build(split: str) -> Any:
        return lambda: built.append(split) or [{"question": f"{split}?"}]

    env = vf.SingleTurnEnv(dataset=build("train"), eval_dataset=build("eval"))
    env.evaluate_sync(Model(), "m")
    assert built == ["eval"]
    assert (env.get_dataset()["question"][:], env.get_eval_dataset()["question"][:], built) == (["train?"], ["eval?"], ["eval", "train"])


def test_tasks_that_are_replaced_are_those_of_the_datasets_that_follow() -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "a"}], eval_dataset=[{"question": "b"}])
    assert [env.get_dataset()["question"][:], env.get_eval_dataset()["question"][:]] == [["a"], ["b"]]
    env.eval_dataset = [{"question": "c"}, {"question": "d"}]
    assert [env.get_dataset()["question"][:], env.get_eval_dataset()["question"][:]] == [["a"], ["c", "d"]]
    assert env.eval_dataset["question"][:] == ["c", "d"]


def test_training_tasks_that_are_not_there_are_missed_and_those_of_evaluation_are_replaced(caplog: pytest.LogCaptureFixture) -> None:
    env = vf.SingleTurnEnv(eval_dataset=[{"question": "b"}])
    with pytest.raises(ConfigurationError, match="has no train tasks: give dataset="):
        env.get_dataset()
    assert env.build_dataset() is None
    assert vf.SingleTurnEnv(dataset=[{"question": "a"}]).get_eval_dataset(n=1)["question"][:] == ["a"]
    assert "SingleTurnEnv has no evaluation tasks: the training tasks are used" in caplog.text
