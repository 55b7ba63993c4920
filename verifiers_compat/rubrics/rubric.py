"""The documented module of `Rubric`."""

from vfgym.rubrics import Rubric

__all__ = ["Rubric"]
