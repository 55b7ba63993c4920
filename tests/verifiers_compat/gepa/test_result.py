"""What came of improving a prompt."""

from __future__ import annotations

from verifiers_compat.gepa.result import Candidate, OptimizedPrompt


def test_the_best_is_the_first_of_those_with_the_highest_score() -> None:
    scores = {"a": (0.0, 1.0), "b": (1.0, 1.0), "c": (2.0, 0.0), "d": (-1.0,)}
    candidates = [Candidate(name, each, (), 0) for name, each in scores.items()]

    result = OptimizedPrompt(candidates)
    assert [candidate.score for candidate in candidates] == [0.5, 1.0, 1.0, -1.0]
    assert (result.start, result.best, result.prompt) == (candidates[0], candidates[1], "b")
