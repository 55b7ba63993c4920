"""The rules of a PettingZoo environment, as its documentation tells them.

PettingZoo's own games document themselves in the docstring of their module: a title, a figure, a table of facts, the rules, and then
sections under headings (observation space, action space, rewards, version history). Other environments have a docstring of their class.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from vfgym.wrappers.pettingzoo.openspiel import is_openspiel, read_rewards

_TITLE = re.compile(r"\A\s*#\s+(.+)$", re.MULTILINE)
_LINE_BREAK = re.compile(r"(?<=[^\n|])\n(?=[^\n|*-])")
"""A line break inside a paragraph."""
_HEADING = re.compile(r"^#{2,}\s+(.+?)\s*$", re.MULTILINE)
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


def read_rules(game: Any) -> str:
    """Return the rules of an unwrapped environment and what it rewards; empty where nothing is documented."""
    if is_openspiel(game):
        return read_rewards(game)
    introduction, *rest = _HEADING.split(_documentation(game))
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    rewards = _clean(sections.get("Rewards", ""))
    parts = [_clean(introduction), f"Rewards:\n{rewards}" if rewards else ""]
    return "\n\n".join(part for part in parts if part)


def _clean(text: str) -> str:
    text = re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", text)).strip()
    return _LINE_BREAK.sub(" ", text)


def _documentation(game: Any) -> str:
    cls = type(game)
    # Only in PettingZoo itself does a module document its one environment.
    found = sys.modules[cls.__module__].__doc__ if cls.__module__.startswith("pettingzoo.") else cls.__doc__
    return inspect.cleandoc(found or "")
