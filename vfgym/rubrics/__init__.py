"""Rubrics: how an episode is scored."""

import importlib
from typing import TYPE_CHECKING, Any

from vfgym.rubrics.judge_rubric import JudgeRubric
from vfgym.rubrics.math_rubric import MathRubric
from vfgym.rubrics.rubric import Rubric
from vfgym.rubrics.rubric_group import RubricGroup
from vfgym.rubrics.scoring import GroupRewardFunc, IndividualRewardFunc, RewardFunc

if TYPE_CHECKING:
    from vfgym.rubrics.code_rubric import CodeRubric

__all__ = ["CodeRubric", "GroupRewardFunc", "IndividualRewardFunc", "JudgeRubric", "MathRubric", "RewardFunc", "Rubric", "RubricGroup"]


def __getattr__(name: str) -> Any:
    if name == "CodeRubric":  # who scores no code does not import sandboxes
        return importlib.import_module("vfgym.rubrics.code_rubric").CodeRubric
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
