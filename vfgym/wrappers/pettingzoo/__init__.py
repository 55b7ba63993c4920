"""PettingZoo, both ways: its games in words (`PettingZooEnv`, `PettingZooGame`), and conversations as its environments (`to_pettingzoo`).

Nothing here imports PettingZoo before it is used.
"""

from vfgym.wrappers.pettingzoo.env import PettingZooEnv
from vfgym.wrappers.pettingzoo.game import PettingZooGame
from vfgym.wrappers.to_pettingzoo import to_pettingzoo

__all__ = ["PettingZooEnv", "PettingZooGame", "to_pettingzoo"]
