"""Environments: the seat from which episodes are stepped, and the classes that authors subclass."""

from vfgym.envs.chat import ChatEnv
from vfgym.envs.going_back import Snapshot
from vfgym.envs.group import EnvGroup
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.envs.seat import Action, Fork
from vfgym.envs.single_turn import SingleTurnEnv
from vfgym.envs.stateful_tool import StatefulToolEnv
from vfgym.envs.tool import ToolEnv

__all__ = [
    "Action",
    "ChatEnv",
    "EnvGroup",
    "Fork",
    "MultiTurnEnv",
    "SingleTurnEnv",
    "Snapshot",
    "StatefulToolEnv",
    "ToolEnv",
]
