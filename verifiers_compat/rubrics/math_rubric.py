"""The documented module of `MathRubric`."""

from __future__ import annotations

from collections.abc import Sequence

from verifiers_compat.rubrics.rubric import Rubric
from vfgym.parsers import Parser
from vfgym.rubrics import math_rubric
from vfgym.rubrics.math_rubric import MAX_VERIFY_CHARS, TIMEOUT_SECONDS, verify_response
from vfgym.rubrics.scoring import RewardFunc


class MathRubric(Rubric, math_rubric.MathRubric):
    """`vfgym.MathRubric` whose `funcs` and `weights` can be written to."""

    def __init__(
        self,
        funcs: Sequence[RewardFunc] | RewardFunc | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        max_workers: int | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_verify_chars: int = MAX_VERIFY_CHARS,
    ) -> None:
        """Make a rubric (see `vfgym.MathRubric`).

        Args:
            funcs: Further reward functions.
            weights: Their weights.
            parser: Reads the response out of a completion.
            max_workers: Taken and without effect: all rubrics share one worker process for each core.
            timeout_seconds: CPU time in seconds that one verification may take.
            max_verify_chars: A longer response scores 0.0 and is not verified.
        """
        super().__init__(funcs, weights, parser, timeout_seconds=timeout_seconds, max_verify_chars=max_verify_chars)
        self.max_workers = max_workers


__all__ = ["MathRubric", "verify_response"]
