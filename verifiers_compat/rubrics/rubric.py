"""`Rubric` whose functions and weights are lists that can be written to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from verifiers_compat.stand_ins import StandsFor
from vfgym import rubrics
from vfgym.calls import CallPlan
from vfgym.rubrics.scoring import RewardFunction


class _Watched(list[Any]):
    """A list that updates its rubric when it was written to."""

    def __init__(self, rubric: Rubric) -> None:
        super().__init__()
        self._rubric = rubric

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def _with_update(write: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of lists that writes, followed by an update of the rubric."""

    @functools.wraps(write)
    def call(self: _Watched, *args: Any, **options: Any) -> Any:
        before = list(self)
        try:
            result = write(self, *args, **options)
            self._rubric._register_lists()
        except BaseException:
            list.__setitem__(self, slice(None), before)  # what was refused does not stay
            raise
        return result

    return call


for _name in ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"):
    setattr(_Watched, _name, _with_update(getattr(list, _name)))
for _name in ("__setitem__", "__delitem__", "__iadd__", "__imul__"):
    setattr(_Watched, _name, _with_update(getattr(list, _name)))


class Rubric(rubrics.Rubric, metaclass=StandsFor):
    """`vfgym.Rubric` whose `funcs` and `weights` can be written to, at any time.

    They are lists in the same order. A function that has no weight yet counts with 1.0.
    """

    stands_for: ClassVar[type] = rubrics.Rubric

    @property
    def funcs(self) -> list[Callable[..., Any]]:
        """The functions that score episodes or groups, in order."""
        return self._lists[0]

    @funcs.setter
    def funcs(self, funcs: Iterable[Callable[..., Any]]) -> None:
        self._lists[0][:] = list(funcs)

    @property
    def weights(self) -> list[float]:
        """The weights of `funcs`."""
        return self._lists[1]

    @weights.setter
    def weights(self, weights: Iterable[float]) -> None:
        self._lists[1][:] = list(weights)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}  # the lists are made anew

    def add_cleanup_handler(self, handler: Callable[..., Any]) -> None:
        """Have a function called with what it names (``state``, ...) once an episode was scored, as a method marked `@cleanup` is."""
        self._cleanups.append(CallPlan(handler))

    @functools.cached_property
    def _kept(self) -> tuple[_Watched, _Watched, list[RewardFunction]]:
        """Functions and weights as lists, and the registered functions that they were made of."""
        return _Watched(self), _Watched(self), []

    @property
    def _lists(self) -> tuple[_Watched, _Watched]:
        funcs, weights, listed = self._kept
        if listed != self._functions:
            listed[:] = self._functions
            list.__setitem__(funcs, slice(None), [function.plan.func for function in listed])
            list.__setitem__(weights, slice(None), [function.weight for function in listed])
        return funcs, weights

    def _register_lists(self) -> None:
        """Register what the lists say."""
        funcs, weights, listed = self._kept
        known = {id(function.plan.func): function.when for function in self._functions}
        all_weights = [*weights, *[1.0] * (len(funcs) - len(weights))][: len(funcs)]
        self._functions[:] = [RewardFunction(func, weight, known.get(id(func))) for func, weight in zip(funcs, all_weights, strict=True)]
        listed[:] = self._functions


__all__ = ["Rubric"]
