"""The documented rubrics of the rollout API, one module each."""

from verifiers_compat.loading import module_getattr
from verifiers_compat.rubrics.rubric import Rubric
from verifiers_compat.rubrics.rubric_group import RubricGroup

__all__ = ["JudgeRubric", "MathRubric", "Rubric", "RubricGroup"]

__getattr__ = module_getattr(
    __name__,
    lazy={
        "JudgeRubric": "verifiers_compat.rubrics.judge_rubric:JudgeRubric",
        "MathRubric": "verifiers_compat.rubrics.math_rubric:MathRubric",
    },
)
