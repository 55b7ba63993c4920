"""`CliAgentEnv` and `HarborEnv` under their documented names, with the documented arguments, hooks and states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import verifiers_compat as vf
from tests.agent_programs import LIBRARY, TALK, needs_sandbox
from tests.harbor_tasks import TASKS, make_tasks
from tests.verifiers_compat.models import evaluated, roles, rolled_out
from verifiers_compat.envs.experimental.cli_agent_env import AgentError
from vfgym.errors import ConfigurationError

pytestmark = needs_sandbox

ROWS = [{"question": "Say yes.", "answer": "yes"}]


class Talking(vf.CliAgentEnv):
    """As published packages write it: hooks are async, and call those of the base class."""

    async def setup_state(self, state: vf.State) -> vf.State:
        state["order"] = ["set up"]
        return await super().setup_state(state)

    async def post_sandbox_setup(self, state: vf.State) -> None:
        state["order"].append(state["sandbox_id"])
        await state["sandbox"].write_file("/app/agent.py", LIBRARY + TALK + 'print(os.environ["NAME"])')

    async def build_env_vars(self, state: vf.State) -> dict[str, str]:
        env_vars = await super().build_env_vars(state)
        env_vars["NAME"] = "me"
        return env_vars

    async def post_rollout(self, state: vf.State) -> None:
        await super().post_rollout(state)
        state["listed"] = (await state["sandbox"].exec("ls /app")).stdout


async def right(completion: vf.Messages, answer: str) -> float:
    return float(answer in completion[-1]["content"])


async def test_a_published_kind_of_subclass_is_rolled_out_with_documented_states() -> None:
    env = Talking(
        run_command="python3 agent.py",
        dataset=Dataset.from_list(ROWS),
        rubric=vf.Rubric(right),
        memory_gb=1,
        poll_interval=0.1,
        labels=["a"],
    )
    state = await rolled_out(env, "one", "yes")
    assert (state["agent_exit_code"], state["agent_stdout"], state["stop_condition"]) == (0, "one\nyes\nme\n", "agent_completed")
    assert (state["listed"], state["order"]) == ("agent.py\n", ["set up", state["sandbox_id"]])
    assert roles(state["prompt"]) == ["user"]
    assert roles(state["completion"]) == ["assistant", "user", "assistant"]
    assert await env.agent_completed(state)
    [row] = await evaluated(env, "one", "yes")
    assert (row["reward"], row["metrics"]["agent_error"], row["metrics"]["agent_timeout"]) == (1.0, 0.0, 0.0)
    assert {"agent_error", "agent_timeout", "num_turns"} < row["metrics"].keys()


async def test_a_program_that_fails_is_an_agent_error() -> None:
    state = await rolled_out(vf.CliAgentEnv("exit 5", dataset=ROWS), "never")
    assert isinstance(state["error"], AgentError)
    assert isinstance(state["error"], vf.InfraError)
    assert (state["agent_exit_code"], state["trajectory"]) == (5, [])


async def test_harbor_tasks_are_rows_with_documented_fields(tmp_path: Path) -> None:
    env = vf.HarborEnv(dataset_path=make_tasks(tmp_path, "greet", "link"), tasks=["greet"], agent="oracle", backend="bwrap")
    [row] = env.get_dataset()
    assert row["prompt"] == [{"role": "user", "content": TASKS["greet"][0]}]
    assert (row["info"]["task_name"], row["info"]["task_dir"]) == ("greet", str(tmp_path / "greet"))
    assert row["info"]["config"]["task"]["name"] == "acme/greet"
    [output] = await evaluated(env)
    assert (output["reward"], output["metrics"]["harbor_reward"], output["error"]) == (1.0, 1.0, None)


def test_both_are_where_published_environments_import_them_from() -> None:
    from verifiers_compat.envs import experimental
    from verifiers_compat.envs.experimental import cli_agent_env, harbor_env

    assert vf.CliAgentEnv is cli_agent_env.CliAgentEnv is experimental.CliAgentEnv
    assert vf.HarborEnv is harbor_env.HarborEnv is experimental.HarborEnv


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"docker_image": "acme/tools:1"}, "docker_image='acme/tools:1' needs backend='container'"),
        ({"cpu_cores": 4}, "cpu_cores=4 needs backend='container'"),
        ({"gpu_count": 1}, "gpu_count must be 0"),
        ({"interception_url": "https://example.com"}, "interception_url must be None"),
        ({"environment_vars": {"OPENAI_API_KEY": "k"}}, "may not have OPENAI_API_KEY"),
    ],
)
def test_what_sandboxes_do_not_offer_is_refused_at_construction(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        vf.CliAgentEnv("agent", dataset=ROWS, **arguments)
    with pytest.raises(ConfigurationError, match="MCP servers are not offered"):
        vf.HarborEnv("agent", dataset_path=".", mcp_launch_commands={"a": "b"})
