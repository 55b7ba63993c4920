"""`TaskSet` and `SandboxTaskSet`: rows, and what there is to do in a sandbox for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verifiers_compat.loading import create_getattr
from vfgym.errors import HookMissing


@dataclass(frozen=True)
class SandboxSpec:
    """What the sandbox of a task is asked for."""

    image: str = "python:3.11-slim"
    cpu_cores: int = 4
    memory_gb: float = 4
    disk_size_gb: float = 10
    gpu_count: int = 0
    gpu_type: str | None = None
    timeout_minutes: int | None = None


class TaskSet:
    """Rows with an ``info`` each, and the instruction that follows from it."""

    def __init__(self, dataset: Any, name: str = "") -> None:
        """Take rows: a data set, a list, or a function that returns one."""
        self._dataset = dataset
        self.name = name

    def get_dataset(self) -> Any:
        """Return the rows."""
        return self._dataset() if callable(self._dataset) else self._dataset

    def get_instruction(self, info: dict[str, Any]) -> str:
        """Return what is to be done. Write it."""
        raise HookMissing(f"{type(self).__name__} must write get_instruction(info)")


class SandboxTaskSet(TaskSet):
    """Tasks in sandboxes. A subclass writes the hooks; ``state["sandbox"]`` is the sandbox, ``state["info"]`` that of the row."""

    default_workdir = "/app"

    def get_sandbox_spec(self, info: dict[str, Any]) -> SandboxSpec:
        """Return what the sandbox of a task is asked for."""
        return SandboxSpec()

    def get_workdir(self, info: dict[str, Any]) -> str:
        """Return the working directory of a task."""
        return self.default_workdir

    def get_env_vars(self) -> dict[str, str]:
        """Return the environment variables of commands."""
        return {}

    async def setup(self, state: Any) -> None:
        """Prepare the sandbox."""

    async def apply_gold_patch(self, state: Any) -> None:
        """Do what solves the task. Write it."""
        raise HookMissing(f"{type(self).__name__} must write apply_gold_patch(state)")

    async def run_tests(self, state: Any, timeout: int = 900) -> str:
        """Run the tests, and return what they printed. Write it."""
        raise HookMissing(f"{type(self).__name__} must write run_tests(state, timeout)")

    def score(self, output: str, info: dict[str, Any]) -> float:
        """Return the reward for what the tests printed. Write it."""
        raise HookMissing(f"{type(self).__name__} must write score(output, info)")


__all__ = ["SandboxSpec", "SandboxTaskSet", "TaskSet"]

__getattr__ = create_getattr(__name__)
