"""TextArena as a library: imported without network, output or a claim on the process's random numbers."""

from __future__ import annotations

import contextlib
import functools
import importlib
import random
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from vfgym.errors import MissingExtra
from vfgym.foreign import mute_warnings
from vfgym.wrappers.textarena.repairs import REPAIRS
from vfgym.wrappers.textarena.table_random import NUMPY, RANDOM
from vfgym.wrappers.textarena.words import NLTK_NAMES, Dictionary

_IMPORTING = threading.RLock()
"""Held while modules of TextArena are imported."""

_TAMED: set[str] = set()
"""The modules of TextArena that know `RANDOM` and the like."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The members of TextArena's ``ObservationType`` that are told from the others."""

    prompt: Any
    action: Any
    admin: Any
    board: Any


@functools.cache
def textarena() -> Any:
    """Return the module ``textarena``.

    Raises:
        MissingExtra: If it is not installed.
    """
    try:
        package = _import_quietly("textarena")
    except ModuleNotFoundError as error:
        if error.name != "textarena":
            raise
        raise MissingExtra("textarena", "a TextArena game") from error
    return package


@functools.cache
def kinds() -> Kinds:
    """Return the kinds of observations."""
    types = textarena().ObservationType
    return Kinds(types.PROMPT, types.PLAYER_ACTION, types.GAME_ADMIN, types.GAME_BOARD)


def new_game(env_id: str, options: Mapping[str, Any]) -> Any:
    """Return a game as TextArena makes it, without wrappers.

    Args:
        env_id: Id of TextArena.
        options: Options in place of those that the id stands for.
    """
    return load(env_id)(**{**_spec(env_id).kwargs, **options})


def load(env_id: str) -> Any:
    """Return the class of a game."""
    module, _, name = _spec(env_id).entry_point.partition(":")
    return getattr(_import_quietly(module), name)


def _spec(env_id: str) -> Any:
    return textarena().envs.registration.ENV_REGISTRY[env_id]


@functools.cache
def _import_quietly(name: str) -> ModuleType:
    with _IMPORTING, _without_nltk(), mute_warnings():
        drawn = random.getstate()  # what TextArena imports draws from it
        module = importlib.import_module(name)
        random.setstate(drawn)
        loaded = {loaded for loaded in sys.modules if loaded.startswith("textarena.")}
        for new in loaded - _TAMED:
            _tame(sys.modules[new])
        _TAMED.update(loaded)
    return module


@contextlib.contextmanager
def _without_nltk() -> Iterator[None]:
    """Let what is imported meanwhile find an empty ``nltk``.

    Nine games download corpora when they are imported, three look into them, and the real module takes 3 s to import (it brings SciPy).
    """
    empty = SimpleNamespace(words=SimpleNamespace(words=_nothing))
    stand_ins = {"nltk": SimpleNamespace(download=_nothing, corpus=empty, pos_tag=_nothing), "nltk.corpus": empty}
    real = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name, module in real.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _tame(module: ModuleType) -> None:
    """Replace what a module of TextArena knows of the process. A module looks up a name among its globals before the builtins."""
    names = vars(module)
    for name, real, stand_in in (("random", random, RANDOM), ("np", np, NUMPY), ("numpy", np, NUMPY)):
        if names.get(name) is real:
            names[name] = stand_in
    if "nltk" in names:
        names.update({name: stand_in for name, stand_in in NLTK_NAMES.items() if name in names})
    if module.__name__.startswith("textarena.envs."):
        names["print"] = _nothing
        if module.__name__.endswith(".env") and "EnglishDictionary" in names:
            names["EnglishDictionary"] = Dictionary
    if module.__name__ in REPAIRS:
        REPAIRS[module.__name__](names)


def _nothing(*values: object, **options: object) -> list[Any]:
    """Stand in for ``print``, and for what is asked of NLTK by the imports."""
    return []
