"""Evaluation: an agent plays the tasks of an environment, many episodes at once, and every one of them is kept."""

from vfgym.runs.evaluate import aevaluate, evaluate
from vfgym.runs.progress import Progress
from vfgym.runs.replay import Difference, Replay, replay
from vfgym.runs.rescoring import score
from vfgym.runs.rollout import Group, rollout
from vfgym.runs.spec import RunSettings, RunSpec

__all__ = ["Difference", "Group", "Progress", "Replay", "RunSettings", "RunSpec", "aevaluate", "evaluate", "replay", "rollout", "score"]
