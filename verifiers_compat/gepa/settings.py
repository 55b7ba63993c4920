"""`GepaSettings`: how a run goes, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vfgym.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class GepaSettings:
    """How a run of `optimize_prompt` goes (see there)."""

    model: str
    reflection_model: str
    sampling_args: dict[str, Any]
    state_columns: Sequence[str]
    num_train: int
    num_val: int
    max_calls: int
    minibatch_size: int
    perfect_score: float | None
    max_concurrent: int
    seed: int

    def __post_init__(self) -> None:
        for name in ("model", "reflection_model"):
            if not isinstance(getattr(self, name), str):
                raise ConfigurationError(f"{name} must be the name of a model (a string), got {type(getattr(self, name)).__name__}")
        for name, lowest in (
            ("num_train", 1),
            ("num_val", 1),
            ("max_calls", 1),
            ("minibatch_size", 1),
            ("max_concurrent", -1),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise ConfigurationError(f"{name} must be an integer from {lowest}, got {value!r}")
        perfect = self.perfect_score
        if perfect is not None and (not isinstance(perfect, int | float) or not math.isfinite(perfect)):
            raise ConfigurationError(f"perfect_score must be a number, or None for no such limit; got {perfect!r}")
        if isinstance(self.state_columns, str):
            raise ConfigurationError(f"state_columns must be a list of names, got the text {self.state_columns!r}")

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide what comes of a run. It may go on with a larger budget, or faster."""
        return {name: value for name, value in asdict(self).items() if name not in ("max_calls", "max_concurrent")}
