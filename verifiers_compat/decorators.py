"""The documented decorators of the rollout API: those of `vfgym`, which here take their arguments in the documented order too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from vfgym import lifecycle
from vfgym.lifecycle import Stage, discover_decorated

F = TypeVar("F", bound=Callable[..., Any])


class _PositionalDecorator:
    """A decorator usable bare (``@stop``), with arguments (``@stop(priority=10)``) and as a function (``stop(method, 10)``)."""

    def __init__(self, decorator: Any) -> None:
        self._decorator = decorator
        self.__doc__ = decorator.__doc__


class _ByPriority(_PositionalDecorator):
    @overload
    def __call__(self, func: F, priority: int = 0) -> F: ...
    @overload
    def __call__(self, func: None = None, priority: int = 0) -> Callable[[F], F]: ...
    def __call__(self, func: Any = None, priority: int = 0) -> Any:
        return self._decorator(func, priority=priority)


class _ByStage(_PositionalDecorator):
    @overload
    def __call__(self, func: F, priority: int = 0, stage: Stage = "rollout") -> F: ...
    @overload
    def __call__(self, func: None = None, priority: int = 0, stage: Stage = "rollout") -> Callable[[F], F]: ...
    def __call__(self, func: Any = None, priority: int = 0, stage: Stage = "rollout") -> Any:
        return self._decorator(func, priority=priority, stage=stage)


class _ByWeight(_PositionalDecorator):
    @overload
    def __call__(self, func: F, weight: float = 1.0, priority: int = 0, stage: Stage = "rollout") -> F: ...
    @overload
    def __call__(self, func: None = None, weight: float = 1.0, priority: int = 0, stage: Stage = "rollout") -> Callable[[F], F]: ...
    def __call__(self, func: Any = None, weight: float = 1.0, priority: int = 0, stage: Stage = "rollout") -> Any:
        return self._decorator(func, weight=weight, priority=priority, stage=stage)


stop = _ByPriority(lifecycle.stop)
setup = _ByPriority(lifecycle.setup)
cleanup = _ByStage(lifecycle.cleanup)
update = _ByStage(lifecycle.update)
metric = _ByStage(lifecycle.metric)
reward = _ByWeight(lifecycle.reward)
advantage = _ByPriority(lifecycle.advantage)
teardown = _ByPriority(lifecycle.teardown)

__all__ = ["advantage", "cleanup", "discover_decorated", "metric", "reward", "setup", "stop", "teardown", "update"]
