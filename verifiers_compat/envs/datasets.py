"""Tasks as Hugging Face datasets, for whoever asks an environment for one.

Inside, tasks stay rows: a Dataset needs one type for each column, and fills what rows do not have with None.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from vfgym import __version__
from vfgym.errors import ConfigurationError
from vfgym.results.dataset import json_column_text, rows_dataset
from vfgym.results.plain_json import NotPlain, as_json
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
    from datasets import Features, Json, Value

    dataset = rows.dataset.remove_columns([name for name in rows.dataset.column_names if name in tasks.dropped])
    features = {**dataset.features, "prompt": Json(), "example_id": Value("int64")}
    if tasks.renames_ids:
        features["src_id"] = dataset.features["example_id"]
    options = {"new_fingerprint": _fingerprint(dataset, tasks), **map_kwargs}
    with without_progress_bars():
        made = dataset.map(_prompt_and_id, with_indices=True, fn_kwargs={"tasks": tasks}, features=Features(features), **options)
    return cast("Dataset", made)


def _fingerprint(dataset: Dataset, tasks: Tasks) -> str:
    """Return what names the tasks that are made of a dataset, so that ``datasets`` finds them in its cache again.

    It cannot hash the tasks, and would say so and draw a name. All that makes a prompt of a row shows in these two.
    """
    from datasets.fingerprint import Hasher

    of_question = tasks.build_prompt({"question": "?"})
    samples = [of_question, tasks.with_system_prompt(of_question[-1:])]
    name: str = Hasher.hash(json.dumps([__version__, dataset._fingerprint, as_json(samples), sorted(tasks.dropped)]))
    return name


@contextlib.contextmanager
def without_progress_bars() -> Iterator[None]:
    """Draw no bar for what ``datasets`` does inside a ``with`` block, unless the user's environment asks for them; then go on as before."""
    import datasets

    if datasets.are_progress_bars_disabled() or datasets.config.HF_DATASETS_DISABLE_PROGRESS_BARS is not None:
        yield
        return
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.enable_progress_bars()


def _prompt_and_id(row: Mapping[str, Any], index: int, tasks: Tasks) -> dict[str, Any]:
    task = _with_given_text(tasks.input(index))
    kept = {"src_id": task["src_id"]} if tasks.renames_ids else {}
    return {**kept, "prompt": json_column_text(as_json(task["prompt"])), "example_id": task["example_id"]}


def _with_given_text(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task whose prompt is text again, where the row has text for it."""
    prompt = task["prompt"]
    is_text = len(prompt) == 1 and prompt[0]["role"] == "text"
    return {**task, "prompt": prompt[0]["content"]} if is_text else task


def first_tasks(tasks: Tasks, count: int) -> Dataset:
    """Return the first `count` tasks as a Dataset: a column of mixed types holds JSON.

    Raises:
        ConfigurationError: If something in a row has no form in JSON.
    """
    rows = []
    for index in range(count):
        try:
            rows.append(as_json(_with_given_text(tasks.input(index))))
        except NotPlain as error:
            raise ConfigurationError(f"row {index} cannot be part of a Dataset: {error}") from None
    return rows_dataset(rows, free=("prompt",))


def view_of(dataset: Dataset, n: int, seed: int | None) -> Dataset:
    """Return the first `n` rows (all of them where it is not positive), shuffled before where there is a seed.

    The dataset itself stays as it is.
    """
    if seed is not None:
        dataset = dataset.shuffle(seed=seed)
    return dataset.select(range(min(n, len(dataset)))) if n > 0 else dataset
