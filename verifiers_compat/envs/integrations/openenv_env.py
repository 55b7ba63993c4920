"""`OpenEnvEnv` with the rollout API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.experimental.gym_env import EpisodicSumRubric
from verifiers_compat.envs.seeded_game import SeededGameEnv
from vfgym.aio.steps import Steps
from vfgym.errors import ConfigurationError
from vfgym.rubrics import Rubric
from vfgym.state import State
from vfgym.tasks import Row, as_integer, parse_info
from vfgym.wrappers.openenv import env
from vfgym.wrappers.openenv.env import TIMEOUT
from vfgym.wrappers.openenv.project import read_project, servers_of
from vfgym.wrappers.openenv.rendering import Contract
from vfgym.wrappers.openenv.servers import ServerSource


class OpenEnvEnv(SeededGameEnv, env.OpenEnvEnv):
    """An environment of OpenEnv, as the rollout API documents it: on servers that are started for a project, or on one that runs.

    A task is a seed, which stands in its ``info``: ``{"seed": 0}``. A rollout begins with what `prompt_renderer` makes of the server's
    first observation, whatever prompt its row has. Under the contract ``gym`` an answer is played at once, as its turn is recorded, so
    there are as many model calls as steps; its reward is in ``trajectory[i]["reward"]``. Under the contract ``mcp`` that is the sum of
    the rewards of an answer's tool calls. ``state["observation"]`` is what the server showed last.
    """

    def __init__(
        self,
        openenv_project: str | Path | None = None,
        num_train_examples: int = 100,
        num_eval_examples: int = 50,
        seed: int = 0,
        prompt_renderer: Callable[..., Any] | None = None,
        max_turns: int = -1,
        rubric: Rubric | None = None,
        *,
        url: str | None = None,
        backend: str | None = None,
        contract: Contract | None = None,
        start_timeout: float = TIMEOUT,
        request_timeout: float = TIMEOUT,
        **kwargs: Any,
    ) -> None:
        """Define an environment. A server is asked for its schema of actions, and for its tools.

        Args:
            openenv_project: Folder of a project, with a ``.build.json`` (``image``, ``port``, ``start_command``, ``contract``).
            num_train_examples: Number of training tasks.
            num_eval_examples: Number of evaluation tasks; where it is 0, evaluation uses the training tasks.
            seed: Seed of the first task.
            prompt_renderer: Makes messages of an observation: ``prompt_renderer(observation, context=, action_schema=, contract=, seed=)``,
                of which it is given what it declares. ``context`` is ``"reset"`` or ``"step"``.
            max_turns: Most answers of the model in one episode; unlimited where it is not positive.
            rubric: Scores episodes; an `EpisodicSumRubric` without it.
            url: Where a server runs, in place of a project.
            backend: Where the servers of a project run: in sandboxes of the backend ``"container"`` without it, which takes the project's
                image. ``"unsafe"`` runs its ``start_command`` as processes of this machine, which nothing holds back. As many run as
                episodes are played at once; `close` ends them.
            contract: ``"gym"`` or ``"mcp"``; by the project, or by the server's schema of actions, without it.
            start_timeout: Seconds that a server has until it can be reached.
            request_timeout: Seconds that a server has for each answer.
            **kwargs: Passed to `vfgym.wrappers.openenv.OpenEnvEnv` (``system_prompt``, ``parser``, ``history``, ...).

        Raises:
            ConfigurationError: If an argument does not fit, or no server can be started or reached.
        """
        self._refuse(kwargs)
        server: str | ServerSource
        if (openenv_project is None) == (url is None):
            raise ConfigurationError(
                "OpenEnvEnv plays the servers of a project (openenv_project=, a folder with a .build.json) or one that runs (url=):"
                " give one of them"
            )
        if openenv_project is not None:
            project = read_project(openenv_project)
            contract = contract or project.contract
            server = servers_of(project, backend, start_timeout=start_timeout, request_timeout=request_timeout)
        else:
            if backend is not None or start_timeout != TIMEOUT:
                raise ConfigurationError(
                    "backend= and start_timeout= are for servers that are started for a project: url= names one that runs"
                )
            server = str(url)
        super().__init__(
            numbers={"num_train_examples": num_train_examples, "num_eval_examples": num_eval_examples},
            seed=seed,
            server=server,
            prompt_renderer=prompt_renderer,
            contract=contract,
            request_timeout=request_timeout,
            max_turns=max_turns,
            rubric=EpisodicSumRubric() if rubric is None else rubric,
            **kwargs,
        )

    def row_of(self, seed: int) -> dict[str, Any]:
        """Return the task that stands for a seed."""
        return {"prompt": [], "info": {"seed": seed}, "seed": seed}

    def seed_of(self, row: Row) -> int | None:
        """Return the seed of a row that does not name it otherwise: that in its ``info``, or its ``answer``."""
        seed = as_integer(parse_info(row.get("info"), "the task").get("seed"))
        return super().seed_of(row) if seed is None else seed

    async def setup_state(self, state: State) -> State:
        """Begin the episode of the task's seed: the prompt is what its server shows."""
        state["prompt"] = []
        begun: State = await super().setup_state(state)
        return begun

    def _leave(self, state: State) -> Steps[None]:
        yield self.close_openenv_session(state)

    openenv_done = awaitable_stop(env.OpenEnvEnv.openenv_done)
    mcp_no_tool_calls = awaitable_stop(env.OpenEnvEnv.mcp_no_tool_calls)


__all__ = ["OpenEnvEnv"]
