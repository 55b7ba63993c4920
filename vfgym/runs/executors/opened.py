"""What a worker has made of a run that it was told: its environment, and who plays in it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vfgym.aio.bridge import bridge
from vfgym.runs.engine import Player
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.preparing import prepare
from vfgym.runs.replicas import Replicas
from vfgym.runs.spec import RunSettings, RunSpec, close_agent


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run that a worker plays.

    A `TravellingRun` names the function that opens it: given its data, and how many rollouts the worker plays at once, that gives a
    context, which closes what it made.
    """

    how: RunSettings
    new_player: Callable[[], Awaitable[Player]]
    in_groups: bool
    """Whether the rollouts of an example are scored together."""
    most_at_once: int
    """Rollouts that can be played at once here."""
    max_concurrent_scoring: int = -1
    declared: FailureRewards | None = None
    """What failed rollouts count with. Without it, means are of rewards."""


@contextlib.asynccontextmanager
async def open_stepped(data: Mapping[str, Any], slots: int) -> AsyncIterator[OpenRun]:
    """Open a run of `vfgym.evaluate`."""
    spec = RunSpec.from_json(data)
    agent = spec.make_agent()
    replicas = Replicas()
    try:
        prepared = await prepare(replicas, spec.env_id, spec.env_args, agent, spec, checks_tasks=False)
        most = replicas.limit_workers(slots)
        yield OpenRun(how=spec, new_player=prepared.new_player, in_groups=prepared.in_groups, most_at_once=most, declared=prepared.declared)
    finally:
        await bridge(replicas.close)
        await close_agent(agent)
