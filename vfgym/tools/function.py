"""A callable as a tool: read once when it is registered, then called with what a model sends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import Any

from pydantic import ValidationError

from vfgym.errors import ConfigurationError, ToolCallError
from vfgym.tools.arguments import decode_embedded, describe_problems, describe_unknown, parse_arguments
from vfgym.tools.definition import Tool
from vfgym.tools.json_numbers import no_json_numbers
from vfgym.tools.schema import ArgumentPlan, plan_definition, plan_signature
from vfgym.tools.signature import EMPTY, read_signature, tool_name

_PLAIN_TYPES = frozenset({int, str, type(None)})
"""Of values that `no_json_numbers` need not look at; a text only where one is wanted."""


class ToolFunction:
    """A callable with the definition that a model is told, and the checks that stand between the two.

    A call takes three steps, apart because each fails in its own way:

    >>> def add(a: int, b: int = 1) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> tool = ToolFunction(add)
    >>> tool.invoke(tool.bind(tool.decode('{"a": "2"}')))
    3

    Attributes:
        func: The callable.
        name: What the model calls the tool.
        definition: What the model is told.
        hidden: Names of the parameters that the model is not told of; the environment gives them to `invoke`.
    """

    def __init__(self, func: Callable[..., Any], *, name: str | None = None, hidden: Collection[str] = ()) -> None:
        """Make a tool of a callable, by its signature and docstring.

        Parameters with a default are optional. Descriptions come from the docstring (Google, Sphinx or NumPy style),
        or from `Annotated[T, "text"]` and `Annotated[T, Field(...)]`, which also adds constraints. `**kwargs` makes
        the tool take arguments of any name.

        Args:
            func: A plain or async function, bound method, `functools.partial` or callable object.
            name: Name of the tool, by default that of the function, or of the class of a callable object.
            hidden: Names of parameters to leave out of the definition.

        Raises:
            ConfigurationError: `func` cannot be a tool. The message says why, naming the parameter if it is one.
        """
        if inspect.isclass(func) or not callable(func):
            raise ConfigurationError(f"expected a function or another callable object as a tool, got {func!r:.200}")
        if isinstance(hidden, str):
            raise ConfigurationError(f"hidden takes a collection of parameter names, got the text {hidden!r}")
        name = tool_name(func) if name is None else name
        signature = read_signature(func, name, hidden)
        parameters, plan = plan_signature(name, signature)
        self._set(func, Tool(name=name, description=signature.description, parameters=parameters), plan, frozenset(hidden))

    @classmethod
    def from_definition(cls, tool: Tool, func: Callable[..., Any]) -> ToolFunction:
        """Make a tool of a definition that was given, as by an MCP server, and the callable that carries it out.

        `bind` then checks by the top level of the schema: unknown and missing arguments, and simple types.

        Args:
            tool: What the model is told.
            func: Takes every argument by name.

        Raises:
            ConfigurationError: The parameters of `tool` are not the schema of an object.
        """
        tool_function = cls.__new__(cls)
        tool_function._set(func, tool, plan_definition(tool), None)
        return tool_function

    def _set(self, func: Callable[..., Any], definition: Tool, plan: ArgumentPlan, hidden: frozenset[str] | None) -> None:
        """Set the attributes; `hidden` is None if the definition was given."""
        self.func = func
        self.name = definition.name
        self.definition = definition
        self.hidden = hidden or frozenset()
        self._derived = hidden is not None
        self._plan = plan

    def decode(self, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that a model sent as a dict.

        Args:
            arguments: JSON text of an object (encoded twice is understood, empty means no arguments), or a mapping.

        Raises:
            ToolParseError: It is not a JSON object. The message is written for the model; `__cause__` is the
                `json.JSONDecodeError`, if there is one.
        """
        return parse_arguments(self.name, arguments)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the callable takes them: checked, and of the types that it asks for.

        `"1"` becomes 1 for an int, a JSON object a dataclass or model, a text holding JSON the value in it where no
        text is wanted. `true` is not an integer, and NaN and the infinities are not numbers (see `json_numbers`).
        Arguments that were not given are not in the result.

        Args:
            arguments: What `decode` returned.

        Raises:
            ToolCallError: Arguments are missing, unknown or wrong. The message names each of them, for the model;
                `__cause__` is pydantic's `ValidationError`, where it found a problem.
        """
        plan = self._plan
        try:
            bound = plan.validate(arguments)
        except ValidationError as error:
            if decoded := decode_embedded(arguments, plan.never_text):
                return self.bind({**arguments, **decoded})
            raise self._wrong(arguments, error) from error
        for name, value in arguments.items():
            kind = type(value)
            is_plain = isfinite(value) if kind is float else kind in _PLAIN_TYPES and not (kind is str and name in plan.never_text)
            if not is_plain:
                if no_json_numbers(arguments, self.definition.parameters):
                    raise self._wrong(arguments, None)
                break
        if forged := self._plan.reserved.intersection(bound):
            raise ToolCallError(f"{self.name}: {describe_unknown(sorted(forged), self._plan.names)}")
        return bound

    def _wrong(self, arguments: Mapping[str, Any], error: ValidationError | None) -> ToolCallError:
        """Return the error that tells the model what is wrong with its arguments."""
        found = no_json_numbers(arguments, self.definition.parameters)
        return ToolCallError(f"{self.name}: {describe_problems(error, found, arguments, self._plan.names)}")

    def invoke(self, arguments: Mapping[str, Any], /, **injected: Any) -> Any:
        """Call the callable and return what it returns, an awaitable if it is async.

        Args:
            arguments: What `bind` returned.
            **injected: Values of hidden parameters.
        """
        if not self._plan.positional:
            return self.func(**arguments, **injected)
        by_name = {**arguments, **injected}
        by_position = []
        for name, default in self._plan.positional:
            if name not in by_name and default is EMPTY:
                break  # the call itself says what is missing
            by_position.append(by_name.pop(name, default))
        return self.func(*by_position, **by_name)

    def __repr__(self) -> str:
        """Name the tool."""
        return f"<ToolFunction {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the tool was made of: its validator belongs to a type made on the spot, which pickle cannot find."""
        if self._derived:
            return _read_again, (self.func, self.name, self.hidden)
        return ToolFunction.from_definition, (self.definition, self.func)


def _read_again(func: Callable[..., Any], name: str, hidden: frozenset[str]) -> ToolFunction:
    """Make a tool of a callable again, for pickle."""
    return ToolFunction(func, name=name, hidden=hidden)
