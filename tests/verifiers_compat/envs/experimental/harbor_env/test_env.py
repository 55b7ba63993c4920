"""`HarborEnv`: tasks in Harbor's format, with documented fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.harbor_tasks import TASKS, make_tasks
from tests.verifiers_compat.models import evaluated
from vfgym.errors import ConfigurationError

pytestmark = needs_sandbox


async def test_harbor_tasks_are_rows_with_documented_fields(tmp_path: Path) -> None:
    env = vf.HarborEnv(None, make_tasks(tmp_path, "greet", "link"), tasks=["greet"], agent="oracle", backend="bwrap")
    [row] = env.get_dataset()
    assert row["prompt"] == [{"role": "user", "content": TASKS["greet"][0]}]
    assert (row["info"]["task_name"], row["info"]["task_dir"]) == ("greet", str(tmp_path / "greet"))
    assert row["info"]["config"]["task"]["name"] == "acme/greet"
    [output] = await evaluated(env)
    assert (output["reward"], output["metrics"]["harbor_reward"], output["error"]) == (1.0, 1.0, None)


async def test_an_image_is_that_of_the_task_else_that_of_the_environment(tmp_path: Path) -> None:
    env = vf.HarborEnv("agent", make_tasks(tmp_path, "greet"), backend="bwrap")
    for image, expected in (("acme/one", "acme/one"), (None, env.docker_image), ("", env.docker_image)):
        assert await env.get_docker_image(vf.State(info={"docker_image": image})) == expected
    assert await env.get_docker_image(vf.State(info={})) == env.docker_image == "python:3.11-slim"


async def test_what_was_not_tested_has_no_reward(tmp_path: Path) -> None:
    env = vf.HarborEnv(None, make_tasks(tmp_path, "greet"), agent="nop", backend="bwrap")
    assert env.harbor_reward(vf.State(), answer="") == 0.0
    [output] = await evaluated(env)
    assert (output["reward"], output["error"]) == (0.0, None)


@pytest.mark.parametrize("argument", [{"mcp_launch_commands": {"a": "b"}}, {"mcp_launch_commands": {}}, {"mcp_healthcheck": object()}])
def test_tasks_with_servers_are_not_offered(argument: Any) -> None:
    with pytest.raises(ConfigurationError, match="MCP servers are not offered"):
        vf.HarborEnv("agent", dataset_path=".", **argument)
