"""Rubrics: how an episode is scored."""

from vfgym.rubrics.rubric import Rubric
from vfgym.rubrics.rubric_group import RubricGroup
from vfgym.rubrics.scoring import GroupRewardFunc, IndividualRewardFunc, RewardFunc

__all__ = ["GroupRewardFunc", "IndividualRewardFunc", "RewardFunc", "Rubric", "RubricGroup"]
