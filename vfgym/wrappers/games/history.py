"""How much of an episode a model is shown again: its last moves, its newest pictures, so many tokens.

`PromptLimits` is what an environment was given. A `PromptHistory` is what one episode keeps for it: all that the game answered, as it is
shown now, with the tokens of each turn, so that a turn costs the same however long the episode is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.messages import Message
from vfgym.tasks import as_integer

CHARACTERS_OF_A_TOKEN = 4
"""Characters that count as one token where nothing counts better."""

PICTURE_TOKENS = 1000
"""Tokens that a picture counts as. Providers charge from about 100 to 1,600 for one, by its size."""

EARLIER_MOVES = "[earlier moves left out]"
"""What stands after the rules where `max_prompt_tokens` left out moves."""

OLDER_PICTURE = "[picture left out]"
"""What stands for a picture that is older than the newest ones."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text is.

    >>> estimate_tokens("left"), estimate_tokens("right"), estimate_tokens("")
    (1, 2, 0)
    """
    return -(-len(text) // CHARACTERS_OF_A_TOKEN)


@dataclass(frozen=True)
class PromptLimits:
    """What limits the prompts of a game."""

    moves: int | None = None
    """Moves that are shown again."""
    images: int | None = None
    """Pictures that are shown."""
    tokens: int | None = None
    """Most tokens of a prompt."""
    count_tokens: Callable[[str], int] = estimate_tokens

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.moves, self.images, self.tokens))

    @property
    def drop_moves(self) -> bool:
        """Whether moves may be left out."""
        return self.moves is not None or self.tokens is not None

    def count(self, messages: Iterable[Message]) -> int:
        """Return how many tokens messages are: their texts, reasoning and tool calls, and their pictures."""
        return sum(self.count_tokens(part) if isinstance(part, str) else PICTURE_TOKENS for message in messages for part in _parts(message))


def make_limits(history: Any, images: Any, max_prompt_tokens: Any, count_tokens: Any) -> PromptLimits:
    """Return the limits that an environment was given; None stands for no limit.

    Raises:
        ConfigurationError: If one of them is not a number from its lowest on, or `count_tokens` not a function that has something to count.
    """
    moves, pictures, tokens = as_integer(history), as_integer(images), as_integer(max_prompt_tokens)
    if history is not None and (moves is None or moves < 0):
        raise ConfigurationError(f"history must be a number of moves from 0, or None for all of them; got {history!r}")
    if images is not None and (pictures is None or pictures < 1):
        raise ConfigurationError(f"images must be a number of pictures from 1, or None for all of them; got {images!r}")
    if max_prompt_tokens is not None and (tokens is None or tokens < 1):
        raise ConfigurationError(f"max_prompt_tokens must be a number of tokens from 1, or None for no limit; got {max_prompt_tokens!r}")
    if count_tokens is None:
        return PromptLimits(moves, pictures, tokens)
    if not callable(count_tokens):
        raise ConfigurationError(f"count_tokens must be a function from a text to its number of tokens, got {count_tokens!r}")
    if tokens is None:
        raise ConfigurationError("count_tokens counts what max_prompt_tokens limits: give that, too")
    return PromptLimits(moves, pictures, tokens, count_tokens)


@dataclass
class PromptHistory:
    """What an episode's prompts are made of: the first prompt and the turns since, each an answer and the game's reply to it."""

    prompt: list[Message]
    """The first prompt, as it is shown now."""
    replies: list[list[Message]] = field(default_factory=list)
    """What the game replied to each answer."""
    rendered: list[list[Message]] = field(default_factory=list)
    """The replies as they are shown now: a note in the place of each older picture."""
    ends: list[int] = field(default_factory=list)
    """For each move that was made, the number of turns up to it."""
    first: int = 0
    """The first turn that is shown."""
    tokens: list[int] = field(default_factory=list)
    """Tokens of each turn, where they are limited."""
    total: int = 0
    """Tokens of the turns from `first` on."""
    pictures: deque[int] = field(default_factory=deque)
    """The turn of each picture that is shown, in order, where they are limited; -1 for those of the first prompt."""

    @classmethod
    def begin(cls, prompt: list[Message], limits: PromptLimits) -> PromptHistory:
        """Begin with the first prompt of an episode.

        Raises:
            ConfigurationError: If it is too long already.
        """
        history = cls(prompt)
        history._add_pictures(-1, prompt, limits)
        if limits.tokens is not None and (count := limits.count(history.prompt)) > limits.tokens:
            raise ConfigurationError(
                f"the rules and the first observation alone are {count} tokens, and max_prompt_tokens is {limits.tokens}: allow more,"
                " or shorten what is said (rules, prompt, obs_to_text)"
            )
        return history

    def add(self, answer: Sequence[Message], reply: list[Message], limits: PromptLimits, *, is_move: bool) -> None:
        """Add a turn."""
        turn = len(self.replies)
        self.replies.append(reply)
        self.rendered.append(reply)
        if is_move:
            self.ends.append(turn + 1)
        if limits.tokens is not None:
            self.tokens.append(limits.count(answer) + limits.count(reply))
            self.total += self.tokens[-1]
        self._add_pictures(turn, reply, limits)

    def _add_pictures(self, turn: int, messages: list[Message], limits: PromptLimits) -> None:
        """Note the pictures of a turn (-1: of the first prompt), and leave out those that are older than the newest ones."""
        if limits.images is None:
            return
        self.pictures.extend(turn for message in messages for part in _parts(message) if not isinstance(part, str))
        while len(self.pictures) > limits.images:
            older = self.pictures.popleft()
            if older < 0:
                self.prompt = _without_first_picture(self.prompt)
                continue
            self.rendered[older] = _without_first_picture(self.rendered[older])
            if limits.tokens is not None:
                saved = PICTURE_TOKENS - limits.count_tokens(OLDER_PICTURE)
                self.tokens[older] -= saved
                self.total -= saved if older >= self.first else 0

    def drop_before(self, first: int) -> None:
        """Show nothing before a turn any more."""
        if first > self.first:
            self.total -= sum(self.tokens[self.first : first])
            self.first = first

    def last_observation(self) -> list[Message] | None:
        """Return the reply to the last move before the first turn that is shown; None where there was no move."""
        moves = bisect_right(self.ends, self.first)
        return self.rendered[self.ends[moves - 1] - 1] if moves else None

    def last_feedback(self) -> list[Message] | None:
        """Return the reply to the last answer if that made no move, and no turn is shown; else None."""
        is_shown = self.first < len(self.rendered)
        was_move = bool(self.ends) and self.ends[-1] == len(self.rendered)
        return None if is_shown or was_move else self.rendered[-1]


def _parts(message: Message) -> Iterable[Any]:
    """Return what a message holds: texts, and None for each picture (and whatever else is not text)."""
    content = message["content"]
    if isinstance(content, str):
        yield content
    else:
        for part in content or ():
            yield part["text"] if part["type"] == "text" else None
    if message["role"] == "assistant":
        yield message.get("reasoning_content") or ""
        for call in message.get("tool_calls") or ():
            yield call.name
            yield call.arguments


def _without_first_picture(messages: list[Message]) -> list[Message]:
    """Return messages with a note in the place of their first picture."""
    for place, message in enumerate(messages):
        content = message["content"]
        if isinstance(content, str):
            continue
        for index, part in enumerate(content or ()):
            if part["type"] != "text":
                parts = [*content[:index], {"type": "text", "text": OLDER_PICTURE}, *content[index + 1 :]]
                changed = type(message).of_fields({**message, "content": parts})
                return [*messages[:place], changed, *messages[place + 1 :]]
    return messages
