"""The tools of one rollout: functions and servers, with what is hidden from the model filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from verifiers_compat.v1.bindings import Bindings
from vfgym.aio.background import in_event_loop
from vfgym.aio.threads import in_place, on_thread
from vfgym.calls import CallPlan, is_awaitable
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import is_blocking
from vfgym.tools import Tool, ToolFunction
from vfgym.tools.mcp import MCPSession

if TYPE_CHECKING:
    from verifiers_compat.v1.runtime import Runtime

RESERVED = ("task", "state", "runtime")
"""Arguments that the model is never told of: they are given to every tool that asks for them."""
SANDBOX = "sandbox"
"""The same, for tools of a toolset that has one."""


class RolloutTool:
    """A function as a tool of one running rollout."""

    def __init__(self, function: ToolFunction, bindings: Bindings, running: Runtime) -> None:
        self.name = function.name
        self.definition = function.definition
        self._function = function
        self._bindings = bindings
        self._running = running

    async def call(self, arguments: str | Mapping[str, Any]) -> Any:
        """Call the function with what a model sent.

        Raises:
            ToolParseError: If the arguments are not a JSON object.
            ToolCallError: If they do not fit, or name one that is hidden.
        """
        return await self.call_with(**self._function.decode(arguments))

    async def call_with(self, **arguments: Any) -> Any:
        """Call the function with its visible arguments; the hidden ones are filled in."""
        function, running = self._function, self._running
        bound = function.bind(arguments)
        hidden = await self._bindings.values(self.name, running.task, running.state)
        given = {"task": running.task, "state": running.state, "runtime": running.state["runtime"]}
        hidden.update({name: given[name] for name in function.hidden if name in given and name not in hidden})
        if SANDBOX in function.hidden and SANDBOX not in hidden:
            hidden[SANDBOX] = await self._bindings.sandbox_for(running.state)
        if is_blocking(function.func) and in_event_loop():
            return await on_thread(lambda: function.invoke(bound, **hidden), name=self.name)
        result = in_place(self.name, lambda: function.invoke(bound, **hidden))
        return await result if is_awaitable(result) else result


def server_function(definition: Tool, session: MCPSession) -> ToolFunction:
    """Return a tool of an MCP server as a function that calls it through `session`."""

    async def call(**arguments: Any) -> Any:
        return await session.call(definition.name, arguments)

    return ToolFunction.from_definition(definition, call)


def tool_function(func: Callable[..., Any], bindings: Bindings) -> ToolFunction:
    """Return a function as a tool, with the arguments hidden that are bound or reserved.

    Raises:
        ConfigurationError: If no schema can be made of it, or an argument is bound that it does not have.
    """
    try:
        plan = CallPlan(func)
    except TypeError as error:
        raise ConfigurationError(f"a tool must be a function: {error}") from None
    bound = bindings.bound_arguments(plan.name)
    if missing := bound - set(plan.names):
        raise ConfigurationError(f"the tool {plan.name} has no argument {min(missing)!r}, which a binding names")
    reserved = RESERVED if bindings.sandbox is None else (*RESERVED, SANDBOX)
    return ToolFunction(func, hidden=sorted(bound | {name for name in reserved if name in plan.names}))


def merge_tools(tools: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, by name.

    Raises:
        ConfigurationError: If two have the same name.
    """
    for name in more:
        if name in tools:
            raise ConfigurationError(f"there are two tools called {name!r}: rename one, or hide it in one of the toolsets")
    return {**tools, **more}
