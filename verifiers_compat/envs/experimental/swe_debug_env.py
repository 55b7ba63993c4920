"""`SWEDebugEnv`: tasks of a `SandboxTaskSet` without a model: set-up, one step, tests, and their score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from verifiers_compat.envs.experimental.composable.hooks import call_hook
from verifiers_compat.envs.experimental.composable.task import SandboxTaskSet, resources_of
from verifiers_compat.envs.experimental.sandbox_mixin import SandboxMixin
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import CreateSandboxRequest
from vfgym import sandboxes
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.lifecycle import cleanup, stop
from vfgym.messages import Message
from vfgym.rubrics import Rubric
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State

_STEPS = ("none", "gold_patch", "command", "script")


class SWEDebugEnv(SandboxMixin, MultiTurnEnv):
    """Shows whether the tasks of a `SandboxTaskSet` work: a rollout asks no model, and ends when it is set up.

    The state has ``debug_output`` (what the step printed, its end), ``debug_exit_code``, ``test_output`` and ``score``, which is the
    reward.
    """

    def __init__(
        self,
        taskset: SandboxTaskSet,
        dataset: Any = None,
        *,
        run_setup: bool = True,
        debug_step: Literal["none", "gold_patch", "command", "script"] = "gold_patch",
        run_tests: bool = True,
        debug_command: str | None = None,
        debug_script: str | None = None,
        debug_script_path: str | None = None,
        debug_timeout: int | None = None,
        test_timeout: int = 900,
        cpu_cores: int | None = None,
        memory_gb: float | None = None,
        disk_size_gb: float | None = None,
        labels: Sequence[str] | None = None,
        timeout_seconds: float = 1800.0,
        output_tail_chars: int = 2000,
        backend: str | None = None,
        **sandbox_kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            taskset: The tasks.
            dataset: Rows with an ``info`` each; those of the taskset if None.
            run_setup: Whether `SandboxTaskSet.setup` runs.
            debug_step: What is done then: nothing, the task's solution, a command or a script.
            run_tests: Whether the tests run.
            debug_command: The command.
            debug_script: The text of the script.
            debug_script_path: A file with it.
            debug_timeout: Seconds for the command or the script; None for no limit.
            test_timeout: Seconds for the tests.
            cpu_cores: In place of what the task asks for, as the next two.
            memory_gb: Memory of the sandboxes.
            disk_size_gb: Size of all files of a sandbox.
            labels: Accepted.
            timeout_seconds: Seconds for a rollout.
            output_tail_chars: How many characters of an output are kept, the last ones.
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.
            **sandbox_kwargs: Passed to `SandboxMixin.init_sandbox_client`.

        Raises:
            ConfigurationError: If the step is not one of these, lacks what it runs, or no sandbox can be made here.
        """
        if debug_step not in _STEPS:
            raise ConfigurationError(
                f"debug_step must be one of {', '.join(_STEPS)}, got {debug_step!r}.{did_you_mean(debug_step, _STEPS)}"
            )
        if debug_step == "command" and not debug_command:
            raise ConfigurationError("debug_step='command' needs a debug_command")
        if debug_step == "script" and (debug_script is None) == (debug_script_path is None):
            raise ConfigurationError("debug_step='script' needs a debug_script or a debug_script_path, one of the two")
        self.taskset = taskset
        self.debug_step, self.run_setup, self.run_tests = debug_step, run_setup, run_tests
        self.debug_command = debug_command
        self.debug_script = Path(debug_script_path).read_text(encoding="utf-8") if debug_script_path else debug_script
        self.debug_timeout, self.test_timeout, self.output_tail_chars = debug_timeout, test_timeout, output_tail_chars
        self.backend = backend
        self._resources = {"cpu_cores": cpu_cores, "memory_gb": memory_gb, "disk_size_gb": disk_size_gb}
        sandboxes.check_spec(SandboxSpec(), backend)
        self.init_sandbox_client(backend=backend, **sandbox_kwargs)
        tasks = taskset if dataset is None else taskset.with_dataset(dataset)
        super().__init__(dataset=list(tasks.get_dataset()), rubric=Rubric(self.debug_score), timeout_seconds=timeout_seconds)

    def debug_score(self, state: State) -> float:
        """Return the score of the tests; 0.0 where they did not run."""
        return float(state.get("score") or 0.0)

    async def setup_state(self, state: State) -> State:
        """Play the whole rollout: sandbox, set-up, step, tests."""
        state["test_timeout"] = self.test_timeout
        await self.create_sandbox(state, self.get_sandbox_request(state))
        if self.run_setup:
            await call_hook(self.taskset.setup, state)
        await self._run_step(state)
        if self.run_tests:
            output = await call_hook(self.taskset.run_tests, state)
            state["score"] = float(await call_hook(self.taskset.score, state, output=output, test_output=output))
            state["test_output"] = self._end_of(str(output))
        state["debug_completed"] = True
        return state

    def get_sandbox_request(self, state: State) -> CreateSandboxRequest:
        """Return what the sandbox of a rollout is asked for: what its task says, and the arguments of this environment."""
        info = state["info"]
        asked = self.taskset.get_sandbox_spec(info)
        fields = resources_of(asked) | {name: value for name, value in self._resources.items() if value is not None}
        more: dict[str, Any] = {"environment_vars": self.taskset.get_env_vars(), "working_dir": self.taskset.get_workdir(info)}
        return CreateSandboxRequest(name=self.taskset.name or "swe-debug", docker_image=asked.image, **fields, **more)

    async def _run_step(self, state: State) -> None:
        """Do what is to be done between set-up and tests."""
        if self.debug_step == "none":
            return
        if self.debug_step == "gold_patch":
            await call_hook(self.taskset.apply_gold_patch, state)
            return
        command = self.debug_command
        if self.debug_step == "script":
            await self.upload_content(state["sandbox_id"], self.debug_script or "", "/tmp/debug.sh")
            command = "bash /tmp/debug.sh"
        result = await state["sandbox"].exec(command, timeout=self.debug_timeout)
        state["debug_exit_code"] = result.exit_code
        state["debug_output"] = self._end_of(result.stdout + result.stderr)

    def _end_of(self, output: str) -> str:
        return output[max(0, len(output) - self.output_tail_chars) :]

    @stop(priority=50)
    def debug_completed(self, state: State) -> bool:
        """Stop when all is done: no model is asked."""
        return bool(state.get("debug_completed"))

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        """Return nothing: no model is asked."""
        return []

    @property
    def can_go_back(self) -> bool:
        """Whether its episodes can be copied in the middle: never, since a sandbox cannot be."""
        return False

    @cleanup
    async def destroy_sandbox(self, state: State) -> None:
        """Close the sandbox."""
        if state.pop("sandbox", None) is not None:
            await self.delete_sandbox(state["sandbox_id"])


__all__ = ["SWEDebugEnv"]

__getattr__ = create_getattr(__name__)
