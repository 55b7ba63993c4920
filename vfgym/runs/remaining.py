"""What an earlier run into the same directory has left to play."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vfgym.messages import MessageTypes
from vfgym.results import EarlierRun, Run, Slot, fingerprint_of
from vfgym.runs.engine import GroupJob
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example, Inputs


def task_fingerprint(inputs: Inputs, example: Example, number: int = 0) -> str | None:
    """Return the fingerprint of a rollout's task; None for one that cannot be read: the rollout that begins with it records why."""
    try:
        return fingerprint_of(inputs.task(example, number))
    except Exception:
        return None


def find_remaining(
    path: Path,
    run: Run,
    groups: list[GroupJob],
    fingerprint: Callable[[Example, int], str | None],
    *,
    in_groups: bool,
    redo_errors: bool,
    types: MessageTypes,
    declared: FailureRewards | None = None,
) -> tuple[list[GroupJob], EarlierRun | None]:
    """Return the groups that are to be played, each with the numbers that are missing, and what was played before; None if nothing was.

    Args:
        path: Directory of the results.
        run: The run that goes on; its settings must agree.
        groups: All groups of the run.
        fingerprint: Gives that of each rollout's task.
        in_groups: Whether groups are scored together: one of which a rollout is missing is played again as a whole.
        redo_errors: Whether rollouts that have an error are played again.
        types: The message class for each role.
        declared: What failed rollouts count with.

    Raises:
        ConfigurationError: If the results are those of another run.
    """
    slots = [Slot(group.example.example_id, number, fingerprint(group.example, number)) for group in groups for number in group.numbers]
    failure_reward = None if declared is None else declared.failure_reward
    earlier = EarlierRun.load(path, run, slots, redo_errors=redo_errors, whole_groups=in_groups, types=types, failure_reward=failure_reward)
    if earlier is None:
        return groups, None
    for group in groups:
        group.numbers = [number for number in group.numbers if earlier.row_of(group.example.example_id, number) is None]
    return [group for group in groups if group.numbers], earlier
