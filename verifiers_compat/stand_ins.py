"""Classes that stand for classes of `vfgym`: what the library makes by itself is an instance of them, too."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any


class StandsFor(ABCMeta):
    """A class whose `stands_for` is a class of `vfgym`: every object of that class is an instance. Its subclasses are as usual.

    They may be abstract: a class has one metaclass, so this one has to be that of abstract classes, too.
    """

    stands_for: type

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.stands_for) if "stands_for" in vars(cls) else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.stands_for) if "stands_for" in vars(cls) else super().__subclasscheck__(subclass)
