"""What a model is told of a move besides the observation: its reward, which move it was, and what is legal now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym

from vfgym.codecs import Codec
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.wrappers.games.masks import find_commands, find_mask, holds_mask, legal_line, list_legal
from vfgym.wrappers.gymnasium.unwrapping import innermost

Show: TypeAlias = Literal["reward", "legal", "step"]
"""What can be told of a move: what it earned, which actions are legal after it, and which move of how many it was."""

_TOY_TEXT = "gymnasium.envs.toy_text"
"""The package of Gymnasium's games in which the observation often does not say what a move did."""


def choose_pieces(show: Collection[Show] | None, game: gym.Env[Any, Any]) -> tuple[Show, ...]:
    """Return what is told of a game's moves, each piece once.

    Args:
        show: What is told; None stands for the legal actions (where the game has a mask), and for the reward in Gymnasium's toy_text games.
        game: The game.

    Raises:
        ConfigurationError: If something of it cannot be told.
    """
    if show is None:
        return ("reward", "legal") if type(innermost(game)).__module__.startswith(_TOY_TEXT) else ("legal",)
    known = get_args(Show)
    if isinstance(show, str) or not isinstance(show, Collection):
        raise ConfigurationError(f"show must be a list of {', '.join(map(repr, known))}, or None for the game's default; got {show!r}")
    for name in show:
        if name not in known:
            raise ConfigurationError(f"show can hold {', '.join(map(repr, known))}, got {name!r}.{did_you_mean(str(name), known)}")
    return tuple(name for name in known if name in show)


class MoveReport:
    """Writes the lines that follow an observation, always in the same order: reward, step, legal actions."""

    def __init__(self, pieces: Collection[Show], observation_space: gym.Space[Any], codec: Codec) -> None:
        """Take what is told, the game's observations, which may hold a mask, and its actions."""
        self.codec = codec
        self.rewards = "reward" in pieces
        self.legal = "legal" in pieces
        self.steps = "step" in pieces
        self.observes_mask = holds_mask(observation_space)
        self.needs_no_info = self.rewards or self.steps or (self.legal and self.observes_mask)
        """Whether there may be lines of a move with an empty info, which the fastest games have."""

    def after(self, content: str, reward: float | None) -> str:
        """Return the text of a reply that played nothing, with what it earned if that is anything."""
        return f"{content}\n\n{reward_line(reward)}" if self.rewards and reward else content

    def lines(
        self, observation: Any, info: Mapping[str, Any], *, reward: float | None, moves: int, most_moves: int | None, is_over: bool = False
    ) -> str:
        """Return the lines of a move; empty where there is nothing to tell.

        Args:
            observation: What the game gave after it.
            info: The game's info.
            reward: What it earned; None before the first move.
            moves: How many moves the episode has so far.
            most_moves: How many it can have; None for no limit.
            is_over: Whether the game is over, so that nothing is legal any more.
        """
        lines = []
        if self.rewards and reward is not None:
            lines.append(reward_line(reward))
        if self.steps:
            lines.append(f"Step {moves}" if most_moves is None else f"Step {moves} of {most_moves}")
        if self.legal and not is_over:
            commands = find_commands(self.codec.space, info)
            line = legal_line(self.codec, find_mask(observation, info)) if commands is None else list_legal(commands)
            lines += [line] if line else []
        return "\n".join(lines)


def reward_line(reward: float) -> str:
    """Return the line that tells a reward.

    >>> reward_line(-100.0), reward_line(0.1 + 0.2)
    ('Reward: -100', 'Reward: 0.3')
    """
    return f"Reward: {reward + 0.0:.6g}"  # which is 0 for -0.0 too
