"""Messages that can be written to.

Published environments edit messages of a conversation in place (they shorten an earlier tool result, say) and expect the next
prompt to show it. So the messages of this package's environments are writable subclasses of `vfgym.messages`; what a client
keeps of a message is dropped when it is written to.

They offer what the documented models do, too: an answer's field that is absent reads None as an item (`vfgym` raises KeyError),
and there are the methods of pydantic's models. As data they stay dicts of the fields that they have.

What is inside a message (its parts: lists, dicts and tool calls) can be written to as well, and tells the message. So it belongs to
one message, which it does not keep alive; what is put into a second message is copied for it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self, SupportsIndex, TypeAlias
from weakref import ref

import vfgym.messages.chat as frozen
import vfgym.messages.responses as responses
import vfgym.messages.tool_calls as tool_calls
from vfgym.errors import InvalidMessage
from vfgym.messages import Message, MessageTypes, as_tool_call
from vfgym.messages.frozen import FrozenDict
from vfgym.messages.responses import Model
from vfgym.messages.tool_calls import fields_of, short

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
    """A dict inside a message. Its items are attributes, too."""

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

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this part of a message has no field {name!r} (it has {', '.join(self)})") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_owner":
            super().__setattr__(name, value)
        else:
            self[name] = value

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(name)
        del self[name]

    def __deepcopy__(self, memo: dict[int, Any]) -> PartDict:
        return _part_dict({key: copy.deepcopy(value, memo) for key, value in self.items()}, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _part_dict, (dict(self), None)


class _ContentPart(Model, PartDict):
    """A content part of a documented type."""

    __slots__ = ()
    _TYPE: ClassVar[str]
    """Its type, and the name of the field that holds it."""

    def _fields(self) -> dict[str, Any]:
        return dict(self)

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or a part made of the fields of a dict or an object.

        Raises:
            InvalidMessage: If they do not make a part of this class.
        """
        if isinstance(value, cls):
            return value
        made = _owned({"type": cls._TYPE, **(fields_of(value) or {})}, None)
        if not isinstance(made, cls):
            raise InvalidMessage(f"expected the fields of a {cls.__name__}, got {type(value).__name__}: {short(value)}")
        return made


class TextContentPart(_ContentPart):
    """A content part that is text."""

    __slots__ = ()
    _TYPE = "text"

    def __init__(self, text: str, type: str = "text", **fields: Any) -> None:
        """Make a part of its fields."""
        super().__init__({"type": type, "text": text, **fields})


class ImageUrlContentPart(_ContentPart):
    """A content part that is an image."""

    __slots__ = ()
    _TYPE = "image_url"

    def __init__(self, image_url: Mapping[str, Any], type: str = "image_url", **fields: Any) -> None:
        """Make a part of its fields; the image is ``{"url": ...}``."""
        super().__init__({"type": type, "image_url": image_url, **fields})


class InputAudioContentPart(_ContentPart):
    """A content part that is audio."""

    __slots__ = ()
    _TYPE = "input_audio"

    def __init__(self, input_audio: Mapping[str, Any], type: str = "input_audio", **fields: Any) -> None:
        """Make a part of its fields; the audio is ``{"data": ..., "format": ...}``."""
        super().__init__({"type": type, "input_audio": input_audio, **fields})


_PART_TYPES: tuple[type[_ContentPart], ...] = (TextContentPart, ImageUrlContentPart, InputAudioContentPart)


def _part_dict(items: Mapping[str, Any], owner: _Owner) -> PartDict:
    """Return items that belong to a message already as a dict of the class that their ``type`` says."""
    kind = items.get("type")
    cls: type[PartDict] = next((cls for cls in _PART_TYPES if kind == cls._TYPE and kind in items), PartDict)
    made = cls.__new__(cls)
    PartDict.__init__(made, items, owner)
    return made


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
    if isinstance(value, tool_calls.ToolCall):
        return _taken((type(value) if isinstance(value, ToolCall) else ToolCall)._of(value), owner)
    if isinstance(value, Mapping):
        return _part_dict({key: _owned(item, owner) for key, item in value.items()}, owner)
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


_MISSING = object()


