"""Evaluation: an agent plays the tasks of an environment, many episodes at once, and every one of them is kept."""

from vfgym.evaluation.engine import aevaluate, evaluate
from vfgym.evaluation.progress import Progress

__all__ = ["Progress", "aevaluate", "evaluate"]
