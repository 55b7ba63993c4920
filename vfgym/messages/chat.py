"""Chat messages: immutable data in the OpenAI chat format.

A message is a ``dict`` subclass, so ``json``, pickle, HF Datasets and the provider SDKs take it as it is; its known
fields are attributes too. There is one representation from the dataset row to the saved result: clients convert at the
provider's door and nowhere else. Values are validated once, where they enter, and frozen all the way down, so that
conversations share messages without copying them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, cast

from vfgym.bounded_json import parse_json
from vfgym.errors import InvalidMessage
from vfgym.messages.frozen import Field, FrozenDict
from vfgym.messages.tool_calls import ToolCall, as_tool_call, fields_of, short
from vfgym.output.html import html_image, html_lines, html_text

T = TypeVar("T")

Content: TypeAlias = str | list[dict[str, Any]]
"""What a message says: text, or a list of parts (``{"type": "text" | "image_url" | "input_audio" | ..., ...}``)."""


_new, _update = dict.__new__, dict.update


class MessageTypes(dict[str, "type[Message]"]):
    """The class that stands for each role."""

    def __init__(self, *classes: type[Message]) -> None:
        """Take the classes; each says what its roles are."""
        super().__init__({role: cls for cls in classes for role in cls.ROLES})
        self.taken = set(classes)
        """Classes of messages that are taken as they are; `take` adds subclasses of these as it meets them."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Without what `take` learned: a local subclass that it once met could not be pickled.
        return type(self), tuple(dict.fromkeys(self.values()))

    def take(self, values: list[Any]) -> bool:
        """Say whether all values are messages of these classes, which are taken as they are: subclasses are."""
        if self.taken.issuperset(map(type, values)):
            return True
        own, classes = tuple(self.values()), set(map(type, values))
        self.taken.update(cls for cls in classes if issubclass(cls, own))
        return self.taken.issuperset(classes)


class Converted:
    """What a client made of a message."""

    __slots__ = ("convert", "made", "original")

    def __init__(self, message: Message, convert: Callable[[Message], Any]) -> None:
        """Convert the message; one that can be written to, from a copy of it, since what is made may share its parts."""
        self.original = message._original()
        self.convert = convert
        self.made = convert(message if self.original is None else self.original)


