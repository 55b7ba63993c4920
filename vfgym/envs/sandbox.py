"""`SandboxEnv`: the model runs commands with the tool ``bash``, in a sandbox of its episode."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypedDict

from vfgym.envs.sandboxed import SandboxedEnv, find_sandbox
from vfgym.envs.stateful_tool import StatefulToolEnv
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.messages import Message
from vfgym.overrides import hook
from vfgym.rubrics import Rubric
from vfgym.sandboxes import ExecResult
from vfgym.state import State

NO_OUTPUT = "(no output)"


class SandboxState(TypedDict):
    """What is known of the sandbox of an episode: ``state["sandbox_state"]``."""

    ready: bool
    """Whether commands can run: always, once the episode is set up."""
    ready_wait_time: float
    """Seconds that it took to make the sandbox."""
    command_execution_times: list[float]
    """Seconds that each command took; of one that was ended, its limit."""


class SandboxMonitorRubric(Rubric):
    """Measures sandboxes: ``sandbox_ready_wait_time`` and ``sandbox_command_execution_time`` (the mean), in seconds."""

    def __init__(self) -> None:
        """Make the rubric."""
        super().__init__()
        self.add_metric(self.sandbox_ready_wait_time)
        self.add_metric(self.sandbox_command_execution_time)

    @property
    def timing_names(self) -> list[str]:
        """All of its metrics."""
        return self.metric_names

    def sandbox_ready_wait_time(self, state: State) -> float:
        """Return how long it took to make the sandbox; 0.0 where none could be made."""
        return float(state["sandbox_state"]["ready_wait_time"]) if "sandbox_state" in state else 0.0

    def sandbox_command_execution_time(self, state: State) -> float:
        """Return how long a command took on average; 0.0 without any."""
        times = state["sandbox_state"]["command_execution_times"] if "sandbox_state" in state else []
        return sum(times) / len(times) if times else 0.0


class SandboxEnv(SandboxedEnv, StatefulToolEnv):
    """An environment in which the model runs commands, with the tool ``bash``, in a sandbox of its episode.

    The model reads what a command printed; that a command failed or took too long, too. A sandbox that has ended ends its episode, with a
    `SandboxError`. Hooks and reward functions find the sandbox in ``state["sandbox"]`` (see `SandboxedEnv`); commands run in its working
    directory, or in ``state["working_dir"]``. An episode can be copied in the middle, with the files of its sandbox, where the backend
    ``bwrap`` makes them.
    """

    has_files_alone = True

    def __init__(
        self,
        timeout_per_command_seconds: float = 30,
        *,
        stop_errors: Sequence[type[Exception]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            timeout_per_command_seconds: Seconds after which a command is ended, which the model is told.
            stop_errors: As of `ToolEnv`; a `SandboxError` if None.
            **kwargs: Passed to `SandboxedEnv` (``sandbox``, ``backend``, ``keep_sandbox_for_scoring``) and to `StatefulToolEnv`
                (``tools``, ``dataset``, ``rubric``, ``max_turns``, ...).

        Raises:
            ConfigurationError: If no such sandbox can be made here: the text says what to install.
        """
        limit = timeout_per_command_seconds
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
            raise ConfigurationError(f"timeout_per_command_seconds must be a number of seconds above 0, got {limit!r}")
        stop_errors = [SandboxError] if stop_errors is None else stop_errors
        super().__init__(stop_errors=stop_errors, **kwargs)
        self.timeout_per_command_seconds = timeout_per_command_seconds
        self.add_rubric(SandboxMonitorRubric())
        self.add_tool(self.bash, args_to_skip=["sandbox_id", "sandbox_state", "working_dir"])

    @hook
    async def setup_state(self, state: State) -> State:
        """Make the sandbox."""
        began = time.perf_counter()
        await self.lease_sandbox(state)
        state["sandbox_state"] = {"ready": True, "ready_wait_time": time.perf_counter() - began, "command_execution_times": []}
        return state

    @hook
    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the arguments of a tool, with the hidden ones of ``bash`` (see `StatefulToolEnv`)."""
        if tool_name != "bash":
            return tool_args
        hidden = {name: state.get(name) for name in ("sandbox_id", "sandbox_state", "working_dir")}
        return {**tool_args, **hidden}

    async def bash(self, command: str, sandbox_id: str, sandbox_state: SandboxState, working_dir: str | None = None) -> str:
        """Execute `command` inside persistent sandbox container."""
        limit, began = self.timeout_per_command_seconds, time.perf_counter()
        times = sandbox_state["command_execution_times"]
        try:
            result = await find_sandbox(sandbox_id).exec(command, timeout=limit, working_dir=working_dir)
        except OSError as error:  # the model has removed the folder that it works in
            return f"Error: {error}"
        if result.timed_out:
            times.append(limit)
            return f"Error: Command timed out after {limit:g}s"
        times.append(time.perf_counter() - began)
        return describe_result(result)


def describe_result(result: ExecResult) -> str:
    """Return what a command printed, as the model reads it."""
    stdout, stderr = result.stdout.strip(), result.stderr.strip()
    return "\n".join(part for part in (stdout, f"stderr:\n{stderr}" if stderr else "") if part) or NO_OUTPUT
