"""`ComposableEnv`: a `TaskSet` that a `Harness` works on: the program of the one in the sandboxes of the other."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.resources
import posixpath
import shlex
from collections.abc import Mapping
from typing import Any

from verifiers_compat.envs.experimental.cli_agent_env import CliAgentEnv
from verifiers_compat.envs.experimental.composable.harness import Harness
from verifiers_compat.envs.experimental.composable.hooks import call_hook
from verifiers_compat.envs.experimental.composable.task import SandboxSpec as TaskSandboxSpec
from verifiers_compat.envs.experimental.composable.task import TaskSet, resources_of
from verifiers_compat.envs.experimental.sandbox_mixin import SandboxSetupError
from verifiers_compat.loading import create_getattr
from vfgym.aio.steps import Steps
from vfgym.bounded_json import parse_json
from vfgym.calls import maybe_await
from vfgym.envs.agent_program import read_left_file
from vfgym.envs.tool import ToolMonitorRubric
from vfgym.errors import ConfigurationError, Error, SandboxError
from vfgym.interception import PROGRAM_VARIABLES
from vfgym.lifecycle import cleanup
from vfgym.rubrics import Rubric
from vfgym.rubrics.scoring import Score
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State, TrajectoryStep

_LEFT_OUT = "is_left_out"
_MOST_QUOTED = 2000


class HarnessMetricsRubric(Rubric):
    """Has the numbers that a program wrote to the file of its `Harness` as metrics: ``state["harness_metrics"]``."""

    def __init__(self, harness: Harness) -> None:
        """Measure what the programs of a harness wrote."""
        super().__init__()
        self._names = [harness.metrics_prefix + key for key in harness.metrics_keys or ()]

    @property
    def metric_names(self) -> list[str]:
        """Those that the harness names."""
        return self._names

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Measure one episode."""
        return Score(0.0, dict.fromkeys(self._names, 0.0) | state.get("harness_metrics", {}))
        yield  # makes this a generator, as the rubrics around it expect


