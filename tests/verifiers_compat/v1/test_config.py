"""Configuration models: merging, unknown fields, TOML, references, and what the classes do with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient

ROWS = [{"question": "?", "answer": "a"}]


def load() -> list[dict[str, Any]]:
    return ROWS


def score(task: Any, state: Any) -> float:
    return 1.0


def test_fields_win_over_the_configuration_they_start_from() -> None:
    base = vf.HarnessConfig(max_turns=3, model="a")
    assert vf.HarnessConfig.from_config(base, model="b").model_dump(include={"max_turns", "model"}) == {"max_turns": 3, "model": "b"}
    assert vf.HarnessConfig.from_config({"model": "a"}, model=None).model == "a"
    assert vf.HarnessConfig().max_turns == 10


@pytest.mark.parametrize("cls", [vf.HarnessConfig, vf.TasksetConfig, vf.ToolsetConfig, vf.SandboxConfig, vf.EnvConfig, vf.MCPToolConfig])
def test_unknown_fields_are_refused(cls: Any) -> None:
    with pytest.raises(ValueError, match="nope"):
        cls(nope=1)
    with pytest.raises(ConfigurationError, match=cls.__name__):
        cls(3)


def test_a_section_of_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "env.toml"
    path.write_text(
        '[env.taskset]\ntaskset_id = "mine"\nsource = "json:loads"\n[env.harness]\nmax_turns = 4\nsampling_args = {temperature = 0.5}\n',
        encoding="utf-8",
    )
    assert vf.TasksetConfig.from_toml(path, "env.taskset").taskset_id == "mine"
    assert vf.HarnessConfig.from_toml(path, ["env", "harness"]).sampling_args == {"temperature": 0.5}
    assert vf.EnvConfig.from_toml(path, "env").harness == {"max_turns": 4, "sampling_args": {"temperature": 0.5}}
    with pytest.raises(ConfigurationError, match=r"env.harnes"):
        vf.HarnessConfig.from_toml(path, "env.harnes")
    assert "max_turns" in vf.HarnessConfig.schema_text()


def test_sections_are_merged_with_the_defaults_of_an_environment() -> None:
    class MyTaskset(vf.TasksetConfig):
        level: int = 1
        options: dict[str, int] = {"a": 1, "b": 2}

    class MyEnv(vf.EnvConfig):
        taskset: MyTaskset = MyTaskset(level=2, options={"a": 1, "b": 2})

    config = MyEnv(taskset={"options": {"b": 3}})
    assert isinstance(config.taskset, MyTaskset)
    assert (config.taskset.level, config.taskset.options) == (2, {"a": 1, "b": 3})
    assert MyEnv().taskset.level == 2
    assert MyEnv(taskset=MyTaskset(level=5)).taskset.level == 5


async def test_code_wins_over_configuration_and_lists_are_joined() -> None:
    def other(task: Any, state: Any) -> float:
        return 2.0

    config = {"model": "a", "max_turns": 3, "rewards": [score], "sampling_args": {"temperature": 0.5, "top_p": 1.0}}
    player = vf.Harness(client=ScriptedClient(["x"]), model="b", rewards=[other], sampling_args={"temperature": 1.0}, config=config)
    assert (player.model, player.max_turns, player.sampling_args) == ("b", 3, {"temperature": 1.0, "top_p": 1.0})
    state = await player.run({"prompt": "?"})
    assert (state["reward"], state["metrics"]) == (3.0, {"other": 2.0, "score": 1.0})


def test_references_are_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "v1_refs.py").write_text("def load():\n    return [{'question': 'from a reference'}]\nPROMPT = 3\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert vf.Taskset(config={"source": "v1_refs:load"}).rows()[0]["question"] == "from a reference"
    with pytest.raises(ConfigurationError, match="loads"):
        vf.Taskset(config={"source": "v1_refs:loads"}).rows()
    with pytest.raises(ConfigurationError, match="function"):
        vf.Harness(config={"program": "v1_refs:PROMPT"})


# Tasksets


def test_rows_are_loaded_once_and_copied() -> None:
    calls: list[int] = []

    def rows() -> Any:
        calls.append(1)
        yield from ROWS

    taskset = vf.Taskset(rows)
    taskset.rows()[0]["answer"] = "changed"
    assert taskset.rows() == [{"example_id": 0, "question": "?", "answer": "a"}]
    assert taskset.eval_rows() == taskset.rows()
    assert len(calls) == 1
    assert vf.Taskset(ROWS, lambda: [{"question": "eval"}]).eval_rows()[0]["question"] == "eval"


@pytest.mark.parametrize("source", [None, "x:y:z", 3, {"question": "?"}, [3]])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError):
        vf.Taskset(source).rows()


def test_tasks_know_their_taskset_and_travel_as_rows() -> None:
    class Mine(vf.Taskset):
        pass

    taskset = Mine(ROWS)
    task = taskset.task(taskset.rows()[0])
    assert (task["taskset_id"], task["task_id"], task["prompt"]) == ("Mine", "0", [{"role": "user", "content": "?"}])
    assert vf.Taskset(ROWS, taskset_id="other").task({"id": 7})["task_id"] == "7"
    assert taskset.to_task(task) is task
    import json

    assert taskset.to_task(json.dumps(task)) == task
    dataset = taskset.get_dataset()
    assert dataset[0]["answer"] == "a"
    assert taskset.to_task(dataset[0]) == task
    assert taskset.to_task({"question": "new"})["prompt"] == [{"role": "user", "content": "new"}]
    with pytest.raises(ConfigurationError, match="JSON"):
        taskset.to_task("{")
    with pytest.raises(ConfigurationError, match="int"):
        taskset.to_task(3)  # type: ignore[arg-type]


def test_what_is_left_out_says_why() -> None:
    with pytest.raises(ImportError, match=r"is not offered: .*\. Use verifiers\.v1\."):
        vf.packages  # noqa: B018
