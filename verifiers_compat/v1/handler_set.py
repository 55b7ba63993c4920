"""`Handlers`: the handlers and signals of everything that takes part in a rollout, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verifiers_compat.v1.config import ScoringConfig
from verifiers_compat.v1.handlers import SIGNALS, Handler
from verifiers_compat.v1.utils.scoring_utils import apply_scoring, collect_signals
from vfgym.lifecycle import Kind, Stage


class Handlers:
    """The handlers of everything that takes part in a rollout."""

    def __init__(self, handlers: Iterable[Handler], scoring: Mapping[str, ScoringConfig] | None = None) -> None:
        """Sort the handlers; the same function given twice counts once.

        Args:
            handlers: From all owners.
            scoring: What the run changes about signals, by name.

        Raises:
            ConfigurationError: If two signals have the same name, `scoring` names none, or a function asks for something that it
                cannot have.
        """
        unique: dict[tuple[Any, Kind], Handler] = {}
        for handler in handlers:
            unique.setdefault((handler.plan.func, handler.kind), handler)
        signals = collect_signals(handler for handler in unique.values() if handler.kind in SIGNALS)
        others = [handler for handler in unique.values() if handler.kind not in SIGNALS]
        self._all = sorted([*apply_scoring(signals, scoring or {}), *others], key=lambda handler: handler.sort_key)
        for handler in self._all:
            handler.check_arguments()

    def of(self, kind: Kind, stage: Stage = "rollout") -> list[Handler]:
        """Return the handlers of a kind, in the order in which they run."""
        return [handler for handler in self._all if handler.kind == kind and handler.stage == stage]

    def signals(self, stage: Stage) -> list[Handler]:
        """Return the metrics and rewards (for groups, advantages too), in the order in which they run."""
        return [handler for handler in self._all if handler.kind in SIGNALS and handler.stage == stage]

    @property
    def has_group_stage(self) -> bool:
        """Whether something has to see whole groups."""
        return any(handler.stage == "group" for handler in self._all)

    @property
    def signal_names(self) -> list[str]:
        """The names of the metrics, in the order in which they are measured."""
        return [handler.name for stage in ("rollout", "group") for handler in self.signals(stage) if handler.kind != "advantage"]

    @property
    def provides_advantages(self) -> bool:
        """Whether advantages are computed at all."""
        return bool(self.of("advantage", "group"))
