"""What is made before a run plays: its environment, what is played in it, and who plays it how. `prepare` does that for whoever plays."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vfgym.agents.base import Agent, per_episode
from vfgym.aio.bridge import bridge
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example, Inputs, Seeds, TaskInputs
from vfgym.runs.pairs import SeatPairs, find_pairs
from vfgym.runs.remaining import task_fingerprint
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.spec import RunSettings
from vfgym.runs.step_player import StepPlayer, StepPlayerConfig
from vfgym.state import make_placeholder_state

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class PreparedRun:
    """A run whose environment is made. Whoever made its `replicas` closes them."""

    replicas: Replicas
    definition: ChatEnv
    in_groups: bool
    """Whether the rollouts of an example are scored together."""
    pairs: SeatPairs | None
    """Whom the policy plays in each rollout, where each game is played from both seats."""
    inputs: TaskInputs
    declared: FailureRewards
    config: StepPlayerConfig

    @property
    def fingerprint(self) -> Callable[[Example], str | None]:
        """Gives the fingerprint of an example's task."""
        return self.config.fingerprint

    async def new_player(self) -> StepPlayer:
        """Return who plays one rollout after another, in an environment of its own."""
        definition = self.definition
        defers_scoring = definition.requires_group_rollouts or (self.in_groups and definition.rubric.provides_advantages)
        return StepPlayer(self.config, await bridge(self.replicas.take, defers_scoring=defers_scoring))

    def unplayed(self, group: GroupJob, failure: Exception) -> Iterator[PlayedRollout]:
        """Give the rollouts of a group of which nothing is left but what broke them off."""
        config, example = self.config, group.example
        for number in group.numbers:
            yield PlayedRollout(
                number,
                self.definition,
                make_placeholder_state({"example_id": example.example_id}),
                failure,
                seen_return=0.0,
                route=self.declared.route(example.example_id),
                fingerprint=config.fingerprint(example),
                seed=config.seed_of(example, number),
                pair={} if self.pairs is None else self.pairs.of(example, number),
            )


async def prepare(
    replicas: Replicas, env: EnvLike, env_args: dict[str, Any] | None, agent: Agent, how: RunSettings, *, checks_tasks: bool = True
) -> PreparedRun:
    """Make the environment of a run.

    Args:
        replicas: What will make the environments of those who play.
        env: What is played (see `vfgym.evaluate`).
        env_args: Arguments of the environment.
        agent: Who plays.
        how: The settings of the run.
        checks_tasks: Whether it is checked that tasks can be told apart, which looks at each of them.

    Raises:
        ConfigurationError: If the environment or its tasks cannot work so.
    """
    definition = await bridge(replicas.open, env, dict(env_args or {}))
    in_groups = scores_in_groups(definition, how.independent_scoring)
    rollouts_per_example = how.rollouts_per_example
    pairs = await bridge(find_pairs, definition, rollouts_per_example) if how.both_seats else None
    rollouts_per_example *= 1 if pairs is None else 2
    find = find_inputs if checks_tasks else _inputs
    inputs = await bridge(find, definition, how.split, how.num_examples, rollouts_per_example, how.example_ids)
    declared = FailureRewards(definition, how.split)
    seed_of = Seeds(how.seed).of if pairs is None else pairs.seed_of(Seeds(how.seed).of)
    fingerprint = functools.cache(functools.partial(task_fingerprint, inputs))
    config = StepPlayerConfig(per_episode(agent), how.split, seed_of, declared, fingerprint, how.max_retries, policy=agent, pairs=pairs)
    return PreparedRun(replicas, definition, in_groups, pairs, inputs, declared, config)


def groups_of(inputs: Inputs, how: RunSettings, *, in_groups: bool) -> list[GroupJob]:
    """Return what a run plays, or a part of it.

    Raises:
        ConfigurationError: If there is nothing in the part, or the run cannot be divided.
    """
    groups = [GroupJob(example, range(example.num_rollouts)) for example in inputs.examples()]
    if how.shard is None:
        return groups
    if len({len(group.numbers) for group in groups}) > 1:
        raise ConfigurationError("shard divides a run whose examples have one number of rollouts, and these inputs have different ones")
    return part_of(groups, how.shard, together=inputs.rollouts_per_example if in_groups else 2 if how.both_seats else 1)


def part_of(groups: list[GroupJob], shard: tuple[int, int], together: int) -> list[GroupJob]:
    """Return the groups of one part of a run, each with the numbers that belong to it.

    Args:
        groups: All groups, in order.
        shard: ``(i, n)``: the part has what stands at the places which, divided by n, leave i.
        together: How many rollouts of a group, one after the other, have one place.

    Raises:
        ConfigurationError: If there is nothing in it.
    """
    part, place = [], 0
    for group in groups:
        numbers = [number for number in group.numbers if (place + number // together) % shard[1] == shard[0]]
        place += -(-len(group.numbers) // together)
        if numbers:
            part.append(GroupJob(group.example, numbers))
    if not part:
        raise ConfigurationError(f"there is nothing to play in shard {shard[0]} of {shard[1]}: the run can be divided into {place} parts")
    return part


def scores_in_groups(definition: ChatEnv, independent_scoring: bool | None) -> bool:
    """Say whether the rollouts of an example are scored together."""
    if independent_scoring and definition.requires_group_rollouts:
        names = ", ".join(definition.rubric.group_function_names)
        raise ConfigurationError(f"{names} scores whole groups, so rollouts cannot be scored alone: leave out independent_scoring")
    return definition.requires_group_rollouts if independent_scoring is None else not independent_scoring


def find_inputs(
    definition: ChatEnv, split: Any, num_examples: int, rollouts_per_example: int, example_ids: Iterable[int] | None
) -> TaskInputs:
    """Return what is played.

    Raises:
        ConfigurationError: If there is nothing to play, or no end of it, or ids do not fit.
    """
    tasks = definition.tasks_of(split)
    if example_ids is not None:
        return TaskInputs(tasks, num_examples, rollouts_per_example, list(example_ids))
    if tasks.is_endless and num_examples == -1:
        raise ConfigurationError(f"the tasks of {type(definition).__name__} have no end: say how many to play with num_examples")
    available = len(tasks)
    if available == 0:
        raise ConfigurationError(f"{type(definition).__name__} has no tasks to evaluate: its dataset is empty")
    inputs = TaskInputs(tasks, num_examples, rollouts_per_example)
    twice = next((id for id, times in Counter(example.example_id for example in inputs.examples()).items() if times > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"several tasks have the same example_id, {twice!r} among them: give each its own, or leave the ids out to count from 0"
        )
    return inputs


def _inputs(definition: ChatEnv, split: Any, num_examples: int, rollouts_per_example: int, example_ids: Iterable[int] | None) -> TaskInputs:
    """Return what is played, as somebody has checked that it can be."""
    ids = None if example_ids is None else list(example_ids)
    return TaskInputs(definition.tasks_of(split), num_examples, rollouts_per_example, ids)
