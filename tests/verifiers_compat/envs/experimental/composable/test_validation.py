"""`TaskSet.validate`: which tasks can be solved, how often each is tried, and what is kept of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent_programs import needs_sandbox
from verifiers_compat.envs.experimental.composable import SandboxSpec, SandboxTaskSet, TaskSet
from vfgym.envs.sandboxed import sandboxes_in_use

ROWS = [{"info": {"n": number, "instance_id": f"i{number}", "repo": "calc"}, "answer": str(number)} for number in range(4)]


class Plain(TaskSet):
    """Tasks without sandboxes: even ones can be solved, the third fails as often as it says."""

    def __init__(self, failures: int = 0, **kwargs: Any) -> None:
        super().__init__(ROWS, **kwargs)
        self.failures, self.asked, self.at_once, self.most_at_once = failures, [], 0, 0

    def get_instruction(self, info: dict[str, Any]) -> str:
        return ""

    async def validate_instance(self, state: Any) -> bool:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        number = state["info"]["n"]
        self.asked.append(number)
        state["test_output"] = f"printed {number}{state['answer']}"
        if number == 2 and self.asked.count(2) <= self.failures:
            raise ValueError("no room")
        return number % 2 == 0


def brief(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["index"], row["valid"], row["reason"], row["attempts"], row["error"], row["error_type"]


async def test_each_task_is_a_row_in_order_and_one_that_fails_stops_no_other() -> None:
    tasks = Plain(failures=9)
    rows = await tasks.validate(test_output_tail_chars=3)
    assert [brief(row) for row in rows] == [
        (0, True, "pass", 1, None, None),
        (1, False, "test_failed", 1, None, None),
        (2, False, "error", 1, "no room", "ValueError"),
        (3, False, "test_failed", 1, None, None),
    ]
    assert [(row["instance_id"], row["repo"], row["test_output_tail"]) for row in rows][3] == ("i3", "calc", " 33")
    assert all(row["elapsed"] >= 0 for row in rows)


@pytest.mark.parametrize(
    ("retries", "expected"), [(1, (2, False, "error", 2, "no room", "ValueError")), (2, (2, True, "pass", 3, None, None))]
)
async def test_a_task_is_tried_again_after_an_error_only(retries: int, expected: tuple[Any, ...]) -> None:
    tasks = Plain(failures=2)
    rows = await tasks.validate(max_retries=retries)
    assert brief(rows[2]) == expected
    assert tasks.asked.count(1) == 1


@pytest.mark.parametrize(("n", "number"), [(None, 4), (0, 0), (2, 2), (9, 4)])
async def test_the_first_tasks_are_looked_at_so_many_at_once(n: int | None, number: int) -> None:
    tasks = Plain()
    assert [row["index"] for row in await tasks.validate(n, concurrency=2)] == list(range(number))
    assert tasks.most_at_once == min(2, number)


async def test_rows_are_added_to_a_file_which_a_run_resumes(tmp_path: Path) -> None:
    out, tasks = tmp_path / "valid.jsonl", Plain()
    first = await tasks.validate(2, out_path=out, resume=True)
    out.write_text(out.read_text() + "\n")
    assert [json.loads(line) for line in out.read_text().splitlines() if line] == first
    tasks.asked.clear()
    assert (await tasks.validate(3, out_path=out, resume=True))[:2] == first
    assert tasks.asked == [2]
    tasks.asked.clear()
    await tasks.validate(1, out_path=out)
    assert (tasks.asked, len(out.read_text().split("\n\n")[1].splitlines())) == ([0], 2)


@needs_sandbox
async def test_each_task_has_a_sandbox_of_its_own_that_is_closed_after_success_and_error() -> None:
    class Tasks(SandboxTaskSet):
        def get_instruction(self, info: dict[str, Any]) -> str:
            return ""

        def get_env_vars(self) -> dict[str, str]:
            return {"NAME": "me"}

        def get_sandbox_spec(self, info: dict[str, Any]) -> SandboxSpec:
            return SandboxSpec(memory_gb=1, disk_size_gb=1, timeout_minutes=None if info["n"] else 2)

        async def setup(self, state: Any) -> None:
            assert sandboxes_in_use() == [state["sandbox_id"]]
            await state["sandbox"].write_file("n.txt", str(state["info"]["n"]))

        async def _apply_gold_patch(self, sandbox_client: Any, sandbox_id: str, state: Any) -> None:
            if state["info"]["n"] == 1:
                raise OSError("no patch")

        async def _run_tests(self, sandbox_client: Any, sandbox_id: str, state: Any, test_timeout: int) -> str:
            ran = await sandbox_client.execute_command(sandbox_id, "cat n.txt; pwd; echo $NAME")
            return f"{ran.stdout}{test_timeout}"

        def _calculate_reward(self, test_output: str, info: dict[str, Any]) -> float:
            return float(test_output == "0/app\nme\n120")

    rows = await Tasks(ROWS).validate(3, concurrency=1)
    assert [(row["reason"], row["error"]) for row in rows] == [("pass", None), ("error", "no patch"), ("test_failed", None)]
    assert rows[2]["test_output_tail"] == "2/app\nme\n3600"
    assert sandboxes_in_use() == []
