"""`ToolEnv` with the rollout API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from vfgym.aio.steps import run_async
from vfgym.envs import tool
from vfgym.envs.tool import ToolMonitorRubric
from vfgym.errors import ToolParseError
from vfgym.messages import Message, ToolCall
from vfgym.overrides import inline_hook
from vfgym.tools import Tool, ToolFunction
from vfgym.tools.arguments import parse_arguments
from vfgym.tools.results import are_content_parts, result_content


def as_tool_content(value: object) -> str | list[dict[str, object]]:
    """Return what the model reads of what a tool returned: text and content parts as they are, anything else as `str` has it.

    >>> as_tool_content({"left": None}), as_tool_content([])
    ("{'left': None}", '[]')
    """
    return result_content(value) if isinstance(value, str) or are_content_parts(value) else str(value)


def with_title(definition: Tool) -> Tool:
    """Return the definition of a function with the documented title of its arguments, unless they have one."""
    title = {"title": f"{definition.name}_args"}
    return definition.model_copy(update={"parameters": {**title, **definition.parameters}})


class ToolEnv(MultiTurnEnv, tool.ToolEnv):
    """`vfgym.ToolEnv` with the rollout API, whose tools are called as this API documents it.

    A tool gets what the model wrote, neither checked nor converted. The calls of one answer are carried out one after another. The
    model reads what a tool returned as `str` writes it. What goes wrong is the exception that Python raises (`json.JSONDecodeError`
    where arguments are not JSON, `KeyError` for an unknown tool, `TypeError` for wrong arguments): ``error_formatter`` gets it, and
    ``stop_errors`` may name it, or the `vf.ToolParseError` or `vf.ToolCallError` that it is recorded as.
    """

    _calls_overlap = False
    _content_of = staticmethod(as_tool_content)
    _error_of_no_object: ClassVar[type[Exception]] = TypeError
    """What goes wrong where the arguments are JSON, but no object."""

    no_tools_called = awaitable_stop(tool.ToolEnv.no_tools_called)

    @inline_hook
    async def call_tool(self, tool_name: str, tool_args: Mapping[str, Any], tool_call_id: str, **kwargs: Any) -> Message:
        """Call one tool and return the tool message. Override it to customize the execution.

        Args:
            tool_name: Name of a tool.
            tool_args: Arguments, as the model wrote them.
            tool_call_id: Which call it answers.
            **kwargs: Accepted for overrides.
        """
        return await run_async(self._call(tool_name, tool_args, tool_call_id))

    def _register(self, tool: Callable[..., Any], function: ToolFunction) -> None:
        super()._register(tool, function)
        self.tool_defs[-1] = with_title(self.tool_defs[-1])

    def _arguments_of(self, call: ToolCall) -> dict[str, Any]:
        try:
            return parse_arguments(call.name, call.arguments)
        except ToolParseError as error:
            raise error.__cause__ or self._error_of_no_object(str(error)) from None

    def _callable(self, tool_name: str) -> tuple[Callable[..., Any], Callable[[Mapping[str, Any]], Any]]:
        func = self.tool_map[tool_name]
        function = self._tool_functions.get(tool_name)
        if function is not None and function.func is func:
            return func, function.invoke
        return func, lambda arguments: func(**arguments)  # the author's code has put it there


__all__ = ["ToolEnv", "ToolMonitorRubric"]
