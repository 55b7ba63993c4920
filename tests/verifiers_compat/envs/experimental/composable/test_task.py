"""`TaskSet` and `SandboxTaskSet`: rows that are counted, filtered and read by index, and the hooks of a class."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.envs.experimental.composable import SandboxSpec, SandboxTaskSet, Task, TaskSet, discover_sibling_dir
from verifiers_compat.envs.experimental.composable.task import resources_of
from vfgym.errors import ConfigurationError, HookMissing

PACKAGES = Path(__file__).parent / "packages"
ROWS = [{"info": {"n": number}, "answer": str(number)} for number in range(3)]


def test_task_sets_are_counted_filtered_and_read_by_index() -> None:
    class Tasks(SandboxTaskSet):
        def get_instruction(self, info: dict[str, Any]) -> str:
            return f"Count to {info['n']}."

    tasks = Tasks(lambda: ROWS, name="counts")
    assert (len(tasks), repr(tasks), [task.answer for task in tasks]) == (3, "Tasks(name='counts', len=3)", ["0", "1", "2"])
    assert (type(tasks[1]), tasks[1].prompt[0]["content"], tasks[1].workdir, tasks[1].image) == (
        Task,
        "Count to 1.",
        "/app",
        "python:3.11-slim",
    )
    sizes = {"cpu_cores": 4, "memory_gb": 4, "disk_size_gb": 10, "gpu_count": 0, "gpu_type": None, "timeout_minutes": None}
    assert asdict(tasks[0].sandbox_spec or 0) == {"image": "python:3.11-slim", **sizes}  # type: ignore[call-overload]
    assert resources_of(SandboxSpec()) == {"memory_gb": 4, "disk_size_gb": 10, "gpu_count": 0}
    assert resources_of(SandboxSpec(cpu_cores=3, timeout_minutes=0))["cpu_cores"] == 3
    assert [task.info["n"] for task in tasks.filter(lambda row: row["info"]["n"] > 0).take(1)] == [1]
    assert (len(tasks.take(9)), len(tasks.take(0)), len(tasks)) == (3, 0, 3)
    own = Tasks([{"prompt": [{"role": "user", "content": "mine"}], "info": {}}])
    assert own.get_dataset()[0]["prompt"][0]["content"] == "mine"
    assert (TaskSet(ROWS).get_sandbox_spec({}), discover_sibling_dir(Tasks, "packages"), discover_sibling_dir(Tasks, "no")) == (
        None,
        PACKAGES,
        None,
    )
    for code in ("import os", "3", "lambda row: __import__('os')"):
        with pytest.raises((ConfigurationError, NameError)):
            len(Tasks(ROWS, filter_fn=code))
    for hook in (TaskSet(ROWS).get_rubric, TaskSet(ROWS).get_dataset):
        with pytest.raises(HookMissing, match="TaskSet must write get_"):
            hook()


@pytest.mark.parametrize(("reward", "is_valid"), [("1", True), ("0", False)])
async def test_the_earlier_hooks_of_a_class_are_asked_by_the_later_ones(reward: str, is_valid: bool) -> None:
    calls: list[Any] = []

    class Earlier(SandboxTaskSet):
        async def _apply_gold_patch(self, *args: Any) -> None:
            calls.append(("patch", *args))

        async def _run_tests(self, *args: Any) -> str:
            calls.append(("tests", *args))
            return f"printed {state['info']['reward']}"

        def _calculate_reward(self, test_output: str, info: dict[str, Any]) -> str:
            calls.append(("reward", test_output, info))
            return test_output.removeprefix("printed ")

    state = {"sandbox_client": "client", "sandbox_id": "s1", "info": {"reward": reward}}
    assert await Earlier(ROWS).validate_instance(state) is is_valid
    assert state["test_output"] == f"printed {reward}"
    assert calls == [
        ("patch", "client", "s1", state),
        ("tests", "client", "s1", state, 900),
        ("reward", f"printed {reward}", {"reward": reward}),
    ]


async def test_hooks_that_are_not_written_say_so_and_others_have_defaults(tmp_path: Path) -> None:
    tasks = SandboxTaskSet(ROWS)
    for hook in (lambda: tasks.apply_gold_patch({}), lambda: tasks.run_tests({})):
        with pytest.raises(HookMissing, match=r"SandboxTaskSet must write (apply_gold_patch|run_tests)"):
            await hook()
    with pytest.raises(HookMissing, match=r"SandboxTaskSet must write score\(output, info\)"):
        tasks.score("", {})

    class Skilled(TaskSet):
        def get_skills_dir(self) -> Path:
            return tmp_path

    assert (TaskSet(ROWS).get_upload_dirs(), Skilled(ROWS).get_upload_dirs()) == ({}, {"skills": tmp_path})
    assert (TaskSet(ROWS).get_env_vars(), await TaskSet(ROWS).validate_instance({})) == ({}, True)