class _Writable(Model, FrozenDict):
    """Makes a frozen dict writable, by items and by attributes."""

    __slots__ = ()

    def __delitem__(self, key: str) -> None:
        self._changed()
        dict.__delitem__(self, key)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        if not dict.__contains__(self, name):
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
        if self.get(key, _MISSING) is _MISSING:
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

    def _changed(self) -> None:
        """Do what a write asks for."""


class ToolCall(_Writable, tool_calls.ToolCall):
    """One call of a tool, as `vfgym.ToolCall`, but writable.

    Its data is the nested form of OpenAI; `model_dump` gives the documented fields: ``id``, ``name`` and ``arguments``.
    """

    __slots__ = ("_owner",)
    _owner: _Owner

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Validate one call (see `vfgym.ToolCall`)."""
        tool_calls.ToolCall.__init__(self, *args, **fields)
        _taken(self, None)

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Self:
        made = super()._of(data)
        _set_owner(made, None)
        return made

    @classmethod
    def _made(cls, data: Mapping[str, Any]) -> Self:
        # Name and arguments are the call's own fields, so a copy has its own.
        return cls._of({key: PartDict(value) if key == "function" else value for key, value in data.items()})

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or a call made of any form that `vfgym.messages.as_tool_call` takes."""
        return value if isinstance(value, cls) else cls._made(as_tool_call(value))

    def _defaults(self) -> dict[str, Any]:
        return {"id": None}

    def _fields(self) -> dict[str, Any]:
        own = {key: value for key, value in self.items() if key != "function" and (key, value) != ("type", "function")}
        return {"id": own.pop("id", None), **self["function"], **own}

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this tool call has no field {name!r} (it has name, arguments, {', '.join(self)})") from None

    def __contains__(self, key: object) -> bool:
        return key in self._FLAT or dict.__contains__(self, key)

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

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or a message made of the fields of a dict or an object.

        Raises:
            InvalidMessage: If they do not make a message of this class.
        """
        if isinstance(value, cls):
            return value
        fields = fields_of(value)
        if fields is None:
            raise InvalidMessage(f"expected the fields of a {cls.__name__}, got {type(value).__name__}: {short(value)}")
        return cls.of_fields(fields)

    def _fields(self) -> dict[str, Any]:
        return dict(self)

    def _given(self) -> dict[str, Any]:
        return dict(self)

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


class _Answer(_WritableMessage):
    """A message of the model, whose documented fields are there even where they are None."""

    __slots__ = ()
    _OPTIONAL: ClassVar[tuple[str, ...]] = ("reasoning_content", "thinking_blocks", "tool_calls")

    def __missing__(self, key: str) -> Any:
        if key in self._OPTIONAL:
            return None
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._OPTIONAL

    def _fields(self) -> dict[str, Any]:
        return {"role": self["role"], "content": self["content"], **dict.fromkeys(self._OPTIONAL), **self}

    def _defaults(self) -> dict[str, Any]:
        return {"content": None, **dict.fromkeys(self._OPTIONAL)}


class AssistantMessage(_Answer, frozen.AssistantMessage):
    """What the model says: text, tool calls, reasoning."""

    __slots__ = ()


class ToolMessage(_WritableMessage, frozen.ToolMessage):
    """The answer to one tool call, named by ``tool_call_id``."""

    __slots__ = ()


class TextMessage(_WritableMessage, frozen.TextMessage):
    """Raw text without a speaker, as completion-style prompts have it."""

    __slots__ = ()


class ResponseMessage(AssistantMessage, responses.ResponseMessage):
    """The assistant message of a response, with why the model stopped."""

    __slots__ = ()
    _OPTIONAL = (*_Answer._OPTIONAL, "finish_reason", "is_truncated", "tokens")


MESSAGE_TYPES = MessageTypes(SystemMessage, UserMessage, AssistantMessage, ToolMessage, TextMessage)
"""The writable message classes, by role."""

__all__ = [
    "MESSAGE_TYPES",
    "AssistantMessage",
    "ImageUrlContentPart",
    "InputAudioContentPart",
    "Message",
    "ResponseMessage",
    "SystemMessage",
    "TextContentPart",
    "TextMessage",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "as_tool_call",
]
