"""Curricula: the level of difficulty of each dataset, which rises with success."""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict

from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.lifecycle import cleanup
from vfgym.rubrics import Rubric
from vfgym.state import State
from vfgym.wrappers.reasoning_gym.items import Items

_RECORDING = threading.Lock()
"""Held while a score is recorded: forks may be stepped in several threads. (One for all, as an environment must pickle.)"""


@dataclass(frozen=True)
class CurriculumConfig:
    """When the level of a dataset changes, and which levels are played.

    >>> CurriculumConfig(threshold=0.9, window=20)
    CurriculumConfig(threshold=0.9, lower_threshold=None, window=20, level=None, eval_level=None)
    """

    threshold: float = 0.8
    """Mean score of the last `window` training episodes from which the next level is played."""
    lower_threshold: float | None = None
    """Mean score below which the level before is played again; None for never."""
    window: int = 50
    """Number of training episodes of a level that a change of it takes, at least."""
    level: int | None = None
    """Level to begin with; the easiest without one."""
    eval_level: int | None = None
    """Level of all evaluation tasks; without one they are spread over all levels."""

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ConfigurationError: If one is out of range.
        """
        if not _is_number(self.threshold) or not 0 < self.threshold <= 1:
            raise ConfigurationError(f"the threshold of a curriculum must be a number above 0 and up to 1, got {self.threshold!r}")
        lower = self.lower_threshold
        if lower is not None and (not _is_number(lower) or not 0 <= lower < self.threshold):
            raise ConfigurationError(
                f"the lower_threshold of a curriculum must be None, or from 0 and below its threshold {self.threshold}, got {lower!r}"
            )
        if not _is_whole(self.window) or self.window < 1:
            raise ConfigurationError(f"the window of a curriculum must be a positive whole number, got {self.window!r}")
        for name in ("level", "eval_level"):
            level = getattr(self, name)
            if level is not None and not _is_whole(level):
                raise ConfigurationError(f"the {name} of a curriculum must be a whole number or None, got {level!r}")

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """Return what an environment's argument ``curriculum`` says; None where there is to be none.

        Raises:
            ConfigurationError: If it is neither a configuration, nor a dict of its fields, nor True or False.
        """
        if isinstance(given, bool):
            return cls() if given else None
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise ConfigurationError(f"curriculum must be True, False, a CurriculumConfig or a dict of its fields, got {given!r}")
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigurationError(f"a curriculum has no {name!r}; it has {', '.join(known)}.{did_you_mean(str(name), known)}")
        return cls(**given)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class CurriculumState(TypedDict):
    """Where a curriculum stands, as plain data."""

    levels: dict[str, int]
    """The level of each dataset."""
    scores: dict[str, list[float]]
    """The scores at its level that count, the oldest first."""


class Curriculum:
    """The level of each dataset of an environment, and the scores that decide about the next change."""

    def __init__(self, config: CurriculumConfig, items: Items) -> None:
        """Begin at the level that `config` says.

        Levels are looked up when they are first needed, since reasoning-gym is imported for that: now, if `config` names one.

        Raises:
            ConfigurationError: If a dataset has no level that `config` names.
        """
        self.config = config
        self._items = items
        for level in (config.level, config.eval_level):
            if level is not None:
                self._check({share.name: level for share in items.shares})
        self._levels: dict[str, int] | None = None
        self._scores: dict[str, deque[float]] = {share.name: deque(maxlen=config.window) for share in items.shares}

    @property
    def usable_levels(self) -> dict[str, list[int]]:
        """The levels of each dataset, from easy to hard: those of reasoning-gym's curriculum that can be used."""
        return {name: list(configurations) for name, configurations in self._items.configurations.items()}

    @property
    def levels(self) -> dict[str, int]:
        """The level of each dataset at the moment."""
        return self._current.copy()

    @property
    def _current(self) -> dict[str, int]:
        if self._levels is None:
            chosen = self.config.level
            self._levels = {
                name: next(iter(configurations)) if chosen is None else chosen
                for name, configurations in self._items.configurations.items()
            }
        return self._levels

    def set_levels(self, levels: Mapping[str, int]) -> None:
        """Set the levels of some datasets. What was scored at their old levels no longer counts.

        Raises:
            ConfigurationError: If there is no such dataset, or it has no such level.
        """
        self._check(levels)
        with _RECORDING:
            for name, level in levels.items():
                self._move(name, level)

    def record(self, name: str, level: int, score: float) -> None:
        """Count the score of a training episode; one of another level than the dataset has now counts nothing."""
        with _RECORDING:
            if level != self._current[name]:
                return
            scores = self._scores[name]
            scores.append(score)
            if len(scores) < self.config.window:
                return
            mean = statistics.fmean(scores)
            usable = list(self._items.configurations[name])
            position = usable.index(level)
            if mean >= self.config.threshold and position + 1 < len(usable):
                self._move(name, usable[position + 1])
            elif self.config.lower_threshold is not None and mean < self.config.lower_threshold and position > 0:
                self._move(name, usable[position - 1])

    def level_of(self, index: int) -> int:
        """Return the level that a training item has at the moment."""
        return self._current[self._items.source_of(index)]

    def eval_level_of(self, index: int) -> int:
        """Return the level of an evaluation item, which never changes."""
        level = self.config.eval_level
        if level is not None:
            return level
        usable = list(self._items.configurations[self._items.source_of(index)])
        return usable[index % len(usable)]

    def state_dict(self) -> CurriculumState:
        """Return where the curriculum stands, as plain data that JSON can hold."""
        with _RECORDING:
            return {"levels": self.levels, "scores": {name: list(scores) for name, scores in self._scores.items()}}

    def load_state_dict(self, state: CurriculumState) -> None:
        """Go on where `state_dict` says.

        Raises:
            ConfigurationError: If it is of other datasets, or of levels that they do not have.
        """
        names = {share.name for share in self._items.shares}
        if not isinstance(state, Mapping) or any(
            not isinstance(state.get(key), Mapping) or state[key].keys() != names for key in ("levels", "scores")
        ):
            raise ConfigurationError(
                f"the state of this curriculum is a dict with the levels and the scores of {', '.join(sorted(names))}, got {state!r}"
            )
        self._check(state["levels"])
        with _RECORDING:
            self._levels = dict(state["levels"])
            self._scores = {name: deque(state["scores"][name], maxlen=self.config.window) for name in names}

    def _move(self, name: str, level: int) -> None:
        self._current[name] = level
        self._scores[name].clear()

    def _check(self, levels: Mapping[str, int]) -> None:
        usable = self.usable_levels
        for name, level in levels.items():
            if name not in usable:
                raise ConfigurationError(f"there is no dataset {name!r} here, only {', '.join(usable)}.{did_you_mean(name, usable)}")
            if not _is_whole(level) or level not in usable[name]:
                raise ConfigurationError(f"{name!r} has no level {level!r}: its levels are {', '.join(map(str, usable[name]))}")


class CurriculumRubric(Rubric):
    """Measures the ``level`` of each task, and tells the curriculum how training episodes were scored."""

    def __init__(self, curriculum: Curriculum, items: Items, training: range, score_name: str) -> None:
        """Make the rubric.

        Args:
            curriculum: What is told.
            items: The items that are played.
            training: The indices of training items.
            score_name: Name of the metric that counts.
        """
        super().__init__()
        self._curriculum = curriculum
        self._items = items
        self._training = training
        self._score_name = score_name
        self.add_metric(self.level)

    def level(self, info: Mapping[str, Any]) -> float:
        """Return the level of the task."""
        return float(info["level"])

    @cleanup
    def record(self, state: State) -> None:
        """Count a training episode. One that an error ended, or that could not be scored, says nothing about the level."""
        index: Any = (state.get("info") or {}).get("index")
        if index in self._training and state["error"] is None and self._score_name not in state.get("metrics_errors", ()):
            self._curriculum.record(self._items.source_of(index), state["info"]["level"], state["metrics"][self._score_name])
