"""Reports of how far a run is: a progress bar on the terminal, and calls of the documented callbacks."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verifiers_compat.generation.settings import GenerateSettings
from verifiers_compat.utils.metric_utils import EnvMetrics, ErrorRateMetric, Metric, RewardMetric
from vfgym.results import RolloutOutput, Run
from vfgym.runs.inputs import Example, Inputs
from vfgym.runs.progress import report_progress

if TYPE_CHECKING:
    from vfgym.runs.engine import GroupJob

logger = logging.getLogger("verifiers_compat")


_MEANS: dict[str, type[Metric[Any]]] = {"avg_reward": RewardMetric, "avg_error": ErrorRateMetric, "avg_metrics": EnvMetrics}


class RunningMeans:
    """The means over the first outputs of a run. Each output is added once, when means that it counts in are read."""

    def __init__(self) -> None:
        """Start empty."""
        self._reset()

    def _reset(self) -> None:
        self._metrics: dict[str, Metric[Any]] = {name: kind() for name, kind in _MEANS.items()}
        self._num_counted = 0

    def compute(self, outputs: Sequence[RolloutOutput], count: int) -> dict[str, Any]:
        """Return the means over the first `count` outputs, by name. With fewer than before, it begins again."""
        if count < self._num_counted:
            self._reset()
        for metric in self._metrics.values():
            metric.add_outputs(outputs[self._num_counted : count])
        self._num_counted = count
        return {name: metric.compute() for name, metric in self._metrics.items()}


class RunningMetadata(Mapping[str, Any]):
    """The metadata of a run so far, made when it is first read."""

    def __init__(self, run: Run, outputs: Sequence[RolloutOutput], means: RunningMeans) -> None:
        """Describe `run` by its first outputs."""
        self._run = run
        self._outputs = outputs
        self._count = len(outputs)
        self._running_means = means

    @functools.cached_property
    def _means(self) -> Mapping[str, Any]:
        return self._running_means.compute(self._outputs, self._count)

    @functools.cached_property
    def _metadata(self) -> Mapping[str, Any]:
        return self._run.metadata(self._outputs[: self._count])

    def __getitem__(self, key: str) -> Any:
        return self._means[key] if key in _MEANS else self._metadata[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata)

    def __len__(self) -> int:
        return len(self._metadata)


class RunReporter:
    """Reports how far one run is."""

    def __init__(self, settings: GenerateSettings) -> None:
        """Report to the callbacks of these settings."""
        self._settings = settings
        self._means = RunningMeans()
        self._has_failed = False

    def log(self, message: str) -> None:
        """Report something that is worth a line."""
        self._call(self._settings.on_log or logger.info, message)

    @contextlib.contextmanager
    def report(
        self, inputs: Inputs, run: Run, groups: Sequence[GroupJob], outputs: list[RolloutOutput], *, in_groups: bool
    ) -> Iterator[Callable[[list[RolloutOutput]], None]]:
        """Report that a run begins, and show a progress bar inside a ``with``, which gives what reports rollouts that are finished.

        Args:
            inputs: All that the run is about.
            run: What is written about it.
            groups: What of it is left to play; nothing is reported where nothing is left.
            outputs: The rows that there are: an earlier run's at first, then all of them.
            in_groups: Whether groups are scored.
        """
        settings = self._settings
        if outputs:
            self.log(f"resuming {run.path_to_save}: {len(outputs)} of {run.num_rollouts} rollouts are done")
        if groups and settings.on_start is not None:
            everything = _in_documented_order(inputs)
            left: list[Any] = [[_read_task(inputs, group.example, number) for number in group.numbers] for group in groups]
            self._call(settings.on_start, everything, left if in_groups else [task for tasks in left for task in tasks])
        total = sum(len(group.numbers) for group in groups)
        is_displayed = bool(groups) and settings.shows_progress
        with report_progress(total, run.title, is_displayed=is_displayed, callback=None, mean_of=run.mean_of) as show:

            def report(new: list[RolloutOutput]) -> None:
                show(new)
                if settings.on_progress:
                    metadata = RunningMetadata(run, outputs, self._means)
                    for callback in settings.on_progress:
                        self._call(callback, outputs, new, metadata)

            yield report

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
    return [_read_task(inputs, example, number) for number in numbers for example in examples if number < example.num_rollouts]


def _read_task(inputs: Inputs, example: Example, number: int) -> dict[str, Any]:
    """Return a task; only its example's id where it cannot be read, which its rollout will record."""
    try:
        return inputs.task(example, number)
    except Exception:
        return {"example_id": example.example_id}
