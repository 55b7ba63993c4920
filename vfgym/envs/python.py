"""`PythonEnv`: the model runs cells with the tool ``python``, in one interpreter of its episode's sandbox, which keeps what they define."""

from __future__ import annotations

import time
from typing import Any, TypedDict

from vfgym.envs.python_packages import PackagesEnv
from vfgym.envs.sandbox import NO_OUTPUT, SandboxEnv, SandboxState
from vfgym.envs.sandboxed import find_sandbox
from vfgym.messages import Message
from vfgym.overrides import hook
from vfgym.rubrics import Rubric
from vfgym.sandboxes import CellResult
from vfgym.state import State


class PythonWorkerState(TypedDict):
    """What is known of the interpreter of an episode: ``state["python_state"]``."""

    ready: bool
    """Whether cells can run: always, once the episode is set up."""
    ready_wait_time: float
    """Seconds until they could: for the packages, and for the sandbox."""
    execution_count: int
    """How many cells have run."""


class PythonMonitorRubric(Rubric):
    """Measures interpreters: ``python_ready_wait_time``, in seconds."""

    def __init__(self) -> None:
        """Make the rubric."""
        super().__init__()
        self.add_metric(self.python_ready_wait_time)

    @property
    def timing_names(self) -> list[str]:
        """All of its metrics."""
        return self.metric_names

    def python_ready_wait_time(self, state: State) -> float:
        """Return how long it took until cells could run; 0.0 where none ever could."""
        return float(state["python_state"]["ready_wait_time"]) if "python_state" in state else 0.0


class PythonEnv(PackagesEnv, SandboxEnv):
    """An environment in which the model runs Python, with the tool ``python``, in a sandbox of its episode.

    What a cell defines is there for the next one. The model reads what a cell printed, its traceback, and the value of the expression
    that ends it: ``Out[3]: 42`` for the third cell. A cell that takes too long is interrupted; one that goes on all the same is killed,
    and what was defined is lost, which the model is told.

    What the interpreter of the model's cells answers is what the model has it say. It is ended before `post_rollout`: cells of the
    environment's own run in a new one, and what else grades can run in a new sandbox (`grading_sandbox`).
    """

    has_files_alone = False

    def __init__(self, pip_install_packages: str = "", **kwargs: Any) -> None:
        """Define an environment.

        Args:
            pip_install_packages: What ``pip install`` is given, such as ``"numpy sympy"``: requirements and options. They are installed
                once, outside the sandboxes, when the first episode begins, and are kept for all that ask for the same; sandboxes read them.
            **kwargs: Passed to `SandboxEnv` (``sandbox``, ``backend``, ``timeout_per_command_seconds``, ``dataset``, ...).

        Raises:
            ConfigurationError: If no such sandbox can be made here: the text says what to install; or if a spec has an interpreter
                beside the packages.
        """
        super().__init__(pip_install_packages=pip_install_packages, **kwargs)
        self.add_rubric(PythonMonitorRubric())
        self.remove_tool(self.bash)
        self.add_tool(self.python, args_to_skip=["sandbox_id", "sandbox_state", "python_state"])

    @hook
    async def setup_state(self, state: State) -> State:
        """Make the sandbox, with the packages."""
        state = await super().setup_state(state)
        waited = state["sandbox_state"]["ready_wait_time"]
        state["python_state"] = {"ready": True, "ready_wait_time": waited, "execution_count": 0}
        return state

    async def look_at_sandbox(self, state: State) -> None:
        """End the model's interpreter, which says what the model wants, then call `post_rollout`: its cells get a new one."""
        if state["sandbox"].is_alive:
            await state["sandbox"].end_interpreter()
        await super().look_at_sandbox(state)

    @hook
    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the arguments of a tool, with the hidden ones of ``python`` (see `StatefulToolEnv`)."""
        tool_args = super().update_tool_args(tool_name, tool_args, messages, state, **kwargs)
        if tool_name != "python":
            return tool_args
        return {**tool_args, **{name: state.get(name) for name in ("sandbox_id", "sandbox_state", "python_state")}}

    async def python(self, code: str, sandbox_id: str, sandbox_state: SandboxState, python_state: PythonWorkerState) -> str:
        """Execute `code` inside persistent Python REPL."""
        limit, began = self.timeout_per_command_seconds, time.perf_counter()
        result = await find_sandbox(sandbox_id).python(code, timeout=limit)
        sandbox_state["command_execution_times"].append(limit if result.timed_out else time.perf_counter() - began)
        python_state["execution_count"] = result.count
        return describe_cell(result, limit)


def describe_cell(result: CellResult, limit: float, most: int | None = None) -> str:
    """Return what came of a cell, as the model reads it.

    Args:
        result: What came of it.
        limit: Seconds that it was given.
        most: Most characters of what it printed and gave; None for all.
    """
    stdout, stderr = result.stdout.rstrip(), result.stderr.rstrip()
    parts = [stdout, f"stderr:\n{stderr}" if stderr else "", result.traceback or ""]
    if result.value is not None:
        parts.append(f"Out[{result.count}]: {result.value}")
    return end_text("\n".join(filter(None, parts)), result, limit, most)


def end_text(text: str, result: CellResult, limit: float, most: int | None, unit: str = "Cell") -> str:
    """Return what a cell printed and gave, cut at a length, with a line for each thing that went wrong with it."""
    parts = [text if most is None or len(text) <= most else f"{text[:most]}\n... [output truncated]"]
    if result.timed_out:
        parts.append(f"Error: {unit} timed out after {limit:g}s")
    if result.state_is_lost:
        parts.append("Error: The interpreter's state is lost: nothing that earlier cells defined is there any more")
    return "\n".join(filter(None, parts)) or NO_OUTPUT
