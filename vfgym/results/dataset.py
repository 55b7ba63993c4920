"""Results as a Hugging Face data set, and on the Hub."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vfgym.results.metadata import GenerateMetadata, GenerateOutputs
from vfgym.results.plain_json import as_json

if TYPE_CHECKING:
    from datasets import Dataset

_TYPED = {
    **dict.fromkeys(("example_id", "rollout"), "int64"),
    **dict.fromkeys(("reward", "counted_reward", "failure_reward", "return"), "float64"),
    **dict.fromkeys(("failed", "is_completed", "is_truncated"), "bool"),
    **dict.fromkeys(("ending", "stop_condition", "error_chain", "long_error_chain", "fingerprint"), "string"),
}
"""Columns that have the same type in every data set of results, so that those of several runs can be joined."""

_FREE = frozenset(
    {
        *("prompt", "completion", "info", "error", "timing", "metrics", "metrics_errors", "cleanup_errors"),
        *("tool_defs", "token_usage", "step_rewards", "trajectory", "human"),
    }
)
"""Columns that hold whatever their environment puts there."""

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"int64": (int,), "float64": (int, float), "bool": (bool,), "string": (str,)}
_LONGEST_NAME = 96
"""Characters that the Hub allows for the name of a repository."""


def results_dataset(outputs: GenerateOutputs | Sequence[Mapping[str, Any]]) -> Dataset:
    """Return results as a data set with one row for each rollout, and a column for each key that any of them has.

    Keys that are the same in all runs have a fixed type. What differs from row to row (messages, ``info``, metrics, errors) is a
    column of type `datasets.Json`, which gives the Python values back (numbers to 15 digits). Other keys, such as
    metrics under their own names, are numbers, text or truth values where all rows agree, and JSON otherwise.

    Args:
        outputs: What a run gave, or its rows.
    """
    rows = outputs["outputs"] if isinstance(outputs, Mapping) else outputs
    return rows_dataset([as_json(row, fallback=repr) for row in rows], typed=_TYPED, free=_FREE, kinds=("float64", "string", "bool"))


def rows_dataset(
    rows: Sequence[Mapping[str, Any]],
    *,
    typed: Mapping[str, str] | None = None,
    free: Collection[str] = (),
    kinds: Sequence[str] = ("int64", "float64", "string", "bool"),
) -> Dataset:
    """Return rows of plain JSON data as a data set, with a column for each key that any of them has.

    Args:
        rows: The rows.
        typed: The type that a column has if its values fit.
        free: Columns that are JSON in any case.
        kinds: Types that a column may have otherwise; the first that fits all its values, else JSON.
    """
    from datasets import Dataset, Features, Json, Value

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, list[Any]] = {}
    features: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        own = (typed or {}).get(name)
        candidates = kinds if own is None else (own, *kinds)
        kind = None if name in free else _common_type(candidates, values) if any(value is not None for value in values) else own
        if kind is None:
            features[name], columns[name] = Json(), [None if value is None else json_column_text(value) for value in values]
        else:
            features[name] = Value(kind)
            columns[name] = [_as_utf8(value) if isinstance(value, str) else value for value in values]
    return Dataset.from_dict(columns, features=Features(features))


def _common_type(kinds: Sequence[str], values: Sequence[Any]) -> str | None:
    """Return the first of several types that all values fit; None if they have to be JSON."""
    present = [value for value in values if value is not None]
    return next((kind for kind in kinds if _fits(kind, present)), None)


def _fits(kind: str, values: Sequence[Any]) -> bool:
    types = _PYTHON_TYPES[kind]
    limit = 2**63 if kind == "int64" else 2**53  # a double holds whole numbers up to there
    return all(type(value) in types and not (type(value) is int and abs(value) >= limit) for value in values)


def json_column_text(value: Any) -> str:
    """Return what goes into a column of JSON for a value.

    Encoded beforehand, since such a column takes text that happens to be JSON ("42") for what it says (datasets 5.2).
    """
    return _as_utf8(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _as_utf8(text: str) -> str:
    """Return text that Arrow can hold: half a surrogate pair, which a model's cut text may end with, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def hub_name(metadata: GenerateMetadata) -> str:
    """Return what results are called on the Hub: ``{env_id}_{model}_n{num_examples}_r{rollouts_per_example}``.

    Characters that a repository's name cannot have are replaced.

    >>> hub_name({"env_id": "me/sums", "model": "vendor/m:x", "num_examples": 5, "rollouts_per_example": 2})
    'me_sums_vendor_m-x_n5_r2'
    """
    suffix = f"_n{metadata['num_examples']}_r{metadata['rollouts_per_example']}"
    name = f"{metadata['env_id']}_{metadata['model']}".replace("/", "_")
    name = re.sub(r"([-.])\1+", r"\1", re.sub(r"[^A-Za-z0-9_.-]", "-", name)).lstrip("-.")
    return name[: _LONGEST_NAME - len(suffix)] + suffix


def push_to_hub(outputs: GenerateOutputs, dataset_name: str | None = None, **kwargs: Any) -> str:
    """Upload results to the Hugging Face Hub, for the account that is logged in.

    Args:
        outputs: What a run gave.
        dataset_name: Name of the repository, ``name`` or ``account/name``; that of `hub_name` by default.
        **kwargs: Passed to `datasets.Dataset.push_to_hub` (``private``, ``split``, ``token``, ...).

    Returns:
        The name.

    Raises:
        Exception: Whatever `datasets` raises where the Hub cannot be reached or refuses.
    """
    name = dataset_name or hub_name(outputs["metadata"])
    results_dataset(outputs).push_to_hub(name, **kwargs)
    return name
