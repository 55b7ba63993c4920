"""`StatefulToolEnv`: tools that work on what belongs to one episode."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from vfgym.aio.steps import Steps
from vfgym.calls import is_awaitable
from vfgym.envs.tool import ToolEnv, error_text
from vfgym.errors import HookMissing
from vfgym.messages import Message, ToolCall
from vfgym.overrides import hook
from vfgym.state import State
from vfgym.tools import ToolFunction


class StatefulToolEnv(ToolEnv):
    """Tools with hidden arguments, which the environment fills in from the episode's state.

    `setup_state` puts what the tools need into the state, `add_tool(tool, args_to_skip=[...])` hides arguments from the
    model, and `update_tool_args` gives them their values before each call. Calls run one after another.
    """

    _calls_overlap = False

    def __init__(
        self,
        tools: Sequence[Callable[..., Any]] | None = None,
        max_turns: int = 10,
        error_formatter: Callable[[Exception], str] = error_text,
        stop_errors: Sequence[type[Exception]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            tools: As of `ToolEnv`, as the next three.
            max_turns: Most answers of the model in one episode.
            error_formatter: Makes the text of a tool message of an exception.
            stop_errors: Exceptions that end the episode with an error.
            **kwargs: Passed to `ToolEnv`.

        Raises:
            HookMissing: If the class does not write `update_tool_args`.
        """
        if type(self).update_tool_args is StatefulToolEnv.update_tool_args:
            raise HookMissing(
                f"{type(self).__name__} must write update_tool_args(tool_name, tool_args, messages, state), which gives hidden"
                " arguments their values; tools without any need only ToolEnv"
            )
        self.skipped_args: dict[str, list[str]] = {}
        """For each tool, the names of its hidden arguments."""
        super().__init__(tools=tools, max_turns=max_turns, error_formatter=error_formatter, stop_errors=stop_errors, **kwargs)

    def add_tool(self, tool: Callable[..., Any], args_to_skip: Collection[str] = ()) -> None:
        """Add a tool, for every episode that starts from now on.

        Args:
            tool: A plain or async function.
            args_to_skip: Names of arguments that the model is not told of.

        Raises:
            ConfigurationError: If a name is not an argument of the tool, or there is a tool of that name already.
        """
        function = ToolFunction(tool, hidden=args_to_skip)
        self._register(tool, function)
        self.skipped_args[function.name] = list(args_to_skip)

    @hook
    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the arguments that the tool is called with: the model's, and the hidden ones. Plain or async.

        What it raises is told to nobody: as in every hook, an `Error` ends the episode, and anything else is raised.

        Args:
            tool_name: Name of the tool.
            tool_args: What the model gave, checked against the signature.
            messages: The whole conversation so far.
            state: The episode.
            **kwargs: Accepted for overrides.
        """
        raise NotImplementedError(f"{type(self).__name__} must write update_tool_args(tool_name, tool_args, messages, state)")

    def _complete_arguments(
        self, call: ToolCall, arguments: dict[str, Any], messages: list[Message], state: State
    ) -> Steps[dict[str, Any]]:
        completed: Any = self.update_tool_args(call.name, arguments, messages, state)
        if is_awaitable(completed):
            completed = yield completed
        return completed  # type: ignore[no-any-return]
