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

    def add_tool(self, tool: Callable[..., Any], args_to_skip: Collection[str] = ()) -> None:
        """Add a tool, for every episode that starts from now on.

        Args:
            tool: A plain or async function.
            args_to_skip: Names of arguments that the model is not told of. Those that the tool does not have hide nothing, so one list
                may serve several tools.

        Raises:
            ConfigurationError: If there is a tool of that name already, or no schema can be made of its signature.
        """
        super().add_tool(tool, args_to_skip if isinstance(args_to_skip, str) else _parameters_of(tool).intersection(args_to_skip))
        self.skipped_args[self.tool_defs[-1].name] = list(args_to_skip)

    def _arguments_of(self, call: ToolCall) -> dict[str, Any]:
        arguments = super()._arguments_of(call)
        if forged := [name for name in self.skipped_args.get(call.name, ()) if name in arguments]:
            raise ToolCallError(f"{call.name}() got an unexpected keyword argument {forged[0]!r}")
        return arguments


def _parameters_of(func: Any) -> set[str]:
    """Return the names of a callable's parameters; of what is no callable that can be read, none."""
    try:
        return set(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return set()


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
