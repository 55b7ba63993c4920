"""A run of `PythonEnv` that is killed and resumed: every row once, and of its sandboxes neither process nor folder nor record is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.models import calling
from tests.sandboxes.making import need
from tests.workers.processes import descendants, end_of
from vfgym.model_server import ModelRequest, ModelServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")

RUN = """
import asyncio, os, sys
import verifiers_compat as vf
import vfgym

path, url, backend, count, at_once = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])

def right(completion, answer):
    return float(completion[-1].content == answer)

def report(*_):
    print(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20, flush=True)  # MB in memory

async def main():
    rows = [{"question": str(number), "answer": f"Out[1]: {number + 1}", "example_id": number} for number in range(count)]
    client = vf.ClientConfig(api_base_url=url, api_key="k")
    options = {"max_concurrent": at_once, "results_path": path, "save_results": True, "on_progress": report}
    if backend == "bwrap":
        env = vf.PythonEnv("", dataset=rows, rubric=vf.Rubric(right), backend=backend)
        await env.generate(env.get_dataset(), client, "m", **options)
    else:  # where folders are left too
        env = vfgym.PythonEnv(dataset=rows, rubric=vfgym.Rubric(right), backend=backend)
        await vfgym.aevaluate(env, vfgym.ModelAgent(client, "m"), resume=True, progress=False, **options)

asyncio.run(main())
"""


def compute(request: ModelRequest) -> Any:
    """Add one to the number of the question in a cell, and say what it gave."""
    last = request.messages[-1]
    return last["content"] if last["role"] == "tool" else calling(("python", {"code": f"x = {last['content']}\nx + 1"}))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", ["bwrap", pytest.param("unsafe", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("count", "at_once"), [(24, 8), pytest.param(500, 64, marks=pytest.mark.exhaustive)])
async def test_a_killed_run_is_resumed_and_leaves_nothing(backend: str, count: int, at_once: int, tmp_path: Path) -> None:
    need(backend)
    folder, path = tmp_path / "temporary", tmp_path / "run"
    folder.mkdir()
    records = folder / f"vfgym-sandboxes-{os.geteuid()}"
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[3])}
    with ModelServer({"m": compute}) as server:
        command = [sys.executable, "-c", RUN, str(path), server.openai_url, backend, str(count), str(at_once)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
            assert run.stdout is not None
            for _ in range(count // 3):
                assert run.stdout.readline()
            started = descendants(run.pid)
            run.send_signal(signal.SIGKILL)
        kept = _lines(path)
        assert count // 3 <= len(kept) < count
        assert started
        assert list(records.glob("*.json")), "it was killed while it had sandboxes"
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
        assert server.num_requests <= 2 * (count + at_once), "only what was lost is played again"
    rows = [json.loads(line) for line in _lines(path)]
    assert [(row["example_id"], row["reward"], row["error"]) for row in rows] == [(number, 1.0, None) for number in range(count)]
    assert [row for line in kept if (row := json.loads(line)) not in rows] == [], "what was saved is kept"
    await end_of(started)
    assert [entry.name for entry in folder.rglob("*")] == [records.name]
    used = [float(line) for line in done.stdout.splitlines()]
    assert max(used[len(used) // 2 :]) - max(used[: len(used) // 2]) < 30, used


def _lines(path: Path) -> list[str]:
    """Return the whole lines of a run's file: the last one may have been cut."""
    return [line for line in (path / "results.jsonl").read_text().splitlines(keepends=True) if line.endswith("\n")]
