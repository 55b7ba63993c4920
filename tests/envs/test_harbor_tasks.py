"""Task folders in Harbor's format, as data: what a task says, what it asks for that is not offered, and the reward of its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harbor_tasks import make_task
from vfgym.envs.harbor_tasks import HarborTask, read_reward, read_tasks
from vfgym.errors import ConfigurationError, InfraError


def task_of(folder: Path = Path("/nowhere"), /, **config: Any) -> HarborTask:
    return HarborTask("a", folder, "do it", config)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 0),
        ("a.c", ""),
        ("a.d", []),
        ("a.e", False),
        ("a", {"b": 0, "c": "", "d": [], "e": False}),
        ("a.z", 7),
        ("z.z", 7),
        ("a.b.c", 7),
    ],
)
def test_a_field_is_what_the_task_says_though_it_be_nothing_and_else_the_default(path: str, value: Any) -> None:
    task = task_of(a={"b": 0, "c": "", "d": [], "e": False})
    assert task.get(path, 7) == value
    assert (task.get("a.z"), task.get("a.b")) == (None, 0)


def test_variables_stand_for_those_of_this_process_or_their_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GIVEN", "one"), ("EMPTY", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MISSING", raising=False)
    env = {"A": "${GIVEN}-${MISSING:-two}-${GIVEN}", "B": "${EMPTY:-x}", "C": "${MISSING:-}", "D": 3, "E": "$GIVEN"}
    task = task_of(environment={"env": env}, solution={"env": {"A": "${GIVEN}${MISSING}"}})
    assert task.variables("environment.env") == {"A": "one-two-one", "B": "", "C": "", "D": "3", "E": "$GIVEN"}
    assert task.variables("verifier.env") == {}
    with pytest.raises(ConfigurationError, match=r"the task 'a' needs the environment variable MISSING \(solution\.env in task\.toml\)"):
        task.variables("solution.env")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("steps", "several steps"),
        ("environment.gpus", "GPUs"),
        ("environment.tpu", "TPUs"),
        ("environment.mcp_servers", "MCP servers"),
        ("environment.healthcheck", "a health check"),
        ("agent.user", "a user for the agent"),
        ("verifier.user", "a user for its tests"),
        ("verifier.environment", "an environment for its tests alone"),
        ("verifier.collect", "commands in services"),
    ],
)
def test_what_is_not_offered_is_named(path: str, what: str) -> None:
    table, _, name = path.partition(".")
    for value, said in (([1], f"{what} ({path} in task.toml)"), (0, None), ([], None)):
        config: dict[str, Any] = {table: {name: value} if name else value}
        assert task_of(**config).what_is_not_offered() == said


def test_other_systems_and_several_containers_are_not_offered(tmp_path: Path) -> None:
    assert task_of(environment={"os": "windows"}).what_is_not_offered() == "the system windows"
    assert task_of(environment={"os": "linux"}).what_is_not_offered() is None
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment/docker-compose.yaml").touch()
    assert task_of(tmp_path).what_is_not_offered() == "several containers (environment/docker-compose.yaml)"


@pytest.mark.parametrize(
    ("name", "text", "reward"),
    [
        ("reward.txt", "0", 0.0),
        ("reward.txt", " -0.5\n", -0.5),
        ("reward.json", '{"reward": 0, "other": 1}', 0.0),
        ("rewards.json", '{"accuracy": 0.25}', 0.25),
        *[("reward.txt", text, None) for text in ("", "one", "nan", "inf", '{"reward": 1}')],
        *[("reward.json", text, None) for text in ("", "1", "{}", '{"a": 1, "b": 2}', '{"reward": "x", "b": 2}', '{"reward": null}')],
    ],
)
def test_the_reward_is_the_finite_number_that_the_tests_wrote(name: str, text: str, reward: float | None) -> None:
    if reward is not None:
        assert read_reward(name, text) == reward
        return
    with pytest.raises(InfraError) as caught:
        read_reward(name, text)
    assert str(caught.value) == f"the tests wrote no number as their reward to {name}: {text!r}"


def test_tasks_are_read_in_the_order_of_their_names_or_as_they_are_chosen(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        make_task(tmp_path, name)
    (tmp_path / "beside").mkdir()
    assert [task.name for task in read_tasks(tmp_path)] == ["a", "b", "c"]
    assert [task.name for task in read_tasks(str(tmp_path), iter(["c", "a"]))] == ["c", "a"]
    assert read_tasks(tmp_path, []) == []
    [alone] = read_tasks(tmp_path / "b")
    assert (alone.name, alone.folder, alone.environment, alone.solution) == (
        "b",
        tmp_path / "b",
        tmp_path / "b/environment",
        tmp_path / "b/solution",
    )
    (tmp_path / "b/task.toml").write_text("made = 2024-01-02\nnumber = 0\n")
    [alone] = read_tasks(tmp_path / "b", ["b"])
    assert alone.config == {"made": "2024-01-02", "number": 0}, "dates are text"


def test_what_can_not_be_read_is_named(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "first")
    for path, names, said in (
        (tmp_path / "none", None, "dataset_path must be a folder of tasks, and there is no folder .*none"),
        (tmp_path, None, "there is no task in .*: a task is a folder with task.toml, instruction.md, tests/test.sh"),
        (tmp_path / "tasks", "first", "tasks must be a list of names, got 'first'"),
        (tmp_path / "tasks", ["first", "frist"], "there is no task 'frist' in .*Did you mean `first`"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            read_tasks(path, names)
    for name, data in (("instruction.md", b"\xff"), ("task.toml", b"= 1")):
        (tmp_path / "tasks/first" / name).write_bytes(data)
        with pytest.raises(ConfigurationError, match="the task 'first' cannot be read: "):
            read_tasks(tmp_path / "tasks")


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "tests/test.sh"])
def test_a_folder_that_is_meant_as_a_task_must_have_all_that_one_needs(name: str, tmp_path: Path) -> None:
    make_task(tmp_path, "half")
    (tmp_path / "half" / name).unlink()
    with pytest.raises(ConfigurationError, match=f"the task 'half' has no {name}: a task is a folder with"):
        read_tasks(tmp_path)
