"""Command-line agents as harnesses: what they are told, and which sandboxes they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import needs_sandbox
from tests.harbor_tasks import CHECK, make_task
from tests.models import Recording
from tests.verifiers_compat.v1.playing import OFFLINE
from verifiers_compat.v1.cli_harness import write_instruction
from verifiers_compat.v1.tool_server import MCP_COMMAND
from vfgym.messages import AssistantMessage, ToolCall

FAKE = """#!/usr/bin/env python3
import json, os, sys
print(json.dumps([os.getcwd(), sys.argv[1:], sys.stdin.read()]))
"""


TWO_PROMPTS = [{"role": "system", "content": "be brief"}, {"role": "system", "content": [{"type": "text", "text": "and kind"}]}]


@pytest.mark.parametrize(
    ("kind", "program", "log"), [("OpenCode", ".opencode/bin/opencode", "opencode_log"), ("Pi", ".npm/bin/pi", "pi_log")]
)
async def test_agents_are_told_their_task_and_their_model(kind: str, program: str, log: str) -> None:
    """What stands for the agent prints how it was called; its configuration names the model's address in the sandbox."""
    path = f"/home/sandbox/{program}"
    config, system = {"OpenCode": ("/opencode/config.json", "/opencode/system.txt"), "Pi": ("/pi/models.json", "/pi/system.txt")}[kind]
    kept = {"config": {"path": config, "format": "json"}, "system": {"path": system}}
    more = {"files": {path: FAKE}, "setup": f"chmod +x {path}", "artifacts": kept}
    own = {"disabled_tools": ["edit"], "provider_timeout_ms": 0} if kind == "OpenCode" else {}
    harness = getattr(vf, kind)(sandbox=OFFLINE, program=more, system_prompt=TWO_PROMPTS, model="m", **own)
    state = await harness.run({"prompt": "do it"})
    assert state["error"] is None
    folder, arguments, told = json.loads(state["artifacts"][log])
    assert folder == "/app"
    assert told == ("do it" if kind == "OpenCode" else "")
    if kind == "Pi":
        assert arguments[-1] == "@/pi/instruction.txt"
        assert arguments[arguments.index("--system-prompt") + 1] == "be brief\n\nand kind"
    written = state["artifacts"]["config"]
    assert state["artifacts"]["system"] == "be brief\n\nand kind"
    provider = written["provider" if kind == "OpenCode" else "providers"]["rollout"]
    endpoint = provider["options"] if kind == "OpenCode" else provider
    address, key = endpoint["baseURL" if kind == "OpenCode" else "baseUrl"], endpoint["apiKey"]
    assert address.startswith("http://127.0.0.1:")
    assert "http" not in key
    if kind == "OpenCode":
        model = {"npm": "@ai-sdk/openai-compatible", "models": {"model": {"name": "model"}}}
        assert written == {
            "provider": {"rollout": {**model, "options": {"baseURL": address, "apiKey": key, "timeout": 0}}},
            "model": "rollout/model",
            "agent": {"build": {"prompt": "{file:/opencode/system.txt}", "tools": {"edit": False}}},
            "mcp": {"rollout-tools": {"type": "local", "command": list(MCP_COMMAND), "enabled": True}},
            "compaction": {"auto": False, "prune": False},
        }
    else:
        assert provider == {"baseUrl": address, "apiKey": key, "api": "openai-completions", "models": [{"id": "model"}]}


async def test_mini_swe_agent_is_told_what_its_configuration_says_as_it_is() -> None:
    """A shell must change nothing of it."""
    path = "/home/sandbox/bin/mini"
    more = {"files": {path: FAKE}, "setup": f"chmod +x {path}", "env": {"PATH": "/home/sandbox/bin:/usr/bin:/bin"}}
    spec = "agent.system_template=it's `pwd` $HOME"
    harness = vf.MiniSWEAgent(sandbox={**OFFLINE, "packages": []}, extra_config_specs=[spec], program=more, model="m")
    state = await harness.run({"prompt": "do it"})
    assert state["error"] is None
    _, arguments, _ = json.loads(state["artifacts"]["mini_swe_agent_log"])
    assert arguments[arguments.index(spec) - 1] == "-c"
    assert arguments[arguments.index("-t") + 1] == "do it"


PLACES = {"agent_workdir": "/w", "instruction_path": "/i", "log_path": "/l"}
MINI = {"trajectory_path": "/t", "package_version": "1.2", "config_spec": "spec", "model_class": "kind", "environment_timeout": 0}
OPENCODE = {"system_prompt_path": "/s", "release_repo": "a/b", "release_version": "3", "release_sha256": "beef"}
QUIET = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "COLUMNS": "200"}
TRAJECTORY = {"mini_swe_agent_trajectory": {"path": "/t", "format": "json", "optional": True}}


