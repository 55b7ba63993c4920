"""What a model answers: one assistant message, and what the provider says about it."""

from __future__ import annotations

import copy
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, cast

import pydantic_core

from vfgym.errors import ConfigurationError
from vfgym.frozen import Field
from vfgym.messages import AssistantMessage, Message, MessageTypes
from vfgym.tool_calls import fields_of, short

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls"]
"""Why a model stopped: it was done, it met the token limit, or it called tools."""


class Model:
    """What pydantic's models offer: fields as items, as plain data and as JSON, copies, and a place in other models.

    A subclass says how it is made of plain data (`model_validate`) and what it is as such (`_fields`).
    """

    __slots__ = ()

    def _fields(self) -> dict[str, Any]:
        """Return the fields, those that are None too."""
        raise NotImplementedError

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """Return `value`, or one made of the fields that it has."""
        raise NotImplementedError

    def model_dump(
        self,
        *,
        include: Container[str] | None = None,
        exclude: Container[str] = (),
        exclude_none: bool = False,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the fields as plain data.

        Args:
            include: Names of fields; all others are left out.
            exclude: Names of fields that are left out.
            exclude_none: Whether fields that are None are left out, at any depth.
            exclude_unset: The same: a field that was not given is None.
            exclude_defaults: The same.
            **options: Accepted as pydantic's models take them; plain data needs none of them.
        """
        without_none = exclude_none or exclude_unset or exclude_defaults
        return {
            name: as_plain(value, without_none=without_none)
            for name, value in self._fields().items()
            if (include is None or name in include) and name not in (exclude or ()) and not (without_none and value is None)
        }

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """Return the fields as JSON text (see `model_dump`); what has no form in JSON stands as its text."""
        return pydantic_core.to_json(self.model_dump(**options), indent=indent, serialize_unknown=True).decode()

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return one made of JSON text."""
        return cls.model_validate(json.loads(text))

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
            lambda value, info: value.model_dump(exclude_none=info.exclude_none), info_arg=True
        )
        return schema.no_info_plain_validator_function(cls.model_validate, serialization=as_data)


def as_plain(value: Any, *, without_none: bool = False) -> Any:
    """Return models, mappings and lists as fresh plain dicts and lists, all the way down; anything else as it is.

    Args:
        value: What a field holds.
        without_none: Whether fields of models that are None are left out.
    """
    if isinstance(value, Model):
        return value.model_dump(exclude_none=without_none)
    if isinstance(value, Mapping):
        return {key: as_plain(item, without_none=without_none) for key, item in value.items()}
    return [as_plain(item, without_none=without_none) for item in value] if isinstance(value, list) else value


class Items:
    """Attributes as items, too."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` where there is none of this name."""
        return getattr(self, name, default)


class _Record(Items, Model):
    """Fields as attributes and as items. A subclass may have room for further ones in its ``__dict__``."""

    __slots__ = ()

    def _fields(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]
        return {**own, **getattr(self, "__dict__", {})}

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
    """Tokens of one model call, as the provider counted them."""

    prompt_tokens: int = 0
    reasoning_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


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