class Message(FrozenDict):
    """One chat message: a frozen ``dict`` with a ``role``.

    A known field that is absent reads ``None`` as an attribute and is a ``KeyError`` as an item.
    """

    __slots__ = ("_converted",)
    _converted: Converted | None
    """What `convert_all` made of it; None (by `__getattr__`) while the slot is empty."""
    ROLES: ClassVar[tuple[str, ...]] = ()
    """Roles that this class stands for; the first one is its default."""
    _is_text_enough: ClassVar[bool] = True
    """Whether text alone makes a message of this class."""
    role = Field()
    content = Field()
    name = Field()

    def __init__(self, content: Content | None = None, *, role: str | None = None, **fields: Any) -> None:
        """Validate and freeze one message.

        Args:
            content: Text, or a list of parts.
            role: The message's role; the class's own where it is missing.
            **fields: Further fields. One that is ``None`` counts as absent.

        Raises:
            InvalidMessage: If the fields do not make a message of this role.
        """
        if content.__class__ is str and self._is_text_enough and not fields and role is None:
            dict.update(self, {"role": self.ROLES[0], "content": content})
        else:
            self._fill(role, content, fields)

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Make a message of a mapping with its role, its content and any more fields.

        Raises:
            InvalidMessage: If the fields do not make a message of this role.
        """
        rest = {key: value for key, value in fields.items() if key not in ("role", "content")}
        for key in rest:
            if not isinstance(key, str) or key == "self":
                raise InvalidMessage(f"the fields of a message have names, and none is called 'self'; got {key!r}")
        made = cls.__new__(cls)
        made._fill(fields.get("role"), fields.get("content"), rest)
        return made

    def _fill(self, role: str | None, content: Any, fields: Mapping[str, Any]) -> None:
        if not role:
            role = self.ROLES[0]
        elif role not in self.ROLES:
            raise InvalidMessage(f"{type(self).__name__} has the role {' or '.join(self.ROLES)}, got {role!r}")
        dict.update(self, {"role": role, "content": content if content.__class__ is str else self._validate_content(content)})
        if fields:
            dict.update(self, {key: self._validate_field(key, value) for key, value in fields.items() if value is not None})

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Self:
        # One is made of every move, and of every answer of a game.
        made = _new(cls)
        _update(made, data)
        return made

    def __getattr__(self, name: str) -> Any:
        if name == "_converted":  # no client was given the message yet: many never are, and to fill the slot takes time
            return None
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no field {name!r} (it has {', '.join(self)})") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.items() if key != 'role')})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: each field, pictures drawn."""
        role = self["role"]
        content = self.get("content")
        said = [_part_html(part, role) for part in content] if isinstance(content, list) else [html_lines(content)] if content else []
        rest = [html_lines(f"{name}: {value}") for name, value in self.items() if name not in ("role", "content")]
        return f"<div><strong>{html_text(role)}</strong>{''.join(said + rest)}</div>"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with fields changed; a field set to ``None`` is left out.

        >>> UserMessage("hi").replace(content="hello")
        UserMessage(content='hello')
        """
        return type(self).of_fields({**self, **changes})

    def forget_converted(self) -> None:
        """Let go of what `convert_all` made of the message."""
        _set_converted(self, None)

    def _original(self) -> Self | None:
        """Return a copy that tells whether the message was written to since; None, as it cannot be."""
        return None

    def _validate_content(self, content: Any) -> Any:
        if isinstance(content, str):
            return content
        if content is None:
            raise InvalidMessage(f"a {self.ROLES[0]} message needs content (text, or a list of parts), got None")
        return self._held(_check_parts(content))

    def _validate_field(self, key: str, value: Any) -> Any:
        return self._held(value)


def _part_html(part: Mapping[str, Any], role: str) -> str:
    """Return a part of a content as a notebook shows it."""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else None
    if isinstance(url, str):
        return html_image(url, f"an image in a message of the {role}")
    return html_lines(part.get("text", part))


_set_converted = Message.__dict__["_converted"].__set__  # the slot itself: assignment is refused


def convert_all(messages: Iterable[Message], convert: Callable[[Message], T]) -> list[T]:
    """Return what `convert` makes of each message.

    It is kept with the message, so a client converts the new messages of a conversation only. It is made again if the message was
    written to since (those of `verifiers_compat` can be), or if another function asked last.
    """
    made = []
    for message in messages:
        kept = message._converted
        if kept is None or kept.convert is not convert or (kept.original is not None and kept.original != message):
            kept = Converted(message, convert)
            _set_converted(message, kept)
        made.append(kept.made)
    return made


class SystemMessage(Message):
    """Instructions to the model (role ``system``, or its newer name ``developer``)."""

    __slots__ = ()
    ROLES = ("system", "developer")

    @classmethod
    def from_path(cls, path: str | Path) -> Self:
        """Read a system prompt from a UTF-8 text file, verbatim (line endings included)."""
        return cls(Path(path).read_bytes().decode("utf-8"))


class UserMessage(Message):
    """What the model is told or asked."""

    __slots__ = ()
    ROLES = ("user",)


class TextMessage(Message):
    """Raw text without a speaker, as completion-style prompts have it."""

    __slots__ = ()
    ROLES = ("text",)


class AssistantMessage(Message):
    """What the model says: text, tool calls, reasoning."""

    __slots__ = ()
    ROLES = ("assistant",)
    reasoning_content = Field()
    thinking_blocks = Field()
    tool_calls = Field()

    def _validate_content(self, content: Any) -> Any:
        return None if content is None else super()._validate_content(content)

    def _validate_field(self, key: str, value: Any) -> Any:
        if key == "tool_calls":
            if not isinstance(value, list | tuple):
                raise InvalidMessage(f"tool_calls must be a list of tool calls, got {type(value).__name__}")
            value = [as_tool_call(call) for call in value]
        return self._held(value)


class ToolMessage(Message):
    """The answer to one tool call, named by ``tool_call_id``."""

    __slots__ = ()
    ROLES = ("tool",)
    _is_text_enough = False
    tool_call_id = Field()

    def _fill(self, role: str | None, content: Any, fields: Mapping[str, Any]) -> None:
        super()._fill(role, content, fields)
        call_id = fields.get("tool_call_id")
        if not isinstance(call_id, str):
            raise InvalidMessage(f"a tool message needs tool_call_id (a string): which call it answers; got {call_id!r}")


MESSAGE_TYPES = MessageTypes(SystemMessage, UserMessage, AssistantMessage, ToolMessage, TextMessage)
"""The immutable message classes, by role."""

_REQUIRED_IN_PART = {"text": "text", "image_url": "image_url", "input_audio": "input_audio"}


def _check_parts(content: Any) -> list[Mapping[str, Any]]:
    if not isinstance(content, list | tuple):
        raise InvalidMessage(f"content must be text or a list of parts, got {type(content).__name__}: {short(content)}")
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(kind, str):
            raise InvalidMessage(f"content part {index} must be a dict with a type ({{'type': 'text', ...}}), got {short(part)}")
        field = _REQUIRED_IN_PART.get(kind)
        value = part.get(field) if field else None
        expected = str if kind == "text" else Mapping
        if field and not isinstance(value, expected):
            raise InvalidMessage(f"content part {index} of type {kind!r} needs {field!r} ({expected.__name__}), got {short(part)}")
    return [_without_none(part) for part in content]


def _without_none(part: Mapping[str, Any]) -> Mapping[str, Any]:
    # Arrow fills the fields that other parts have with None.
    is_filled = any([value is None for value in part.values()])
    return {key: value for key, value in part.items() if value is not None} if is_filled else part


def as_message(value: Any, types: MessageTypes = MESSAGE_TYPES) -> Message:
    """Return one message in any of its raw forms as a `Message`.

    Args:
        value: A message, a dict with a role, or an SDK's message object.
        types: The message class for each role.

    Raises:
        InvalidMessage: If it is not a message; the text says why.
    """
    if isinstance(value, Message):
        own = types[value["role"]]
        return value if isinstance(value, own) else own.of_fields(value)
    fields = fields_of(value)
    if fields is None:
        raise InvalidMessage(f"expected a chat message (a dict with role and content), got {type(value).__name__}: {short(value)}")
    role = fields.get("role")
    cls = types.get(role) if isinstance(role, str) else None
    if cls is None:
        raise InvalidMessage(f"a message needs a role, one of {', '.join(types)}; got role={role!r} in {short(value)}")
    return cls.of_fields(fields)


def as_messages(value: Any, types: MessageTypes = MESSAGE_TYPES, *, name: str = "messages") -> list[Message]:
    """Return a conversation in any of its raw forms as a fresh list of messages.

    Args:
        value: A string (one `TextMessage`), one message, or an iterable of messages.
        types: The message class for each role.
        name: What the value is, for the error's text.

    Raises:
        InvalidMessage: If it is none of these; the text names the message.
    """
    if value.__class__ is list and types.take(value):
        return value.copy()
    if isinstance(value, str):
        return [types["text"](value)]
    if _is_one_message(value):
        return [_validate_at(value, types, name)]
    if not isinstance(value, Iterable):
        raise InvalidMessage(f"{name} must be a list of messages (or one message, or text), got {type(value).__name__}: {short(value)}")
    return [_validate_at(item, types, f"{name}[{i}]") for i, item in enumerate(value)]


def _is_one_message(value: Any) -> bool:
    # A pydantic object is iterable too: it yields its fields.
    return isinstance(value, Mapping) or hasattr(value, "role") or hasattr(value, "model_dump")


def _validate_at(value: Any, types: MessageTypes, where: str) -> Message:
    try:
        return as_message(value, types)
    except InvalidMessage as error:
        raise InvalidMessage(f"{where}: {error}") from None


def content_text(content: Any) -> str:
    """Return the text of a message's content: parts of type text joined by one space, other parts left out.

    >>> content_text([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    'a b'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        texts = (part.get("text") if isinstance(part, Mapping) else getattr(part, "text", None) for part in content)
        return " ".join(text for text in texts if isinstance(text, str)).strip()
    return ""


def join_contents(contents: Sequence[Content]) -> str | list[Any]:
    """Return the contents of several messages as that of one: text where all are text, else parts."""
    if all(isinstance(content, str) for content in contents):
        return "\n\n".join(cast(Sequence[str], contents))
    parts = [[{"type": "text", "text": content}] if isinstance(content, str) else content for content in contents]
    return [part for each in parts for part in each]


def plain(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation as plain dicts with parsed tool arguments, for ``tokenizer.apply_chat_template``.

    Chat templates test ``tool_calls is defined`` and would encode textual arguments twice. Arguments that are not JSON
    stay text.

    >>> plain([AssistantMessage(tool_calls=[ToolCall("c1", "add", '{"a": 1}')])])[0]["tool_calls"][0]["function"]["arguments"]
    {'a': 1}
    """
    return [_thaw(message) for message in messages]


def _thaw(value: Any) -> Any:
    if isinstance(value, ToolCall):
        thawed = {key: _thaw(item) for key, item in value.items()}
        try:
            thawed["function"]["arguments"] = parse_json(value.arguments)
        except ValueError:
            pass
        return thawed
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_thaw(item) for item in value]
    return value
