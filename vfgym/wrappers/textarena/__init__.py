"""Games of TextArena: tables (`match`), random moves (`moves`), chat environments (`env`), and what is known of all ids (`catalogue`).

Nothing here imports TextArena before a table is made.
"""

from vfgym.wrappers.textarena.catalogue import textarena_games, why_not
from vfgym.wrappers.textarena.match import TextArenaGame

__all__ = ["TextArenaGame", "textarena_games", "why_not"]
