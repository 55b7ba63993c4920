"""`HarborEnv`: tasks in Harbor's format, which a program solves in their sandbox and their own tests reward."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Any

from vfgym.calls import Ready, maybe_await
from vfgym.envs.agent_program import TASK_FOLDER
from vfgym.envs.cli_agent import CliAgentEnv
from vfgym.envs.harbor_running import lay_out, layout_of, results_of, run_tests
from vfgym.envs.harbor_tasks import HarborTask, read_tasks
from vfgym.errors import ConfigurationError, InfraError, SandboxError, did_you_mean
from vfgym.overrides import hook
from vfgym.rubrics import Rubric
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State

AGENTS = {"oracle": "bash /solution/solve.sh", "nop": "true"}
"""Programs that ask no model: the solution that a task brings, and one that does nothing."""


class HarborEnv(CliAgentEnv):
    """Tasks in Harbor's format: a folder each, with an instruction, an environment, tests and a solution.

    A program works on a task in its sandbox, and each question that it asks its model is a turn (see `CliAgentEnv`). Then the tests run in
    a new sandbox of the task, which has of the program nothing but the declared results, in their places: the working folder, the folder
    that the Dockerfile names as ``WORKDIR``, what the task names as ``artifacts``, ``/logs/agent`` and ``/logs/artifacts``. The reward is
    what they write to ``/logs/verifier/reward.txt`` or ``reward.json``.
    """

    def __init__(
        self,
        run_command: str | None = None,
        dataset_path: str | os.PathLike[str] = "",
        tasks: Iterable[str] | None = None,
        agent_workdir: str = "/app",
        *,
        agent: str | None = None,
        results: Sequence[str] = (),
        rubric: Rubric | None = None,
        sandbox: SandboxSpec | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            run_command: The line that a shell of the sandbox runs in the working directory. ``HARBOR_INSTRUCTION_PATH`` names the file of
                the instruction, ``HARBOR_TASK_NAME`` the task, ``AGENT_WORKDIR`` the working directory.
            dataset_path: A folder of task folders, or one of these.
            tasks: Which tasks, by the names of their folders; None for all.
            agent_workdir: Where the program works, unless a task names another folder.
            agent: In place of a command: ``"oracle"`` runs the solution of each task, ``"nop"`` does nothing. They ask no model.
            results: Files and folders that the tests see of a program beside the declared results, by absolute paths.
            rubric: Scores episodes; the default gives what the tests gave.
            sandbox: Limits of the sandboxes, where a task does not name its own.
            **kwargs: Passed to `CliAgentEnv` (``backend``, ``max_turns``, ``timeout_seconds``, ...).

        Raises:
            ConfigurationError: If there is neither a command nor an agent, or a task folder is not complete.
        """
        if agent is not None and agent not in AGENTS:
            raise ConfigurationError(f"agent must be one of {', '.join(AGENTS)}, or None with a run_command.{did_you_mean(agent, AGENTS)}")
        if kwargs.get("backend") == "unsafe":
            raise ConfigurationError("HarborEnv needs a sandbox with folders of its own, /app and /tests, which backend='unsafe' has not")
        if (run_command is None) == (agent is None):
            raise ConfigurationError(f"HarborEnv takes a run_command, or agent= one of {', '.join(AGENTS)}: give one of the two")
        self._is_to_ask = agent is None
        self.harbor_tasks = {task.name: task for task in read_tasks(dataset_path, tasks)}
        self._working_tests: dict[str, bool] = {}
        """Whether the tests of a task work, for those of which that had to be known."""
        self.agent = agent
        if isinstance(results, str):
            raise ConfigurationError(f"results must be a list of paths, got {results!r}")
        self.results = tuple(results)
        for task in self.harbor_tasks.values():
            results_of(task, agent_workdir, self.results)
        super().__init__(
            run_command=run_command or AGENTS[agent or "nop"],
            dataset=[self._row(task) for task in self.harbor_tasks.values()],
            rubric=Rubric(self.harbor_reward) if rubric is None else rubric,
            sandbox=dataclasses.replace(sandbox or SandboxSpec(), working_dir=agent_workdir),
            **kwargs,
        )

    @staticmethod
    def _row(task: HarborTask) -> dict[str, Any]:
        info = {
            "task_name": task.name,
            "task_dir": str(task.folder),
            "docker_image": task.get("environment.docker_image"),
            "config": task.config,
        }
        return {"prompt": [{"role": "user", "content": task.instruction}], "answer": "", "info": info}

    def task_of(self, state: State) -> HarborTask:
        """Return the task of an episode."""
        return self.harbor_tasks[state["info"]["task_name"]]

    # Hooks

    @hook
    def get_sandbox_spec(self, state: State) -> Any:
        """Return what the sandbox of a task is like: its image, or what its Dockerfile is built to, and its limits.

        Raises:
            SandboxError: If the task cannot run here: it needs an image, and no container engine answers, or something that is not offered.
        """
        task = self.task_of(state)
        missing = task.what_is_not_offered()
        if missing is not None:
            raise SandboxError(f"the task {task.name!r} cannot run: it asks for {missing}, which is not offered")
        spec = dataclasses.replace(
            self.sandbox_spec,
            working_dir=task.get("environment.workdir", self.sandbox_spec.working_dir),
            memory_mb=task.get("environment.memory_mb", self.sandbox_spec.memory_mb),
            disk_mb=task.get("environment.storage_mb", self.sandbox_spec.disk_mb),
            env={**self.sandbox_spec.env, **task.variables("environment.env")},
        )
        image, layout = task.get("environment.docker_image"), layout_of(task, self.backend, strict_image=self.strict_image)
        if layout is not None:
            return Ready(dataclasses.replace(spec, env={**layout.env, **spec.env}))
        return Ready(dataclasses.replace(spec, image=image) if image else dataclasses.replace(spec, dockerfile=task.environment))

    @hook
    async def post_sandbox_setup(self, state: State) -> None:
        """Copy in what the task's Dockerfile would, where there is no image, and the solution for the oracle."""
        sandbox, task = state["sandbox"], self.task_of(state)
        await lay_out(sandbox, layout_of(task, self.backend, strict_image=self.strict_image))
        if self.agent == "oracle":
            if not (task.solution / "solve.sh").is_file():
                raise SandboxError(f"the task {task.name!r} has no solution/solve.sh for the oracle to run")
            await sandbox.upload(task.solution, "/solution")

    @hook
    async def build_env_vars(self, state: State) -> dict[str, str]:
        """Return the environment variables of the program (see `CliAgentEnv`), with those of Harbor."""
        task = self.task_of(state)
        return {
            **await maybe_await(super().build_env_vars, state),
            **(task.variables("solution.env") if self.agent == "oracle" else {}),
            "HARBOR_TASK_NAME": task.name,
            "HARBOR_TASK_DIR": TASK_FOLDER,
            "HARBOR_INSTRUCTION_PATH": f"{TASK_FOLDER}/instruction.md",
        }

    @hook
    async def post_rollout(self, state: State) -> None:
        """Run the tests, unless the episode failed; their reward is ``state["harbor_reward"]``."""
        if state["error"] is None:
            state["harbor_reward"] = await self.compute_reward(state)

    async def compute_reward(self, state: State) -> float:
        """Run the tests in a new sandbox, with the declared results, and return the reward that they wrote.

        Raises:
            InfraError: If they wrote none, or did not end in time. It is the policy's failure where they do where nothing was done.
        """
        result, reward = await run_tests(state["sandbox"], self.task_of(state), backend=self.backend, results=self.results)
        state["test_exit_code"], state["test_stdout"], state["test_stderr"] = result.exit_code, result.stdout, result.stderr
        try:
            return reward()
        except InfraError as error:
            if await self._tests_work(state):
                error.failure_cause = "policy"
            raise

    async def _tests_work(self, state: State) -> bool:
        """Say whether the tests of a task give a reward where its program has done nothing: what they don't give otherwise is its doing."""
        task = self.task_of(state)
        if task.name not in self._working_tests:
            _, reward = await run_tests(state["sandbox"], task, backend=self.backend, results=None)
            try:
                reward()
            except InfraError:
                self._working_tests[task.name] = False
            else:
                self._working_tests[task.name] = True
        return self._working_tests[task.name]

    def harbor_reward(self, state: State) -> float:
        """Return what the tests gave; 0.0 where they did not run."""
        return float(state.get("harbor_reward", 0.0))
