"""Rubrics: how an episode is scored."""

from vfgym.rubrics.judge_rubric import JudgeRubric
from vfgym.rubrics.math_rubric import MathRubric
from vfgym.rubrics.rubric import Rubric
from vfgym.rubrics.rubric_group import RubricGroup
from vfgym.rubrics.scoring import GroupRewardFunc, IndividualRewardFunc, RewardFunc

__all__ = ["GroupRewardFunc", "IndividualRewardFunc", "JudgeRubric", "MathRubric", "RewardFunc", "Rubric", "RubricGroup"]
