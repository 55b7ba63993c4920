"""Symbolic scorers, as worker processes call them. It is imported there alone: it loads reasoning-gym and sympy."""

from __future__ import annotations

from vfgym.wrappers.reasoning_gym.formulas import is_formula
from vfgym.wrappers.reasoning_gym.package import reasoning_gym
from vfgym.wrappers.reasoning_gym.scoring import Entry, Scorer, score_here


def score(dataset: Scorer, name: str, answer: str, entry: Entry) -> float:
    """Return the score of an answer; of one that is not a formula, as if there were none.

    ``sympy.parse_expr``, which the scorers call, evaluates the answer as Python.
    """
    return score_here(dataset, name, answer if is_formula(answer) else None, entry)


reasoning_gym()  # imported once, for all workers
