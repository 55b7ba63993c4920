"""Messages that can be written to.

Published environments edit messages of a conversation in place (they shorten an earlier tool result, say) and expect the next
prompt to show it. So the messages of this package's environments are writable subclasses of `vfgym.messages`; what a client
keeps of a message is dropped when it is written to.

What is inside a message (its parts: lists, dicts and tool calls) can be written to as well, and tells the message. So it belongs to
one message, which it does not keep alive; what is put into a second message is copied for it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Self, SupportsIndex, TypeAlias
from weakref import ref

import vfgym.messages as frozen
import vfgym.responses as responses
from vfgym.frozen import FrozenDict
from vfgym.messages import Message, MessageTypes, as_tool_call

_Owner: TypeAlias = "ref[Message] | None"


class PartList(list[Any]):
    """A list inside a message."""

    __slots__ = ("_owner",)
    _owner: _Owner

    def __init__(self, items: Iterable[Any] = (), owner: _Owner = None) -> None:
        """Make a list of items that belong to the same message already, or to none."""
        super().__init__(items)
        self._owner = owner

    def append(self, item: Any) -> None:
        """Write an item at the end."""
        _tell(self)
        super().append(_owned(item, self._owner))

    def extend(self, items: Iterable[Any]) -> None:
        """Write items at the end."""
        _tell(self)
        super().extend([_owned(item, self._owner) for item in items])

    def insert(self, index: SupportsIndex, item: Any) -> None:
        """Write an item before another."""
        _tell(self)
        super().insert(index, _owned(item, self._owner))

    def remove(self, item: Any) -> None:
        """Remove the first item that equals this one."""
        _tell(self)
        super().remove(item)

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Remove an item and return it."""
        _tell(self)
        return super().pop(index)

    def clear(self) -> None:
        """Remove all items."""
        _tell(self)
        super().clear()

    def sort(self, **how: Any) -> None:
        """Sort in place, as lists do."""
        _tell(self)
        super().sort(**how)

    def reverse(self) -> None:
        """Reverse in place."""
        _tell(self)
        super().reverse()

    def __setitem__(self, index: Any, value: Any) -> None:
        _tell(self)
        owner = self._owner
        super().__setitem__(index, [_owned(item, owner) for item in value] if isinstance(index, slice) else _owned(value, owner))

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        _tell(self)
        super().__delitem__(index)

    def __iadd__(self, items: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(items)
        return self

    def __imul__(self, count: SupportsIndex) -> Self:
        _tell(self)
        return super().__imul__(count)

    def __deepcopy__(self, memo: dict[int, Any]) -> PartList:
        return PartList([copy.deepcopy(item, memo) for item in self])

    def __reduce__(self) -> tuple[Any, ...]:
        return PartList, (list(self),)


class PartDict(dict[str, Any]):
    """A dict inside a message."""

    __slots__ = ("_owner",)
    _owner: _Owner

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), owner: _Owner = None) -> None:
        """Make a dict of items that belong to the same message already, or to none."""
        super().__init__(items)
        self._owner = owner

    def __setitem__(self, key: str, value: Any) -> None:
        _tell(self)
        super().__setitem__(key, _owned(value, self._owner))

    def __delitem__(self, key: str) -> None:
        _tell(self)
        super().__delitem__(key)

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
        _tell(self)
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        """Remove the last item and return it."""
        _tell(self)
        return super().popitem()

    def clear(self) -> None:
        """Remove all items."""
        _tell(self)
        super().clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> PartDict:
        return PartDict({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return PartDict, (dict(self),)


def _tell(part: PartList | PartDict | ToolCall) -> None:
    """Tell the message of a part that it is written to."""
    message = _message_of(part._owner)
    if message is not None:
        message.forget_converted()


def _message_of(owner: _Owner) -> Message | None:
    return None if owner is None else owner()


def _owned(value: Any, owner: _Owner) -> Any:
    """Return `value` as a part of a message: itself, if it belongs to this one or to none yet, or else a copy.

    Args:
        value: Anything that may be inside a message.
        owner: The message; None for a part that is not in one.
    """
    if isinstance(value, PartList | PartDict | ToolCall):
        message, current = _message_of(owner), _message_of(value._owner)
        if current is message:
            return value
        if current is None:
            return _taken(value, owner)
    if isinstance(value, frozen.ToolCall):
        return _taken((type(value) if isinstance(value, ToolCall) else ToolCall)._of(value), owner)
    if isinstance(value, Mapping):
        return PartDict({key: _owned(item, owner) for key, item in value.items()}, owner)
    if isinstance(value, list | tuple):
        return PartList([_owned(item, owner) for item in value], owner)
    return value


def _taken(part: Any, owner: _Owner) -> Any:
    """Make a part that belongs to no message one of this message, with all that is inside it."""
    if isinstance(part, ToolCall):
        _set_owner(part, owner)
    else:
        part._owner = owner
    if isinstance(part, list):
        list.__setitem__(part, slice(None), [_owned(item, owner) for item in part])
    else:
        dict.update(part, {key: _owned(item, owner) for key, item in part.items()})
    return part


class _Writable(FrozenDict):
    """Makes a frozen dict writable, by items and by attributes."""

    __slots__ = ()

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
        try:
            return self[key]
        except KeyError:
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
        return self._made(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._made({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._made, (dict(self),)

    @classmethod
    def _made(cls, data: Mapping[str, Any]) -> Self:
        """Make one of another's data."""
        return cls._of(data)

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

    __slots__ = ("_owner",)
    _owner: _Owner

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Validate one call (see `vfgym.ToolCall`)."""
        frozen.ToolCall.__init__(self, *args, **fields)
        _taken(self, None)

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Self:
        made = super()._of(data)
        _set_owner(made, None)
        return made

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self._FLAT:
            self["function"][key] = value
        else:
            self._changed()
            dict.__setitem__(self, key, _owned(value, self._owner))

    def _changed(self) -> None:
        _tell(self)


_set_owner = ToolCall.__dict__["_owner"].__set__  # the slot itself: assignment writes an item


class _WritableMessage(_Writable, Message):
    """Makes a message writable."""

    __slots__ = ("__weakref__",)

    @classmethod
    def _made(cls, data: Mapping[str, Any]) -> Self:
        made = cls._of(data)
        for key, value in data.items():
            if isinstance(value, list | dict):
                dict.__setitem__(made, key, _owned(value, ref(made)))
        return made

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "tool_calls" and value is not None:
            value = self._checked_field(key, value)
        elif isinstance(value, list | tuple | dict):
            value = _owned(value, ref(self))
        self._changed()
        dict.__setitem__(self, key, value)

    def _changed(self) -> None:
        self.forget_converted()

    def _checked_content(self, content: Any) -> Any:
        checked = super()._checked_content(content)
        return checked if checked.__class__ is str or checked is None else _owned(checked, ref(self))

    def _checked_field(self, key: str, value: Any) -> Any:
        if key != "tool_calls":
            return _owned(value, ref(self)) if isinstance(value, list | tuple | Mapping) else value
        if isinstance(value, PartList) and _message_of(value._owner) is self:
            return value
        return _owned(list(super()._checked_field(key, value)), ref(self))


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
]
