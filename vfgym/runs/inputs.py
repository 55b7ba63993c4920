"""What a run plays: inputs in groups, one group for each example, and each member of a group one rollout of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from vfgym.errors import ConfigurationError
from vfgym.tasks import Row, Tasks, as_integer, whole_row


@dataclass(frozen=True, slots=True)
class Example:
    """One example and how often it is rolled out."""

    example_id: int
    rows: list[Row] | int
    """The row of each rollout; or the position of the one row in the tasks."""
    num_rollouts: int
    place: int = 0
    """Its place among all examples, from which the seeds of its rollouts follow."""


_SEEDS_IN_BLOCK = 1024


class Seeds:
    """The seeds of a run's rollouts: each follows from the run's, its example's place and its number alone, whatever else is played."""

    def __init__(self, seed: int) -> None:
        """Take the seed of the run, from 0."""
        self._seed = seed
        self._blocks: dict[int, tuple[int, np.ndarray[Any, Any]]] = {}
        """For each number, the block of seeds that was used last: making one alone takes 10 µs."""

    def of(self, example: Example, number: int) -> int:
        """Return the seed of a rollout, from its `number` within the example."""
        block, index = divmod(example.place, _SEEDS_IN_BLOCK)
        if number not in self._blocks or self._blocks[number][0] != block:
            seeds = np.random.SeedSequence([self._seed, number, block]).generate_state(_SEEDS_IN_BLOCK)
            self._blocks[number] = block, seeds
        return int(self._blocks[number][1][index])


class Inputs(Protocol):
    """Examples in order, and the task of each of their rollouts."""

    tasks: Tasks
    """Says how a row becomes a task."""
    num_examples: int
    num_rollouts: int
    rollouts_per_example: int

    def examples(self) -> Iterator[Example]:
        """Give the examples in order."""
        ...

    def task(self, example: Example, number: int) -> dict[str, Any]:
        """Return the task of one rollout, as its own."""
        ...


class TaskInputs:
    """The first tasks of an environment, each rolled out several times. Nothing is made before it is played."""

    def __init__(self, tasks: Tasks, num_examples: int, rollouts_per_example: int, example_ids: Sequence[int] | None = None) -> None:
        """Take the first `num_examples` of `tasks` (-1 for all of them), or those with certain ids.

        Raises:
            ConfigurationError: If there are none, or a number or an id does not fit.
        """
        if rollouts_per_example < 1:
            raise ConfigurationError(f"rollouts_per_example must be positive, got {rollouts_per_example}")
        if example_ids is not None:
            self._places = self._places_of(tasks, example_ids, num_examples)
        elif tasks.is_endless and num_examples <= 0:
            raise ConfigurationError("the tasks have no end: say how many to play with num_examples")
        else:
            available = len(tasks)
            if available == 0:
                raise ConfigurationError("there are no examples to play: the dataset is empty")
            self._places = range(available if num_examples <= 0 else min(num_examples, available))
        self.tasks = tasks
        self.num_examples = len(self._places)
        self.rollouts_per_example = rollouts_per_example
        self.num_rollouts = self.num_examples * rollouts_per_example

    @staticmethod
    def _places_of(tasks: Tasks, example_ids: Sequence[int], num_examples: int) -> Sequence[int]:
        if num_examples > 0:
            raise ConfigurationError("num_examples and example_ids both say what is played: give one of them")
        places = [tasks.index_of(example_id) for example_id in example_ids]
        if not places:
            raise ConfigurationError("example_ids names no examples")
        if len(set(places)) < len(places):
            raise ConfigurationError("example_ids names an example twice: rollouts_per_example says how often each is played")
        return places

    def examples(self) -> Iterator[Example]:
        """Give the examples in order."""
        for place in self._places:
            yield Example(self.tasks.example_id_of(place), place, self.rollouts_per_example, place)

    def task(self, example: Example, number: int) -> dict[str, Any]:
        """Return the task of one rollout, as its own."""
        return self.tasks.input(example.rows)  # type: ignore[arg-type]


class ListedInputs:
    """Rows that were given; those with the same ``example_id`` are rollouts of one example."""

    def __init__(self, tasks: Tasks, rows: Iterable[Row]) -> None:
        """Take `rows`.

        Args:
            tasks: Says how a row becomes a task (system prompt, few-shot messages).
            rows: Rows, or inputs made of them. A row without ``example_id`` is an example of its own.

        Raises:
            ConfigurationError: If there are no rows, or one of them is not a row.
        """
        self.tasks = tasks
        self._groups: dict[Any, list[Row]] = {}
        for position, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise ConfigurationError(f"inputs must be rows (dicts), got {type(row).__name__} as number {position}")
            whole = whole_row(row)
            self._groups.setdefault(_group_of(whole, position), []).append(whole)
        if not self._groups:
            raise ConfigurationError("there are no inputs to play")
        self.num_examples = len(self._groups)
        self.num_rollouts = sum(map(len, self._groups.values()))
        self.rollouts_per_example = self.num_rollouts // self.num_examples

    def examples(self) -> Iterator[Example]:
        """Give the examples in the order in which they were first met."""
        taken = {key for key in self._groups if isinstance(key, int)}  # other groups take the numbers that are free
        free = (number for number in range(self.num_rollouts + len(taken)) if number not in taken)
        for place, (key, rows) in enumerate(self._groups.items()):
            yield Example(key if isinstance(key, int) else next(free), rows, len(rows), place)

    def task(self, example: Example, number: int) -> dict[str, Any]:
        """Return the task of one rollout, as its own."""
        return task_of_row(self.tasks, example, number)


def task_of_row(tasks: Tasks, example: Example, number: int) -> dict[str, Any]:
    """Return the task of a rollout of an example that has a row for each, as its own."""
    row = example.rows[number]  # type: ignore[index]
    task = tasks.copy_input(row, f"rollout {number} of the input with example_id {example.example_id}")
    own_id = task.get("example_id")
    if own_id is not None and own_id != example.example_id:
        task["src_id"] = own_id
    return {**task, "example_id": example.example_id}


def _group_of(row: Row, position: int) -> Any:
    """Return what rows of one example have in common: the integer that is their id, their id of another kind, or nothing."""
    example_id = row.get("example_id")
    if isinstance(example_id, float) and example_id.is_integer():  # a column with gaps, as pandas has it
        return int(example_id)
    integer = as_integer(example_id)
    if integer is not None:
        return integer
    return ("row", position) if example_id is None else ("id", repr(example_id))
