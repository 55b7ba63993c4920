"""The ids that ``import vfgym`` registers with Gymnasium.

They come from data files, so that no package behind them is imported before one of its environments is made.
"""

from __future__ import annotations

import difflib
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from vfgym.data import gymnasium_environments, pettingzoo_environments, reasoning_gym_datasets, textarena_environments

NAMESPACES = ("gymnasium", "pettingzoo", "reasoning-gym", "textarena")
"""What the ids of this library begin with."""

_VARIANTS = ("-train", "-raw")
"""What the ids of TextArena end with that are the same game as those without."""


def register_all() -> None:
    """Register every environment of this library. A second call changes nothing.

    * ``reasoning-gym/<dataset>-v0``: the 106 datasets of reasoning-gym, as `ReasoningGymEnv`.
    * ``gymnasium/<id>``: the environments of Gymnasium (toy text, classic control, Box2D, MuJoCo), as chat environments. Their
      limits are the games' own.
    * ``pettingzoo/<game>-v<version>``: PettingZoo's classic games, as `PettingZooEnv`.
    * ``textarena/<id>``: the games of TextArena, as `TextArenaEnv`. Those that cannot run here say why when they are made.
    """
    for name in reasoning_gym_datasets():
        _register(f"reasoning-gym/{name}-v0", "vfgym.wrappers.reasoning_gym:ReasoningGymEnv", {"gym": name})
    for game in gymnasium_environments():
        _register(f"gymnasium/{game}", "vfgym.wrappers.to_chat:make_chat", {"game": game})
    for game in pettingzoo_environments():
        name = game.removeprefix("classic/").replace("_v", "-v")
        _register(f"pettingzoo/{name}", "vfgym.wrappers.pettingzoo.env:PettingZooEnv", {"game": game})
    for game in textarena_environments():
        # Gymnasium takes one "/" in an id; TextArena has Taboo-v0-city/country.
        _register(f"textarena/{game.replace('/', '-')}", "vfgym.wrappers.textarena.env:TextArenaEnv", {"game": game})


def _register(env_id: str, entry_point: str, kwargs: dict[str, Any]) -> None:
    # `gymnasium.register` looks through all that is registered for each id, which takes 35 ms here; it does nothing else for these.
    if env_id not in gymnasium.registry:
        gymnasium.registry[env_id] = EnvSpec(env_id, entry_point=entry_point, kwargs=kwargs)


def list_registered_ids() -> list[str]:
    """Return the ids of this library, in alphabetical order."""
    return sorted(env_id for env_id, spec in gymnasium.registry.items() if spec.namespace in NAMESPACES)


def nearest_ids(env_id: str) -> list[str]:
    """Return up to three registered ids of this library that are most like `env_id`, the nearest first.

    A namespace and a version need not be given, nor the whole name.

    >>> nearest_ids("leg_countin")[0], nearest_ids("cartpole")[0], nearest_ids("tic tac toe")[0]
    ('reasoning-gym/leg_counting-v0', 'gymnasium/CartPole-v1', 'textarena/TicTacToe-v0')
    """
    given = env_id.lower()
    forms: dict[str, list[str]] = {}
    for candidate in list_registered_ids():
        if not candidate.endswith(_VARIANTS) or given.endswith(_VARIANTS):
            for form in (candidate.lower(), _short_form(candidate)):
                forms.setdefault(form, []).append(candidate)
    near = [*difflib.get_close_matches(given, forms, n=6, cutoff=0.6), *(form for form in forms if given in form)]
    # Of the ids of one name (the same game with other options), the shortest is the plain one.
    return list(dict.fromkeys(min(forms[form], key=len) for form in near))[:3]


def _short_form(env_id: str) -> str:
    """Return an id without namespace and version, in lower case."""
    return env_id.rpartition("/")[2].rpartition("-v")[0].lower()
