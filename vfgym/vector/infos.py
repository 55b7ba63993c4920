"""The infos of several environments as one dict of arrays, as Gymnasium's vector environments give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def batch_infos(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the infos of several environments as one.

    Each key has an array with an item for each environment (for values that are dicts: a dict of such arrays), and ``_key`` a mask that
    says which environments have it. The first value decides on the type of the array: numbers and arrays have their own, all else are
    objects.

    Args:
        infos: The infos, in the order of the environments.
    """
    batch: dict[str, Any] = {}
    for key in dict.fromkeys(key for info in infos for key in info):
        has = [key in info for info in infos]
        batch[key] = _column(key, [info.get(key) for info in infos], has)
        batch[f"_{key}"] = np.array(has, dtype=np.bool_)
    return batch


def _column(key: str, values: list[Any], has: list[bool]) -> Any:
    """Return one value of each environment as an array, or as a dict of arrays."""
    first = values[has.index(True)]
    if isinstance(first, dict) and key != "final_obs":
        return batch_infos([value if isinstance(value, dict) else {} for value in values])
    column = _empty_column(key, first, len(values))
    for index, value in enumerate(values):
        if has[index]:
            column[index] = value
    return column


def _empty_column(key: str, first: Any, count: int) -> np.ndarray[Any, Any]:
    if key != "final_obs":
        if type(first) in (int, float, bool) or isinstance(first, np.number):
            return np.zeros(count, dtype=type(first))
        if isinstance(first, np.ndarray):
            return np.zeros((count, *first.shape), dtype=first.dtype)
    return np.full(count, fill_value=None, dtype=object)
