"""How far a run is, and how that is shown: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from vfgym.output.terminal import echo, one_line
from vfgym.results import RolloutOutput
from vfgym.results.counting import MeanOf, Tally
from vfgym.results.spending import spent_by

_SECONDS_BETWEEN_REFRESHES = 0.1
_SECONDS_BETWEEN_LINES = 1.0
_LONGEST_SILENCE = 5.0
"""Seconds after which a line is due even if little has happened."""


@dataclass(slots=True)
class Progress:
    """How far a run is."""

    total: int
    """Rollouts to play."""
    num_errors: int = 0
    tally: Tally = field(default_factory=Tally)
    """What the rollouts count with so far."""
    tokens: float = 0.0
    """Tokens of models and judges so far; those of answers out of a cache are not among them where the run has one."""
    cost: float | None = None
    """Money that the rollouts cost so far; None where it is not known."""
    began: float = field(default_factory=time.monotonic)
    """When the run began, or went on, as a time of `time.monotonic`."""
    _num_earlier: int = 0

    def add(self, row: RolloutOutput) -> None:
        """Count a rollout that is over."""
        spent = spent_by(row)
        self.num_errors += spent.errors
        self.tokens += spent.tokens
        is_first = self.tally.num_rows == 0
        known = 0.0 if is_first else self.cost
        self.cost = None if known is None or spent.cost is None else known + spent.cost
        self.tally.add(row)

    def begin(self) -> None:
        """Take what was counted so far as that of an earlier run: the rate is that of what comes."""
        self.began, self._num_earlier = time.monotonic(), self.done

    @property
    def rate(self) -> float | None:
        """Rollouts a second; None before the first one."""
        new, seconds = self.done - self._num_earlier, time.monotonic() - self.began
        return new / seconds if new and seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at this rate; None before the first rollout."""
        rate = self.rate
        return None if rate is None else max(0, self.total - self.done) / rate

    @property
    def done(self) -> int:
        """Rollouts that are over."""
        return self.tally.num_rows

    @property
    def num_failed(self) -> int:
        """How many of them failed."""
        return self.tally.num_failed

    @property
    def avg_reward(self) -> float | None:
        """Mean of what the rollouts count with so far, 0 before the first one; None where a failed one has no number to count with."""
        return self.tally.mean

    @property
    def summary(self) -> str:
        """The mean and the failures in words; the tokens and what they cost, where any are known."""
        mean = self.avg_reward
        parts = [f"reward {'-' if mean is None else f'{mean:.3f}'}", f"{self.num_failed} failed"]
        if self.tokens:
            parts.append(f"{short_number(self.tokens)} tokens")
        if self.cost:
            parts.append(f"cost {self.cost:.3g}")
        return ", ".join(parts)

    @property
    def pace(self) -> str:
        """The rate in words; empty before the first rollout."""
        rate = self.rate
        return "" if rate is None else f"{short_number(rate)}/s" if rate >= 10 else f"{rate:.3g}/s" if rate >= 1 else f"{60 * rate:.3g}/min"


def short_number(number: float) -> str:
    """Return a number of things with three digits.

    >>> short_number(950), short_number(12_345), short_number(7_000_000)
    ('950', '12.3k', '7M')
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.0f}"


ProgressCallback: TypeAlias = Callable[[RolloutOutput, Progress], None]
"""Called with each row as it is finished, and how far the run is."""

StartCallback: TypeAlias = Callable[[Progress], None]
"""Called before the first rollout: with how many there are, and how many of them an earlier run has finished."""


@contextlib.contextmanager
def report_progress(
    total: int,
    title: str,
    *,
    is_displayed: bool,
    callback: ProgressCallback | None,
    on_start: StartCallback | None = None,
    done: Iterable[RolloutOutput] = (),
    mean_of: MeanOf = "counted_reward",
) -> Iterator[Callable[[list[RolloutOutput]], None]]:
    """Count finished rows, show how far the run is on the standard error stream, and call back.

    The context gives the function that is to be called with rows as they are finished. Rows that are `done` as it begins count, and
    `callback` is not called with them. The mean is that of `mean_of`.
    """
    progress = Progress(total, tally=Tally(of=mean_of))
    for row in done:
        progress.add(row)
    progress.begin()
    if on_start is not None:
        on_start(progress)
    display = _bar if sys.stderr.isatty() else _lines
    with display(progress, title) if is_displayed else contextlib.nullcontext() as refresh:

        def report(rows: list[RolloutOutput]) -> None:
            for row in rows:
                progress.add(row)
                if refresh is not None:
                    refresh()
                if callback is not None:
                    callback(row, progress)

        yield report


@contextlib.contextmanager
def _bar(progress: Progress, title: str) -> Iterator[Callable[[], None]]:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Bar(RichProgress):
        """A line of words, which wraps where a terminal is narrow, above the bar."""

        def get_renderables(self) -> Iterator[RenderableType]:
            yield Text(f"{one_line(title)}: {progress.summary}")
            yield self.make_tasks_table(self.tasks)

    columns = (BarColumn(None), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), expand=True) as bar:
        task = bar.add_task("", total=progress.total, pace=progress.pace)
        refreshed = 0.0

        def show() -> None:
            bar.update(task, completed=progress.done, pace=progress.pace)

        def refresh() -> None:
            nonlocal refreshed
            now = time.monotonic()
            if now - refreshed >= _SECONDS_BETWEEN_REFRESHES:
                refreshed = now
                show()

        try:
            yield refresh
        finally:
            show()


@contextlib.contextmanager
def _lines(progress: Progress, title: str) -> Iterator[Callable[[], None]]:
    started = printed = time.monotonic()
    printed_done = progress.done

    def show() -> None:
        nonlocal printed, printed_done
        printed, printed_done = time.monotonic(), progress.done
        share = progress.done / progress.total
        left = progress.seconds_left
        parts = [progress.summary, f"{printed - started:.1f} s", progress.pace, f"{left:.0f} s left" if left else ""]
        echo(
            f"{title}: {progress.done}/{progress.total} ({share:.0%}), {', '.join(filter(None, parts))}",
            to_stderr=True,
            flush=True,
        )

    def refresh() -> None:
        silence = time.monotonic() - printed
        is_news = progress.done - printed_done >= progress.total / 10
        if silence >= _LONGEST_SILENCE or (is_news and silence >= _SECONDS_BETWEEN_LINES):
            show()

    try:
        yield refresh
    finally:
        if progress.done > printed_done:
            show()
