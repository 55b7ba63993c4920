"""`ToolEnv`: the model calls Python functions, and the environment answers with what they return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from vfgym.aio.background import in_event_loop
from vfgym.aio.steps import Steps, Together, begin, eager
from vfgym.aio.threads import in_place, on_thread
from vfgym.calls import Ready, is_async, is_awaitable, rollout_failure
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.errors import ConfigurationError, Error, ToolCallError, ToolError, ToolParseError, did_you_mean
from vfgym.lifecycle import is_blocking, stop
from vfgym.messages import Message, ToolCall, as_message
from vfgym.overrides import inline_hook, items_of
from vfgym.rubrics import Rubric
from vfgym.rubrics.scoring import Score
from vfgym.state import State
from vfgym.tools import ToolFunction, as_tool, result_content


def error_text(error: Exception) -> str:
    """Return what the model is told of an error: its text."""
    return f"{error}"


ALL_CALLS = "total_tool_calls"
"""The metric that counts the calls of all tools."""


class ToolMonitorRubric(Rubric):
    """Measures the calls that the model made: ``total_tool_calls``, and ``<tool>_calls`` for each tool but one named ``total_tool``."""

    def __init__(self, tool_names: Sequence[str] = ()) -> None:
        """Count the calls of these tools."""
        super().__init__()
        self.tool_names = list(tool_names)

    @property
    def metric_names(self) -> list[str]:
        """``total_tool_calls``, then one name for each tool."""
        return list(dict.fromkeys([ALL_CALLS, *map(_metric_of, self.tool_names)]))

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Count the calls of one episode, all in one pass."""
        counts = Counter(call.name for message in state["completion"] or [] for call in message.get("tool_calls") or [])
        metrics = {ALL_CALLS: 0.0} | {_metric_of(name): float(counts[name]) for name in self.tool_names}
        metrics[ALL_CALLS] = float(counts.total())  # a server's tool may be named total_tool
        return Score(0.0, metrics)
        yield  # makes this a generator, as the rubrics around it expect


def _metric_of(tool_name: str) -> str:
    return f"{tool_name}_calls"


