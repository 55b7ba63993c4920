"""What a run of `generate` is asked for, checked once."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, SkipValidation, model_validator

from vfgym.calls import function_name
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.runs.spec import RunSettings, check_integer


def _integer(name: str) -> BeforeValidator:
    return BeforeValidator(lambda value: check_integer(name, value, "an integer", least=-sys.maxsize))


def _check_seed(seed: Any) -> int | None:
    return None if seed is None else check_integer("seed", seed, "an integer from 0", least=0)


def _check_model(model: Any) -> Any:
    if not isinstance(model, str):
        raise ConfigurationError(f"model must be the name of a model (a string), got {type(model).__name__}")
    return model


def _check_callback(callback: Any) -> Any:
    if callback is not None and not callable(callback):
        raise ConfigurationError(f"a callback must be a function, got {type(callback).__name__}")
    if inspect.iscoroutinefunction(callback):
        raise ConfigurationError(f"a callback must be a plain function, and {function_name(callback)} is async: nobody awaits it")
    return callback


Flag = Annotated[bool, BeforeValidator(bool)]
Callback = Annotated[SkipValidation[Callable[..., Any]], BeforeValidator(_check_callback)]

OF_THE_INPUTS = frozenset({"num_examples", "rollouts_per_example", "split", "example_ids", "both_seats"})
"""Settings of runs that the inputs of `generate` say."""


class GenerateSettings(RunSettings):
    """How a run of `generate` goes: the settings of any run, but for what its inputs say, and those that it alone has."""

    # Where `generate` has other defaults than `evaluate`, or fewer choices
    max_concurrent: Annotated[int, _integer("max_concurrent")] = -1
    """Most rollouts at once; no limit where it is not positive."""
    seed: Annotated[int | None, BeforeValidator(_check_seed)] = None  # type: ignore[assignment]
    """Seed of the rollouts' random numbers (``state.rng``): each follows from it and from the rollout's place alone. Fresh ones without
    it."""
    independent_scoring: Flag = False
    """Score each rollout alone, without advantages."""

    model: Annotated[str, BeforeValidator(_check_model)]
    """Name of the model."""
    sampling_args: dict[str, Any] = {}
    """Generation parameters."""
    max_concurrent_scoring: Annotated[int, _integer("max_concurrent_scoring")] = -1
    """Most groups (or rollouts) that are scored at once; no limit where it is not positive."""
    results_path: Path | None = None
    """Directory of the results; those that it has are gone on with."""
    save_results: Flag = False
    """Write results, to a new directory where there is no `results_path`."""
    redo_errors: Flag = False
    """When resuming, play those again that ended with an error."""
    push_to_hf_hub: Flag = False
    """Push the results to the Hugging Face hub, too."""
    hf_hub_dataset_name: str | None = None
    """Name of the data set there; made of environment, model and numbers by default."""
    on_start: Callback | None = None
    on_progress: tuple[Callback, ...] = ()
    on_log: Callback | None = None
    shows_progress: bool = True
    """Whether a progress bar is shown on a terminal."""

    @classmethod
    def of(cls, given: Mapping[str, Any], taker: str) -> Self:
        """Return checked settings (see `RunSettings.of`)."""
        said = next((name for name in given if name in OF_THE_INPUTS), None)
        if said is not None:
            raise UnknownArgument(f"{taker} has no argument {said!r}: its inputs say what is played")
        return super().of(given, taker)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.hf_hub_dataset_name and not self.push_to_hf_hub:
            raise ConfigurationError("hf_hub_dataset_name is where results are pushed to: give push_to_hf_hub=True too")
        if self.redo_errors and self.results_path is None:
            raise ConfigurationError("redo_errors says what a resumed run plays again: give the results_path of the run")
        return self
