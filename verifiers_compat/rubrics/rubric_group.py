"""The documented module of `RubricGroup`."""

from vfgym.rubrics import RubricGroup

__all__ = ["RubricGroup"]
