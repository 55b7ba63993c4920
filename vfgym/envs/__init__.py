"""Environments: the Gymnasium face of the machine, and the classes that authors subclass."""

from vfgym.envs.chat import ChatEnv
from vfgym.envs.face import Action, Fork
from vfgym.envs.group import EnvGroup
from vfgym.envs.multi_turn import MultiTurnEnv
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
    "StatefulToolEnv",
    "ToolEnv",
]
