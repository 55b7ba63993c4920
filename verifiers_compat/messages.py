"""Messages that can be written to.

Published environments edit messages of a conversation in place (they shorten an earlier tool result, say) and expect the next
prompt to show it. So the messages of this package's environments are writable subclasses of `vfgym.messages`; what a client
keeps of a message is dropped when it is written to.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any, Self

import vfgym.messages as frozen
import vfgym.responses as responses
from vfgym.frozen import FrozenDict, FrozenList, freeze
from vfgym.messages import Message, MessageTypes, as_tool_call, forget_all_converted


def _telling(cls: type[Any], *names: str) -> None:
    """Make methods that write tell that some message was written to."""
    for name in names:
        setattr(cls, name, _told(getattr(cls, name)))


def _told(write: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(write)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        forget_all_converted()
        return write(self, *args, **kwargs)

    return call


class PartList(list[Any]):
    """A list inside a message."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> PartList:
        return PartList([copy.deepcopy(item, memo) for item in self])

    def __reduce__(self) -> tuple[Any, ...]:
        return PartList, (list(self),)


class PartDict(dict[str, Any]):
    """A dict inside a message."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> PartDict:
        return PartDict({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return PartDict, (dict(self),)


_telling(
    PartList,
    "append",
    "extend",
    "insert",
    "remove",
    "pop",
    "clear",
    "sort",
    "reverse",
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
)
_telling(PartDict, "__setitem__", "__delitem__", "__ior__", "pop", "popitem", "clear", "update", "setdefault")


def thawed(value: Any) -> Any:
    """Return frozen dicts and lists as ones that can be written to, all the way down."""
    if isinstance(value, FrozenList):
        return PartList([thawed(item) for item in value])
    if type(value) is FrozenDict:
        return PartDict({key: thawed(item) for key, item in value.items()})
    return value


class _Writable(FrozenDict):
    """Makes a frozen dict writable, by items and by attributes."""

    __slots__ = ()

    def __setitem__(self, key: str, value: Any) -> None:
        self._changed()
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        self._changed()
        dict.__delitem__(self, key)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(name)
        del self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Write items."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an item; write `default` first where it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        """Remove an item and return it, or `default`."""
        self._changed()
        return dict.pop(self, key, *default)

    def popitem(self) -> tuple[str, Any]:
        """Remove the last item and return it."""
        self._changed()
        return dict.popitem(self)

    def clear(self) -> None:
        """Remove all items."""
        self._changed()
        dict.clear(self)

    def __copy__(self) -> Self:
        return type(self)._of(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)._of({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def model_dump(self, *, exclude_none: bool = False, **options: Any) -> dict[str, Any]:
        """Return the fields as plain data.

        Args:
            exclude_none: Whether fields that are None are left out.
            **options: Accepted as pydantic's models take them; plain data needs none of them.
        """
        plain = {key: _plain(value) for key, value in self.items()}
        return {key: value for key, value in plain.items() if value is not None} if exclude_none else plain

    def _changed(self) -> None:
        """Do what a write asks for."""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


class ToolCall(_Writable, frozen.ToolCall):
    """One call of a tool, as `vfgym.ToolCall`, but writable."""

    __slots__ = ()

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Validate one call (see `vfgym.ToolCall`)."""
        frozen.ToolCall.__init__(self, *args, **fields)
        for key, value in self.items():
            dict.__setitem__(self, key, thawed(value))

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self._FLAT:
            self["function"][key] = value
        else:
            super().__setitem__(key, value)

    def _changed(self) -> None:
        forget_all_converted()


class _WritableMessage(_Writable, Message):
    """Makes a message writable."""

    __slots__ = ()

    def __setitem__(self, key: str, value: Any) -> None:
        self._changed()
        if isinstance(value, list | dict) and key != "tool_calls":
            value = thawed(freeze(value))
        if key == "tool_calls" and value is not None:
            value = self._checked_field(key, value)
        dict.__setitem__(self, key, value)

    def _changed(self) -> None:
        self.forget_converted()

    def _checked_content(self, content: Any) -> Any:
        return thawed(super()._checked_content(content))

    def _checked_field(self, key: str, value: Any) -> Any:
        checked = super()._checked_field(key, value)
        if key == "tool_calls":
            return PartList([call if isinstance(call, ToolCall) else ToolCall(**call) for call in checked])
        return thawed(checked)


class SystemMessage(_WritableMessage, frozen.SystemMessage):
    """Instructions to the model."""

    __slots__ = ()


class UserMessage(_WritableMessage, frozen.UserMessage):
    """What the model is told or asked."""

    __slots__ = ()


class AssistantMessage(_WritableMessage, frozen.AssistantMessage):
    """What the model says: text, tool calls, reasoning."""

    __slots__ = ()


class ToolMessage(_WritableMessage, frozen.ToolMessage):
    """The answer to one tool call, named by ``tool_call_id``."""

    __slots__ = ()


class TextMessage(_WritableMessage, frozen.TextMessage):
    """Raw text without a speaker, as completion-style prompts have it."""

    __slots__ = ()


class ResponseMessage(_WritableMessage, responses.ResponseMessage):
    """The assistant message of a response, with why the model stopped."""

    __slots__ = ()


MESSAGE_TYPES = MessageTypes(SystemMessage, UserMessage, AssistantMessage, ToolMessage, TextMessage)
"""The writable message classes, by role."""

__all__ = [
    "MESSAGE_TYPES",
    "AssistantMessage",
    "Message",
    "ResponseMessage",
    "SystemMessage",
    "TextMessage",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "as_tool_call",
    "thawed",
]
