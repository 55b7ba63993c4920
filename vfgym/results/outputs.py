"""What a run gives, as it is shown: short at a prompt, a table in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vfgym.endings import Ending, ending_of
from vfgym.output.html import html_table
from vfgym.output.terminal import one_line
from vfgym.results.statistics import planned_rollouts

_MOST_ROWS = 20
"""Rollouts that are listed; the others are counted."""
_LONGEST = 40
"""Characters of a name that are shown where each rollout has a line."""


class RunOutputs(dict[str, Any]):
    """The ``outputs`` and the ``metadata`` of a run: a dict that is equal to, and in JSON the same as, any other with these items."""

    def __repr__(self) -> str:
        """Return what came out in a line, and a line for each of the first rollouts."""
        return "\n".join([f"<{self._title()}>", *(f"  {' '.join(cells)}" for cells in self._cells()), *self._rest()])

    def _repr_html_(self) -> str:
        title = " ".join([self._title(), *self._rest()])
        return html_table(title, ["rollout", "reward", "ended by"], self._cells())

    def _title(self) -> str:
        metadata, rows = self._metadata(), self._rows()
        mean, interval = metadata.get("avg_reward"), metadata.get("interval")
        of_mean = "" if not interval else f" (95 %: {interval[0]:.3g} to {interval[1]:.3g})"
        reward = "no mean reward" if mean is None else f"reward {mean:.6g}{of_mean}"
        planned = planned_rollouts(metadata)
        of_planned = f" of {planned}" if planned is not None and len(rows) < planned else ""
        played = f"{len(rows)}{of_planned} rollouts of {_short(metadata.get('env_id'))} by {_short(metadata.get('model'))}"
        return f"{played}: {reward}, {describe_endings(map(ending_of, rows))}"

    def _cells(self) -> list[list[str]]:
        return [
            [f"{row['example_id']}.{row.get('rollout') or 0}", f"{row['reward']:.6g}", _short(_ended_by(row))]
            for row in self._rows()[:_MOST_ROWS]
        ]

    def _rest(self) -> list[str]:
        more = len(self._rows()) - _MOST_ROWS
        return [f"  and {more} more"] if more > 0 else []

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return self.get("outputs") or []

    def _metadata(self) -> Mapping[str, Any]:
        return self.get("metadata") or {}


def describe_endings(endings: Iterable[Ending]) -> str:
    """Return how many rollouts failed, and how many were cut and are missing where any were.

    >>> describe_endings([Ending.TERMINATED, Ending.CUT, Ending.INFRASTRUCTURE_FAILED, Ending.POLICY_FAILED])
    '2 failed (1 missing), 1 cut'
    """
    counts = Counter(endings)
    missing, cut = counts[Ending.INFRASTRUCTURE_FAILED], counts[Ending.CUT]
    failed = sum(count for ending, count in counts.items() if ending.failed)
    return f"{failed} failed{f' ({missing} missing)' if missing else ''}{f', {cut} cut' if cut else ''}"


def _ended_by(row: Mapping[str, Any]) -> str:
    error = row.get("error")
    return str(error.get("error")) if error else str(row.get("stop_condition") or "")


def _short(value: object) -> str:
    text = one_line(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
