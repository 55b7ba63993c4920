"""What becomes of played episodes: groups are scored, rows are made, kept, written and counted.

Plain synchronous code, like what plays: it waits for async reward functions inside the worker's bridge.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import cast

from vfgym.aio.steps import run_sync
from vfgym.calls import rollout_failure
from vfgym.envs.chat import ChatEnv
from vfgym.envs.group import with_route
from vfgym.episode.scoring import score_together
from vfgym.errors import did_you_mean
from vfgym.evaluation.counting import Declared
from vfgym.evaluation.failures import FailureLog
from vfgym.evaluation.play import Played
from vfgym.results import ResultsWriter, RolloutOutput, Run, rollout_output
from vfgym.results.counting import settle
from vfgym.results.left_out import LeftOutLog
from vfgym.results.rows import STANDARD_KEYS
from vfgym.state import State, unbegun

logger = logging.getLogger(__name__)


class Recorder:
    """Turns played episodes into rows. A state is let go as soon as its row is made."""

    def __init__(
        self,
        definition: ChatEnv,
        declared: Declared,
        run: Run,
        writer: ResultsWriter | None,
        on_row: Callable[[RolloutOutput], None],
        done: Sequence[RolloutOutput] = (),
    ) -> None:
        """Record the episodes of `definition`.

        Args:
            definition: Whose rubric scores groups.
            declared: What failed rollouts count with.
            run: What the run is: how many episodes a group has, and which items of the state are kept in rows.
            writer: Where rows are appended; None to keep them in memory only.
            on_row: Called with each row that was kept.
            done: Rows of the run that were finished, and are on disk, as it begins.
        """
        self.outputs: list[RolloutOutput] = list(done)
        self._definition = definition
        self._declared = declared
        self._run = run
        self._writer = writer
        self._on_row = on_row
        self._groups: defaultdict[int, list[Played]] = defaultdict(list)
        self._failures = FailureLog()
        self._left_out = LeftOutLog()
        self._unseen = set(run.state_columns)
        """State columns that no episode had so far."""
        self._known: list[str] = []
        """What the last episode had instead."""

    def add(self, played: Played) -> None:
        """Record one episode; one that is scored in a group waits for the others.

        Raises:
            vfgym.results.ResultsError: If a row cannot be written.
        """
        error = played.error or (None if played.state is None else played.state.get("error"))
        if error is not None:
            self._failures.note(played.rollout.example_id, played.rollout.number, error)
        if not self._definition.requires_group_rollouts:
            self._keep(played)
            return
        group = self._groups[played.rollout.example_id]
        group.append(played)
        if len(group) == self._run.rollouts_per_example:
            del self._groups[played.rollout.example_id]
            group.sort(key=lambda each: each.rollout.number)
            for each in self._scored(group):
                self._keep(each)

    def end(self) -> None:
        """Settle what failed rollouts count with, and report what was asked for and never came: state columns that no episode had."""
        settle(self.outputs)
        for name in sorted(self._unseen) if self._known else ():
            logger.warning("no episode's state has the column %r, so it is None in all rows.%s", name, did_you_mean(name, self._known))

    def _scored(self, group: list[Played]) -> list[Played]:
        """Score the episodes of one example together; those that broke off have no part in it."""
        whole = [played for played in group if played.state is not None and played.error is None]
        if not whole:
            return group
        definition = whole[0].definition  # in a group of environments that of one which began: others do not say which they are of
        example_id = group[0].rollout.example_id
        try:
            failures = run_sync(score_together(definition, [cast(State, played.state) for played in whole]))
        except BaseException as raised:
            error = rollout_failure(raised)
            logger.exception("scoring the group of example %s failed", example_id)
            failed: dict[int, Exception] = {played.rollout.number: error for played in whole}
        else:
            failed = {played.rollout.number: failure for played, failure in zip(whole, failures, strict=True) if failure is not None}
            for number, failure in failed.items():
                self._failures.note(example_id, number, failure)
        return [played._replace(error=failed.get(played.rollout.number, played.error)) for played in group]

    def _keep(self, played: Played) -> None:
        state = unbegun({"example_id": played.rollout.example_id}) if played.state is None else played.state
        row = rollout_output(
            state,
            rollout=played.rollout.number,
            seen_return=played.seen_return,
            error=played.error,
            state_columns=self._run.state_columns,
            fingerprint=played.rollout.fingerprint,
            failure_reward=self._declared.failure_reward(played.rollout.example_id),
            left_out=self._left_out,
        )
        route = self._declared.route(played.rollout.example_id)
        if route:
            row["info"] = with_route(row, route)["info"]
        if self._unseen and played.state is not None:
            self._known = [*state, *State.INPUT_FIELDS, *row["metrics"]]
            self._unseen = {name for name in self._unseen if name not in STANDARD_KEYS.union(self._known) and state.get(name) is None}
        self.outputs.append(row)
        if self._writer is not None:
            self._writer.append(row)
            self._writer.update_metadata(lambda: self._run.metadata(self.outputs))
        self._on_row(row)
