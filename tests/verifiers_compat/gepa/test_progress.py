"""What GEPA reports of a run, taken down."""

from __future__ import annotations

import copy
import logging

import pytest

from verifiers_compat.gepa.progress import GepaLog, Progress
from verifiers_compat.gepa.result import Candidate, OptimizedPrompt


def test_candidates_are_taken_down_with_their_scores_in_order() -> None:
    """Those of the first are not reported as budget."""
    seen: list[OptimizedPrompt] = []
    progress = Progress(lambda result: seen.append(copy.deepcopy(result)))
    progress.on_valset_evaluated({"scores_by_val_id": {2: 0.5, 0: 0.0, 1: 1.0}, "candidate": {"system_prompt": "a"}, "parent_ids": []})
    progress.on_budget_updated({"metric_calls_used": 9})
    progress.on_valset_evaluated({"scores_by_val_id": {0: 1.0, 1: 1.0}, "candidate": {"system_prompt": "b"}, "parent_ids": [0]})
    assert progress.result.candidates == [Candidate("a", (0.0, 1.0, 0.5), (), 3), Candidate("b", (1.0, 1.0), (0,), 9)]
    assert [(len(result.candidates), result.calls) for result in seen] == [(1, 3), (2, 9)]
    assert not progress.result.is_finished


def test_the_log_of_gepa_is_part_of_that_of_this_library(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "verifiers_compat.gepa")
    GepaLog().log("100% of %s")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("verifiers_compat.gepa", "100% of %s")]
