"""`HarborEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from verifiers_compat.envs.experimental.cli_agent_env import CliAgentEnv
from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE
from vfgym.envs import harbor
from vfgym.errors import ConfigurationError
from vfgym.state import State


class HarborEnv(CliAgentEnv, harbor.HarborEnv):
    """`vfgym.envs.harbor.HarborEnv` with the rollout API: tasks in Harbor's format, in sandboxes of this machine."""

    def __init__(
        self,
        run_command: str | None,
        dataset_path: str | os.PathLike[str],
        tasks: Iterable[str] | None = None,
        agent_workdir: str = "/app",
        docker_image: str = DEFAULT_IMAGE,
        mcp_launch_commands: Mapping[str, str] | None = None,
        mcp_healthcheck: Any = None,
        *,
        agent: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            run_command: The line that a shell of the sandbox runs; None where there is an agent.
            dataset_path: A folder of task folders, or one of these.
            tasks: Which tasks, by the names of their folders; None for all.
            agent_workdir: Where the program works.
            docker_image: The image of tasks that name none and have no Dockerfile, with the backend ``container``.
            mcp_launch_commands: None: tasks with MCP servers are not offered.
            mcp_healthcheck: None.
            agent: In place of a command: ``"oracle"`` runs the solution of each task, ``"nop"`` does nothing.
            **kwargs: Passed to `CliAgentEnv`.

        Raises:
            ConfigurationError: If there is neither a command nor an agent, a task folder is not complete, or MCP servers are asked for.
        """
        if mcp_launch_commands is not None or mcp_healthcheck is not None:
            raise ConfigurationError(
                "HarborEnv takes no mcp_launch_commands and no mcp_healthcheck: tasks with MCP servers are not offered"
            )
        super().__init__(
            run_command=run_command,  # type: ignore[arg-type] # vfgym's HarborEnv puts its agent's there
            dataset_path=dataset_path,
            tasks=tasks,
            agent_workdir=agent_workdir,
            docker_image=docker_image,
            agent=agent,
            **kwargs,
        )

    async def get_docker_image(self, state: State) -> str:
        """Return the image of a rollout's sandbox: the task's, where it names one."""
        return state["info"].get("docker_image") or self.docker_image

    def harbor_reward(self, state: State, **kwargs: Any) -> float:
        """Return what the tests gave; 0.0 where they did not run."""
        return super().harbor_reward(state)


__all__ = ["HarborEnv"]
