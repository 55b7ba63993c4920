"""The documented module of `MathRubric`."""

from verifiers_compat.rubrics.rubric import Rubric
from vfgym.rubrics import math_rubric
from vfgym.rubrics.math_rubric import verify_response


class MathRubric(Rubric, math_rubric.MathRubric):
    """`vfgym.MathRubric` whose `funcs` and `weights` can be written to."""


__all__ = ["MathRubric", "verify_response"]
