"""What published tasksets and harnesses ask for, through ``import verifiers as vf``: a test for each need, named after what holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.models import calling, evaluated, texts
from verifiers_compat.alias import install, uninstall

PACKAGE = '''
"""Written as published tasksets are: for `verifiers`."""

import verifiers as vf
import verifiers.v1 as v1
from verifiers.v1.utils.judge_utils import clamp_float, completion_text, parse_judge_json


class SumsConfig(v1.TasksetConfig):
    difficulty: str = "easy"
    num_tasks: int = 2


class ToldConfig(v1.HarnessConfig):
    style: str = "plain"


class SumsEnvConfig(v1.EnvConfig):
    taskset: SumsConfig = SumsConfig()
    harness: ToldConfig = ToldConfig(max_turns=4)


class Sums(vf.Taskset):
    config_type = SumsConfig

    def __init__(self, config=None):
        super().__init__(source=self.load_rows, config=config)

    def load_rows(self):
        return [{"question": f"{self.config.difficulty} {i} + {i}?", "answer": str(2 * i)} for i in range(self.config.num_tasks)]

    @vf.reward
    async def judged(self, task, state) -> float:
        verdict = parse_judge_json(f'The verdict: {{"score": {float(completion_text(state["completion"]) == task["answer"])}}}')
        return clamp_float(verdict["score"])


class Told(vf.Harness):
    config_type = ToldConfig


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calculator(prefix: str = "") -> v1.Toolset:
    def total(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    total.__name__ = prefix + "total"
    return v1.Toolset(tools=[total])


def load_environment(config: SumsEnvConfig) -> vf.Env:
    return vf.Env(Sums(config=config.taskset), Told(config=config.harness))
'''


@pytest.fixture(scope="module")
def vf() -> Iterator[Any]:
    """The package as published tasksets import it."""
    install()
    import verifiers

    yield verifiers
    uninstall()


@pytest.fixture
def sums(vf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of a published package."""
    (tmp_path / "typed_sums.py").write_text(PACKAGE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import typed_sums  # type: ignore[import-not-found, unused-ignore]

    yield typed_sums
    del sys.modules["typed_sums"]


async def test_load_environment_gives_the_loader_its_typed_config(vf: Any, sums: Any) -> None:
    env = vf.load_environment("typed-sums", config={"taskset": {"difficulty": "hard", "num_tasks": 3}})
    assert (env.taskset.config.difficulty, env.harness.config.max_turns) == ("hard", 4)
    assert [row["reward"] for row in await evaluated(env, "2")] == [0.0, 1.0, 0.0]
    assert vf.load_environment("typed-sums", harness={"style": "loud"}).harness.config.style == "loud"
    assert len(vf.load_environment("typed-sums").taskset) == 2
    with pytest.raises(ValueError, match=r"'typed-sums' failed: config does not fit SumsEnvConfig: taskset\.n: there is no such field"):
        vf.load_environment("typed-sums", config={"taskset": {"n": 3}})


def test_a_taskset_is_iterable_over_its_tasks(vf: Any, sums: Any) -> None:
    tasks = list(sums.Sums())
    assert [type(task) for task in tasks] == [vf.v1.Task] * 2
    assert [(task["question"], task["answer"], task["taskset_id"]) for task in tasks] == [
        ("easy 0 + 0?", "0", "Sums"),
        ("easy 1 + 1?", "2", "Sums"),
    ]
    assert len(sums.Sums({"num_tasks": 7})) == 7


async def test_tables_make_toolsets(vf: Any, sums: Any, tmp_path: Path) -> None:
    """The factory is called with all that stands in the table beside ``fn``."""
    (tmp_path / "env.toml").write_text('[env.taskset.toolsets]\ncalc = {fn = "typed_sums:calculator", prefix = "my_"}\n')
    taskset = vf.Taskset([{"question": "?"}], config=vf.TasksetConfig.from_toml(tmp_path / "env.toml", "env.taskset"))
    assert taskset.named_toolsets["calc"].tool_names == ["my_total"]


async def test_toolsets_are_added_to_tasksets_and_harnesses(vf: Any, sums: Any) -> None:
    taskset, harness = sums.Sums(), sums.Told()
    env = vf.Env(taskset, harness)
    taskset.add_toolset(sums.add)
    harness.add_toolset({"more": {"fn": sums.calculator}})
    call = calling(("add", {"a": 1, "b": 2}), ("total", {"a": 3, "b": 4}))
    [output] = await evaluated(env, call, "0", num_examples=1)
    assert texts(output["completion"]) == ["3", "7"]


def test_the_config_of_a_harness_shows_what_is_in_force(vf: Any, sums: Any) -> None:
    config = sums.ToldConfig(max_turns=4, sampling_args={"top_p": 1.0})
    harness = sums.Told(config=config, max_turns=10, model="m", sampling_args={"temperature": 0.5})
    assert (harness.config.max_turns, harness.config.model) == (10, "m")
    assert harness.config.sampling_args == harness.sampling_args == {"top_p": 1.0, "temperature": 0.5}
    assert (config.max_turns, config.sampling_args) == (4, {"top_p": 1.0}), "it is another's"


def test_the_helpers_of_judges_and_tools_are_at_their_paths(vf: Any) -> None:
    from verifiers.v1.utils.endpoint_utils import client_from_state, endpoint_config_from_state  # noqa: F401
    from verifiers.v1.utils.json_utils import json_args
    from verifiers.v1.utils.judge_utils import clamp_float, completion_text, parse_judge_json, truncate_text

    assert json_args('{"a": 1}') == {"a": 1}
    assert completion_text([{"role": "assistant", "content": "a"}, {"role": "tool", "content": "t"}]) == "a"
    assert parse_judge_json('```json\n{"score": 1}\n```') == {"score": 1}
    assert clamp_float("1.5") == 1.0
    assert truncate_text("x" * 6001).endswith("\n...<truncated>")
    with pytest.raises(ImportError, match=r"endpoint_utils.Endpoint is not offered: one server"):
        from verifiers.v1.utils.endpoint_utils import Endpoint  # noqa: F401
    with pytest.raises(ImportError, match="sandbox"):
        import verifiers.v1.utils.sandbox_utils  # noqa: F401


async def test_added_functions_count_from_then_on(vf: Any, sums: Any) -> None:
    """Also where the harness plays in an environment already, and where one of them sees whole groups."""
    taskset = sums.Sums()
    env = vf.Env(taskset)
    taskset.add_reward(lambda task, state: 0.25)
    outputs = await evaluated(env, "0")
    assert [row["reward"] for row in outputs] == [1.25, 0.25]

    def flat(tasks: Any, states: Any) -> list[float]:
        return [3.0] * len(states)

    taskset.add_advantage(flat)
    outputs = await evaluated(env, "0", rollouts_per_example=2, state_columns=["advantage"])
    assert [row["advantage"] for row in outputs] == [3.0] * 4

    def judged(task: Any, state: Any) -> float:
        return 0.0

    with pytest.raises(ValueError, match="two signals are called 'judged'"):
        taskset.add_metric(judged)
    assert texts(outputs[0]["completion"], "assistant") == ["0"]
