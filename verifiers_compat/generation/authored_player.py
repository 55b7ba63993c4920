"""The player for environments whose author wrote `run_group` or `run_rollout`: it calls that, and keeps the rows that it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from vfgym.calls import rollout_failure
from vfgym.context import AuthoredRollout, given
from vfgym.endings import ending_of
from vfgym.limits import RolloutMeter
from vfgym.results import RolloutOutput, rollout_output
from vfgym.runs.client_player import ClientPlayerConfig
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.remaining import task_fingerprint
from vfgym.state import make_placeholder_state


class AuthoredPlayer:
    """Plays by calling an author's method: `run_group` for the rollouts of an example, or `run_rollout` for each."""

    def __init__(self, method: Callable[..., Awaitable[Any]], config: ClientPlayerConfig, state_columns: Sequence[str]) -> None:
        """Call `method`, with what is asked for."""
        self._method = method
        self._config = config
        self._state_columns = list(state_columns)

    async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
        """Call the method for the rollouts of an example (for one rollout, where they are scored alone)."""
        config, example = self._config, group.example
        numbers = range(example.num_rollouts) if config.in_groups else [number]
        failure: Exception | None = None
        try:
            tasks = [config.inputs.task(example, each) for each in numbers]
            with given(authored=AuthoredRollout(config.definition, limit)):
                made = await self._method(
                    tasks if config.in_groups else tasks[0],
                    config.client_of(group),
                    config.model,
                    config.sampling_args,
                    config.max_retries,
                    self._state_columns,
                )
            rows = list(made) if config.in_groups else [made]
            if len(rows) != len(numbers) or not all(isinstance(row, Mapping) for row in rows):
                name = getattr(self._method, "__qualname__", "the author's method")
                raise TypeError(f"{name} must return a row (a dict) for each of {len(numbers)} rollouts, got {made!r}")
            completed = [_complete(row) for row in rows]
        except BaseException as raised:
            failure = rollout_failure(raised)
            completed = [_complete(rollout_output(make_placeholder_state({}), error=failure, is_counted=False)) for _ in numbers]
        for each, row in zip(numbers, completed, strict=True):
            row["rollout"], row["example_id"] = each, example.example_id
            if config.is_saved and row.get("fingerprint") is None:
                row["fingerprint"] = task_fingerprint(config.inputs, example, each)
        return PlayedRollout(number, config.definition, make_placeholder_state({}), failure, rows=completed)

    async def close(self) -> None:
        """Nothing is kept between rollouts."""


def _complete(row: Mapping[str, Any]) -> RolloutOutput:
    """Return a row with everything that rows have. How it ended follows from what the author's own says, unless it says that too.

    Raises:
        ValueError: If it says that it ended in a way that there is not.
    """
    whole = RolloutOutput({**rollout_output(make_placeholder_state({}), is_counted=False), **row})
    ending = ending_of({**whole, "ending": row.get("ending"), "failed": row.get("failed")})
    return RolloutOutput({**whole, "ending": str(ending), "failed": ending.failed})
