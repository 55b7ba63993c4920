"""The rules of a PettingZoo environment, as its documentation tells them.

PettingZoo's own games document themselves in the docstring of their module: a title, a figure, a table of facts, the rules, and then
sections under headings (observation space, action space, rewards, version history), and so do those of packages that are written like it
(MPE2). Other environments have a docstring of their class.
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from vfgym.wrappers.gymnasium.docstrings import numbered_elements
from vfgym.wrappers.gymnasium.names import declared_action_names
from vfgym.wrappers.pettingzoo.openspiel import is_openspiel, openspiel_prompt, read_openspiel_rules

_TITLE = re.compile(r"\A\s*#\s+(.+)$", re.MULTILINE)
_LINE_BREAK = re.compile(r"(?<=[^\n|])\n(?=[^\n|*-])")
"""A line break inside a paragraph."""
_HEADING = re.compile(r"^#{2,3}\s+(.+?)\s*$", re.MULTILINE)
_SUBHEADING = re.compile(r"^#{4,}\s+", re.MULTILINE)
_NOISE = re.compile(
    r"\A\s*#\s.*$"
    r"|^```[\s\S]*?^```"
    r"|^This environment is part of the .*$"
    r"|^\|\s*(?:Creation|Import|Actions)\s*\|[\s\S]*?(?:\n\n|\Z)"  # the table of facts
    r"|^Our implementation (?:wraps|is a wrapper)\b.*$"
    r"|^If an illegal action is taken\b.*$",  # it is not played here
    re.MULTILINE,
)


def read_title(game: Any) -> str:
    """Return what an unwrapped environment calls itself: the title of its documentation, else its name."""
    if is_openspiel(game):
        return str(game.game_type.long_name)
    title = _TITLE.search(_documentation(game))
    name: str = getattr(game, "metadata", {}).get("name") or type(game).__name__
    return name if title is None else title[1].strip()


@dataclass(frozen=True)
class Rules:
    """What is known of an environment, for its players."""

    text: str = ""
    """The rules, and what is rewarded."""
    actions: str = ""
    """What is said of the actions."""
    observations: str = ""
    """What is said of the observations."""
    roles: tuple[str, ...] = ()
    """What the players play, in order."""

    @property
    def all(self) -> str:
        """All that is known, for who sees observations as they are."""
        titled = (("", self.text), ("Actions:\n", self.actions), ("Observations:\n", self.observations))
        return "\n\n".join(title + text for title, text in titled if text)

    def names_of(self, game: Any, space: gym.Space[Any]) -> tuple[str, ...]:
        """Return what an unwrapped environment calls the actions of a space; empty where it does not say."""
        if not isinstance(space, gym.spaces.Discrete):
            return ()
        listed = [numbered_elements(self.actions), *map(_listed, _LISTED_ACTIONS.findall(self.text))]
        return declared_action_names(game, space) or next((names for names in listed if len({*names}) == len(names) == space.n), ())


_LISTED_ACTIONS = re.compile(r"\baction space: *`\[([^\]`]*)\]`", re.IGNORECASE)
"""Names of actions in a sentence, as MPE2 has them."""


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(","))


_MOST_CHARACTERS = 3000
"""The longest sections about actions and observations; what goes beyond is cut at a paragraph."""


def read_rules(game: Any) -> Rules:
    """Return the rules of an unwrapped environment, and what it says of actions and observations; empty where nothing is documented."""
    if is_openspiel(game):
        prompt = openspiel_prompt(game)
        return Rules(read_openspiel_rules(game), roles=() if prompt is None else tuple(prompt.get("roles", ())))
    introduction, *rest = _HEADING.split(_documentation(game))
    sections = {title.casefold(): text for title, text in zip(rest[::2], rest[1::2], strict=True)}
    rewards = _clean(sections.get("rewards", ""))
    parts = [_clean(introduction), f"Rewards:\n{rewards}" if rewards else ""]
    actions, observations = (
        _clean("\n\n".join(sections.get(title, "") for title in titles))
        for titles in (("action space", "actions"), ("observation space", "observations"))
    )
    return Rules("\n\n".join(part for part in parts if part), _cut(actions), _cut(observations))


def _cut(text: str) -> str:
    while len(text) > _MOST_CHARACTERS:
        text = text.rpartition("\n\n")[0] or text[:_MOST_CHARACTERS]
    return text


def _clean(text: str) -> str:
    text = re.sub(r"\n{3,}", "\n\n", _SUBHEADING.sub("", _NOISE.sub("", text))).strip()
    return _LINE_BREAK.sub(" ", text)


def _documentation(game: Any) -> str:
    cls = type(game)
    module = sys.modules[cls.__module__].__doc__ or ""
    # A module documents its one environment in PettingZoo itself, and where its text has a title and the class none.
    is_module = cls.__module__.startswith("pettingzoo.") or (not cls.__doc__ and _TITLE.search(inspect.cleandoc(module)))
    return inspect.cleandoc((module if is_module else cls.__doc__) or "")
