"""Classes that stand for classes of `vfgym`: what the library makes is an instance of them, and subclasses are as usual."""

from __future__ import annotations

import abc
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from verifiers_compat.stand_ins import StandsFor


class Base: ...


class OfBase(Base): ...


class Stand(Base, metaclass=StandsFor):
    stands_for = Base


class OfStand(Stand): ...


@pytest.mark.parametrize(
    ("cls", "is_stand", "is_of_stand"),
    [(Base, True, False), (OfBase, True, False), (Stand, True, False), (OfStand, True, True), (int, False, False)],
)
def test_every_object_of_a_class_is_one_of_what_stands_for_it(cls: type, is_stand: bool, is_of_stand: bool) -> None:
    assert (isinstance(cls(), Stand), issubclass(cls, Stand)) == (is_stand, is_stand)
    assert (isinstance(cls(), OfStand), issubclass(cls, OfStand)) == (is_of_stand, is_of_stand)


def test_what_the_library_makes_is_an_instance_of_the_documented_classes() -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "q"}], rubric=vf.Rubric(lambda: 1.0))
    assert isinstance(env.rubric, vf.RubricGroup)
    assert all(isinstance(rubric, vf.Rubric) for rubric in (env.rubric, *env.rubric.rubrics))
    assert not isinstance(vf.Rubric(), vf.RubricGroup)
    assert isinstance(vfgym.Usage(1, 0, 1, 2), vf.Usage)


@pytest.mark.parametrize(("base", "made_of"), [(vf.Rubric, [lambda: 1.0]), (vf.RubricGroup, [vf.Rubric()])])
def test_subclasses_can_be_abstract(base: Any, made_of: list[Any]) -> None:
    class Abstract(base, abc.ABC):  # type: ignore[misc]
        @abc.abstractmethod
        def passing(self) -> float: ...

    class Whole(Abstract):
        def passing(self) -> float:
            return 1.0

    with pytest.raises(TypeError, match="abstract"):
        Abstract(made_of)
    whole = Whole(made_of)
    assert (isinstance(whole, Abstract), isinstance(whole, base), isinstance(base(made_of), Abstract)) == (True, True, False)
