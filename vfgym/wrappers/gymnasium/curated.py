"""What a player of Gymnasium's own games is told: texts from ``vfgym/data/gymnasium_prompts.json``, as they hold for one game.

Of other packages' games that do not say how they are meant, ``vfgym/data/other_prompts.json`` does, in the same form.

A file has an entry for each class of games, under ``module:class`` without the version that stands in some names of modules. Every
field of an entry is a list of texts. An item may also be an object, whose ``texts`` are told

* ``when`` all of some settings have these values (or one of a list of values), ``unless`` they do;
* for ``each`` of some words, which takes the place of ``{each}`` in the texts.

``{name}`` in a text is the value of a setting, ``{game.name}`` that of a part of the game. What a game does not say about its settings is
not known; then what depends on them is not told.
"""

from __future__ import annotations

import inspect
import operator
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.data import GamePrompt, OtherPrompt, PromptText, gymnasium_prompts, other_prompts
from vfgym.wrappers.gymnasium.unwrapping import innermost

_VERSION = re.compile(r"_v(\d+)$")


def curated_prompt(cls: type) -> GamePrompt | None:
    """Return what is written about a class of games; None if nothing is."""
    key = f"{_VERSION.sub('', cls.__module__)}:{cls.__qualname__}"
    return gymnasium_prompts()["games"].get(key)


def other_prompts_of(cls: type) -> Iterator[OtherPrompt]:
    """Yield what is written about a class of another package's games and those that it refines, what goes before the rest last."""
    games = other_prompts()
    for base in reversed(cls.__mro__):
        key = f"{base.__module__}:{base.__qualname__}"
        if key in games:
            yield games[key]


def other_title(cls: type) -> str | None:
    """Return what a class of another package's games is called, where its name does not say; None where it does."""
    return next((prompt["title"] for prompt in other_prompts_of(cls) if "title" in prompt), None)


class Settings:
    """What is known of the settings that a game was made with.

    An attribute of the game goes before an argument of its spec, and that before the default of its constructor.
    """

    def __init__(self, env: gym.Env[Any, Any], otherwise: Mapping[str, Any]) -> None:
        """Look at a game; `otherwise` has the settings that some versions of it do not have."""
        self._game, spec = innermost(env), env.spec
        version = _VERSION.search(type(self._game).__module__)
        self._known: dict[str, Any] = {**otherwise}
        if spec is not None:
            # Without a spec nobody knows which arguments there were.
            self._known |= {**_defaults(type(self._game)), "max_episode_steps": spec.max_episode_steps, **spec.kwargs}
        if version:
            self._known["version"] = int(version[1])

    def __getitem__(self, name: str) -> Any:
        if "." in name:  # of a part of the game
            return operator.attrgetter(name)(self._game)
        for attribute in (name, f"_{name}"):
            if hasattr(self._game, attribute):
                return getattr(self._game, attribute)
        return self._known[name]

    def have(self, values: Mapping[str, Any]) -> bool:
        """Say whether all of some settings are known to have these values, or one of several."""
        return all(self._has(name, value if isinstance(value, list) else [value]) for name, value in values.items())

    def _has(self, name: str, values: Sequence[Any]) -> bool:
        try:
            return self[name] in values
        except (AttributeError, KeyError):
            return False


def _defaults(cls: Callable[..., Any]) -> Mapping[str, Any]:
    parameters = inspect.signature(cls).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty}


class _Writer(string.Formatter):
    """Puts values of settings into texts."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a word that is given, or a setting that has a value."""
        value = kwargs[str(key)] if key in kwargs else args[0][key]
        if value is None:
            raise KeyError(key)
        return value

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Return numbers without digits that say nothing, and a map of letters row by row."""
        if isinstance(value, np.ndarray):
            return "\n".join(b"".join(row).decode() for row in value.tolist())
        return super().format_field(value, "g" if isinstance(value, float) and not format_spec else format_spec)


_WRITER = _Writer()


def write(texts: Sequence[str | PromptText], settings: Settings) -> list[str]:
    """Return the texts that hold for a game."""
    return [written for text, words in _chosen(texts, settings) if (written := _filled(text, settings, words)) is not None]


def _chosen(texts: Sequence[str | PromptText], settings: Settings) -> Iterator[tuple[str, dict[str, str]]]:
    for item in texts:
        if isinstance(item, str):
            yield item, {}
        elif settings.have(item.get("when", {})) and not ("unless" in item and settings.have(item["unless"])):
            for word in item.get("each", [""]):
                yield from ((text, {"each": word}) for text in item["texts"])


def _filled(text: str, settings: Settings, words: Mapping[str, str]) -> str | None:
    try:
        return _WRITER.vformat(text, [settings], words)
    except (AttributeError, KeyError):
        return None  # a setting that is not known
