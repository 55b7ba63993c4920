"""`play_on_workers`: what a run does that plays in other processes."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Sequence

from vfgym.messages import MessageTypes
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.executors.coordinator import Coordinator, WorkerOrder
from vfgym.runs.executors.opening import opened
from vfgym.runs.executors.travelling import TravellingRun, registered_here
from vfgym.runs.recorder import Recorder
from vfgym.runs.spec import RunSettings
from vfgym.runs.spending import RunSpending


async def play_on_workers(
    executor: str | concurrent.futures.Executor,
    run: TravellingRun,
    how: RunSettings,
    jobs: Sequence[GroupJob],
    recorder: Recorder,
    spending: RunSpending,
    *,
    unplayed: Callable[[GroupJob, Exception], Iterable[PlayedRollout]],
    env_id: str,
    types: MessageTypes,
    most_at_once: int,
) -> None:
    """Let the workers of an executor play a run.

    Args:
        executor: The executor, or its name.
        run: The run, as its workers are told it.
        how: Its settings.
        jobs: What is played: each by one worker.
        recorder: Keeps the rows.
        spending: What the run may spend.
        unplayed: Gives what is recorded of a job that is not played, and why it is not.
        env_id: What rows call the environment.
        types: The message class for each role.
        most_at_once: Most rollouts at once, in all workers together.

    Raises:
        vfgym.errors.WorkersLost: If no worker is left.
    """
    if not jobs:
        return
    async with opened(executor, how.workers) as on:
        order = WorkerOrder(
            run=run,
            env_id=env_id,
            registered=registered_here(),
            most_at_once=most_at_once,
            has_cache=spending.budget.cache is not None,
            state_columns=how.state_columns,
            types=types,
        )
        coordinator = Coordinator(
            on,
            order,
            spending,
            num_workers=max(1, min(on.num_workers, most_at_once, len(jobs))),
            keep=recorder.keep,
            give_up=lambda group, error: recorder.add(GroupJob(group.example, group.numbers, [*unplayed(group, error)])),
            note_columns=recorder.made.note_columns,
            note_redone=recorder.note_redone,
        )
        await coordinator.play(jobs, sum(len(job.numbers) for job in jobs))


def one_by_one(groups: Iterable[GroupJob]) -> list[GroupJob]:
    """Return the rollouts of groups, each as a job of its own."""
    return [GroupJob(group.example, [number]) for group in groups for number in group.numbers]
