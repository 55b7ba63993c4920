"""`plan_tasks`: what a run would play, without playing it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from vfgym.runs.evaluate import check_counts, find_inputs
from vfgym.runs.inputs import TaskInputs
from vfgym.runs.pairs import find_pairs
from vfgym.runs.replicas import EnvLike, Replicas


def plan_tasks(
    env: EnvLike,
    *,
    env_args: dict[str, Any] | None = None,
    num_examples: int = -1,
    rollouts_per_example: int = 1,
    max_concurrent: int = 64,
    max_retries: int = 0,
    seed: int = 0,
    split: Literal["train", "eval"] = "eval",
    example_ids: Iterable[int] | None = None,
    both_seats: bool = False,
) -> TaskInputs:
    """Return what `vfgym.evaluate` would play with these arguments; the environment is made for that, and closed.

    Raises:
        ConfigurationError: If the environment or an argument cannot work.
    """
    check_counts(num_examples, rollouts_per_example, max_concurrent, max_retries, seed)
    replicas = Replicas()
    try:
        definition = replicas.open(env, dict(env_args or {}))
        if both_seats:
            find_pairs(definition, rollouts_per_example)
            rollouts_per_example *= 2
        return find_inputs(definition, split, num_examples, rollouts_per_example, example_ids)
    finally:
        replicas.close()
