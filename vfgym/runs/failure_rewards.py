"""What an evaluated environment declares of its failed rollouts, example by example."""

from __future__ import annotations

from vfgym.envs.chat import ChatEnv
from vfgym.envs.group import EnvGroup, route_of


class FailureRewards:
    """Knows by which environment of a group an example is played, and what its failed rollouts count with."""

    def __init__(self, definition: ChatEnv, split: str) -> None:
        """Look at an environment, which may be a group, and at the tasks of a split.

        Raises:
            ConfigurationError: If it declares that failing pays.
        """
        definition.check_failure_reward()  # what scores may have changed since it was made
        self._definition = definition
        self._split = split
        self._is_group = isinstance(definition, EnvGroup)
        self._of_all = definition.failure_reward
        self._known: dict[int, tuple[list[str], float | None]] = {}

    @property
    def counted_range(self) -> tuple[float, float] | None:
        """The lowest and the highest number that a rollout can count with, failed ones included; None where that is not known."""
        known = self._definition.reward_range
        if known is None:
            return None
        members = self._definition.envs if isinstance(self._definition, EnvGroup) else []
        declared = [each.failure_reward for each in (self._definition, *members)]
        return min([known[0], *(number for number in declared if number is not None)]), known[1]

    def failure_reward(self, example_id: int) -> float | None:
        """Return the ``failure_reward`` of the environment that plays an example; the group's own where that declares none."""
        return self._of(example_id)[1] if self._is_group else self._of_all

    def route(self, example_id: int) -> list[str]:
        """Return the names by which a group finds the environment that plays an example; none without a group."""
        return self._of(example_id)[0] if self._is_group else []

    def _of(self, example_id: int) -> tuple[list[str], float | None]:
        if example_id not in self._known:
            route: list[str] = []
            declared = None
            try:
                tasks = self._definition.tasks_of(self._split)
                task = tasks.input(tasks.index_of(example_id))
                route = route_of(task)
                declared = self._definition.routed(task)[0].failure_reward
            except Exception:  # the rollout that begins with it records what is wrong
                pass
            self._known[example_id] = route, self._of_all if declared is None else declared
        return self._known[example_id]
