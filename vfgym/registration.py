"""The ids that ``import vfgym`` registers with Gymnasium.

They come from data files, so that no package behind them is imported before one of its environments is made.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from vfgym.data import gymnasium_environments, pettingzoo_environments, reasoning_gym_datasets, textarena_environments

NAMESPACES = ("gymnasium", "pettingzoo", "reasoning-gym", "textarena")
"""What the ids of this library begin with."""

_VARIANTS = ("-train", "-raw")
"""What the ids of TextArena end with that are the same game as those without."""


OWN_NAMESPACE = "vfgym"
"""The namespace in which every id stands once more: ``textarena/Chess-v0`` is ``vfgym/textarena-Chess-v0``, too."""


def register_all() -> None:
    """Register every environment of this library. A second call changes nothing.

    Each stands in the namespace ``vfgym`` as well, with a hyphen for its slash.

    * ``reasoning-gym/<dataset>-v0``: the 106 datasets of reasoning-gym, as `ReasoningGymEnv`.
    * ``gymnasium/<id>``: the environments of Gymnasium (toy text, classic control, Box2D, MuJoCo), as chat environments. Their
      limits are the games' own.
    * ``pettingzoo/<game>-v<version>``: PettingZoo's classic games, as `PettingZooEnv`.
    * ``textarena/<id>``: the games of TextArena, as `TextArenaEnv`. Those that cannot run here say why when they are made.
    """
    for name in reasoning_gym_datasets():
        _register("reasoning-gym", "gym", name)
    for game in gymnasium_environments():
        _register("gymnasium", "game", game)
    for game in pettingzoo_environments():
        _register("pettingzoo", "game", game)
    for game in textarena_environments():
        _register("textarena", "game", game)


_ENTRY_POINTS = {
    "reasoning-gym": "vfgym.wrappers.reasoning_gym:ReasoningGymEnv",
    "gymnasium": "vfgym.wrappers.to_chat:make_chat",
    "pettingzoo": "vfgym.wrappers.pettingzoo.env:PettingZooEnv",
    "textarena": "vfgym.wrappers.textarena.env:TextArenaEnv",
}


_FAMILIES = {entry_point: family for family, entry_point in _ENTRY_POINTS.items()}


def _id_of(namespace: str, name: str) -> str:
    """Return the id under which a data set or a game is registered."""
    match namespace:
        case "reasoning-gym":
            name = f"{name}-v0"
        case "pettingzoo":
            name = name.removeprefix("classic/").replace("_v", "-v")
        case "textarena":
            name = name.replace("/", "-")  # Gymnasium takes one "/" in an id; TextArena has Taboo-v0-city/country
    return f"{namespace}/{name}"


def _spec_of(namespace: str, name: str, kwargs: dict[str, Any]) -> EnvSpec:
    vector = f"vfgym.registration:make_{namespace.replace('-', '_')}_vector"
    return EnvSpec(_id_of(namespace, name), entry_point=_ENTRY_POINTS[namespace], vector_entry_point=vector, kwargs=kwargs)


def _register(namespace: str, keyword: str, name: str) -> None:
    spec = _spec_of(namespace, name, {keyword: name})
    # `gymnasium.register` looks through all that is registered for each id, which takes 35 ms here; it does nothing else for these.
    if spec.id not in gymnasium.registry:
        gymnasium.registry[spec.id] = spec
        own = dataclasses.replace(spec, id=own_id(spec.id), kwargs={keyword: name})
        gymnasium.registry[own.id] = own


def own_id(env_id: str) -> str:
    """Return the id of an environment of this library in its own namespace.

    >>> own_id("textarena/TicTacToe-v0")
    'vfgym/textarena-TicTacToe-v0'
    """
    return f"{OWN_NAMESPACE}/{env_id.replace('/', '-')}"


def family_of(spec: EnvSpec) -> str | None:
    """Return which of the `NAMESPACES` an environment is of, whatever namespace its id stands in; None for one of somebody else."""
    return _FAMILIES.get(spec.entry_point) if isinstance(spec.entry_point, str) else None


def _make_vector(namespace: str, keyword: str, **kwargs: Any) -> VectorEnv[Any, Any, Any]:
    """Make the vector environment of an id, for `gymnasium.make_vec`, which tells the arguments of the id and not the id."""
    from vfgym.vector import ChatVectorEnv

    own = {name: kwargs.pop(name) for name in ("num_envs", "autoreset_mode", "group_size") if name in kwargs}
    of_spec = {name: kwargs.pop(name) for name in ("max_episode_steps", "disable_env_checker") if name in kwargs}
    return ChatVectorEnv(dataclasses.replace(_spec_of(namespace, kwargs[keyword], kwargs), **of_spec), **own)


make_reasoning_gym_vector = functools.partial(_make_vector, "reasoning-gym", "gym")
make_gymnasium_vector = functools.partial(_make_vector, "gymnasium", "game")
make_pettingzoo_vector = functools.partial(_make_vector, "pettingzoo", "game")
make_textarena_vector = functools.partial(_make_vector, "textarena", "game")


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
