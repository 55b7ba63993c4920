"""Messages that can be written to.

Published environments edit messages of a conversation in place (they shorten an earlier tool result, say) and expect the next
prompt to show it. So the messages of this package's environments are writable subclasses of `vfgym.messages`, with plain data in
them: lists, dicts whose items are attributes too, and tool calls. A client goes on using what it made of a message only while the
message equals what it was then (`vfgym.messages.chat.convert_all`).

They offer what the documented models do, too: an answer's field that is absent reads None as an item (`vfgym` raises KeyError),
and there are the methods of pydantic's models. As data they stay dicts of the fields that they have.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from operator import is_
from typing import Any, ClassVar, Self

import vfgym.messages.chat as frozen
import vfgym.messages.responses as responses
import vfgym.messages.tool_calls as tool_calls
from vfgym.errors import InvalidMessage
from vfgym.messages import Message, MessageTypes, as_tool_call
from vfgym.messages.frozen import FrozenDict
from vfgym.messages.responses import Model
from vfgym.messages.tool_calls import fields_of, short


class _ByAttribute:
    """Makes the items of a dict attributes, too."""

    __slots__ = ()

    def __getattr__(self: Any, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r} (it has {', '.join(self)})") from None

    def __setattr__(self: Any, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self: Any, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None


class PartDict(_ByAttribute, dict[str, Any]):
    """A dict inside a message."""

    __slots__ = ()

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, _make_writable(value))


class _Source(Model, PartDict):
    """What a content part holds."""

    __slots__ = ()

    def _fields(self) -> dict[str, Any]:
        return dict(self)

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> Self:
        made = cls.__new__(cls)
        dict.update(made, fields)
        return made

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or an object made of the fields of a dict or an object.

        Raises:
            InvalidMessage: If they do not make one.
        """
        if isinstance(value, cls):
            return value
        try:
            return cls(**(fields_of(value) or {}))
        except TypeError as error:
            raise InvalidMessage(f"expected the fields of a {cls.__name__}, got {short(value)}: {error}") from None


class ImageUrlSource(_Source):
    """Where an image is: the ``image_url`` of an `ImageUrlContentPart`."""

    __slots__ = ()

    def __init__(self, url: str, **fields: Any) -> None:
        """Take the URL (of the web, or one that holds the image: ``data:image/png;base64,...``)."""
        super().__init__({"url": url, **fields})


class InputAudioSource(_Source):
    """Audio: the ``input_audio`` of an `InputAudioContentPart`."""

    __slots__ = ()

    def __init__(self, data: str, format: str, **fields: Any) -> None:
        """Take the audio in base64, and its format (``"wav"``, ``"mp3"``)."""
        super().__init__({"data": data, "format": format, **fields})


_SOURCE_TYPES: dict[Any, type[_Source]] = {"image_url": ImageUrlSource, "input_audio": InputAudioSource}
"""The class of what a content part holds, by its type."""


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
        made = _make_writable({"type": cls._TYPE, **(fields_of(value) or {})})
        if not isinstance(made, cls):
            raise InvalidMessage(f"expected the fields of a {cls.__name__}, got {type(value).__name__}: {short(value)}")
        return made


class TextContentPart(_ContentPart):
    """A content part that is text."""

    __slots__ = ()
    _TYPE = "text"

    def __init__(self, text: str, type: str = "text", **fields: Any) -> None:
        """Make a part of its fields."""
        super().__init__(_make_writable({"type": type, "text": text, **fields}))


class ImageUrlContentPart(_ContentPart):
    """A content part that is an image."""

    __slots__ = ()
    _TYPE = "image_url"

    def __init__(self, image_url: Mapping[str, Any], type: str = "image_url", **fields: Any) -> None:
        """Make a part of its fields; the image is ``{"url": ...}``."""
        super().__init__(_make_writable({"type": type, "image_url": image_url, **fields}))


class InputAudioContentPart(_ContentPart):
    """A content part that is audio."""

    __slots__ = ()
    _TYPE = "input_audio"

    def __init__(self, input_audio: Mapping[str, Any], type: str = "input_audio", **fields: Any) -> None:
        """Make a part of its fields; the audio is ``{"data": ..., "format": ...}``."""
        super().__init__(_make_writable({"type": type, "input_audio": input_audio, **fields}))


