"""Tasks as Hugging Face datasets, for whoever asks an environment for one.

Inside, tasks stay rows: a Dataset needs one type for each column, and fills what rows do not have with None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from vfgym.errors import ConfigurationError
from vfgym.results.plain_json import as_json
from vfgym.tasks import DatasetRows, Tasks

if TYPE_CHECKING:
    from datasets import Dataset


def tasks_dataset(tasks: Tasks, map_kwargs: Mapping[str, Any]) -> Dataset:
    """Return all tasks as a Dataset: each row with its ``prompt`` and ``example_id``.

    Args:
        tasks: The tasks.
        map_kwargs: For ``Dataset.map``, where the tasks come from a Dataset.

    Raises:
        ConfigurationError: If the tasks have no end.
    """
    if tasks.is_endless:
        raise ConfigurationError("the tasks have no end, so not all of them can be a Dataset: ask for some, get_dataset(n=...)")
    rows = tasks.rows
    if not isinstance(rows, DatasetRows):
        return first_tasks(tasks, len(tasks))
    made = rows.dataset.map(lambda _, index: _as_row(tasks.input(index)), with_indices=True, on_mixed_types="use_json", **map_kwargs)
    return cast("Dataset", made)


def first_tasks(tasks: Tasks, count: int) -> Dataset:
    """Return the first `count` tasks as a Dataset."""
    return rows_dataset([_as_row(tasks.input(index)) for index in range(count)])


def rows_dataset(rows: Sequence[Mapping[str, Any]]) -> Dataset:
    """Return rows as a Dataset with the columns of all of them; a column of mixed types holds JSON."""
    from datasets import Dataset

    columns = dict.fromkeys(key for row in rows for key in row)
    return cast("Dataset", Dataset.from_dict({name: [row.get(name) for row in rows] for name in columns}, on_mixed_types="use_json"))


def _as_row(task: Mapping[str, Any]) -> dict[str, Any]:
    return {**task, "prompt": as_json(task["prompt"])}


def view_of(dataset: Dataset, n: int, seed: int | None) -> Dataset:
    """Return the first `n` rows (all of them where it is not positive), shuffled before where there is a seed.

    The dataset itself stays as it is.
    """
    if seed is not None:
        dataset = dataset.shuffle(seed=seed)
    return dataset.select(range(min(n, len(dataset)))) if n > 0 else dataset
