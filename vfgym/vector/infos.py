"""The infos of several environments as one dict of arrays, as Gymnasium's vector environments give them."""

from __future__ import annotations

import itertools
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
    return _batch(range(len(infos)), infos, len(infos))


def _batch(ids: Sequence[int], infos: Sequence[Mapping[str, Any]], count: int) -> dict[str, Any]:
    """Return the infos of some of `count` environments as one."""
    batch: dict[str, Any] = {}
    shapes = dict.fromkeys(map(tuple, infos))
    for key in dict.fromkeys(itertools.chain.from_iterable(shapes)):
        if len(shapes) == 1 or all(key in shape for shape in shapes):
            having, values = ids, [info[key] for info in infos]
        else:
            having = [index for index, info in zip(ids, infos, strict=True) if key in info]
            values = [info[key] for info in infos if key in info]
        batch[key] = _column(key, having, values, count)
        batch[f"_{key}"] = mask = np.zeros(count, dtype=np.bool_)
        mask[_places(having, count)] = True
    return batch


def _column(key: str, ids: Sequence[int], values: list[Any], count: int) -> Any:
    """Return a value of some environments as an array of all, or as a dict of arrays."""
    first, kinds = values[0], {*map(type, values)}
    kind = type(first)
    if key == "final_obs":
        column = np.empty(count, dtype=object)  # of None
    elif isinstance(first, dict) and all(issubclass(each, dict) for each in kinds):
        return _batch(ids, values, count)
    elif kind in (int, float, bool) or isinstance(first, np.number):
        column = np.zeros(count, dtype=kind)
        if len(kinds) == 1:
            column[_places(ids, count)] = values
            return column
    elif isinstance(first, np.ndarray):
        column = np.zeros((count, *first.shape), dtype=first.dtype)
    else:
        column = np.empty(count, dtype=object)
    for index, value in zip(ids, values, strict=True):
        column[index] = value
    return column


def _places(ids: Sequence[int], count: int) -> Any:
    """Return what stands for some of `count` places in an array: an index for all is faster than one for each."""
    return slice(None) if len(ids) == count else ids
