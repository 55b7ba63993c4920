"""`HarborTaskset`: tasks in Harbor's format, for any program that runs in a sandbox; their own tests give the reward."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, cast

from pydantic import Field

from verifiers_compat.v1.config import TasksetConfig
from verifiers_compat.v1.config_base import Names
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.taskset import Taskset
from vfgym.envs.harbor_running import layout_of, run_tests
from vfgym.envs.harbor_tasks import HarborTask, read_tasks
from vfgym.errors import SandboxError
from vfgym.lifecycle import reward, setup


class HarborTasksetConfig(TasksetConfig):
    """A taskset of folders in Harbor's format. What a task's own ``task.toml`` says wins."""

    tasks: str | None = None
    """A folder of task folders, or one of these."""
    task_names: Names | None = None
    """Which tasks, by the names of their folders; all by default."""
    cpu_cores: float = Field(default=2.0, gt=0)
    """How many CPUs a sandbox that has an image may use at once, where this is given; others use those that are there."""
    memory_gb: float = Field(default=4.0, gt=0)
    disk_size_gb: float = Field(default=10.0, gt=0)
    timeout_minutes: int = Field(default=120, gt=0)
    agent_timeout_seconds: float = Field(default=900.0, gt=0)
    """Seconds that the program may take."""
    verifier_timeout_seconds: float = Field(default=900.0, gt=0)
    """Seconds that the tests may take."""
    workdir: str = "/app"
    """Where the program works, in the sandbox."""
    task_dir: str = "/task"
    """Where it finds ``instruction.md`` and ``task.toml``."""
    scope: str = "rollout"
    env: dict[str, object] = {}
    """Environment variables of the program, beside those of Harbor (``HARBOR_INSTRUCTION_PATH``, ...) and ``AGENT_WORKDIR``."""


class HarborTaskset(Taskset):
    """Tasks in Harbor's format: a folder each, with an instruction, an environment and tests.

    A program in a sandbox works on a task; then the tests are copied in and run, and the reward ``harbor_reward`` is what they wrote. A
    task whose program failed has 0.0. Where no container engine answers, a Dockerfile that only copies files is followed without one.
    """

    config_type: ClassVar[type[HarborTasksetConfig]] = HarborTasksetConfig

    def __init__(
        self,
        tasks: str | os.PathLike[str] | None = None,
        task_names: Iterable[str] | None = None,
        *,
        cpu_cores: float | None = None,
        memory_gb: float | None = None,
        disk_size_gb: float | None = None,
        timeout_minutes: int | None = None,
        agent_timeout_seconds: float | None = None,
        verifier_timeout_seconds: float | None = None,
        workdir: str | None = None,
        task_dir: str | None = None,
        scope: str | None = None,
        env: Mapping[str, object] | None = None,
        config: HarborTasksetConfig | Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a taskset of folders of this machine.

        Args:
            tasks: A folder of task folders, or one of these.
            task_names: Which tasks, by the names of their folders; all by default.
            cpu_cores: How many CPUs a sandbox that has an image may use at once; others use those that are there.
            memory_gb: Memory of a sandbox.
            disk_size_gb: Size of its files.
            timeout_minutes: How long it may live.
            agent_timeout_seconds: How long the program may take.
            verifier_timeout_seconds: How long the tests may take.
            workdir: Where the program works.
            task_dir: Where it finds its task.
            scope: How long a sandbox lives.
            env: Environment variables of the program.
            config: Configuration; arguments win over it.
            **kwargs: Passed to `Taskset` (``rewards``, ``toolsets``, ...).

        Raises:
            ConfigurationError: If there is no task, or a folder is not complete.
        """
        given = self._own_config(config).with_arguments(
            tasks=None if tasks is None else os.fspath(tasks),
            task_names=None if task_names is None else list(task_names),
            **{"cpu_cores": cpu_cores, "memory_gb": memory_gb, "disk_size_gb": disk_size_gb, "timeout_minutes": timeout_minutes},
            **{"agent_timeout_seconds": agent_timeout_seconds, "verifier_timeout_seconds": verifier_timeout_seconds},
            **{"workdir": workdir, "task_dir": task_dir, "scope": scope, "env": env},
        )
        super().__init__(config=cast(HarborTasksetConfig, given), **kwargs)
        self.harbor_tasks = read_tasks(self.config.tasks or ".", self.config.task_names)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each task folder."""
        return [{"example_id": number, **self._row(task)} for number, task in enumerate(self.harbor_tasks)]

    def _row(self, task: HarborTask) -> dict[str, Any]:
        config = self.config
        workdir, folder = task.get("environment.workdir", config.workdir), config.task_dir
        variables = {"HARBOR_TASK_NAME": task.name, "HARBOR_TASK_DIR": folder, "HARBOR_INSTRUCTION_PATH": f"{folder}/instruction.md"}
        files = {f"{folder}/instruction.md": {"task": "instruction"}, f"{folder}/task.toml": {"task": "task_toml"}}
        sandbox = {
            "memory_gb": task.get("environment.memory_mb", config.memory_gb * 1024) / 1024,
            "disk_size_gb": task.get("environment.storage_mb", config.disk_size_gb * 1024) / 1024,
            "timeout_minutes": config.timeout_minutes,
            "command_timeout": math.ceil(task.get("agent.timeout_sec", config.agent_timeout_seconds)),
            "workdir": workdir,
            "environment_vars": task.variables("environment.env"),
            "scope": config.scope,
        }
        place, dirs = self._place(task)
        sandbox["environment_vars"] |= place.pop("environment_vars", {})
        harbor = {"task_name": task.name, "task_dir": str(task.folder), "docker_image": task.get("environment.docker_image")}
        return {
            "prompt": [{"role": "user", "content": task.instruction}],
            "instruction": task.instruction,
            "task_toml": (task.folder / "task.toml").read_text(encoding="utf-8"),
            "task_name": task.name,
            "task_dir": str(task.folder),
            "harbor": {**harbor, "config": task.config},
            "info": {"harbor": {"task_name": task.name, "docker_image": harbor["docker_image"]}},
            "sandbox": {**sandbox, **place},
            "program": {"files": files, "dirs": dirs, "env": {**config.env, **variables, "AGENT_WORKDIR": workdir}},
        }

    def _place(self, task: HarborTask) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what a task's sandbox is made of, and what is copied into one that has no image."""
        try:
            layout = layout_of(task, None)
        except SandboxError:  # which is the error of its rollouts
            layout = None
        if layout is not None:
            return {"environment_vars": layout.env}, {inside: str(local) for local, inside in layout.copies}
        image = task.get("environment.docker_image")
        made_of = {"image": image} if image else {"dockerfile": str(task.environment)}
        given = self.config.cpu_cores if "cpu_cores" in self.config.model_fields_set else None
        cores = task.get("environment.cpus", given)
        return made_of if cores is None else {**made_of, "cpu_cores": cores}, {}

    @setup(priority=1000)
    async def check_harbor_task(self, task: Task) -> None:
        """Refuse a task that asks for what is not offered.

        Raises:
            SandboxError: The text names it.
        """
        harbor_task = _read(task)
        missing = harbor_task.what_is_not_offered()
        if missing is not None:
            raise SandboxError(f"the task {harbor_task.name!r} cannot run: it asks for {missing}, which is not offered")
        layout_of(harbor_task, None)

    @setup(priority=-1)
    async def make_harbor_folders(self, state: State) -> None:
        """Make the folders that Harbor's tests and programs write to."""
        await state.get_sandbox().exec(["mkdir", "-p", "/logs/agent", "/logs/verifier", "/logs/artifacts"])

    @reward
    async def harbor_reward(self, task: Task, state: State) -> float:
        """Run the tests, and return what they gave; 0.0 where the program failed."""
        if state["error"] is not None:
            return 0.0
        result, given = await run_tests(state.get_sandbox(), _read(task), self.config.verifier_timeout_seconds)
        state["test_exit_code"], state["test_stdout"], state["test_stderr"] = result.exit_code, result.stdout, result.stderr
        return given()


def _read(task: Task) -> HarborTask:
    return read_tasks(task["task_dir"])[0]
