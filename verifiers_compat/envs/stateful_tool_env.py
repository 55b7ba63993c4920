"""`StatefulToolEnv` with the rollout API."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

from verifiers_compat.envs.tool_env import ToolEnv
from vfgym.envs import stateful_tool


class StatefulToolEnv(ToolEnv, stateful_tool.StatefulToolEnv):
    """`vfgym.StatefulToolEnv` with the rollout API."""


def filter_signature(func: Callable[..., Any], args_to_skip: Collection[str]) -> Callable[..., Any]:
    """Return a function like `func`, whose signature is without some arguments: what a model is told of it."""
    signature = inspect.signature(func)
    shown = [parameter for name, parameter in signature.parameters.items() if name not in (*args_to_skip, "self")]

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    call.__annotations__ = {name: kind for name, kind in getattr(func, "__annotations__", {}).items() if name not in args_to_skip}
    return call


__all__ = ["StatefulToolEnv", "filter_signature"]
