"""PettingZoo, both ways: its games at our table (`PettingZooGame`), and our conversations as its environments (`to_pettingzoo`).

Nothing here imports PettingZoo before it is used.
"""

from vfgym.wrappers.pettingzoo.convert import to_pettingzoo
from vfgym.wrappers.pettingzoo.game import PettingZooGame

__all__ = ["PettingZooGame", "to_pettingzoo"]
