"""Games of commands without spaces, as Gymnasium's: TextWorld, TextWorld-Express, ScienceWorld, Jericho, and whatever is written like them.

Their `reset` returns text, and their `step` takes any. Nothing here imports them: a game is asked.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.errors import ConfigurationError
from vfgym.wrappers.games.masks import COMMANDS
from vfgym.wrappers.gymnasium.old_gym import OldGymGame, normalize_step, reset_game

_COMMANDS = ("look", "inventory", "wait", "go north", "go south", "go east", "go west")
"""Commands that nearly every such game knows."""

_LEGAL_COMMANDS = (COMMANDS, "validActions", "valid_actions", "valid")
_GOALS = ("objective", "taskDescription", "taskDesc")
_MOVES = ("moves", "numMoves")


class CommandSpace(gym.Space[str]):
    """Whatever can be typed: any text of one line or more. Samples are commands that nearly every game knows."""

    def __init__(self, examples: Sequence[str] = _COMMANDS, seed: int | np.random.Generator | None = None) -> None:
        """Make a space whose samples are `examples`."""
        self.examples = tuple(examples)
        super().__init__(None, str, seed)

    def contains(self, x: Any) -> bool:
        """Say whether something is text."""
        return isinstance(x, str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return one of the examples."""
        return self.examples[int(self.np_random.integers(len(self.examples)))]

    def to_jsonable(self, sample_n: Iterable[str]) -> list[Any]:
        """Return texts as they are."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """Return texts as they are."""
        return list(sample_n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CommandSpace) and self.examples == other.examples

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "CommandSpace()"


class TextGame(OldGymGame):
    """A game of commands, with the interface of Gymnasium.

    The commands that are understood now stand in ``info["admissible_commands"]``, whatever the game calls them. Where the game tells its
    goal beside its text, that stands above its first text. The reward is what a command earned: TextWorld itself returns the score so far.
    A game that ended beyond its own limit of steps (``envStepLimit``), or that is neither won nor lost, is truncated.
    """

    def __init__(self, game: Any) -> None:
        """Take a game.

        Raises:
            ConfigurationError: If its `reset` returns no text, so that nobody knows how it is played.
        """
        self.game = game
        self.action_space = CommandSpace()
        self.observation_space = CommandSpace(("",))
        self._score = 0.0
        text = _text_of(reset_game(game, None, None)[0])
        if text is None:
            raise ConfigurationError(
                f"{type(game).__name__} has no action_space, from which to_chat learns how the game is played, and its reset() returned no"
                " text, as that of a game of commands does"
            )

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin a game. Options are arguments of the game's own `load`, which chooses a task: ``{"variationIdx": 3}``, say."""
        if options:
            load = getattr(self.game, "load", None)
            if not callable(load):
                raise ConfigurationError(f"{type(self.game).__name__} takes no options: it has no method load")
            load(**options)
        self._score = 0.0
        observation, info = reset_game(self.game, seed, None)
        text, told = self._read(observation, info)
        goal = next((str(told[key]).strip() for key in _GOALS if told.get(key)), "")
        return text if goal in text else f"{goal}\n\n{text}", told

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Type a command."""
        played = self.game.step(action)
        if isinstance(played, tuple) and len(played) == 3:  # of TextWorld's own loop, whose states are the infos
            played = (*played, {})
        observation, reward, terminated, truncated, info = normalize_step(played)
        text, told = self._read(observation, info)
        if _returns_scores(self.game):
            reward, self._score = reward - self._score, reward
        if terminated and self._is_cut_off(told):
            terminated, truncated = False, True
        return text, reward, terminated, truncated, told

    def _read(self, observation: Any, info: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        state = observation if isinstance(observation, Mapping) else {}  # which holds the whole game, beside what is told
        told = {key: value for key, value in state.items() if isinstance(value, bool | int | float | str | list)} | dict(info)
        legal = next((told[key] for key in _LEGAL_COMMANDS if isinstance(told.get(key), list | tuple)), None)
        if legal is not None:
            told[COMMANDS] = [*dict.fromkeys(map(str, legal))]
        return (_text_of(observation) or "").strip("\n"), told

    def _is_cut_off(self, info: Mapping[str, Any]) -> bool:
        """Say whether a limit ended the game."""
        limit = getattr(self.game, "envStepLimit", None)
        moves = next((info[key] for key in _MOVES if key in info), None)
        if limit is not None and moves is not None:
            return bool(moves > limit)
        return info.get("won") is False and info.get("lost") is False

    def __deepcopy__(self, memo: dict[int, Any]) -> TextGame:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        for name, value in self.__dict__.items():
            own = getattr(value, "copy", None) or getattr(value, "clone", None) if name == "game" else None
            vars(copied)[name] = own() if callable(own) else copy.deepcopy(value, memo)
        return copied


def _text_of(observation: Any) -> str | None:
    """Return what a game wrote: its observation, or the ``feedback`` in the state that it returned."""
    text = observation.get("feedback") if isinstance(observation, Mapping) else observation
    return text if isinstance(text, str) else None


def _returns_scores(game: Any) -> bool:
    """Say whether `step` returns the score so far instead of what a command earned, as TextWorld's does."""
    return any(cls.__module__.split(".")[0] == "textworld" for cls in type(game).__mro__)
