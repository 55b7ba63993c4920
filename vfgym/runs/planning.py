"""`plan_tasks`: what a run would play, without playing it."""

from __future__ import annotations

from typing import Any, NamedTuple

from vfgym.runs.engine import GroupJob
from vfgym.runs.pairs import find_pairs
from vfgym.runs.preparing import find_inputs, groups_of, scores_in_groups
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.spec import RunSettings


class Plan(NamedTuple):
    """What a run would play."""

    groups: list[GroupJob]

    @property
    def num_examples(self) -> int:
        """How many tasks."""
        return len(self.groups)

    @property
    def num_rollouts(self) -> int:
        """How many episodes."""
        return sum(len(group.numbers) for group in self.groups)


def plan_tasks(env: EnvLike, settings: RunSettings, env_args: dict[str, Any] | None = None) -> Plan:
    """Return what `vfgym.evaluate` would play with these settings, or its part of it; the environment is made for that, and closed.

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
        inputs = find_inputs(definition, settings.split, settings.num_examples, rollouts_per_example, settings.example_ids)
        return Plan(groups_of(inputs, settings, in_groups=scores_in_groups(definition, settings.independent_scoring)))
    finally:
        replicas.close()
