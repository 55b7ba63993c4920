"""`RubricGroup` with the documented arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from verifiers_compat.stand_ins import StandsFor
from vfgym import rubrics
from vfgym.parsers import Parser


class RubricGroup(rubrics.RubricGroup, metaclass=StandsFor):
    """`vfgym.RubricGroup` with the documented arguments."""

    stands_for: ClassVar[type] = rubrics.RubricGroup

    def __init__(self, rubrics: Sequence[Any], *, parser: Parser | None = None) -> None:
        """Combine rubrics.

        Args:
            rubrics: The rubrics, each with its own parser.
            parser: The group's own; that of the first rubric by default.

        Raises:
            ConfigurationError: If there are no rubrics.
        """
        super().__init__(rubrics)
        if parser is not None:
            self.parser = self.class_objects["parser"] = parser


__all__ = ["RubricGroup"]
