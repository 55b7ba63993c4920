"""Functions that are called in a sandbox, with the package that they are in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import needs_sandbox
from tests.models import Recording
from tests.verifiers_compat.v1.playing import OFFLINE, add
from verifiers_compat.v1.sandboxed_functions import SandboxedFunction, find_function, run_sandboxed_function
from vfgym.errors import ConfigurationError, InfraError
from vfgym.sandboxes import ExecResult, SandboxSpec

PACKAGE = """
import json, os, urllib.request
from pathlib import Path

async def run(task, state, word):
    config = state.get_endpoint_config()
    body = {"model": state.get_model(), "messages": [{"role": "user", "content": task["question"] + word}]}
    request = urllib.request.Request(config["base_url"] + "/chat/completions", json.dumps(body).encode())
    said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
    state["sum"] = await state.get_tools()["add"](a=1, b=2)
    try:
        await state.get_tools()["add"](a="x")
    except RuntimeError as error:
        state["tool_error"] = str(error)
    state.stop("solved")
    here = Path(__file__)
    return {"said": said, "data": here.with_name("data.txt").read_text(), "from": str(here.parent), "turns": state.get_max_turns(3)}

def fails(task, state):
    raise ValueError("a bug")

async def counts(task, state):
    await state.get_tools()["count"]()
    state["own"] = 1

async def returns_all(task, state):
    config = state.get_endpoint_config()
    body = {"model": state.get_model(), "messages": [{"role": "user", "content": "?"}]}
    urllib.request.urlopen(urllib.request.Request(config["base_url"] + "/chat/completions", json.dumps(body).encode()))
    return {**state, "own": 2}
"""


@pytest.mark.parametrize("is_package", [False, True])
async def test_a_function_runs_in_the_sandbox_with_its_own_package(
    is_package: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"sandboxed_{is_package}".lower()
    folder = tmp_path / name if is_package else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / ("__init__.py" if is_package else f"{name}.py")).write_text("" if is_package else PACKAGE)
    (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "0"\n')
    (folder / "data.txt").write_text("data")
    if is_package:
        (folder / "solver.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = f"{name}.solver" if is_package else name
    program = {"fn": f"{module}:run", "sandbox": OFFLINE, "bindings": {"word": "task.info.word"}}
    client = Recording(["four"])
    state = await vf.Harness(program, client=client, model="m", toolsets=[add], max_turns=7).run(
        {"prompt": "go", "question": "2+2", "info": {"word": "?"}}
    )
    assert state["error"] is None
    assert client.asked[0]["prompt"][0]["content"] == "2+2?"
    assert {key: state[key] for key in ("said", "data", "sum", "turns", "stop_condition")} == {
        "said": "four", "data": "data", "sum": 3, "turns": 7, "stop_condition": "solved"
    }  # fmt: skip
    assert state["from"].startswith("/tmp/vf_program/package")
    assert "b" in state["tool_error"]
    state = await vf.Harness({"fn": f"{module}:fails", "sandbox": OFFLINE}, model="m").run({"prompt": "go"})
    assert (state["stop_condition"], state["error"]["error"]) == ("has_error", "InfraError")
    assert "ValueError: a bug" in state["error"]["error_chain_repr"]


async def test_what_a_sandboxed_function_leaves_as_it_was_stays_as_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool changes the state while the function has an older copy; a function that returns all of its copy changes nothing else."""
    (tmp_path / "leaves_alone.py").write_text(PACKAGE)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "leaves-alone"\nversion = "0"\n')
    (tmp_path / "dangling").symlink_to("nowhere")
    monkeypatch.syspath_prepend(str(tmp_path))

    def count(state: vf.State) -> str:
        """Count."""
        state["counted"] += 1
        return "counted"

    def begin(state: vf.State) -> None:
        state["counted"] = 0

    harness = vf.Harness({"fn": "leaves_alone:counts", "sandbox": OFFLINE}, model="m", toolsets=[count], setups=[begin])
    state = await harness.run({"prompt": "go"})
    assert (state["error"], state["counted"], state["own"]) == (None, 1, 1)
    harness = vf.Harness({"fn": "leaves_alone:returns_all", "sandbox": OFFLINE}, client=Recording(["four"]), model="m")
    state = await harness.run({"prompt": "go"})
    assert (state["error"], state["own"], len(state["trajectory"])) == (None, 2, 1)
    assert state["completion"] == [{"role": "assistant", "content": "four"}]


class Ending(dict[str, Any]):
    """A state and its sandbox, whose commands are ended for the time that they take, when an older result is there."""

    spec = SandboxSpec(forwards={8000: "/nowhere"})
    result: str = json.dumps({"state": {"a": 1}, "result": {"a": 1}, "stopped": None})

    def __init__(self, exit_code: int) -> None:
        super().__init__(a=0)
        self.done = ExecResult(exit_code, "", "", timed_out=True)
        self.timeout: float | None = None

    def get_sandbox(self) -> Any:
        return self

    def get_model(self) -> str:
        return "m"

    async def upload(self, local: Path, inside: str) -> None: ...
    async def write_file(self, path: str, text: str) -> None: ...

    async def read_file(self, path: str) -> str:
        return self.result

    async def exec(self, command: list[str], env: dict[str, str], timeout: float) -> ExecResult:
        self.timeout = timeout
        return self.done


@pytest.mark.parametrize("exit_code", [0, 137])
async def test_a_function_that_takes_longer_than_it_may_is_an_error_that_says_so(exit_code: int, tmp_path: Path) -> None:
    state, harness = Ending(exit_code), vf.Harness({"command": ["true"]})
    running: Any = SimpleNamespace(state=state, task={}, tools={}, harness=harness, endpoint_config=lambda *_: {"base_url": ""})
    with pytest.raises(InfraError, match=r"the program own:solve of Harness was ended, as it took longer than 1\.5 s"):
        await run_sandboxed_function(SandboxedFunction("own:solve", tmp_path, ""), running, {}, {}, 1.5)
    assert (state, state.timeout) == ({"a": 0}, 1.5)


@pytest.mark.parametrize("reference", ["json", ":dumps", "json:", "", 3, None, print])
def test_only_a_module_and_a_name_can_be_found_in_a_sandbox(reference: object) -> None:
    with pytest.raises(ConfigurationError, match="a function that runs in a sandbox must be 'module:name', got"):
        find_function(reference, vf.SandboxConfig())


@pytest.mark.parametrize("given", [{"packages": ["rich"]}, {"backend": "container"}])
def test_a_sandbox_with_packages_of_its_own_has_not_those_of_here(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="leave out packages and backend='container'"):
        find_function("json:dumps", vf.SandboxConfig(**given))


@pytest.mark.parametrize(("module", "where"), [("json", "in its folder"), ("shlex", "beside its file"), ("sys", "beside its file")])
def test_a_function_of_no_local_package_is_refused(module: str, where: str) -> None:
    name = {"json": "dumps", "shlex": "split", "sys": "exit"}[module]
    with pytest.raises(ConfigurationError, match=f"'{module}' is not a local package .*: there is no pyproject.toml {where}"):
        find_function(f"{module}:{name}", vf.SandboxConfig())


@pytest.mark.parametrize(("prefix", "expected"), [("/venv", {"python": "/venv"}), ("/usr", {})])
def test_what_is_installed_here_is_that_of_a_virtual_environment(
    prefix: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert SandboxedFunction("a:b", Path(), "").spec_fields() == expected


pytestmark = needs_sandbox
