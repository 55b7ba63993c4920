"""The base parser, and how every parser reads a completion.

A completion comes in three forms: a list of chat messages, one chat message, or a text, which counts as one assistant
message. A message is a mapping with a ``role`` and a ``content``, or an object that has these as attributes.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from vfgym.errors import InvalidMessage
from vfgym.messages import content_text
from vfgym.overrides import check_hooks, hook


class MessageObject(Protocol):
    """A chat message of another library: what it says is in attributes."""

    @property
    def role(self) -> str:
        """Who speaks."""

    @property
    def content(self) -> Any:
        """What is said: text, a list of parts, or None."""


MessageLike: TypeAlias = Mapping[str, Any] | MessageObject
"""One chat message in the OpenAI format."""

Messages: TypeAlias = str | MessageLike | Sequence[MessageLike]
"""A completion: a text, one message, or a list of messages, oldest first."""

ExtractFunc: TypeAlias = Callable[[str], str]
"""Reads the answer out of a text, as `extract_boxed_answer` does."""

FormatRewardFunc: TypeAlias = Callable[..., float]
"""A reward function ``(completion, **kwargs) -> float`` with values from 0.0 to 1.0."""


def identity(text: str) -> str:
    """Return the text as it is: the default `extract_fn`."""
    return text


class Parser:
    """Reads answers out of completions. This base class takes the text as it is.

    A subclass overrides `parse`, and where it likes `parse_answer` and `get_format_reward_func`. It need not call
    ``Parser.__init__``, so a subclass may be a dataclass.

    >>> Parser().parse_answer([{"role": "user", "content": "6 * 7?"}, {"role": "assistant", "content": "42"}])
    '42'
    >>> Parser(extract_fn=str.upper).parse("yes")
    'YES'
    """

    extract_fn: ExtractFunc = staticmethod(identity)
    """Applied to the text that the parser found."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_hooks(cls)

    def __init__(self, extract_fn: ExtractFunc = identity) -> None:
        """Make a parser.

        Args:
            extract_fn: Reads the answer out of the text that the parser found.
        """
        self.extract_fn = extract_fn

    @functools.cached_property
    def logger(self) -> logging.Logger:
        """A log of the parser's own, for its author."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__qualname__}")

    # `text` is Any, not Messages, so that an override with the documented signature `parse(self, text: str)` type-checks.
    @hook
    def parse(self, text: Any) -> Any:
        """Return the result of `extract_fn` for a text.

        Args:
            text: A text, or a completion, of which the last assistant message is read (``""`` where there is none).

        Raises:
            InvalidMessage: If it is neither.
        """
        return self.extract_fn(text_of(text))

    @hook
    def parse_answer(self, completion: Messages) -> str | None:
        """Return what `parse` makes of the last assistant message, or None where there is no assistant message.

        Args:
            completion: A text, one message, or a list of messages. Content that is None counts as ``""``.

        Raises:
            InvalidMessage: If it is none of these.
        """
        messages = self.get_assistant_messages(completion)
        if not messages:
            return None
        answer: str | None = self.parse(message_text(messages[-1]))
        return answer

    def get_format_reward_func(self) -> FormatRewardFunc:
        """Return a reward function for keeping to the format. Any text is in the format of this class: always 1.0."""
        return format_reward_func

    def get_assistant_messages(self, completion: Messages) -> list[MessageLike]:
        """Return the messages of the model, oldest first."""
        return _messages_with_role(completion, "assistant")

    def get_system_messages(self, completion: Messages) -> list[MessageLike]:
        """Return the system messages (role ``system``, or its newer name ``developer``), oldest first."""
        return _messages_with_role(completion, "system", "developer")

    def get_user_messages(self, completion: Messages) -> list[MessageLike]:
        """Return the messages of the user, oldest first."""
        return _messages_with_role(completion, "user")

    def get_tool_messages(self, completion: Messages) -> list[MessageLike]:
        """Return the answers to tool calls, oldest first."""
        return _messages_with_role(completion, "tool")


def message_text(message: MessageLike) -> str:
    """Return the text of a message: ``""`` where its content is None or has no text.

    >>> message_text({"role": "assistant", "content": [{"type": "text", "text": "yes"}]})
    'yes'
    """
    return content_text(_field(message, "content"))


def text_of(completion: Messages) -> str:
    """Return a text as it is; of messages, the text of the last one of the assistant, or ``""``.

    Raises:
        InvalidMessage: If it is neither a text nor messages.
    """
    messages = _messages_with_role(completion, "assistant")
    return message_text(messages[-1]) if messages else ""


def format_reward_func(completion: Messages, **kwargs: Any) -> float:
    """Give 1.0: any text is in the format of the base class."""
    return 1.0


class MeanFormatReward:
    """A reward function: the mean format score of the assistant messages, 0.0 where there are none.

    An object and no closure, so that environments whose rubric has one can be pickled.
    """

    __name__ = "format_reward_func"

    def __init__(self, score: Callable[[str], float]) -> None:
        """Score single texts with `score`: how well one keeps to the format, from 0.0 to 1.0."""
        self.score = score

    def __call__(self, completion: Messages, **kwargs: Any) -> float:
        """Give the mean format score of the assistant messages."""
        scores = [self.score(message_text(message)) for message in _messages_with_role(completion, "assistant")]
        return sum(scores) / len(scores) if scores else 0.0


def _messages_with_role(completion: Messages, *roles: str) -> list[MessageLike]:
    return [message for message in _as_sequence(completion) if _role(message) in roles]


def _as_sequence(completion: Messages) -> Sequence[Any]:
    """Return the messages of a completion in any of its forms, unchecked."""
    if isinstance(completion, str):
        return [{"role": "assistant", "content": completion}]
    return completion if isinstance(completion, Sequence) else [completion]


def _role(message: MessageLike) -> str:
    role = _field(message, "role")
    if not isinstance(role, str):
        raise InvalidMessage(f"expected a text, or chat messages with a role and content, got {type(message).__name__}: {message!r:.120}")
    return role


def _field(message: MessageLike, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)
