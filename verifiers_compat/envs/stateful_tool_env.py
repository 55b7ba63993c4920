"""`StatefulToolEnv` with the rollout API."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any

from verifiers_compat.envs.tool_env import ToolEnv
from vfgym.envs import stateful_tool
from vfgym.errors import ToolCallError
from vfgym.messages import ToolCall


class StatefulToolEnv(ToolEnv, stateful_tool.StatefulToolEnv):
    """`vfgym.StatefulToolEnv` with the rollout API, whose tools are called as those of `ToolEnv`.

    Arguments that are hidden from the model are refused where it gives them all the same.
    """

    _error_of_no_object = ValueError

    def _arguments_of(self, call: ToolCall) -> dict[str, Any]:
        arguments = super()._arguments_of(call)
        if forged := [name for name in self.skipped_args.get(call.name, ()) if name in arguments]:
            raise ToolCallError(f"{call.name}() got an unexpected keyword argument {forged[0]!r}")
        return arguments


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
