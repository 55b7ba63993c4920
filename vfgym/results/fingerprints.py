"""Fingerprints: which task a row is of, whatever its place in the data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from vfgym.results.plain_json import as_json

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint_of(task: Mapping[str, Any]) -> str:
    """Return the fingerprint of a task: 16 hex digits that are the same in every process and at every place in a data set.

    It is taken of all that an episode starts from (``prompt``, ``answer``, ``info`` and any more) but for the ``example_id``,
    so it has to be taken before the episode, whose hooks may write to its input.

    Args:
        task: The input of an episode, as `vfgym.tasks.Tasks.input` returns it.

    >>> fingerprint_of({"example_id": 0, "question": "2 + 2?"}) == fingerprint_of({"question": "2 + 2?", "example_id": 7})
    True
    """
    columns = {key: value for key, value in task.items() if key != "example_id"}
    try:
        text = _CANONICAL.encode(columns)
    except (TypeError, ValueError):
        text = _CANONICAL.encode(as_json(columns, fallback=_stable))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _stable(value: Any) -> str:
    # The repr of most objects holds their address, which differs from process to process.
    return repr(bytes(value)) if isinstance(value, bytes | bytearray | memoryview) else f"<{type(value).__qualname__}>"
