"""`plan_tasks`: what a run would play, without playing it."""

from __future__ import annotations

from typing import Any

from vfgym.runs.evaluate import find_inputs
from vfgym.runs.inputs import TaskInputs
from vfgym.runs.pairs import find_pairs
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.spec import RunSettings


def plan_tasks(env: EnvLike, settings: RunSettings, env_args: dict[str, Any] | None = None) -> TaskInputs:
    """Return what `vfgym.evaluate` would play with these settings; the environment is made for that, and closed.

    Raises:
        ConfigurationError: If the environment or its tasks cannot work so.
    """
    replicas = Replicas()
    rollouts_per_example = settings.rollouts_per_example
    try:
        definition = replicas.open(env, dict(env_args or {}))
        if settings.both_seats:
            find_pairs(definition, rollouts_per_example)
            rollouts_per_example *= 2
        return find_inputs(definition, settings.split, settings.num_examples, rollouts_per_example, settings.example_ids)
    finally:
        replicas.close()