@pytest.mark.parametrize(
    ("kind", "log", "options", "given", "line", "setup"),
    [
        (
            *(vf.MiniSWEAgent, "mini_swe_agent_log", MINI, {"files": {"/i"}, "packages": ["mini-swe-agent==1.2", "mcp"]}),
            *(["-c spec.yaml", "-c environment.timeout=0 ", "--model-class kind ", "-o /t ", '"$(cat /i)"'], []),
        ),
        (
            *(vf.OpenCode, "opencode_log", OPENCODE, {"files": {"/i", "/s", "/opencode/config.json"}, "tools": "mcp"}, ["< /i "]),
            ["https://github.com/a/b/releases/download/v3/opencode-linux-$ARCH.tar.gz", '"beef  /tmp/opencode.tar.gz" | sha256sum --check'],
        ),
        (
            *(vf.Pi, "pi_log", {"system_prompt_path": "/s", "package": "its-package"}, {"files": {"/i", "/s", "/pi/models.json"}}),
            *(["-p @/i ", '"$(cat /s)"'], ["its-package"]),
        ),
    ],
)
def test_options_of_agents_arrive(kind: Any, log: str, options: Any, given: Any, line: list[str], setup: list[str]) -> None:
    program = kind(**PLACES, **options).program
    own = program.options_with({})
    artifacts = {log: {"path": "/l", "optional": True}, **(TRAJECTORY if kind is vf.MiniSWEAgent else {})}
    assert (program.sandbox.workdir, own["artifacts"], own["env"]) == ("/w", artifacts, QUIET if kind is vf.MiniSWEAgent else {})
    found = {"files": {*own["files"]}, "packages": program.sandbox.packages, "tools": program.tools}
    assert found == {"packages": [], "tools": None, **given}
    assert [each for each in (*line, "tee /l") if each not in program.command[2]] == []
    assert [each for each in setup if each not in " ".join(own["setup"])] == []


def test_an_archive_is_checked_unless_its_hash_is_none() -> None:
    checks = [" ".join(vf.OpenCode(**given).program.options_with({})["setup"]) for given in ({}, {"release_sha256": None})]
    assert ["sha256sum" in each for each in checks] == [True, False]


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({"instruction": "", "prompt": "go"}, ""),
        ({"instruction": "do", "prompt": "go"}, "do"),
        ({"prompt": [{"role": role, "content": role[0]} for role in ("user", "assistant", "user")]}, "u\n\nu"),
        ({}, ""),
    ],
)
def test_what_an_agent_is_told_is_the_instruction_or_what_the_user_says(task: dict[str, Any], told: str) -> None:
    frozen = vf.Task(task).freeze()
    assert write_instruction(frozen, vf.State.for_task(frozen)) == told


@pytest.mark.parametrize("kind", [vf.MiniSWEAgent, vf.OpenCode, vf.Pi, vf.RLM])
def test_agents_need_a_sandbox(kind: Any) -> None:
    """What their configuration says of it wins over what agents have by default, and an argument over that."""
    for sandbox in (False, None, "program", [1]):
        with pytest.raises(ValueError, match="CLIHarness"):
            kind(sandbox=sandbox)
    sandbox = kind().program.sandbox
    assert (sandbox.command_timeout, sandbox.workdir, sandbox.timeout_minutes) == (900, "/workspace" if kind is vf.RLM else "/app", 120)
    config = {"sandbox": {"command_timeout": 60, "memory_gb": 1, "workdir": "/here"}}
    sandbox = kind(config=config, sandbox={"memory_gb": 3, "environment_vars": {"A": "a"}}).program.sandbox
    assert (sandbox.command_timeout, sandbox.memory_gb, sandbox.workdir, sandbox.timeout_minutes) == (60, 3, "/here", 120)
    assert kind(config=vf.HarnessConfig(config)).program.sandbox.memory_gb == 1


def test_options_of_a_command_arrive_and_its_program_wins_over_them(tmp_path: Path) -> None:
    given: dict[str, Any] = {"files": {"/a": "a"}, "dirs": {"/d": str(tmp_path)}, "env": {"A": "a", "B": "b"}}
    more: dict[str, Any] = {"setup": ["x"], "artifacts": {"log": {"path": "/l"}}, "tools": "mcp"}
    program = vf.CLIHarness(["agent"], **given, **more, sandbox=OFFLINE, program={"env": {"B": "c"}, "files": {"/b": ""}}).program
    own = program.options_with({})
    assert (program.command, program.tools, program.sandbox.network_access) == (("agent",), "mcp", False)
    assert {name: own[name] for name in given} == {**given, "files": {"/a": "a", "/b": ""}, "env": {"A": "a", "B": "c"}}
    assert (own["setup"], own["artifacts"]["log"]["path"]) == (["x"], "/l")
    assert [vf.CLIHarness("a", sandbox=each).program.sandbox is None for each in (True, False, {})] == [False, True, False]


COMMANDS = ("cat double.py", "sed -i 's/x + 2/x * 2/' double.py", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")


def in_text(command: str) -> str:
    return f"THOUGHT: so be it.\n\n```mswea_bash_command\n{command}\n```"


def in_call(command: str) -> AssistantMessage:
    return AssistantMessage("so be it", tool_calls=[ToolCall("c", "bash", json.dumps({"command": command}))])


@pytest.mark.peers
@pytest.mark.parametrize(
    ("write", "options"), [(in_text, {}), (in_call, {"config_spec": "mini", "model_class": "litellm", "package_version": "2.4.6"})]
)
async def test_mini_swe_agent_solves_a_task_of_harbor(write: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """The agent as it is on PyPI, with a scripted model; both ways in which it reads commands."""
    taskset = vf.HarborTaskset(make_task(tmp_path, "repair", "double.py does not double.", check=f'python3 -c "{CHECK}"'))
    client = Recording([write(command) for command in COMMANDS])
    harness = vf.MiniSWEAgent(sandbox=OFFLINE, client=client, model="m", **options)
    harness.attach(taskset)
    [task] = taskset
    state = await harness.run(task)
    assert (state["error"], state["reward"], state["num_model_requests"]) == (None, 1.0, 3)
    assert "return x + 2" in str(client.asked[1]["prompt"][-1]["content"])
    assert state["artifacts"]["mini_swe_agent_trajectory"]["info"]["exit_status"] == "Submitted"


pytestmark = needs_sandbox
