"""Actions of a space as text, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.errors import ConfigurationError


class ActionNotFound(ValueError):
    """A text names no action, or several. The message is written for the model."""


class DiscreteCodec:
    """The actions of a `gymnasium.spaces.Discrete`, by number and, where they are known, by name.

    Reading forgives format, not meaning: an answer in ``<action>`` tags, with quotes, in a sentence, after reasoning; but an
    answer that names two different actions names none.

    >>> codec = DiscreteCodec(gym.spaces.Discrete(3), ["left", "stay", "right"])
    >>> codec.encode(2), int(codec.decode("I go <action>Right</action>!")), int(codec.decode("0"))
    ('right', 2, 0)
    """

    def __init__(self, space: gym.spaces.Discrete[Any], names: Sequence[str] | None = None) -> None:
        """Describe the actions of `space`.

        Args:
            space: The action space.
            names: A name for each action, in order; numbers alone without them.

        Raises:
            ConfigurationError: If the names are not one for each action, or not different.
        """
        self.space = space
        self.numbers = [str(int(space.start) + index) for index in range(int(space.n))]
        self.names = list(self.numbers if names is None else names)
        if len(self.names) != len(self.numbers) or len({name.casefold() for name in self.names}) != len(self.names):
            raise ConfigurationError(f"expected {len(self.numbers)} different action names, one for each of {space}, got {names!r}")
        actions = [space.dtype.type(number) for number in self.numbers]
        self._actions = {
            text.casefold(): action for texts in (self.numbers, self.names) for text, action in zip(texts, actions, strict=True)
        }
        longest_first = sorted(self._actions, key=len, reverse=True)
        self._mention = re.compile(r"(?<![\w.+-])(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w|[.,]\d)", re.IGNORECASE)

    def encode(self, action: Any) -> str:
        """Return the name of an action."""
        return self.names[int(action) - int(self.space.start)]

    def decode(self, text: str) -> np.integer[Any]:
        """Return the action that a text names, as the space's own dtype.

        Raises:
            ActionNotFound: If it names none, or several.
        """
        action = self._actions.get(text.strip().casefold())
        if action is not None:
            return action  # type: ignore[no-any-return]
        text = _answer_in(text)
        action = self._actions.get(text.strip(" \t\r\n.!\"'`*").casefold())
        if action is not None:
            return action  # type: ignore[no-any-return]
        named = {self._actions[mention.casefold()] for mention in self._mention.findall(text)}
        if len(named) == 1:
            return named.pop()  # type: ignore[no-any-return]
        problem = "names no action" if not named else f"names {len(named)} different actions"
        raise ActionNotFound(f"Your answer {problem}. Valid actions: {self.listing()}.")

    def listing(self) -> str:
        """Return all actions in one line."""
        if self.names == self.numbers:
            return f"{self.numbers[0]} to {self.numbers[-1]}" if len(self.numbers) > 4 else ", ".join(self.numbers)
        return ", ".join(f"{number} ({name})" for number, name in zip(self.numbers, self.names, strict=True))


def _answer_in(text: str) -> str:
    """Return the part of a message that is its answer: after the reasoning, and inside ``<action>`` tags if there are any."""
    text = text.rpartition("</think>")[2]
    opened = text.rfind("<action>")
    return text if opened < 0 else text[opened + len("<action>") :].partition("</action>")[0]
