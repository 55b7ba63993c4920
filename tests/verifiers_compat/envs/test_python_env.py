"""`PythonEnv` as published packages use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.models import calling
from tests.verifiers_compat.models import evaluated, rolled_out, texts
from vfgym.envs.sandboxed import sandboxes_in_use

pytestmark = needs_sandbox


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
    assert vf.PythonEnv("", sandbox_name="mine", dataset=ROWS).sandbox_request.name == "mine"
    assert (env.sandbox_spec.memory_mb, env.sandbox_spec.disk_mb, env.sandbox_spec.network) == (2048, 5120, None)
