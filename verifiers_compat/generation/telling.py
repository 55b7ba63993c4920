"""Who is told how far a run is: a bar on the terminal, and the callbacks of whoever asked for it."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verifiers_compat.generation.inputs import Inputs
from verifiers_compat.generation.settings import Callbacks
from vfgym.evaluation.progress import reporting
from vfgym.results import RolloutOutput, Run

if TYPE_CHECKING:
    from verifiers_compat.generation.engine import Group

logger = logging.getLogger("verifiers_compat")


class RunningMetadata(Mapping[str, Any]):
    """The metadata of a run so far, made when it is first read: most callbacks read none of it."""

    def __init__(self, run: Run, outputs: Sequence[RolloutOutput]) -> None:
        """Describe `run` by its first outputs."""
        self._run = run
        self._outputs = outputs
        self._count = len(outputs)

    @functools.cached_property
    def _metadata(self) -> Mapping[str, Any]:
        return self._run.outputs(self._outputs[: self._count])["metadata"]

    def __getitem__(self, key: str) -> Any:
        return self._metadata[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata)

    def __len__(self) -> int:
        return len(self._metadata)


class Teller:
    """Tells of one run."""

    def __init__(self, callbacks: Callbacks) -> None:
        """Tell these callbacks."""
        self._callbacks = callbacks
        self._on_row: Any = None

    def log(self, message: str) -> None:
        """Tell something that is worth a line."""
        (self._callbacks.on_log or logger.info)(message)

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
            left: list[Any] = [[inputs.task(group.example, number) for number in group.numbers] for group in groups]
            self._callbacks.on_start(everything, left if in_groups else [task for tasks in left for task in tasks])
        total = sum(len(group.numbers) for group in groups)
        title = f"{run.env_id} {run.model}"
        with reporting(total, title, is_shown=self._callbacks.shows_progress, callback=None) as self._on_row:
            yield

    def finished(self, outputs: list[RolloutOutput], new: list[RolloutOutput], run: Run) -> None:
        """Tell of rollouts that are finished."""
        for row in new:
            self._on_row(row)
        if self._callbacks.on_progress:
            metadata = RunningMetadata(run, outputs)
            for callback in self._callbacks.on_progress:
                callback(outputs, new, metadata)


def _in_documented_order(inputs: Inputs) -> list[dict[str, Any]]:
    """Return all tasks: the first rollout of every example, then the second of every example, and so on."""
    examples = list(inputs.examples())
    numbers = range(max(example.num_rollouts for example in examples))
    return [inputs.task(example, number) for number in numbers for example in examples if number < example.num_rollouts]
