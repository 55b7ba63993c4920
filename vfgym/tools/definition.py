"""What a model is told about a tool: its name, what it does, and the JSON schema of its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeVar, cast, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vfgym.errors import ConfigurationError
from vfgym.messages.frozen import FrozenDict, freeze


class Tool(BaseModel):
    """A tool definition, independent of any provider."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    """What the model calls the tool."""

    description: str
    """What the tool does, for the model to read. May be empty."""

    parameters: dict[str, object]
    """JSON schema of the arguments, an object schema."""

    strict: bool | None = None
    """Whether the provider must hold the model to the schema. None leaves that to the provider."""

    @cached_property
    def openai(self) -> FrozenDict:
        """The tool as the OpenAI chat API takes it, made once and shared: it cannot be changed."""
        return cast(FrozenDict, freeze(self.to_openai()))

    def to_openai(self) -> dict[str, object]:
        """Return the tool as the OpenAI chat API takes it: `{"type": "function", "function": {...}}`.

        The schema in it is the tool's own, not a copy.
        """
        function: dict[str, object] = {"name": self.name, "description": self.description, "parameters": self.parameters}
        if self.strict is not None:
            function["strict"] = self.strict
        return {"type": "function", "function": function}


ToolT = TypeVar("ToolT", bound=Tool)


@overload
def as_tool(value: object) -> Tool: ...
@overload
def as_tool(value: object, cls: type[ToolT]) -> ToolT: ...
def as_tool(value: object, cls: type[Tool] = Tool) -> Tool:
    """Return `value` as a `Tool`.

    Args:
        value: A `Tool`, a mapping with its fields, or the nested mapping of the OpenAI chat API. As in that API, a
            mapping may leave out the description and, for a tool without arguments, the parameters. A field that is
            None counts as left out.
        cls: The class of the result.

    Raises:
        ConfigurationError: `value` is none of these.
    """
    if isinstance(value, cls):
        return value
    if isinstance(value, Tool):
        value = dict(value)
    fields = value.get("function", value) if isinstance(value, Mapping) else None
    if not isinstance(fields, Mapping):
        raise ConfigurationError(
            "expected a tool: a `Tool`, a mapping with the keys name, description and parameters, or "
            f'{{"type": "function", "function": {{...}}}}; got {type(value).__name__} {value!r:.200}'
        )
    given = {key: field for key, field in fields.items() if field is not None and (key, field) != ("type", "function")}
    try:
        return cls.model_validate({"description": "", "parameters": {"type": "object", "properties": {}}} | given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise ConfigurationError(f"not a tool definition ({problems}); got {dict(fields)!r:.200}") from error
