"""`to_pettingzoo`: conversations as PettingZoo environments."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.base import seat_of
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import TurnBasedGame

if TYPE_CHECKING:
    from vfgym.wrappers.pettingzoo.aec import ChatAEC, SoloAEC


def to_pettingzoo(
    env: gym.Env[Any, Any] | str | EnvSpec | Callable[[], TurnBasedGame], *, render_mode: str | None = None, name: str | None = None
) -> ChatAEC | SoloAEC:
    """Return conversations as a PettingZoo AEC environment: agents act in turn, observe conversations, and act by messages.

    Of a game for several players (a `MultiplayerEnv`, whose opponents then do not play, or a table), every agent has a conversation
    of its own: what the table told it, and what it said. Agents are ``player_0``, ``player_1``, ... in order of the seats;
    ``env.players`` says which player of the game each is. Of any other chat environment the one agent is the model, ``player_0``.

    The limits of a `MultiplayerEnv` hold for every agent: the game is truncated, for all who are still in it, when one has found no valid
    move `max_invalid_moves` times in a row, or would send more than `max_turns` messages (in self-play: when all of them together have).
    So do its system prompt and the form of its answers, if it has one (`MultiplayerEnv.move_of`).

    >>> from vfgym.wrappers.pettingzoo import PettingZooGame
    >>> env = to_pettingzoo(lambda: PettingZooGame("classic/tictactoe_v3"))
    >>> env.reset(seed=0)
    >>> for agent in env.agent_iter():
    ...     conversation, reward, terminated, truncated, info = env.last()
    ...     env.step(None if terminated or truncated else info["legal_actions"][0])

    Args:
        env: A chat environment, wrapped or not, or its id, or a function that makes a table of a game. Wrappers around a game for
            several players have no part in it.
        render_mode: ``"ansi"`` (``render()`` returns the conversations as text), ``"human"`` (they are printed as they go) or None.
        name: What PettingZoo calls the environment.

    Raises:
        ConfigurationError: If `env` is neither, or the render mode is unknown.
        MissingExtra: If PettingZoo is not installed.
    """
    if importlib.util.find_spec("pettingzoo") is None:
        raise MissingExtra("pettingzoo", "to_pettingzoo")
    from vfgym.wrappers.pettingzoo.aec import ChatAEC, SoloAEC

    if isinstance(env, str | EnvSpec):
        env = gym.make(env, disable_env_checker=True)
    if isinstance(env, gym.Env):
        definition = seat_of(env).definition
        if not isinstance(definition, MultiplayerEnv):
            return SoloAEC(env, render_mode=render_mode, name=name)
        return ChatAEC(
            definition.open_table,
            system_prompt=definition.system_prompt,
            max_turns=definition.max_turns,
            shares_turns=definition.is_self_play,
            max_invalid_moves=definition.max_invalid_moves,
            tell_legal_actions=definition.tell_legal_actions,
            form=definition if definition.has_form else None,
            render_mode=render_mode,
            name=name or definition.env_id or type(definition).__name__,
        )
    if not callable(env):
        raise ConfigurationError(
            f"to_pettingzoo takes a chat environment, the id of one, or a function that makes a table of a game; got {type(env).__name__}"
        )
    return ChatAEC(env, render_mode=render_mode, name=name)
