"""From the parameters of a tool to its JSON schema and to the validator of its arguments, by way of pydantic.

The parameters become the keys of a `TypedDict`: unlike fields of a model, its keys may have any name (`json`, `_x`,
`model_config`), and an argument that was not given stays absent, so that the callable's own default applies.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NotRequired

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from vfgym.errors import ConfigurationError
from vfgym.tools.definition import Tool
from vfgym.tools.json_numbers import admitted_types
from vfgym.tools.signature import EMPTY, ToolParameter, ToolSignature

_SIMPLE_TYPES: dict[object, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
    "null": NoneType,
}


@dataclass(frozen=True, slots=True)
class ArgumentPlan:
    """All that is needed at call time, prepared when the tool is made."""

    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Returns the validated arguments, or raises pydantic's `ValidationError`."""
    names: tuple[str, ...]
    """Names of the arguments, as the model knows them."""
    never_text: frozenset[str]
    """Arguments that are not text: if the model sends one, it may hold the value as JSON."""
    reserved: frozenset[str] = frozenset()
    """Names that are not arguments, although the callable's `**kwargs` would take them from the model."""
    positional: tuple[tuple[str, Any], ...] = ()
    """Names and defaults of the callable's positional-only parameters."""


def plan_signature(tool: str, signature: ToolSignature) -> tuple[dict[str, object], ArgumentPlan]:
    """Return the JSON schema of the parameters in `signature`, and the plan to call by.

    Raises:
        ConfigurationError: A type has no JSON schema. The message names the parameter.
    """
    try:
        adapter = _adapter(signature.parameters, signature.extra)
        raw = adapter.json_schema()
    except Exception as error:  # pydantic raises its own errors, TypeError and whatever a user's type raises
        culprit = _parameter_without_schema(signature)
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(f"tool `{tool}`: the type of parameter `{culprit}` has no JSON schema: {reason}") from error
    properties = raw.get("properties", {})
    for parameter, described in zip(signature.parameters, properties.values(), strict=True):
        _describe(described, parameter)
    # An empty schema accepts anything, which `true` says more plainly.
    raw["additionalProperties"] = raw["additionalProperties"] or signature.extra is not EMPTY
    schema: dict[str, object] = {key: raw[key] for key in ("type", "properties", "required", "additionalProperties", "$defs") if key in raw}
    return schema, _plan(adapter, schema, signature)


def plan_definition(tool: Tool) -> ArgumentPlan:
    """Return the plan to call a tool whose schema was given, by what its top level says.

    That is: which arguments there are, which are required, whether others may be given, and simple types. What lies
    deeper is left to the callable.

    Raises:
        ConfigurationError: The schema does not describe an object.
    """
    properties, required = tool.parameters.get("properties", {}), tool.parameters.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise ConfigurationError(f"tool `{tool.name}`: expected the JSON schema of an object, got {tool.parameters!r:.200}")
    parameters = [
        ToolParameter(name, _simple_type(properties.get(name)), EMPTY if name in required else None, "")
        for name in dict.fromkeys([*properties, *required])
    ]
    extra = EMPTY if tool.parameters.get("additionalProperties") is False else Any
    return _plan(_adapter(parameters, extra), tool.parameters)


def _adapter(parameters: Sequence[ToolParameter], extra: Any) -> TypeAdapter[dict[str, Any]]:
    """Return pydantic's adapter for the arguments as one `TypedDict`."""
    keys = {p.name: p.annotation if p.default is EMPTY else NotRequired[p.annotation] for p in parameters}
    # typing_extensions has `closed` and `extra_items` (PEP 728), and type checkers know this form with literal keys only.
    make: Any = TypedDict
    return TypeAdapter(make("Arguments", keys, closed=True) if extra is EMPTY else make("Arguments", keys, extra_items=extra))


def _plan(adapter: TypeAdapter[dict[str, Any]], schema: Mapping[str, Any], signature: ToolSignature | None = None) -> ArgumentPlan:
    """Put together what the schema tells, and what the signature does if there is one."""
    properties = schema.get("properties", {})
    names = tuple(properties)
    never_text = frozenset(name for name in names if "string" not in admitted_types(properties[name], schema))
    if signature is None:
        return ArgumentPlan(adapter.validator.validate_python, names, never_text)
    reserved = frozenset() if signature.extra is EMPTY else signature.reserved
    return ArgumentPlan(adapter.validator.validate_python, names, never_text, reserved, signature.positional)


def _describe(described: dict[str, object], parameter: ToolParameter) -> None:
    """Add what pydantic cannot know to the schema of one parameter: its docstring and its default."""
    if parameter.description:
        described.setdefault("description", parameter.description)
    if parameter.default is EMPTY:
        return
    try:
        default = to_jsonable_python(parameter.default, inf_nan_mode="null")
    except ValueError:  # a sentinel: it says no more than that the argument may be left out, nor does None
        return
    if default is not None:
        described["default"] = default


def _parameter_without_schema(signature: ToolSignature) -> str:
    """Return the name of the first parameter that pydantic has no schema for."""
    for parameter in signature.parameters:
        try:
            _adapter([parameter], EMPTY).json_schema()
        except Exception:
            return parameter.name
    return "**kwargs"


def _simple_type(schema: object) -> Any:
    """Return the Python type that the `type` keyword of a schema names, `Any` for what is not so simple."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = kind if isinstance(kind, list) else [kind]
    return functools.reduce(operator.or_, (_SIMPLE_TYPES.get(kind, Any) for kind in kinds))
