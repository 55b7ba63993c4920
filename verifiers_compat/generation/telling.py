"""Who is told how far a run is: a bar on the terminal, and the callbacks of whoever asked for it."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verifiers_compat.generation.settings import Callbacks
from vfgym.results import RolloutOutput, Run
from vfgym.runs.inputs import Example, Inputs
from vfgym.runs.progress import reporting

if TYPE_CHECKING:
    from vfgym.runs.engine import Group

logger = logging.getLogger("verifiers_compat")


class RunningMetadata(Mapping[str, Any]):
    """The metadata of a run so far. Means are kept as the run goes on; the rest is made when it is first read."""

    def __init__(self, run: Run, outputs: Sequence[RolloutOutput], means: Mapping[str, Any]) -> None:
        """Describe `run` by its first outputs."""
        self._run = run
        self._outputs = outputs
        self._count = len(outputs)
        self._means = means

    @functools.cached_property
    def _metadata(self) -> Mapping[str, Any]:
        return self._run.metadata(self._outputs[: self._count])

    def __getitem__(self, key: str) -> Any:
        return self._means[key] if key in self._means else self._metadata[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata)

    def __len__(self) -> int:
        return len(self._metadata)


class RunningMeans:
    """The means over the outputs of a run, kept as they come."""

    def __init__(self) -> None:
        """Begin with no outputs."""
        self._count = 0
        self._reward = self._errors = 0.0
        self._metrics: dict[str, tuple[float, int]] = {}

    def of(self, outputs: Sequence[RolloutOutput]) -> dict[str, Any]:
        """Return the means over `outputs`, of which the first ones were counted before."""
        for row in outputs[self._count :]:
            self._reward += row["reward"]
            self._errors += row["error"] is not None
            for name, value in row["metrics"].items():
                total, count = self._metrics.get(name, (0.0, 0))
                self._metrics[name] = (total + value, count + 1)
        self._count = len(outputs)
        return {
            "avg_reward": self._reward / self._count if self._count else 0.0,
            "avg_error": self._errors / self._count if self._count else 0.0,
            "avg_metrics": {name: total / count for name, (total, count) in self._metrics.items()},
        }


class Teller:
    """Tells of one run."""

    def __init__(self, callbacks: Callbacks) -> None:
        """Tell these callbacks."""
        self._callbacks = callbacks
        self._on_row: Any = None
        self._means = RunningMeans()
        self._has_failed = False

    def log(self, message: str) -> None:
        """Tell something that is worth a line."""
        self._call(self._callbacks.on_log or logger.info, message)

    @contextlib.contextmanager
    def started(self, inputs: Inputs, groups: Sequence[Group], run: Run, *, in_groups: bool) -> Iterator[None]:
        """Tell that a run begins, and show a bar while it goes on.

        Args:
            inputs: All that the run is about.
            groups: What of it is left to play.
            run: What is written about it.
            in_groups: Whether groups are scored.
        """
        if self._callbacks.on_start is not None:
            everything = _in_documented_order(inputs)
            left: list[Any] = [[_readable(inputs, group.example, number) for number in group.numbers] for group in groups]
            self._call(self._callbacks.on_start, everything, left if in_groups else [task for tasks in left for task in tasks])
        total = sum(len(group.numbers) for group in groups)
        title = f"{run.env_id} {run.model}"
        shown = reporting(total, title, is_shown=self._callbacks.shows_progress, callback=None, mean_of=run.mean_of)
        with shown as self._on_row:
            yield

    def finished(self, outputs: list[RolloutOutput], new: list[RolloutOutput], run: Run) -> None:
        """Tell of rollouts that are finished."""
        for row in new:
            self._on_row(row)
        if self._callbacks.on_progress:
            metadata = RunningMetadata(run, outputs, self._means.of(outputs))
            for callback in self._callbacks.on_progress:
                self._call(callback, outputs, new, metadata)

    def _call(self, callback: Callable[..., Any], *arguments: Any) -> None:
        """Call a callback. The first that raises is logged, and the run goes on."""
        try:
            callback(*arguments)
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception("a callback raised an exception (further ones are not logged)")


def _in_documented_order(inputs: Inputs) -> list[dict[str, Any]]:
    """Return all tasks: the first rollout of every example, then the second of every example, and so on."""
    examples = list(inputs.examples())
    numbers = range(max(example.num_rollouts for example in examples))
    return [_readable(inputs, example, number) for number in numbers for example in examples if number < example.num_rollouts]


def _readable(inputs: Inputs, example: Example, number: int) -> dict[str, Any]:
    """Return a task; only its example's id where it cannot be read, which its rollout will record."""
    try:
        return inputs.task(example, number)
    except Exception:
        return {"example_id": example.example_id}
