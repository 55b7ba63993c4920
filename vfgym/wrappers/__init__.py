"""Wrappers around chat environments, and converters from and to other kinds of environments."""

from vfgym.wrappers.multiplayer import MultiplayerEnv
from vfgym.wrappers.new_messages import NewMessages
from vfgym.wrappers.pettingzoo.convert import to_pettingzoo
from vfgym.wrappers.pettingzoo.env import PettingZooEnv
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.to_chat import to_chat
from vfgym.wrappers.to_gym import to_gym
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym
from vfgym.wrappers.to_textarena import to_textarena
from vfgym.wrappers.turn_based import Played, TurnBasedGame

__all__ = [
    "MultiplayerEnv",
    "NewMessages",
    "PettingZooEnv",
    "Played",
    "TextArenaEnv",
    "TurnBasedGame",
    "to_chat",
    "to_gym",
    "to_pettingzoo",
    "to_reasoning_gym",
    "to_textarena",
]
