"""What a run of `generate` is asked for, checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vfgym.calls import function_name
from vfgym.errors import ConfigurationError
from vfgym.results import RolloutOutput
from vfgym.runs.spending import Budget


@dataclass(frozen=True, kw_only=True)
class GenerateSettings:
    """How a run of `generate` goes (see `Environment.generate`)."""

    model: str
    sampling_args: dict[str, Any]
    max_concurrent: int = -1
    max_concurrent_scoring: int = -1
    results_path: Path | None = None
    save_results: bool = False
    state_columns: Sequence[str] = ()
    push_to_hf_hub: bool = False
    hf_hub_dataset_name: str | None = None
    independent_scoring: bool = False
    max_retries: int = 0
    seed: int | None = None
    strict: bool = False
    redo_errors: bool = False
    budget: Budget = field(default_factory=Budget)
    """What the run may spend."""
    on_start: Callable[[list[Any], list[Any]], Any] | None = None
    on_progress: tuple[Callable[[list[RolloutOutput], list[RolloutOutput], Mapping[str, Any]], Any], ...] = ()
    on_log: Callable[[str], Any] | None = None
    shows_progress: bool = True
    """Whether a progress bar is shown on a terminal."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            raise ConfigurationError(f"model must be the name of a model (a string), got {type(self.model).__name__}")
        for name in ("max_concurrent", "max_concurrent_scoring", "max_retries"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ConfigurationError(f"{name} must be an integer, got {value!r}")
        if self.max_retries < 0:
            raise ConfigurationError(f"max_retries must not be negative, got {self.max_retries}")
        if isinstance(self.state_columns, str):
            raise ConfigurationError(f"state_columns must be a list of names, got the text {self.state_columns!r}")
        if self.hf_hub_dataset_name and not self.push_to_hf_hub:
            raise ConfigurationError("hf_hub_dataset_name is where results are pushed to: give push_to_hf_hub=True too")
        if self.redo_errors and self.results_path is None:
            raise ConfigurationError("redo_errors says what a resumed run plays again: give the results_path of the run")
        for callback in (self.on_start, *self.on_progress, self.on_log):
            if callback is None:
                continue
            if not callable(callback):
                raise ConfigurationError(f"a callback must be a function, got {type(callback).__name__}")
            if inspect.iscoroutinefunction(callback):
                raise ConfigurationError(f"a callback must be a plain function, and {function_name(callback)} is async: nobody awaits it")
