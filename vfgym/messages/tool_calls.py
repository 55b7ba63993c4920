"""Tool calls of messages, in the OpenAI chat format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from vfgym.bounded_json import parse_json
from vfgym.errors import InvalidMessage
from vfgym.messages.frozen import Field, FrozenDict


class ToolCall(FrozenDict):
    """One call of a tool, ``{"id", "type": "function", "function": {"name", "arguments"}}``.

    ``arguments`` is the JSON text that the model wrote. Both spellings of the field work: ``call.name`` and
    ``call["function"]["name"]``.

    >>> call = ToolCall(id="c1", name="add", arguments='{"a": 1}')
    >>> call.name, call["function"]["arguments"], call.get("name")
    ('add', '{"a": 1}', 'add')
    """

    __slots__ = ()
    id = Field()
    type = Field()
    function = Field()
    _FLAT: ClassVar[frozenset[str]] = frozenset({"name", "arguments"})

    def __init__(
        self,
        id: str | None = None,
        name: str | None = None,
        arguments: str | None = None,
        *,
        function: Mapping[str, Any] | None = None,
        type: str = "function",
        **extra: Any,
    ) -> None:
        """Validate and freeze one call.

        Args:
            id: Identifier that the tool's answer refers to; the tool's name where it is missing.
            name: Name of the tool (or give `function`).
            arguments: JSON text of the arguments.
            function: The nested form, ``{"name": ..., "arguments": ...}``.
            type: Kind of the call; only ``"function"`` calls a tool.
            **extra: Provider fields, kept as they are.

        Raises:
            InvalidMessage: If the name or the arguments are not strings.
        """
        inner = {key: value for key, value in (function or {}).items() if value is not None}
        name = inner.pop("name", name)
        arguments = inner.pop("arguments", arguments)
        if not isinstance(name, str):
            raise InvalidMessage(f"a tool call needs the name of a tool (a string), got name={name!r}")
        if not isinstance(arguments, str):
            raise InvalidMessage(f"the arguments of tool call {name!r} must be JSON text (a string), got {arguments!r}")
        call = self._held({"name": name, "arguments": arguments, **inner})
        dict.update(self, {"id": id if isinstance(id, str) else name, "type": type or "function", "function": call, **self._held(extra)})

    @property
    def name(self) -> str:
        """Name of the tool."""
        return cast(str, self["function"]["name"])

    @property
    def arguments(self) -> str:
        """JSON text of the arguments, as the model wrote it."""
        return cast(str, self["function"]["arguments"])

    def __missing__(self, key: str) -> Any:
        if key in self._FLAT:
            return self["function"][key]
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field, in either spelling, or `default`."""
        return self["function"].get(key, default) if key in self._FLAT else dict.get(self, key, default)


def as_tool_call(value: Any) -> ToolCall:
    """Return a tool call in any of its raw forms as a `ToolCall`.

    Args:
        value: A `ToolCall`, the nested form of OpenAI, the flat form ``{"id", "name", "arguments"}``, either one as JSON
            text, or an SDK object with such fields. Arguments given as an object instead of as text are encoded.

    Raises:
        InvalidMessage: If it is none of these.
    """
    if isinstance(value, ToolCall):
        return value
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            raise InvalidMessage(f"a tool call given as text must be JSON, got {short(value)}") from None
    fields = fields_of(value)
    if fields is None:
        raise InvalidMessage(f"a tool call must be a dict like {{'id', 'function': {{'name', 'arguments'}}}}, got {short(value)}")
    fields = {key: item for key, item in fields.items() if item is not None}
    if "function" in fields:
        inner = fields_of(fields["function"])
        if inner is None:
            raise InvalidMessage(f"'function' of a tool call must be a dict with name and arguments, got {short(fields['function'])}")
        fields["function"] = {**inner, "arguments": _arguments_text(inner.get("arguments"))}
    else:
        fields["arguments"] = _arguments_text(fields.get("arguments"))
    return ToolCall(**fields)


def _arguments_text(arguments: Any) -> Any:
    if arguments is None:
        return "{}"
    return json.dumps(arguments) if isinstance(arguments, Mapping) else arguments


_OBJECT_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "thinking_blocks", "arguments", "id")


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a mapping, of an SDK's pydantic object, or of another object with a role and content; else None."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return cast("dict[str, Any]", dump(exclude_none=True))
    if hasattr(value, "role") and hasattr(value, "content"):
        return {name: getattr(value, name) for name in _OBJECT_FIELDS if getattr(value, name, None) is not None}
    return None


def short(value: object, limit: int = 120) -> str:
    """Return the beginning of a value's ``repr``, for the text of an error."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
