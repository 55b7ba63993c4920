"""An agent that others wrote, mini-swe-agent, plays environments as it stands, with a scripted model behind real HTTP.

``python scripts/peers.py mini-swe-agent`` makes the environment that it runs in.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from scripts.peers import python_of
from tests.agent_programs import needs_sandbox
from tests.harbor_tasks import BROKEN, make_task
from vfgym.aio.background import wait
from vfgym.clients import ClientConfig
from vfgym.messages import ToolCall
from vfgym.model_server import ModelServer, Reply, scripted
from vfgym.sandboxes import SandboxSpec

pytestmark = [pytest.mark.peers, needs_sandbox]

TASK = "double.py does not double. Repair it."
COMMANDS = ("cat double.py", "sed -i 's/x + 2/x * 2/' double.py", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
CHECK = "python3 -c 'from double import double; assert double(3) == 6'"


def act(number: int, command: str) -> Reply:
    """Return an answer that runs a command by the agent's own tool."""
    return Reply("I run it.", tool_calls=[ToolCall(f"c{number}", "bash", json.dumps({"command": command}))])


@pytest.fixture(scope="module")
def config() -> Iterator[ClientConfig]:
    with ModelServer({"m": scripted([act(number, command) for number, command in enumerate(COMMANDS)])}) as server:
        yield ClientConfig(api_base_url=server.openai_url, api_key="k")


@pytest.fixture(scope="module")
def arguments() -> dict[str, Any]:
    """What both environments are made with."""
    python = python_of("mini-swe-agent")
    assert python.exists(), "there is no mini-swe-agent to play with: python scripts/peers.py mini-swe-agent"
    base = subprocess.run([str(python), "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True)
    mini = python.with_name("mini")
    return {
        "run_command": f'{mini} -m "openai/$OPENAI_MODEL" -t "$(cat $AGENT_INSTRUCTION_PATH)" -y --exit-immediately -o /tmp/t.json',
        "readable_paths": [str(python.parents[1]), base.stdout.strip()],
        "environment_vars": {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "COLUMNS": "200",
        },
        "sandbox": SandboxSpec(working_dir="/app", memory_mb=2048),
        "timeout_seconds": 120.0,
    }


class Repair(vf.CliAgentEnv):
    async def post_sandbox_setup(self, state: vf.State) -> None:
        await state["sandbox"].write_file("double.py", BROKEN)

    async def post_rollout(self, state: vf.State) -> None:
        state["repaired"] = (await state["sandbox"].exec(CHECK)).exit_code == 0


def repaired(state: vf.State) -> float:
    return float(state["repaired"])


def make_repair(folder: Path, arguments: dict[str, Any]) -> vf.Environment:
    return Repair(dataset=[{"question": TASK}], rubric=vf.Rubric(repaired), **arguments)


def make_harbor(folder: Path, arguments: dict[str, Any]) -> vf.Environment:
    return vf.HarborEnv(dataset_path=make_task(folder, "repair", TASK, check=CHECK), backend="bwrap", **arguments)


def comparable(state: vf.State) -> dict[str, Any]:
    """Return what must be the same however it was played."""
    names = ("reward", "metrics", "stop_condition", "error", "agent_exit_code", "prompt", "completion")
    turns = [[*step["prompt"], *step["completion"]] for step in state["trajectory"]]
    tools = [tool.name for tool in state["tool_defs"]]
    return {**{name: state[name] for name in names}, "turns": turns, "tools": tools, "sampling": state["sampling_args"].keys()}


@pytest.mark.parametrize("make", [make_repair, make_harbor])
def test_it_solves_a_task_stepped_and_rolled_out_alike(
    make: Callable[..., Any], config: ClientConfig, arguments: dict[str, Any], tmp_path: Path
) -> None:
    seen: list[vf.State] = []

    def keep(state: vf.State) -> float:
        seen.append(state)
        return 0.0

    with contextlib.closing(make(tmp_path, arguments)) as env:
        env.add_rubric(vf.Rubric(keep))
        model = vfgym.ModelAgent(config, "m", {"n": 1, "extra_body": {}})
        observation, info = env.reset(seed=0)
        assert [tool["function"]["name"] for tool in info["tools"]] == ["bash"]
        answer = model.for_episode(env)
        ended = False
        while not ended:
            observation, _, terminated, truncated, info = env.step(wait(answer(observation, info)))
            ended = terminated or truncated
        wait(model.close())
        env.generate_sync(env.get_dataset(), client=config, model="m")
    stepped, rolled_out = map(comparable, seen)
    assert stepped == rolled_out
    assert (stepped["reward"], stepped["stop_condition"], stepped["agent_exit_code"]) == (1.0, "agent_completed", 0)
    assert [len(turn) for turn in stepped["turns"]] == [3, 5, 7]
