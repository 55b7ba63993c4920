"""`Taskset`: tasks, and what belongs to them whoever solves them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from verifiers_compat.v1.config import TasksetConfig, resolve_reference
from verifiers_compat.v1.participant import Participant
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import InvalidTask, Task
from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError
from vfgym.interception.wire import plain_data

if TYPE_CHECKING:
    from datasets import Dataset

Source: TypeAlias = "Iterable[Mapping[str, Any]] | Any"
"""Rows, or a function without arguments that returns them, or a ``"module:object"`` reference to either."""


class Taskset(Participant):
    """Tasks, and what belongs to them: tools, a user, stop conditions, rewards.

    Mark methods of a subclass (``@vf.reward``, ``@vf.stop``, ...), or give functions. Handlers ask for ``task`` and ``state``
    by name; those that see whole groups (``stage="group"``) for ``tasks`` and ``states``.
    """

    config_type: ClassVar[type[TasksetConfig]] = TasksetConfig

    def __init__(
        self,
        source: Source = None,
        eval_source: Source = None,
        taskset_id: str | None = None,
        system_prompt: Any = None,
        user: Any = None,
        toolsets: Any = (),
        stops: Iterable[Any] = (),
        setups: Iterable[Any] = (),
        updates: Iterable[Any] = (),
        metrics: Iterable[Any] = (),
        rewards: Iterable[Any] = (),
        advantages: Iterable[Any] = (),
        cleanups: Iterable[Any] = (),
        config: TasksetConfig | Mapping[str, object] | None = None,
    ) -> None:
        """Make a taskset.

        Args:
            source: Rows of tasks: an iterable of dicts, or a function without arguments that returns one.
            eval_source: Those for evaluation; `source` without it.
            taskset_id: Name of the taskset in its tasks; the name of the class by default.
            system_prompt: Text, or system messages.
            user: A `User`, or a function (see there).
            toolsets: A list of toolsets or tools, or toolsets by name.
            stops: Stop conditions.
            setups: Called before the program runs.
            updates: Called after it.
            metrics: Measures.
            rewards: Reward functions.
            advantages: Functions that compute a group's advantages.
            cleanups: Called at the end of every rollout.
            config: Configuration, of the class that `config_type` names, or a mapping with its fields. Lists are added to it,
                other arguments win over it.

        Raises:
            ConfigurationError: If something does not fit.
        """
        arguments = {"source": source, "eval_source": eval_source, "taskset_id": taskset_id, "system_prompt": system_prompt, "user": user}
        lists = {"stops": stops, "setups": setups, "updates": updates, "metrics": metrics, "rewards": rewards}
        lists |= {"advantages": advantages, "cleanups": cleanups}
        super().__init__(config, arguments, toolsets, lists)
        self.taskset_id = self.config.taskset_id or type(self).__name__
        self._rows: dict[str, list[dict[str, Any]]] = {}

    # Rows

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the training tasks. They are loaded once."""
        return self._load_rows("train")

    def eval_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the evaluation tasks: the training tasks' where there are no others."""
        return self.rows() if self.config.eval_source is None else self._load_rows("eval")

    def has_rows(self, split: str) -> bool:
        """Say whether there is a source of rows for the split ``"train"`` or ``"eval"`` itself."""
        overridden = type(self).rows is not Taskset.rows if split == "train" else type(self).eval_rows is not Taskset.eval_rows
        return overridden or self._source_of(split) is not None

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the training tasks."""
        return map(self.task, self._rows_of("train"))

    def __len__(self) -> int:
        """Return how many training tasks there are."""
        return len(self._rows_of("train"))

    def __bool__(self) -> bool:
        """A taskset is true, whatever its rows are: they may take long to load."""
        return True

    def _source_of(self, split: str) -> Any:
        return self.config.source if split == "train" else self.config.eval_source

    def _load_rows(self, split: str) -> list[dict[str, Any]]:
        if split not in self._rows:
            source = resolve_reference(self._source_of(split))
            if source is None:
                raise ConfigurationError(
                    f"{type(self).__name__} has no tasks: give source= (rows, or a function without arguments that returns them), or"
                    " write a method rows()"
                )
            rows = self._check_rows(source() if callable(source) else source, "source")
            self._rows[split] = [{"example_id": number, **row} for number, row in enumerate(rows)]
        return [dict(row) for row in self._rows[split]]

    def _rows_of(self, split: str) -> list[Mapping[str, Any]]:
        """Return the rows of a split as the class gives them, which may have its own methods for that."""
        return self._check_rows(self.rows(), "rows()") if split == "train" else self._check_rows(self.eval_rows(), "eval_rows()")

    def _check_rows(self, rows: Any, where: str) -> list[Mapping[str, Any]]:
        of_class = f"{where} of {type(self).__name__}"
        if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
            raise ConfigurationError(
                f"{of_class} must be rows (an iterable of dicts), or a function without arguments that returns them; got"
                f" {type(rows).__name__}"
            )
        checked: list[Mapping[str, Any]] = list(rows)
        for number, row in enumerate(checked):
            if not isinstance(row, Mapping):
                raise ConfigurationError(f"{of_class}: row {number} must be a dict, got {type(row).__name__}")
        return checked

    def task(self, row: Mapping[str, Any]) -> Task:
        """Return a row as a frozen task that knows its taskset and has an id."""
        own_id = next((row[key] for key in ("task_id", "id", "example_id") if row.get(key) is not None), None)
        fields = {**row, "taskset_id": self.taskset_id, "task_id": uuid.uuid4().hex if own_id is None else str(own_id)}
        if fields.get("prompt") is None:
            fields["prompt"] = [{"role": "user", "content": fields["question"]}] if fields.get("question") is not None else []
        return Task(fields).freeze()

    def to_task(self, value: Mapping[str, Any] | Task | str) -> Task:
        """Return a task in any of its forms as a frozen `Task`.

        Args:
            value: A task; a row; a task as JSON text; or a row of `get_dataset`, which carries one in ``info["task"]``.

        Raises:
            ConfigurationError: If it is none of these.
        """
        if isinstance(value, str):
            try:
                value = parse_json(value)
            except ValueError as error:
                raise InvalidTask(f"a task given as text must be JSON: {error}") from None
        if isinstance(value, Task):
            return value.freeze()
        if not isinstance(value, Mapping):
            raise InvalidTask(f"a task must be a dict, or one as JSON text; got {type(value).__name__}")
        info = value.get("info")
        info = parse_json(info) if isinstance(info, str) else info
        carried = info.get("task") if isinstance(info, Mapping) else None
        if carried is not None:
            return self.to_task(carried)
        return Task(value).freeze() if "task_id" in value and "taskset_id" in value else self.task(value)

    # Groups

    async def init_group(self, task: Task, num_rollouts: int) -> tuple[list[Task], list[State]]:
        """Return the tasks and states that the rollouts of one group start from: the same task, a fresh state each.

        Override it to give each its own; the rollouts are then always played in groups.
        """
        return [task] * num_rollouts, [State.for_task(task) for _ in range(num_rollouts)]

    @property
    def requires_group_rollouts(self) -> bool:
        """Whether something has to see whole groups."""
        return type(self).init_group is not Taskset.init_group or any(handler.stage == "group" for handler in self.handlers)

    # Datasets

    def dataset_rows(self, split: str = "train") -> list[dict[str, Any]]:
        """Return the tasks as rows of a dataset, which carry the whole task in ``info["task"]``, as JSON text."""
        return [_dataset_row(self.task(row), number) for number, row in enumerate(self._rows_of(split))]

    def get_dataset(self) -> Dataset:
        """Return the training tasks as a ``datasets.Dataset`` (see `dataset_rows`)."""
        return _dataset(self.dataset_rows("train"))

    def get_eval_dataset(self) -> Dataset:
        """Return the evaluation tasks as a ``datasets.Dataset``."""
        return _dataset(self.dataset_rows("eval"))


def _dataset_row(task: Task, number: int) -> dict[str, Any]:
    example_id = task.get("example_id", number)
    row: dict[str, Any] = {
        "prompt": plain_data(task["prompt"]),
        "example_id": example_id if type(example_id) is int else number,
        "info": {"task": json.dumps(task)},
    }
    if task.get("answer") is not None:
        row["answer"] = plain_data(task["answer"])
    return row


def _dataset(rows: Sequence[dict[str, Any]]) -> Dataset:
    from datasets import Dataset

    columns = dict.fromkeys(key for row in rows for key in row)  # a Dataset takes its columns from the first row
    return Dataset.from_list([{key: row.get(key) for key in columns} for row in rows])
