"""The documented rubrics of the rollout API, one module each."""

from verifiers_compat.loading import create_getattr
from verifiers_compat.rubrics.rubric import Rubric
from verifiers_compat.rubrics.rubric_group import RubricGroup

__all__ = ["JudgeRubric", "MathRubric", "Rubric", "RubricGroup"]

__getattr__ = create_getattr(
    __name__,
    {
        "verifiers_compat.rubrics.judge_rubric": ["JudgeRubric"],
        "verifiers_compat.rubrics.math_rubric": ["MathRubric"],
    },
)
