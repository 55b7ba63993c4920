"""`Progress`: takes down what GEPA reports of a run, and has it written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from verifiers_compat.gepa.result import Candidate, OptimizedPrompt

logger = logging.getLogger("verifiers_compat.gepa")


class Progress:
    """Takes down what GEPA reports."""

    def __init__(self, on_candidate: Callable[[OptimizedPrompt], None]) -> None:
        """Call a function whenever a candidate has been played on the validation examples.

        Args:
            on_candidate: Gets what came of the run so far. Since GEPA logs what its callbacks raise, nobody else hears of that.
        """
        self.result = OptimizedPrompt()
        self._on_candidate = on_candidate

    def on_budget_updated(self, event: Mapping[str, Any]) -> None:
        """Take down how many rollouts were played."""
        self.result.calls = event["metric_calls_used"]

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        """Take down a candidate that was played on the validation examples."""
        scores = tuple(score for _, score in sorted(event["scores_by_val_id"].items()))
        self.result.calls = self.result.calls or len(scores)  # those of the first candidate are not reported as budget
        (prompt,) = event["candidate"].values()
        self.result.candidates.append(Candidate(prompt, scores, tuple(event["parent_ids"]), self.result.calls))
        self._on_candidate(self.result)


class GepaLog:
    """GEPA's own log, which becomes part of this library's."""

    def log(self, message: str) -> None:
        """Log a message."""
        logger.debug("%s", message)
