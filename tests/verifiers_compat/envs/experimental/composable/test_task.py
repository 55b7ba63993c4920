"""`TaskSet` and `SandboxTaskSet`: rows that are counted, filtered and read by index, and the hooks of a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.envs.experimental.composable import SandboxSpec, SandboxTaskSet, Task, TaskSet, discover_sibling_dir
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
    assert tasks[0].sandbox_spec == SandboxSpec()
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