class ComposableEnv(CliAgentEnv):
    """A `TaskSet` that a `Harness` works on.

    A rollout has the sandbox that its task asks for, in which the task is set up, then the harness: its files, its folders, what it
    installs. Then its program runs (see `CliAgentEnv`), and the rubric of the task set scores what it did. With
    ``keep_sandbox_for_scoring=True`` that finds the sandbox: ``state["sandbox_client"]`` and ``state["sandbox_id"]``.
    """

    def __init__(self, taskset: TaskSet, harness: Harness, *, install_env: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        """Define an environment.

        Args:
            taskset: The tasks.
            harness: The program.
            install_env: Environment variables of what the harness installs, which the program does not see.
            **kwargs: Passed to `CliAgentEnv` (``environment_vars``, ``keep_sandbox_for_scoring``, ``timeout_seconds``, ``backend``, ...).

        Raises:
            ConfigurationError: As of `CliAgentEnv`.
        """
        self.taskset, self.harness, self.install_env = taskset, harness, dict(install_env or {})
        given = {"dataset": taskset.get_dataset, "rubric": taskset.get_rubric(), **kwargs}
        super().__init__(run_command=harness.run_command, **given)
        if harness.tool_names is not None:
            self.add_rubric(ToolMonitorRubric(harness.tool_names))
        if harness.metrics_path is not None:
            self.add_rubric(HarnessMetricsRubric(harness))

    # What a sandbox is like

    def _spec_of(self, state: State) -> TaskSandboxSpec | None:
        return self.taskset.get_sandbox_spec(state["info"]) or self.harness.sandbox_spec

    async def get_docker_image(self, state: State) -> str:
        """Return the image of a rollout's sandbox: the task's, else the harness's, else that of the environment."""
        spec = self._spec_of(state)
        return await super().get_docker_image(state) if spec is None else spec.image

    def get_sandbox_resources(self, state: State) -> dict[str, Any]:
        """Return what the sandbox of a rollout is given beside its image, as `get_docker_image` does."""
        spec = self._spec_of(state)
        return super().get_sandbox_resources(state) | ({} if spec is None else resources_of(spec))

    async def get_sandbox_spec(self, state: State) -> SandboxSpec:
        """Return what the sandbox of a rollout is like, with the working directory and the variables of its task."""
        spec = await super().get_sandbox_spec(state)
        return dataclasses.replace(
            spec, working_dir=self.taskset.get_workdir(state["info"]), env={**spec.env, **self._variables_of_parts(state)}
        )

    def _variables_of_parts(self, state: State) -> dict[str, str]:
        """Return the environment variables that harness and task set say.

        Raises:
            ConfigurationError: If one leads the program to its model.
        """
        of_harness = self.harness.environment_vars
        parts = {
            "Harness.environment_vars": {} if of_harness is None else of_harness(state),
            "TaskSet.get_env_vars()": self.taskset.get_env_vars(),
        }
        for where, variables in parts.items():
            if taken := PROGRAM_VARIABLES & variables.keys():
                raise ConfigurationError(f"{where} may not have {min(taken)}: it leads the program to the model of its episode")
        workdir = self.taskset.get_workdir(state["info"])
        return {name: value for variables in parts.values() for name, value in variables.items()} | {"AGENT_WORKDIR": workdir}

    async def build_env_vars(self, state: State) -> dict[str, str]:
        """Return the environment variables of the program, with those of the harness and of the task set."""
        own = {**self._variables_of_parts(state), "AGENT_INSTRUCTION_PATH": self.harness.instruction_path}
        return {**await super().build_env_vars(state), **own}

    # How it is prepared

    async def post_sandbox_setup(self, state: State) -> None:
        """Set up the task, then the harness.

        Raises:
            SandboxSetupError: If the task can't be set up.
            SandboxError: If the harness can't be installed.
        """
        spec, harness = self._spec_of(state), self.harness
        minutes = spec.timeout_minutes if spec is not None and spec.timeout_minutes else self.compute_sandbox_timeout_minutes()
        state["test_timeout"] = 60 * minutes
        try:
            await call_hook(self.taskset.setup, state)
        except Error:
            raise
        except Exception as error:
            raise SandboxSetupError(f"the task could not be set up: {error!r}") from error
        await self._write_inputs(state)
        await self._run_script(state, "install_script", harness.install_script)
        for path, content in (harness.post_install_uploads or {}).items():
            await self.upload_content(state["sandbox_id"], content, path)
        await self._run_script(state, "post_install_script", harness.post_install_script)

    async def _write_inputs(self, state: State) -> None:
        """Write what the program is told, and copy the folders that it is given."""
        harness, sandbox = self.harness, state["sandbox"]
        await sandbox.write_file(harness.instruction_path, self.instruction(state))
        if harness.system_prompt is not None:
            await sandbox.write_file(harness.system_prompt_path, harness.system_prompt)
        folders = {**self.taskset.get_upload_dirs(), **((harness.get_upload_dirs and harness.get_upload_dirs()) or {})}
        skills = self.taskset.get_skills_dir()
        if skills is not None:
            folders.setdefault("skills", skills)
        for name, place in (harness.get_effective_upload_dir_mapping() or {}).items():
            if name in folders:
                with importlib.resources.as_file(folders[name]) as folder:
                    await sandbox.upload(folder, place)

    async def _run_script(self, state: State, name: str, script: str | None) -> None:
        if script is None:
            return
        limit = self.harness.install_timeout
        done = await state["sandbox"].exec(script, timeout=limit, env=self.install_env)
        if done.exit_code or done.timed_out:
            how = f"took longer than {limit} s" if done.timed_out else f"ended with exit code {done.exit_code}"
            said = (done.stdout + done.stderr).strip()[-_MOST_QUOTED:] or "it printed nothing"
            raise SandboxError(f"the {name} of the harness {how}: {said}")

    # What is kept

    async def add_trajectory_step(self, state: State, trajectory_step: TrajectoryStep) -> None:
        """Record one turn, unless the harness leaves it out: until the rollout has ended it is there all the same."""
        await maybe_await(super().add_trajectory_step, state, trajectory_step)
        keep = self.harness.keep_trajectory_step
        if keep is not None and not keep(trajectory_step, state, state["agent_program"].headers_asked):
            trajectory_step["extras"][_LEFT_OUT] = True

    @cleanup(priority=40)
    async def leave_out_steps(self, state: State) -> None:
        """Take the turns out that the harness leaves out."""
        state["trajectory"][:] = [step for step in state["trajectory"] if not step["extras"].get(_LEFT_OUT)]

    async def look_at_sandbox(self, state: State) -> None:
        """Keep logs and metrics of the program, then call `post_rollout`."""
        harness = self.harness
        if state["sandbox"].is_alive:
            if harness.log_path is not None:
                state["agent_logs"] = await read_left_file(state["sandbox"], harness.log_path) or ""
            if harness.metrics_path is not None:
                state["harness_metrics"] = await self._read_metrics(state)
        await super().look_at_sandbox(state)

    async def _read_metrics(self, state: State) -> dict[str, float]:
        harness = self.harness
        path = (harness.metrics_path or "").replace("{workdir}", self.taskset.get_workdir(state["info"]))
        pattern = "*".join(map(shlex.quote, path.split("*")))
        found = await state["sandbox"].exec(f"ls -d -- {pattern} 2> /dev/null | head -n 1")
        text = await read_left_file(state["sandbox"], posixpath.join("/", found.stdout.rstrip("\n"))) if found.stdout else None
        values: Any = {}
        with contextlib.suppress(ValueError):  # whatever the program wrote
            values = parse_json(text or "{}")
        if harness.metrics_key is not None and isinstance(values, dict):
            values = values.get(harness.metrics_key)
        numbers = values if isinstance(values, dict) else {}
        wanted = numbers if harness.metrics_keys is None else harness.metrics_keys
        return {
            harness.metrics_prefix + key: float(numbers[key])
            for key in wanted
            if isinstance(numbers.get(key), int | float) and abs(numbers[key]) < 1e308
        }


__all__ = ["ComposableEnv"]

__getattr__ = create_getattr(__name__)
