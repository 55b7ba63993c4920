"""`PythonEnv` as published packages use it; and a run of it that is killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.models import calling
from tests.sandboxes.making import need
from tests.verifiers_compat.models import evaluated, rolled_out, texts
from tests.workers.processes import descendants, end_of
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.model_server import ModelRequest, ModelServer

pytestmark = needs_sandbox

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
        await env.generate(rows, client, "m", **options)
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
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("backend", ["bwrap", pytest.param("unsafe", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("count", "at_once"), [(9, 3), pytest.param(500, 64, marks=pytest.mark.exhaustive)])
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


ROWS = [{"question": "Make the tests pass.", "answer": "7"}]


def python(code: str) -> dict[str, Any]:
    return calling(("python", {"code": code}))


async def test_python_keeps_its_state() -> None:
    """§ PythonEnv: a persistent REPL, with the documented texts, states and metrics."""
    env = vf.PythonEnv(pip_install_packages="", max_startup_wait_seconds=60, dataset=ROWS, max_turns=9)
    assert isinstance(env, vf.SandboxEnv)
    assert [(tool.name, list(tool.parameters["properties"])) for tool in env.tool_defs] == [("python", ["code"])]
    state = await rolled_out(env, python("print('a')\nx = 7"), python("x"), python("y"), "7")
    first, second, third = texts(state["completion"])
    assert (first, second) == ("a", "Out[2]: 7")
    assert third.endswith("NameError: name 'y' is not defined")
    assert state["python_state"]["execution_count"] == 3
    [row] = await evaluated(env, "7")
    assert {"python_ready_wait_time", "sandbox_ready_wait_time", "python_calls"} < row["metrics"].keys()


async def test_errors_of_python_have_their_documented_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers_compat.envs.python_env import PythonWorkerDeadError, PythonWorkerNotReadyError, PythonWorkerRequestError

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = await rolled_out(vf.PythonEnv("--no-such-option-of-pip", dataset=ROWS), "never")
    assert isinstance(state["error"], PythonWorkerNotReadyError)
    assert "no such option: --no-such-option-of-pip" in str(state["error"])
    state = await rolled_out(vf.PythonEnv("", max_startup_wait_seconds=1e-9, dataset=ROWS), "never")
    assert isinstance(state["error"], PythonWorkerNotReadyError)
    assert issubclass(PythonWorkerDeadError, vf.SandboxError)
    assert issubclass(PythonWorkerRequestError, vf.SandboxError)
    assert sandboxes_in_use() == []


def test_the_documented_defaults_are_kept_and_installed_when_an_episode_begins() -> None:
    env = vf.PythonEnv(dataset=ROWS)
    assert (env.pip_install_packages, env.max_startup_wait_seconds) == ("numpy sympy scipy", 30)
    assert (env.sandbox_request.name, env.sandbox_request.docker_image) == ("python-env", "python:3.11-slim")
    assert (env.sandbox_spec.memory_mb, env.sandbox_spec.disk_mb, env.sandbox_spec.network) == (2048, 5120, None)


def test_a_name_of_the_sandbox_that_is_given_is_kept() -> None:
    assert vf.PythonEnv("", sandbox_name="mine", dataset=ROWS).sandbox_request.name == "mine"
