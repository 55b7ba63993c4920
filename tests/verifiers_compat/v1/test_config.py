"""Configurations of environments: sections merged with what a class has; references."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.configurations import Deeper, Level, MyEnv, Other, Style
from verifiers_compat.v1.config import resolve_function, resolve_reference
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize("cls", [vf.HarnessConfig, vf.TasksetConfig, vf.ToolsetConfig, vf.SandboxConfig, vf.EnvConfig, vf.MCPToolConfig])
def test_unknown_fields_are_refused(cls: Any) -> None:
    with pytest.raises(ValueError, match="nope"):
        cls(nope=1)
    with pytest.raises(ConfigurationError, match=cls.__name__):
        cls(3)


def test_references_are_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "v1_refs.py").write_text("def load():\n    return [{'question': 'from a reference'}]\nPROMPT = 3\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert vf.Taskset(config={"source": "v1_refs:load"}).rows()[0]["question"] == "from a reference"
    with pytest.raises(ConfigurationError, match="loads"):
        vf.Taskset(config={"source": "v1_refs:loads"}).rows()
    with pytest.raises(ConfigurationError, match="function"):
        vf.Harness(config={"program": "v1_refs:PROMPT"})


def test_what_is_more_explicit_wins_all_the_way_down() -> None:
    config = MyEnv({"taskset": {"options": {"b": {"y": 2}}}}, taskset={"level": 3})
    assert (type(config.taskset), config.taskset.level) == (Level, 3)
    assert config.taskset.options == {"a": 1, "b": {"x": 1, "y": 2}}
    assert MyEnv({"taskset": {"level": 5}, "split": "a"}, taskset=Level(level=3), split="b").model_dump(include={"split"}) == {"split": "b"}
    assert MyEnv({"taskset": {"level": 5}}, taskset=Level(level=3)).taskset.level == 5
    assert MyEnv({"harness": {"style": "loud"}}).harness == Style(style="loud")
    assert MyEnv().taskset.level == 2
    assert MyEnv(vf.EnvConfig(taskset={"level": 4})).taskset.level == 4
    kept = Level(level=4)
    assert vf.EnvConfig(taskset=kept).taskset is kept


def test_of_two_classes_the_derived_one_is_kept() -> None:
    assert type(vf.EnvConfig({"taskset": Deeper(depth=4)}, taskset=Level(level=3)).taskset) is Deeper
    assert type(vf.EnvConfig({"taskset": vf.TasksetConfig(taskset_id="a")}, taskset=Level(level=3)).taskset) is Level
    with pytest.raises(ConfigurationError, match=r"EnvConfig\.taskset: a Other does not go with a Level: neither is derived"):
        vf.EnvConfig({"taskset": Other(colour="blue")}, taskset=Level())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"taskset": {"levl": 3}}, r"(?s)for MyEnv\ntaskset\.levl\n.*Level has: .*Did you mean `level`"),
        ({"taskset": {"level": "high"}}, r"(?s)for MyEnv\ntaskset\.level\n.*valid integer"),
        ({"taskset": {"level": -1}}, r"(?s)for MyEnv\ntaskset\n.*counted from 0"),
        ({"harness": {"style": "mute"}}, r"(?s)for MyEnv\nharness\.style\n.*'plain' or 'loud'"),
        ({"tasket": {}}, r"(?s)for MyEnv\ntasket\n.*MyEnv has: taskset, harness, split\. Did you mean `taskset`"),
    ],
)
def test_what_does_not_fit_is_named_with_its_path(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        MyEnv(given)


def test_a_single_string_may_stand_where_a_list_is_meant() -> None:
    assert vf.SandboxConfig(packages="numpy", setup_commands="make", memory_gb=0.5).packages == ["numpy"]
    assert vf.ToolsetConfig(show="add").show == ["add"]
    assert vf.MCPToolConfig(command="serve", args="--fast").args == ["--fast"]


@pytest.mark.parametrize(
    ("names", "least", "too_little"),
    [
        (("cpu_cores", "memory_gb", "disk_size_gb"), 0.5, 0),
        (("timeout_minutes", "command_timeout", "install_timeout", "setup_timeout"), 1, 0),
        (("gpu_count",), 0, -1),
    ],
)
def test_the_least_of_each_size(names: tuple[str, ...], least: Any, too_little: Any) -> None:
    for name in names:
        assert getattr(vf.SandboxConfig({name: least}), name) == least
        with pytest.raises(ValidationError, match=name):
            vf.SandboxConfig({name: too_little})


HANDLERS = ("stops", "setups", "updates", "metrics", "rewards", "advantages", "cleanups", "teardowns")
PARTICIPANT = {**{name: [] for name in HANDLERS}, "system_prompt": None, "user": None, "toolsets": (), "scoring": {}}
SIZE = {"cpu_cores": 1, "memory_gb": 2, "disk_size_gb": 5, "gpu_count": 0, "timeout_minutes": 60}
TIMES = {"command_timeout": None, "install_timeout": 300, "setup_timeout": 300}
PROGRAM = {"program": None, "sandbox": None, "client": None, "model": None, "sampling_args": {}, "max_turns": 10}


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (
            vf.SandboxConfig(),
            {
                **{"image": "python:3.11-slim", "dockerfile": None, "start_command": "tail -f /dev/null", **SIZE, **TIMES},
                **{"network_access": True, "packages": [], "setup_commands": [], "workdir": None, "environment_vars": {}, "labels": []},
                **{"scope": "rollout", "prefer": None, "backend": None, "strict_image": False},
            },
        ),
        (vf.CallableConfig(fn=len), {"fn": len, "priority": None, "stage": None, "weight": None}),
        (vf.ScoringConfig(), {"stage": None, "priority": None, "weight": None, "skip": False}),
        (vf.MCPToolConfig(command="a"), {"command": "a", "args": [], "env": {}, "cwd": None}),
        (vf.UserConfig(fn=len), {"fn": len, "scope": "rollout", "bindings": {}, "objects": {}, "sandbox": None}),
        (
            vf.ToolsetConfig(),
            {
                **{name: [] for name in (*HANDLERS, "tools")},
                **{"show": None, "hide": None, "bindings": {}, "objects": {}, "write": False, "scope": None, "sandbox": None},
            },
        ),
        (vf.TasksetConfig(), {**PARTICIPANT, "taskset_id": None, "source": None, "eval_source": None}),
        (vf.HarnessConfig(), {**PARTICIPANT, **PROGRAM, "keep_trajectory_step": None, "system_prompt_merge": "reject"}),
        (vf.EnvConfig(), {"taskset": None, "harness": None}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_fields_are_by_default(config: Any, fields: dict[str, Any]) -> None:
    assert {name: getattr(config, name) for name in type(config).model_fields} == fields


def test_show_with_hide_is_an_error() -> None:
    with pytest.raises(ValueError, match="show or hide, not both"):
        vf.ToolsetConfig(show=["add"], hide=["add"])
    with pytest.raises(ValueError, match="show or hide, not both"):
        vf.Toolset([Level], show=["add"], config={"hide": ["add"]})


def test_references_are_resolved_and_what_is_none_is_said() -> None:
    assert (resolve_reference("math:floor"), resolve_reference(7), resolve_function("math:floor", "f")) == (math.floor, 7, math.floor)
    assert resolve_function(len, "f") is len
    for text in ("math", ":floor", "math:"):
        with pytest.raises(ConfigurationError, match=rf"^expected a reference like 'package.module:name', got '{text}'$"):
            resolve_reference(text)
    with pytest.raises(ConfigurationError, match=r"^f must be a function or 'module:object', got float: 3\.14"):
        resolve_function("math:pi", "f")
