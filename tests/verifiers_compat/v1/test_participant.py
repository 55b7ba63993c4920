"""What a taskset and a harness have in common: configurations of their own classes, toolsets, and what is added later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.configurations import Deeper, Level, Levels, Other
from tests.verifiers_compat.v1.playing import add, harness, noting, sub
from verifiers_compat.v1.participant import resolve_prompt
from vfgym.errors import ConfigurationError


def test_fields_that_were_never_set_are_kept_too() -> None:
    """Here one that is random by default, and one that was changed without a check."""
    config = Level()
    config.level = -3
    taskset = Levels(config=config)
    assert (taskset.config.run_id, taskset.config.level) == (config.run_id, -3)
    assert taskset.config == config
    assert Levels(config={"run_id": "r"}).config.run_id == "r"


def test_the_class_of_the_configuration_is_config_type() -> None:
    assert type(Levels(config=Deeper(depth=3, level=4)).config) is Level
    assert type(Levels(config=vf.TasksetConfig()).config) is Level
    assert Levels(config=Other(level=4)).config.level == 4

    class Further(Levels):
        config_type = Deeper

    assert Further(config={"depth": 2}).config.depth == 2
    with pytest.raises(ConfigurationError, match="Levels takes a Level or a mapping with its fields, got a HarnessConfig"):
        Levels(config=vf.HarnessConfig())  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [vf.HarnessConfig, dict, Level(), None])
def test_config_type_has_to_be_derived_from_that_of_the_base(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Wrong\.config_type must be TasksetConfig or a class derived from it"):
        type("Wrong", (vf.Taskset,), {"config_type": wrong})


async def test_a_configuration_may_list_handlers_of_every_kind() -> None:
    log: list[str] = []
    names = ("stops", "setups", "updates", "metrics", "rewards", "cleanups")
    handlers = {name: noting(log, name, False if name == "stops" else 1.0) for name in names}
    player = vf.Harness(program=lambda task, state: None, config={**handlers, "teardowns": lambda: log.append("teardowns")})
    await player.run({"prompt": "?"})
    await player.teardown()
    assert list(dict.fromkeys(log)) == [*names, "teardowns"]
    keep = lambda step, state: False  # noqa: E731
    assert vf.Harness(config={"keep_trajectory_step": keep}).keep_trajectory_step is keep


async def test_lists_of_code_and_of_the_configuration_are_joined() -> None:
    state = await harness("x", rewards=[noting([], "code", 2.0)], config={"rewards": [noting([], "config", 1.0)]}).run({"prompt": "?"})
    assert (state["reward"], state["metrics"]) == (3.0, {"code": 2.0, "config": 1.0})


def test_toolsets_of_any_form_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    taskset = vf.Taskset([])
    for toolset in (
        add,
        [sub],
        vf.Toolset([add]),
        vf.ToolsetConfig(tools=[sub]),
        {"named": [add]},
        "tests.verifiers_compat.v1.playing:sub",
    ):
        taskset.add_toolset(toolset)
    assert [each.tool_names for each in taskset.toolsets] == [["add"], ["sub"], ["add"], ["sub"], ["sub"]]
    assert list(taskset.named_toolsets) == ["named"]
    with pytest.raises(ConfigurationError, match="Taskset has two toolsets called 'named': rename one"):
        taskset.add_toolset({"named": [sub]})
    with pytest.raises(ConfigurationError, match="two toolsets called 'named'"):
        vf.Taskset(toolsets={"named": [add]}, config={"toolsets": {"named": [sub]}})


async def test_the_handlers_of_a_toolset_that_is_added_run() -> None:
    log: list[str] = []
    player = harness("x")
    await player.run({"prompt": "?"})
    player.add_toolset(vf.Toolset([add], setups=[noting(log, "look")]))
    await player.run({"prompt": "?"})
    assert log == ["look"]


@pytest.mark.parametrize("kind", ["stop", "setup", "update", "metric", "reward", "advantage", "cleanup"])
@pytest.mark.parametrize("owner", [vf.Taskset, vf.Harness])
async def test_what_is_added_later_runs_from_then_on_as_what_it_is(owner: Any, kind: str) -> None:
    """Each method adds a handler of its own kind."""
    called: list[int] = []

    def function(task: Any = None, state: Any = None, tasks: Any = None, states: Any = None) -> Any:
        called.append(1)
        return [0.0] if kind == "advantage" else False if kind == "stop" else 0.0

    taskset = vf.Taskset([])
    player = vf.Harness(program=lambda task, state: None)
    player.attach(taskset)
    part = taskset if owner is vf.Taskset else player
    await player.run({"prompt": "?"})
    getattr(part, f"add_{kind}")(function)
    assert [(handler.name, handler.kind) for handler in part.handlers if handler.name == "function"] == [("function", kind)]
    state = await player.run({"prompt": "?"})
    await player.score_group([vf.Task()], [state])
    assert called
    assert ("function" in state["metrics"]) is (kind in ("metric", "reward"))
    with pytest.raises(ConfigurationError, match="must be a function"):
        getattr(part, f"add_{kind}")(3)


def test_a_system_prompt_may_be_a_file(tmp_path: Path) -> None:
    """Read as it is, line ends and all."""
    (tmp_path / "prompt.txt").write_bytes("bé\r\nkind\n".encode())
    for given in ({"path": str(tmp_path / "prompt.txt")}, {"path": tmp_path / "prompt.txt"}):
        assert vf.Taskset([], system_prompt=given).system_prompt == [{"role": "system", "content": "bé\r\nkind\n"}]
    with pytest.raises(ConfigurationError, match="the system_prompt of Harness must be text"):
        vf.Harness(system_prompt=[{"role": "user", "content": "x"}])


def test_what_is_added_is_counted_and_what_is_refused_is_not() -> None:
    taskset = vf.Taskset([])
    taskset.add_reward(noting([], "one"))
    taskset.add_toolset({"named": vf.Toolset([add], metrics=[noting([], "of_tools")])})
    names = [handler.name for handler in taskset.handlers]
    assert (names, taskset.num_changes) == (["one", "of_tools"], 2)
    for refused in (
        lambda: taskset.add_metric(noting([], "one")),
        lambda: taskset.add_reward(noting([], "of_tools")),
        lambda: taskset.add_toolset({"named": [sub]}),
        lambda: taskset.add_toolset(vf.Toolset([sub], rewards=[noting([], "one")])),
    ):
        with pytest.raises(ConfigurationError, match="two"):
            refused()
    assert ([handler.name for handler in taskset.handlers], taskset.num_changes) == (names, 2)
    assert (taskset.toolsets, list(taskset.named_toolsets)) == ([], ["named"])


def test_lists_of_code_come_before_those_of_the_configuration_and_one_function_is_a_list() -> None:
    log: list[str] = []
    given: Any = {"updates": noting(log, "code")}
    taskset = vf.Taskset([], **given, config={"updates": [noting(log, name) for name in ("a", "b")]})
    assert [handler.name for handler in taskset.handlers] == ["code", "a", "b"]


def test_only_a_path_alone_is_a_file(tmp_path: Path) -> None:
    for given in ({"path": "x", "role": "system"}, {}, "path", None, ""):
        assert resolve_prompt(given) is given
    (tmp_path / "empty").touch()
    assert resolve_prompt({"path": tmp_path / "empty"}) == ""
    with pytest.raises(FileNotFoundError):
        resolve_prompt({"path": tmp_path / "nothing"})
