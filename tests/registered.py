"""The registered ids that can be played where the tests run."""

from __future__ import annotations

from vfgym.data import textarena_environments
from vfgym.registration import list_registered_ids
from vfgym.wrappers.textarena.catalogue import why_not


def playable_ids() -> list[str]:
    """Return all ids but those of TextArena's games for which something is missing that nobody can install here, such as word lists."""
    missing = {f"textarena/{game.replace('/', '-')}" for game in textarena_environments() if why_not(game) is not None}
    return [env_id for env_id in list_registered_ids() if env_id not in missing]
