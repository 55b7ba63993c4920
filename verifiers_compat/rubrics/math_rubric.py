"""The documented module of `MathRubric`."""

from vfgym.rubrics.math_rubric import MathRubric, verify_response

__all__ = ["MathRubric", "verify_response"]
