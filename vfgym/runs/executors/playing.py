"""`play_on_workers`: what `vfgym.evaluate` does where a run plays in other processes."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Sequence

from vfgym.runs.engine import GroupJob
from vfgym.runs.executors.coordinator import Coordinator, WorkerOrder
from vfgym.runs.executors.opening import opened
from vfgym.runs.executors.travelling import module_of_id, registered_here, spec_as_data
from vfgym.runs.preparing import PreparedRun
from vfgym.runs.recorder import Recorder
from vfgym.runs.spec import RunSpec
from vfgym.runs.spending import RunSpending


async def play_on_workers(
    executor: str | concurrent.futures.Executor,
    spec: RunSpec,
    prepared: PreparedRun,
    groups: Sequence[GroupJob],
    recorder: Recorder,
    spending: RunSpending,
    *,
    env_id: str,
    most_at_once: int,
) -> None:
    """Let the workers of an executor play a run.

    Args:
        executor: The executor, or its name.
        spec: The run, as its workers are told it.
        prepared: The run, as it is prepared here.
        groups: What is played.
        recorder: Keeps the rows.
        spending: What the run may spend.
        env_id: What rows call the environment.
        most_at_once: Most rollouts at once, in all workers together.

    Raises:
        vfgym.errors.WorkersLost: If no worker is left.
    """
    num_rollouts = sum(len(group.numbers) for group in groups)
    if not num_rollouts:
        return
    alone = (GroupJob(group.example, [number]) for group in groups for number in group.numbers)
    jobs: Iterable[GroupJob] = groups if prepared.in_groups else alone
    num_jobs = len(groups) if prepared.in_groups else num_rollouts
    run, has_secrets = spec_as_data(spec)
    async with opened(executor, spec.workers) as on:
        num_workers = max(1, min(on.num_workers, most_at_once, num_jobs))
        order = WorkerOrder(
            run=run,
            has_secrets=has_secrets,
            env_id=env_id,
            env_module=module_of_id(spec.env_id),
            registered=registered_here(),
            most_at_once=most_at_once,
            has_cache=spending.budget.cache is not None,
            state_columns=spec.state_columns,
            types=prepared.definition.message_types,
        )
        coordinator = Coordinator(
            on,
            order,
            spending,
            num_workers=num_workers,
            keep=recorder.keep,
            give_up=lambda group, error: recorder.add(
                GroupJob(group.example, group.numbers, [prepared.unplayed(group.example, number, error) for number in group.numbers])
            ),
            note_columns=recorder.made.note_columns,
            note_redone=recorder.note_redone,
        )
        await coordinator.play(jobs, num_rollouts)
