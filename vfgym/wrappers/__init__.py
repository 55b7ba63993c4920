"""Wrappers around chat environments, and converters from and to other kinds of environments."""

from vfgym.wrappers.games.game import GameEnv
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.session import GameSessionEnv, Turn
from vfgym.wrappers.games.turn_based import Played, TurnBasedGame
from vfgym.wrappers.new_messages import NewMessages
from vfgym.wrappers.pettingzoo.env import PettingZooEnv
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.to_chat import to_chat
from vfgym.wrappers.to_gym import to_gym
from vfgym.wrappers.to_pettingzoo import to_pettingzoo
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym
from vfgym.wrappers.to_textarena import to_textarena

__all__ = [
    "GameEnv",
    "GameSessionEnv",
    "MultiplayerEnv",
    "NewMessages",
    "PettingZooEnv",
    "Played",
    "ReasoningGymEnv",
    "TextArenaEnv",
    "Turn",
    "TurnBasedGame",
    "to_chat",
    "to_gym",
    "to_pettingzoo",
    "to_reasoning_gym",
    "to_textarena",
]
