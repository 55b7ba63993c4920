"""`TaskSet` and `SandboxTaskSet`: rows, and what there is to do in a sandbox for each of them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from verifiers_compat.envs.experimental.composable.hooks import call_hook
from verifiers_compat.loading import create_getattr
from vfgym.errors import ConfigurationError, HookMissing

_IN_FILTERS = {func.__name__: func for func in (abs, all, any, bool, float, int, isinstance, len, max, min, set, sorted, str, sum)}


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


@dataclass(frozen=True)
class Task:
    """A row of a `TaskSet`, with what its sandbox is asked for."""

    taskset: TaskSet
    prompt: Any
    info: dict[str, Any]
    answer: str = ""

    @property
    def sandbox_spec(self) -> SandboxSpec | None:
        """What its sandbox is asked for; None where it asks for nothing."""
        return self.taskset.get_sandbox_spec(self.info)

    @property
    def image(self) -> str | None:
        """The image of its sandbox."""
        return None if self.sandbox_spec is None else self.sandbox_spec.image

    @property
    def workdir(self) -> str:
        """Its working directory."""
        return self.taskset.get_workdir(self.info)


class TaskSet:
    """Rows with an ``info`` each, and what follows from it: the instruction, the sandbox, the score. A subclass writes the hooks."""

    default_workdir = "/app"

    def __init__(self, dataset: Any, name: str = "", filter_fn: str | None = None) -> None:
        """Take rows.

        Args:
            dataset: A data set, a list, or a function that returns one.
            name: What the tasks are called.
            filter_fn: A function of a row as Python code, ``"lambda row: row['info']['level'] > 3"``: only rows for which it is true are
                taken. It is run as it stands, so it must be yours.
        """
        self._dataset = dataset
        self.name = name
        self._predicate = None if filter_fn is None else _read_filter(filter_fn)

    # The rows

    @property
    def dataset(self) -> Any:
        """The rows as they were given, those that are taken."""
        if callable(self._dataset):
            self._dataset = self._dataset()
        if self._predicate is not None:
            self._dataset, self._predicate = _filtered(self._dataset, self._predicate), None
        return self._dataset

    def get_dataset(self) -> Any:
        """Return the rows, each with its instruction as the prompt, unless it has its own."""
        return _mapped(self.dataset, self._with_prompt)

    def _with_prompt(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if "prompt" in row:
            return dict(row)
        return {**row, "prompt": [{"role": "user", "content": self.get_instruction(row.get("info") or {})}]}

    def filter(self, predicate: Callable[[dict[str, Any]], bool]) -> Self:
        """Return this task set with the rows for which a function is true."""
        return self.with_dataset(_filtered(self.dataset, predicate))

    def take(self, n: int) -> Self:
        """Return this task set with its first rows."""
        rows = self.dataset
        return self.with_dataset(rows.select(range(min(n, len(rows)))) if hasattr(rows, "select") else list(rows)[:n])

    def with_dataset(self, dataset: Any) -> Self:
        """Return this task set with other rows."""
        other = copy.copy(self)
        other._dataset, other._predicate = dataset, None
        return other

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Task:
        row = self._with_prompt(self.dataset[index])
        return Task(self, row["prompt"], row.get("info") or {}, row.get("answer", ""))

    def __iter__(self) -> Iterator[Task]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, len={len(self)})"

    # What a subclass writes

    def get_instruction(self, info: dict[str, Any]) -> str:
        """Return what is to be done. Write it."""
        self._must_write("get_instruction(info)")

    def get_rubric(self) -> Any:
        """Return the rubric that scores rollouts. Write it."""
        self._must_write("get_rubric()")

    def get_sandbox_spec(self, info: dict[str, Any]) -> SandboxSpec | None:
        """Return what the sandbox of a task is asked for; None for what the environment says."""
        return None

    def get_workdir(self, info: dict[str, Any]) -> str:
        """Return the working directory of a task."""
        return self.default_workdir

    def get_env_vars(self) -> dict[str, str]:
        """Return the environment variables of commands."""
        return {}

    def get_skills_dir(self) -> Any:
        """Return the folder of skills for agents: ``skills`` beside the module of the class; None where there is none."""
        return discover_sibling_dir(type(self), "skills")

    def get_upload_dirs(self) -> dict[str, Any]:
        """Return the folders that agents may be given, by name; the skills are called so."""
        skills = self.get_skills_dir()
        return {} if skills is None else {"skills": skills}

    async def setup(self, state: Any) -> None:
        """Prepare the sandbox."""

    async def validate_instance(self, state: Any) -> bool:
        """Say whether a task can be solved."""
        return True

    async def validate(
        self,
        n: int | None = None,
        concurrency: int = 10,
        *,
        out_path: str | Path | None = None,
        max_retries: int = 0,
        resume: bool = False,
        test_output_tail_chars: int = 2000,
        backend: str | None = None,
    ) -> list[dict[str, Any]]:
        """Say of each task whether it can be solved, by `setup` and `validate_instance` in a sandbox of its own.

        Args:
            n: How many tasks, the first ones; None for all.
            concurrency: How many at once.
            out_path: A file of JSON lines to which each row is added.
            max_retries: How often a task is tried again that failed with an error.
            resume: Whether tasks that the file has are not looked at again.
            test_output_tail_chars: How much of ``state["test_output"]`` is kept, its end.
            backend: What makes the sandboxes (see `vfgym.sandboxes`).

        Returns:
            A row for each task: ``index``, ``valid``, ``reason`` (``pass``, ``test_failed`` or ``error``), ``attempts``, ``elapsed``
            (seconds), ``error``, ``error_type``, ``test_output_tail``, ``instance_id`` and ``repo``.
        """
        from verifiers_compat.envs.experimental.composable.validation import Validation

        validation = Validation(self, max_retries, test_output_tail_chars, backend, out_path)
        return await validation.run(range(len(self) if n is None else min(n, len(self))), concurrency, resume)

    def _must_write(self, hook: str) -> NoReturn:
        raise HookMissing(f"{type(self).__name__} must write {hook}")


class SandboxTaskSet(TaskSet):
    """Tasks in sandboxes. ``state["sandbox"]`` is the sandbox of a task, and ``state["info"]`` its row's.

    ``state["sandbox_client"]`` works in it by its ``state["sandbox_id"]``. A class that writes the earlier hooks
    ``_apply_gold_patch(sandbox_client, sandbox_id, state)``, ``_run_tests(sandbox_client, sandbox_id, state, test_timeout)`` and
    ``_calculate_reward(test_output, info)`` is asked by these.
    """

    def get_sandbox_spec(self, info: dict[str, Any]) -> SandboxSpec:
        """Return what the sandbox of a task is asked for."""
        return SandboxSpec()

    async def apply_gold_patch(self, state: Any) -> None:
        """Do what solves the task. Write it."""
        if not hasattr(self, "_apply_gold_patch"):
            self._must_write("apply_gold_patch(state)")
        await self._apply_gold_patch(state["sandbox_client"], state["sandbox_id"], state)

    async def run_tests(self, state: Any, timeout: int = 900) -> str:
        """Run the tests, and return what they printed. Write it."""
        if not hasattr(self, "_run_tests"):
            self._must_write("run_tests(state, timeout)")
        return str(await self._run_tests(state["sandbox_client"], state["sandbox_id"], state, timeout))

    def score(self, output: str, info: dict[str, Any]) -> float:
        """Return the reward for what the tests printed. Write it."""
        if not hasattr(self, "_calculate_reward"):
            self._must_write("score(output, info)")
        return float(self._calculate_reward(output, info))

    async def validate_instance(self, state: Any) -> bool:
        """Say whether the tests reward what solves the task."""
        await call_hook(self.apply_gold_patch, state)
        state["test_output"] = await call_hook(self.run_tests, state)
        return float(await call_hook(self.score, state)) > 0


def discover_sibling_dir(taskset_cls: type, dirname: str) -> Path | None:
    """Return the folder of a name beside the module that a class is written in; None where there is none."""
    try:
        folder = Path(inspect.getfile(taskset_cls)).parent / dirname
    except (TypeError, OSError):  # written at a prompt
        return None
    return folder if folder.is_dir() else None


def resources_of(spec: SandboxSpec) -> dict[str, Any]:
    """Return what a sandbox is given for a task beside its image. A number of CPUs that is the default asks for none."""
    asked = {name: getattr(spec, name) for name in ("cpu_cores", "memory_gb", "disk_size_gb", "gpu_count", "timeout_minutes")}
    return {name: value for name, value in asked.items() if value is not None and (name, value) != ("cpu_cores", SandboxSpec.cpu_cores)}


def _read_filter(code: str) -> Callable[[dict[str, Any]], bool]:
    try:
        predicate = eval(code, {"__builtins__": _IN_FILTERS})
    except Exception as error:
        raise ConfigurationError(f"filter_fn must be a function of a row as Python code, got {code!r}: {error}") from None
    if not callable(predicate):
        raise ConfigurationError(f"filter_fn must be a function of a row as Python code, got {code!r}, which is {predicate!r:.100}")
    return predicate  # type: ignore[no-any-return]


def _filtered(rows: Any, predicate: Callable[[dict[str, Any]], bool]) -> Any:
    return rows.filter(predicate) if hasattr(rows, "filter") else [row for row in rows if predicate(row)]


def _mapped(rows: Any, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    return rows.map(change) if hasattr(rows, "map") else [change(row) for row in rows]


__all__ = ["SandboxSpec", "SandboxTaskSet", "Task", "TaskSet", "discover_sibling_dir"]

__getattr__ = create_getattr(__name__)
