"""`Validation`: which tasks of a task set can be solved, each tried in a sandbox of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from verifiers_compat.envs.experimental.composable.hooks import call_hook
from verifiers_compat.envs.experimental.composable.task import TaskSet, resources_of
from verifiers_compat.utils.threaded_sandbox_client import CreateSandboxRequest, ThreadedAsyncSandboxClient
from vfgym.bounded_json import parse_json
from vfgym.envs.sandboxed import find_sandbox


class Validation:
    """Looks at tasks of a task set: see `TaskSet.validate`."""

    def __init__(self, taskset: TaskSet, max_retries: int, most_output: int, backend: str | None, out_path: str | Path | None) -> None:
        """Take the arguments of `TaskSet.validate`."""
        self._taskset, self._max_retries, self._most_output = taskset, max_retries, most_output
        self._out = None if out_path is None else Path(out_path)
        self._client = ThreadedAsyncSandboxClient(backend=backend)

    async def run(self, indices: Iterable[int], concurrency: int, resume: bool) -> list[dict[str, Any]]:
        """Return a row for each task, in order."""
        rows = self._read_rows() if resume else {}
        wanted = list(indices)
        at_once = asyncio.Semaphore(concurrency)

        async def look(index: int) -> None:
            async with at_once:
                rows[index] = await self._row(index)
                if self._out is not None:
                    with self._out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(rows[index]) + "\n")

        await asyncio.gather(*(look(index) for index in wanted if index not in rows))
        return [rows[index] for index in wanted]

    def _read_rows(self) -> dict[int, dict[str, Any]]:
        if self._out is None or not self._out.exists():
            return {}
        rows = [parse_json(line) for line in self._out.read_text(encoding="utf-8").splitlines() if line.strip()]
        return {row["index"]: row for row in rows}

    async def _row(self, index: int) -> dict[str, Any]:
        task = self._taskset[index]
        names = {name: task.info.get(name) for name in ("instance_id", "repo")}
        began, attempts, state, error, valid = time.perf_counter(), 0, {}, None, False
        while attempts <= self._max_retries:
            attempts += 1
            state = {"info": task.info, "answer": task.answer}
            try:
                valid, error = bool(await self._try(index, state)), None
                break
            except Exception as raised:  # a task that can't be looked at is a row like the others
                error = raised
        output = state.get("test_output")
        return {
            "index": index,
            **names,
            "valid": valid,
            "reason": "error" if error is not None else "pass" if valid else "test_failed",
            "attempts": attempts,
            "elapsed": time.perf_counter() - began,
            "error": None if error is None else str(error),
            "error_type": None if error is None else type(error).__name__,
            "test_output_tail": None if output is None else str(output)[-self._most_output :],
        }

    async def _try(self, index: int, state: dict[str, Any]) -> Any:
        task = self._taskset[index]
        if task.sandbox_spec is None:
            return await call_hook(self._taskset.validate_instance, state)
        more: dict[str, Any] = {"environment_vars": self._taskset.get_env_vars(), "working_dir": task.workdir}
        request = CreateSandboxRequest(
            name=f"validate-{index}", docker_image=task.sandbox_spec.image, **resources_of(task.sandbox_spec), **more
        )
        made = await self._client.create(request)
        try:
            minutes = task.sandbox_spec.timeout_minutes or 60
            state |= {"sandbox_client": self._client, "sandbox_id": made.id, "sandbox": find_sandbox(made.id), "test_timeout": minutes * 60}
            await call_hook(self._taskset.setup, state)
            return await call_hook(self._taskset.validate_instance, state)
        finally:
            await self._client.delete(made.id)
