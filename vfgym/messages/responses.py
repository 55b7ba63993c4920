"""What a model answers: one assistant message, and what the provider says about it."""

from __future__ import annotations

import copy
from collections.abc import Container, Generator, Mapping
from dataclasses import MISSING, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import pydantic_core

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError
from vfgym.messages.chat import AssistantMessage, Message, MessageTypes
from vfgym.messages.frozen import Field
from vfgym.messages.tool_calls import fields_of, short

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
"""Why a model stopped: it was done, it met the token limit, or it called tools."""

_PLAIN_DATA = pydantic_core.SchemaSerializer(pydantic_core.core_schema.any_schema())
"""Knows what pydantic's ``include`` and ``exclude`` mean, at any depth."""


class Model:
    """What pydantic's models offer: fields as items, as plain data and as JSON, copies, and a place in other models.

    A subclass says how it is made of plain data (`model_validate`), what it is as such (`_fields`), and what that is where nothing
    was given (`_defaults`).
    """

    __slots__ = ()

    def _fields(self) -> dict[str, Any]:
        """Return the fields, those that are None too."""
        raise NotImplementedError

    def _defaults(self) -> Mapping[str, Any]:
        """Return what the fields are that need not be given."""
        return {}

    def _given_fields(self) -> dict[str, Any]:
        """Return the fields that were given."""
        defaults = self._defaults()
        return {name: value for name, value in self._fields().items() if value is not None or defaults.get(name, _REQUIRED) is not None}

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or one made of the fields that it has."""
        raise NotImplementedError

    def model_dump(
        self,
        *,
        include: Container[str] | None = None,
        exclude: Container[str] | None = None,
        exclude_none: bool = False,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the fields as plain data.

        Args:
            include: Names of fields; all others are left out. A dict says for each what of it is included, as pydantic has it.
            exclude: Names of fields that are left out. A dict says for each what of it is left out.
            exclude_none: Whether fields that are None are left out, at any depth.
            exclude_unset: Whether fields that were not given are left out, at any depth. Only messages remember what they were
                given; of anything else, what is left out is None and None by default.
            exclude_defaults: Whether fields that are what they are by default are left out, at any depth. A message's role and the
                type of a content part always stay.
            **options: Accepted as pydantic's models take them; plain data needs none of them.
        """
        how = {"exclude_none": exclude_none, "exclude_unset": exclude_unset, "exclude_defaults": exclude_defaults}
        defaults = self._defaults() if exclude_defaults else {}
        plain = {
            name: as_plain(value, **how)
            for name, value in (self._given_fields() if exclude_unset else self._fields()).items()
            if not (exclude_none and value is None) and not _same(value, defaults.get(name, _REQUIRED))
        }
        if include is None and not exclude:
            return plain
        return cast("dict[str, Any]", _PLAIN_DATA.to_python(plain, include=cast(Any, include), exclude=cast(Any, exclude)))

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Return the fields as JSON text (see `model_dump`); what has no form in JSON stands as its text."""
        return pydantic_core.to_json(self.model_dump(**options), indent=indent, serialize_unknown=True).decode()

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return one made of JSON text."""
        return cls.model_validate(parse_json(text))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with fields changed.

        Args:
            update: The fields to change.
            deep: Whether what is in the fields is copied, too.
        """
        made: Any = copy.deepcopy(self) if deep else copy.copy(self)
        for name, value in (update or {}).items():
            made[name] = value
        return cast(Self, made)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        schema = pydantic_core.core_schema
        as_data = schema.plain_serializer_function_ser_schema(
            lambda value, info: value.model_dump(
                include=info.include,
                exclude=info.exclude,
                exclude_none=info.exclude_none,
                exclude_unset=info.exclude_unset,
                exclude_defaults=info.exclude_defaults,
            ),
            info_arg=True,
        )
        return schema.no_info_plain_validator_function(cls.model_validate, serialization=as_data)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"title": cls.__name__, "type": "object"}


_REQUIRED = object()
"""Stands for the default of a field that has none."""


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)  # an array is compared with nothing


def as_plain(value: Any, **how: Any) -> Any:
    """Return models, mappings and lists as fresh plain dicts and lists, all the way down; anything else as it is.

    Args:
        value: What a field holds.
        **how: What is left out of models (see `Model.model_dump`).
    """
    if isinstance(value, Model):
        return value.model_dump(**how)
    if isinstance(value, Mapping):
        return {key: as_plain(item, **how) for key, item in value.items()}
    return [as_plain(item, **how) for item in value] if isinstance(value, list) else value


class ItemAccess:
    """Fields as items, too. A subclass says which there are (`_names`)."""

    __slots__ = ()

    def _names(self) -> tuple[str, ...]:
        """Return the names of the fields."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __iter__(self) -> Generator[tuple[str, Any], None, None]:
        return ((name, self[name]) for name in self._names())

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` where there is none of this name."""
        try:
            return self[name]
        except KeyError:
            return default


class _Record(ItemAccess, Model):
    """Fields as attributes and as items. A subclass may have room for further ones in its ``__dict__``."""

    __slots__ = ()

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def _names(self) -> tuple[str, ...]:
        return (*self.__dataclass_fields__, *getattr(self, "__dict__", ()))

    def _fields(self) -> dict[str, Any]:
        return {name: self[name] for name in self._names()}

    def _defaults(self) -> dict[str, Any]:
        return {name: field.default for name, field in self.__dataclass_fields__.items() if field.default is not MISSING}

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        fields = fields_of(value)
        if fields is None:
            raise ConfigurationError(f"expected the fields of a {cls.__name__}, got {type(value).__name__}: {short(value)}")
        try:
            return cls(**fields)
        except TypeError as error:
            raise ConfigurationError(f"these fields make no {cls.__name__}: {error}; got {short(fields)}") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Record | Mapping):
            return NotImplemented
        return self.model_dump() == (other.model_dump() if isinstance(other, _Record) else other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class Usage(_Record):
    """Tokens of one model call, as the provider counted them.

    Limits and costs are counted by them, so each is an integer from 0 below 2**53 (a float holds it exactly). What a server tells
    is checked by its client, for which an answer without tokens that can be has no usage.

    Raises:
        ConfigurationError: If one is not such an integer.
    """

    prompt_tokens: int = 0
    reasoning_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if value.__class__ is not int or not 0 <= value < _MOST_TOKENS:
                setattr(self, name, _token_count(name, value))


_COUNTS = ("prompt_tokens", "reasoning_tokens", "completion_tokens", "total_tokens")
_MOST_TOKENS = 2**53


def is_token_count(value: Any) -> bool:
    """Say whether a value is a number of tokens: an integer (of NumPy, too) from 0 below 2**53."""
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < _MOST_TOKENS


def _token_count(name: str, value: Any) -> int:
    if not is_token_count(value):
        raise ConfigurationError(f"{name} of a Usage must be an integer from 0 below 2**53, got {short(value)}")
    return int(value)


@dataclass(slots=True, eq=False)
class ResponseTokens(_Record):
    """Token ids, masks (1 for what the model wrote) and log-probabilities (nats) of one model call, for training."""

    prompt_ids: list[int]
    prompt_mask: list[int]
    completion_ids: list[int]
    completion_mask: list[int]
    completion_logprobs: list[float]
    routed_experts: Any = None


class ResponseMessage(AssistantMessage):
    """The assistant message of a `Response`, with what belongs to this one answer and not to the conversation."""

    __slots__ = ()
    finish_reason = Field()
    is_truncated = Field()
    tokens = Field()
    OWN_FIELDS = frozenset({"finish_reason", "is_truncated", "tokens"})


_TEXT_ONLY = ["role", "content"]


def for_conversation(message: AssistantMessage, types: MessageTypes) -> Message:
    """Return an answer's message as it goes into the conversation: without what belongs to this one answer.

    Args:
        message: The message of a `Response`.
        types: The message class for each role.
    """
    own = types["assistant"]
    if [*message] == _TEXT_ONLY and isinstance(message["content"], str):
        return own._of(message)
    return own.of_fields({key: value for key, value in message.items() if key not in ResponseMessage.OWN_FIELDS})


@dataclass(slots=True, init=False, eq=False)
class Response(_Record):
    """One answer of a model, whoever the provider is."""

    id: str
    created: int
    """Unix time in seconds."""
    model: str
    usage: Usage | None
    message: AssistantMessage
    usage_type = Usage
    message_type = ResponseMessage
    """The classes of a usage and of a message that are given by their fields."""

    def __init__(self, id: str, created: int, model: str, usage: Any = None, message: Any = None) -> None:
        """Take an answer.

        Args:
            id: What the provider calls it.
            created: Unix time in seconds.
            model: Name of the model.
            usage: Tokens, where they were reported: a `Usage`, or a dict of its fields.
            message: The answer; a mapping of its fields, or its text, becomes a `ResponseMessage`.

        Raises:
            TypeError: If there is no message.
        """
        self.id = id
        self.created = created
        self.model = model
        self.usage = self.usage_type(**usage) if usage.__class__ is dict else usage
        if message.__class__ is not AssistantMessage and not isinstance(message, AssistantMessage):
            if message is None:
                raise TypeError("a Response needs the message that the model answered")
            message = self.message_type(**(message if isinstance(message, Mapping) else {"content": message}))
        self.message = message

    def _defaults(self) -> dict[str, Any]:
        return {"usage": None}

    @property
    def tokens(self) -> ResponseTokens | None:
        """Token data of the answer, where the client asked for it."""
        message = self.message
        return message.tokens if isinstance(message, ResponseMessage) else None

    @property
    def is_truncated(self) -> bool:
        """Whether the answer was cut by a token limit."""
        message = self.message
        return isinstance(message, ResponseMessage) and (bool(message.is_truncated) or message.finish_reason == "length")