class ToolEnv(MultiTurnEnv):
    """An environment with stateless tools. An episode ends when the model answers without calling one.

    Each call of an answer gets one tool message, in order. Async tools of one answer run concurrently, plain ones in order.
    What the model did wrong (unknown tool, arguments that are not JSON or do not fit) it reads in the tool message.

    >>> def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> env = ToolEnv(tools=[add], dataset=[{"question": "1 + 2?"}])
    >>> conversation, info = env.reset(seed=0)
    >>> call = {"id": "1", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    >>> conversation, *_ = env.step({"role": "assistant", "content": None, "tool_calls": [call]})
    >>> conversation[-1]
    ToolMessage(content='3', tool_call_id='1')
    """

    _hook_names: ClassVar[tuple[str, ...]] = (*MultiTurnEnv._hook_names, "call_tool", "update_tool_args")

    _calls_overlap: ClassVar[bool] = True
    """Whether async tools of one answer run concurrently."""
    _content_of = staticmethod(result_content)
    """Makes the content of a tool message of what a tool returned."""

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
            tools: Plain or async functions. Name, description and argument schema come from signature and docstring.
            max_turns: Most answers of the model in one episode; unlimited where it is not positive.
            error_formatter: Makes the text of a tool message of an exception.
            stop_errors: Exceptions that end the episode with an error instead of becoming a tool message: an error that
                the tool raised, or `ToolParseError` and `ToolCallError` for what this library found.
            **kwargs: Passed to `MultiTurnEnv`.
        """
        super().__init__(max_turns=max_turns, **kwargs)
        if not callable(error_formatter):
            raise ConfigurationError(f"error_formatter must be a function from an exception to text, got {type(error_formatter).__name__}")
        self.error_formatter = error_formatter
        self.stop_errors = items_of(stop_errors, "stop_errors", "exceptions")
        for each in self.stop_errors:
            if not (isinstance(each, type) and issubclass(each, BaseException)):
                raise ConfigurationError(f"stop_errors must be exceptions, got {each!r}")
        self.tools: list[Callable[..., Any]] = []
        self.tool_map: dict[str, Callable[..., Any]] = {}
        self._tool_functions: dict[str, ToolFunction] = {}
        self._async_tools: set[str] = set()
        self._monitor = ToolMonitorRubric()
        self.add_rubric(self._monitor)
        for tool in items_of(tools, "tools", "functions"):
            self.add_tool(tool)

    def add_tool(self, tool: Callable[..., Any]) -> None:
        """Add a tool, for every episode that starts from now on.

        Raises:
            ConfigurationError: If there is one of that name already, it would have the metric of all tools, or no schema can be made of
                its signature.
        """
        self._register(tool, ToolFunction(tool))

    def _register(self, tool: Callable[..., Any], function: ToolFunction) -> None:
        if function.name in self._tool_functions:
            raise ConfigurationError(f"there is a tool named {function.name!r} already: remove_tool() it first, or rename one")
        if _metric_of(function.name) == ALL_CALLS:
            raise ConfigurationError(f"a tool cannot be named {function.name!r}: {ALL_CALLS} counts the calls of all tools. Rename it")
        self.tools.append(tool)
        self.tool_map[function.name] = tool
        self.tool_defs.append(as_tool(function.definition, self.tool_type))
        self._tool_functions[function.name] = function
        self._monitor.tool_names.append(function.name)
        if is_async(function.func):
            self._async_tools.add(function.name)
        self.__dict__.pop("action_space", None)

    def remove_tool(self, tool: Callable[..., Any]) -> None:
        """Remove a tool, for every episode that starts from now on.

        Raises:
            ConfigurationError: If it is not one of the tools.
        """
        name = next((name for name, function in self._tool_functions.items() if function.func == tool), None)
        if name is None:
            raise ConfigurationError(f"{tool!r} is not a tool of this environment; it has {', '.join(self.tool_map) or 'none'}")
        self.tools.remove(tool)
        del self.tool_map[name], self._tool_functions[name]
        self.tool_defs[:] = [definition for definition in self.tool_defs if definition.name != name]
        self._monitor.tool_names.remove(name)
        self._async_tools.discard(name)
        self.__dict__.pop("action_space", None)

    @stop
    def no_tools_called(self, state: State) -> bool:
        """Stop when the model answered without calling a tool."""
        trajectory = state["trajectory"]
        if not trajectory:
            return False
        last = trajectory[-1]["completion"][-1]
        return bool(last["role"] == "assistant" and not last.get("tool_calls"))

    @eager
    def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Steps[list[Message]]:
        """Carry out the calls of the last answer and return one tool message for each, in order. Can be awaited."""
        calls = messages[-1].get("tool_calls") or []
        answers: list[Any] = [None] * len(calls)
        waiting: list[int] = []
        for index, call in enumerate(calls):
            may_overlap = self._may_overlap(call.name)
            if waiting and not may_overlap:
                yield from self._collect(answers, waiting)
            try:
                result = self._begin(call, messages, state)
            except ToolError:
                if waiting:
                    yield from self._collect(answers, waiting)
                raise
            if result.__class__ is Ready:
                answers[index] = result.value
                continue
            answers[index] = result
            waiting.append(index)
            if not may_overlap:
                yield from self._collect(answers, waiting)
        if waiting:
            yield from self._collect(answers, waiting)
        return answers

    def _collect(self, answers: list[Any], waiting: list[int]) -> Steps[None]:
        """Await the answers that are waited for, all at once, and put the messages in their places."""
        if len(waiting) == 1:
            results = [(yield answers[waiting[0]])]
        else:
            results = yield Together([answers[index] for index in waiting])
        for index, result in zip(waiting, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            answers[index] = result
        waiting.clear()

    def _may_overlap(self, tool_name: str) -> bool:
        return self._calls_overlap and tool_name in self._async_tools and not self.replaces("call_tool")

    @eager
    def _begin(self, call: ToolCall, messages: list[Message], state: State) -> Steps[Message]:
        """Carry out one call, as far as it goes without waiting, and return the tool message."""
        try:
            arguments = self._arguments_of(call)
        except Exception as error:
            return self._tell(error, call, ToolParseError)
        arguments = yield from self._complete_arguments(call, arguments, messages, state)  # a hook: what it raises is not the tool's
        try:
            if not self.replaces("call_tool"):
                return (yield from self._call(call.name, arguments, call.id))
            answer = self.call_tool(call.name, arguments, call.id)
            if is_awaitable(answer):
                answer = yield answer
            return as_message(answer, self.message_types)
        except BaseException as error:
            return self._tell(rollout_failure(error), call, ToolCallError)

    def _complete_arguments(
        self, call: ToolCall, arguments: dict[str, Any], messages: list[Message], state: State
    ) -> Steps[dict[str, Any]]:
        """Return what the tool is called with, given what the model wants it to be called with."""
        return arguments
        yield  # makes this a generator: StatefulToolEnv's may wait

    def _arguments_of(self, call: ToolCall) -> dict[str, Any]:
        """Return what the model wants the tool to be called with: checked, and of the types that the signature asks for."""
        function = self._tool_functions.get(call.name)
        if function is not None:
            return function.bind(function.decode(call.arguments))
        if self.replaces("call_tool"):
            return _UNCHECKED.decode(call.arguments)
        known = list(self._tool_functions)
        raise ToolCallError(f"unknown tool {call.name!r}; available: {', '.join(known) or 'none'}.{did_you_mean(call.name, known)}")

    @inline_hook
    def call_tool(self, tool_name: str, tool_args: Mapping[str, Any], tool_call_id: str, **kwargs: Any) -> Any:
        """Call one tool and return the tool message. Override it to customize the execution. Can be awaited.

        Args:
            tool_name: Name of a tool.
            tool_args: Arguments, checked against the signature.
            tool_call_id: Which call it answers.
            **kwargs: Accepted for overrides.
        """
        return begin(self._call(tool_name, tool_args, tool_call_id))

    def _call(self, tool_name: str, tool_args: Mapping[str, Any], tool_call_id: str) -> Steps[Message]:
        func, invoke = self._callable(tool_name)
        if is_blocking(func) and in_event_loop():
            result = yield on_thread(invoke, tool_args, name=tool_name)
        else:
            result = in_place(tool_name, invoke, tool_args)
        if is_awaitable(result):
            result = yield result
        return self.message_types["tool"](self._content_of(result), tool_call_id=tool_call_id)

    def _callable(self, tool_name: str) -> tuple[Callable[..., Any], Callable[[Mapping[str, Any]], Any]]:
        """Return the function that a tool is, and what calls it with its arguments."""
        function = self._tool_functions.get(tool_name)
        if function is None:
            raise ToolCallError(f"unknown tool {tool_name!r}; available: {', '.join(self._tool_functions) or 'none'}")
        return function.func, function.invoke

    def _tell(self, error: Exception, call: ToolCall, kind: type[ToolError]) -> Message:
        """Return the tool message that tells of an error; raise it, as a `ToolError`, if it is one that ends the episode."""
        failure = error
        if not isinstance(error, ToolError):
            failure = kind(f"{call.name}: {error!r}")
            failure.__cause__ = error
            if isinstance(error, Error):  # a sandbox, say, whose host failed, or whose memory the model has used up
                failure.failure_cause = error.failure_cause
        stop_errors = tuple(self.stop_errors)
        if isinstance(failure, stop_errors) or isinstance(failure.__cause__, stop_errors):
            raise failure
        return self.message_types["tool"](self.error_formatter(error), tool_call_id=call.id)


def _anything(**arguments: Any) -> None: ...


_UNCHECKED = ToolFunction(_anything, name="tool")
