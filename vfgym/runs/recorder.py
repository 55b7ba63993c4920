"""What becomes of played rollouts: rows are made, kept, written and told."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from vfgym.envs.group import with_route
from vfgym.errors import ConfigurationError, LimitFacts, LimitReached, WorkersLost, did_you_mean
from vfgym.limits import Spending
from vfgym.results import EarlierRun, GenerateOutputs, ResultsError, ResultsWriter, RolloutOutput, Run, rollout_output
from vfgym.results.counting import settle
from vfgym.results.dropped_values import DroppedValueLog
from vfgym.results.rows import STANDARD_KEYS
from vfgym.results.spending import as_row_value
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.state import State

logger = logging.getLogger(__name__)


class RowMaker:
    """Turns played rollouts into rows. A state is let go as soon as its row is made."""

    def __init__(self, env_id: str, state_columns: Sequence[str], declared: FailureRewards | None) -> None:
        """Make the rows of a run.

        Args:
            env_id: What its rows call the environment.
            state_columns: Items of each state that are kept.
            declared: What failed rollouts count with. Without it, means are of rewards.
        """
        self._env_id, self._state_columns, self._declared = env_id, state_columns, declared
        self._dropped_log = DroppedValueLog()
        self.unseen = set(state_columns)
        """State columns that no rollout had so far."""
        self.known: list[str] = []
        """What the last rollout had instead."""

    def rows(self, group: GroupJob) -> list[RolloutOutput]:
        """Return the rows of a group that is done."""
        rows: list[RolloutOutput] = []
        for played in group.played:
            rows += [self._row(group.example.example_id, played)] if played.rows is None else _with_spending(played)
        return rows

    def note_columns(self, unseen: Sequence[str], known: Sequence[str]) -> None:
        """Take note of the state columns that rollouts which played elsewhere did not have, and of what the last one had instead."""
        self.unseen &= set(unseen)
        self.known = list(known) or self.known

    def _row(self, example_id: int, played: PlayedRollout) -> RolloutOutput:
        state, declared = played.state, self._declared
        row = rollout_output(
            state,
            rollout=played.number,
            seen_return=played.seen_return,
            error=played.failure,
            state_columns=self._state_columns,
            fingerprint=played.fingerprint,
            began={} if played.seed is None else {"env_id": self._env_id, "seed": played.seed, **played.pair},
            failure_reward=None if declared is None else declared.failure_reward(example_id),
            is_counted=declared is not None,
            dropped_log=self._dropped_log,
        )
        row["example_id"] = example_id
        if played.spent is not None:
            row["spent"] = as_row_value(played.spent)
        if played.route:
            row["info"] = with_route(row, played.route)["info"]
        if self.unseen and played.failure is None:
            self.known = [*state, *State.INPUT_FIELDS, *row["metrics"]]
            self.unseen = {name for name in self.unseen if name not in STANDARD_KEYS.union(self.known) and state.get(name) is None}
        return row


class Recorder:
    """Keeps the rows of a run: writes them, and tells of them.

    It is a context: what was finished is on disk, where results are saved, whatever ends the run inside it.
    """

    def __init__(
        self,
        run: Run,
        earlier: EarlierRun | None,
        *,
        declared: FailureRewards | None = None,
        on_rows: Callable[[list[RolloutOutput]], object] | None = None,
    ) -> None:
        """Record a run.

        Args:
            run: What the run is, and where it is saved.
            earlier: What was finished of it before.
            declared: What failed rollouts count with. Without it, means are of rewards.
            on_rows: Called with the rows of each group that was kept.
        """
        self.outputs: list[RolloutOutput] = [] if earlier is None else earlier.rows
        self.on_rows = on_rows
        self._run = run
        self._declared = declared
        self._earlier = earlier
        self._writer: ResultsWriter | None = None
        self.made = RowMaker(run.env_id, run.state_columns, declared)
        """Makes the rows of what was played in this process."""

    def __enter__(self) -> Self:
        if self._run.path_to_save is not None:
            self._writer = ResultsWriter(self._run.path_to_save, self._run.metadata(self.outputs), earlier=self._earlier)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if isinstance(error, WorkersLost):
                error.outputs = self._run.outputs(self.outputs)
            if isinstance(error, ResultsError):
                error.outputs = self._run.outputs(self.outputs)
            elif isinstance(error, ConfigurationError) and self._earlier is None and not self.outputs and self._writer is not None:
                self._writer.discard()  # nothing could be played
            elif error is not None and self._writer is not None:
                if isinstance(error, LimitReached):
                    self._run = dataclasses.replace(self._run, stopped_by=error.as_dict())
                self._write_metadata(self._writer)
        finally:
            if self._writer is not None:
                self._writer.close()

    def _write_metadata(self, writer: ResultsWriter) -> None:
        try:
            writer.write_metadata(self._run.metadata(self.outputs))
        except ResultsError:  # what ended the run is what is raised
            logger.exception("the metadata of the run that broke off could not be written")

    def add(self, group: GroupJob) -> None:
        """Record the rollouts of a group that are done.

        Raises:
            vfgym.results.ResultsError: If a row cannot be written.
        """
        self.keep(self.made.rows(group))

    def keep(self, rows: list[RolloutOutput]) -> None:
        """Record rows.

        Raises:
            vfgym.results.ResultsError: If one cannot be written.
        """
        self.outputs += rows
        if self._writer is not None:
            for row in rows:
                self._writer.append(row)
            self._writer.update_metadata(lambda: self._run.metadata(self.outputs))
        if self.on_rows is not None:
            self.on_rows(rows)

    def note_redone(self, rollouts: int) -> None:
        """Count rollouts that are played again, since the worker died that was playing them."""
        self._run = dataclasses.replace(self._run, redone=self._run.redone + rollouts)

    def finish(self, stopped_by: LimitFacts | None = None) -> GenerateOutputs:
        """Settle what failed rollouts count with, and return what came of the run.

        Args:
            stopped_by: The limit that ended it.
        """
        self._run = dataclasses.replace(self._run, stopped_by=stopped_by)
        for name in sorted(self.made.unseen) if self.made.known else ():
            logger.warning("no episode's state has the column %r, so it is None in all rows.%s", name, did_you_mean(name, self.made.known))
        if self._declared is not None:
            settle(self.outputs)
        outputs = self._run.outputs(self.outputs)
        if self._writer is not None:
            self._writer.finish(outputs["metadata"], () if self._declared is None else outputs["outputs"])
        return outputs


def _with_spending(played: PlayedRollout) -> Sequence[RolloutOutput]:
    """Return the rows that an author's method made, the first with what was spent for all of them."""
    rows = played.rows or ()
    if played.spent is not None:
        for row, spent in zip(rows, (played.spent, *(Spending() for _ in rows)), strict=False):
            row["spent"] = as_row_value(spent)
    return rows
