"""Which games of Gymnasium can be copied in the middle of an episode, and what copies of a game share."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import EzPickle

from vfgym.episode import Episode
from vfgym.errors import EpisodeNotPicklable
from vfgym.wrappers.gymnasium.old_gym import OldGymGame
from vfgym.wrappers.gymnasium.rendering import Game
from vfgym.wrappers.gymnasium.rewards import keeps_rewards


class GymnasiumEpisode(Episode):
    """One run of a game of Gymnasium. In the middle of it, it can be pickled and copied if the game can."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        session = self.state.session
        if session is not None and not (self.is_over or self.is_broken):
            _check_copies(session.game)
        return super().__reduce_ex__(protocol)


_AS_EZPICKLE = (object.__reduce_ex__, object.__reduce__, EzPickle.__getstate__)


def find_copied_as_new(game: Any) -> type | None:
    """Return the class of a game, or of a wrapper around it, whose copy is a new one that has not begun; None where copies go on.

    So it is with MuJoCo's, Box2D's and Atari's (Gymnasium 1.4, ale-py 0.12). A game that says itself how it is copied knows best.
    """
    while True:
        cls: Any = type(game)
        if (cls.__reduce_ex__, cls.__reduce__, cls.__getstate__) == _AS_EZPICKLE and not hasattr(cls, "__deepcopy__"):
            return cls  # type: ignore[no-any-return]
        if not isinstance(game, gym.Wrapper | OldGymGame):
            return None
        game = game.env if isinstance(game, gym.Wrapper) else game.game


def _check_copies(game: Any) -> None:
    """Raise if a copy of a game is a new one."""
    cls = find_copied_as_new(game)
    if cls is not None:
        raise EpisodeNotPicklable(
            f"{cls.__name__} is pickled and copied by the arguments of its constructor only (gymnasium.utils.EzPickle), so what is"
            " being played would be lost: pickle or copy the environment before its first reset() or after the end of an episode;"
            " another one that is reset with the same seed and given the same answers gets to the same place"
        )


def transitions_of(game: Game) -> dict[Any, Any] | None:
    """Return the table in which a game of Gymnasium's toy_text looks its moves up, and to which it never writes; None where it has none.

    FrozenLake's takes 25 of the 47 KB of an episode, and Taxi's has 12,000 rows.
    """
    cls = type(game.unwrapped)
    is_gymnasiums = isinstance(game, gym.Env) and cls.__module__.startswith("gymnasium.envs.toy_text.") and keeps_rewards(game)
    return getattr(game.unwrapped, "P", None) if is_gymnasiums else None