_PART_TYPES: dict[Any, type[PartDict]] = {cls._TYPE: cls for cls in (TextContentPart, ImageUrlContentPart, InputAudioContentPart)}


def _make_writable(value: Any) -> Any:
    """Return a value as what can be written to: dicts as parts, tool calls as `ToolCall`. What is that already is not copied."""
    if value.__class__ is str or isinstance(value, PartDict | ToolCall):
        return value
    if isinstance(value, Mapping):
        items = {key: _make_writable(item) for key, item in value.items()}
        if isinstance(value, tool_calls.ToolCall):
            return ToolCall._of(items)
        kind = items.get("type")
        cls = _PART_TYPES.get(kind, PartDict) if isinstance(kind, str) and kind in items else PartDict
        if cls is not PartDict and kind in _SOURCE_TYPES and items.get(kind).__class__ is PartDict:
            items[kind] = _SOURCE_TYPES[kind]._of(items[kind])
        made = cls.__new__(cls)
        dict.update(made, items)
        return made
    if isinstance(value, list | tuple):
        held = [_make_writable(item) for item in value]
        return value if value.__class__ is list and all(map(is_, held, value)) else held
    return value


class _Writable(_ByAttribute, Model, FrozenDict):
    """Gives a frozen dict back what dicts can do. What is put in becomes something that can be written to as well."""

    __slots__ = ()
    _held = staticmethod(_make_writable)
    __delitem__ = dict.__delitem__
    clear = dict.clear
    pop = dict.pop
    popitem = dict.popitem
    update = MutableMapping.update

    def __setitem__(self, key: str, value: Any) -> None:
        dict.__setitem__(self, key, _make_writable(value))

    def __ior__(self, other: Any) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an item; write `default` first where it is missing."""
        if self.get(key, _MISSING) is _MISSING:
            self[key] = default
        return self[key]

    def __copy__(self) -> Self:
        return self._of(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._of({key: copy.deepcopy(value, memo) for key, value in self.items()})


_MISSING = object()


class ToolCall(_Writable, tool_calls.ToolCall):
    """One call of a tool, as `vfgym.ToolCall`, but writable.

    Its data is the nested form of OpenAI; `model_dump` gives the documented fields: ``id``, ``name`` and ``arguments``.
    """

    __slots__ = ()

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or a call made of any form that `vfgym.messages.as_tool_call` takes."""
        return value if isinstance(value, cls) else cls._of(_make_writable(as_tool_call(value)))

    def _defaults(self) -> dict[str, Any]:
        return {"id": None}

    def _fields(self) -> dict[str, Any]:
        own = {key: value for key, value in self.items() if key != "function" and (key, value) != ("type", "function")}
        return {"id": own.pop("id", None), **self["function"], **own}

    def __contains__(self, key: object) -> bool:
        return key in self._FLAT or dict.__contains__(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self._FLAT:
            self["function"][key] = value
        else:
            super().__setitem__(key, value)

    def __copy__(self) -> Self:
        # Name and arguments are the call's own fields, so a copy has its own.
        return self._of({**self, "function": copy.copy(self["function"])})


class _WritableMessage(_Writable, Message):
    """Makes a message writable."""

    __slots__ = ()
    __getattr__ = Message.__getattr__  # which reads an empty slot as None

    def __setitem__(self, key: str, value: Any) -> None:
        dict.__setitem__(self, key, None if value is None else self._validate_field(key, value))

    def _original(self) -> Self:
        return self._of({key: _copy_data(value) for key, value in self.items()})

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

    def _given_fields(self) -> dict[str, Any]:
        return dict(self)


def _copy_data(value: Any) -> Any:
    """Return dicts and lists copied, all the way down; anything else as it is."""
    if value.__class__ is str:
        return value
    if isinstance(value, dict):
        cls = value.__class__ if isinstance(value, PartDict | tool_calls.ToolCall) else PartDict
        made = cls.__new__(cls)
        dict.update(made, {key: _copy_data(item) for key, item in value.items()})
        return made
    return [_copy_data(item) for item in value] if isinstance(value, list) else value


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
