"""What a Gymnasium environment's docstring says for a model: its rules, its actions' names, its observations' labels.

Gymnasium's own environments document themselves under fixed headings (``## Description``, ``## Action Space``, ...).
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

import gymnasium as gym

_LISTED = re.compile(r"^\s*[-*]\s*(\d+):\s*(.+?)\s*$", re.MULTILINE)
_TABULATED = re.compile(r"^\s*\|\s*(\d+)\s*\|\s*([^|]+?)\s*\|", re.MULTILINE)
_NOISE = re.compile(
    r"```[\s\S]*?```"  # code and citations
    r"|^.*(?:Adapted from|First appeared in|This MDP first|From \"|With inspiration from|Pixel art assets|As seen in the).*(?:\n.+)*"
    r"|</?a\b[^>]*>"
    r"|\s*\((?:when )?using the time_limit wrapper\)"
    r"|^\s*See `\w+` for .* Argument section\.?|\s*\(see [^()]*Argument section\)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Description:
    """What could be read from a docstring; what could not is empty."""

    rules: str
    action_names: tuple[str, ...]
    observation_labels: tuple[str, ...]


def describe(env: gym.Env[object, object]) -> Description:
    """Read the docstring of an environment's class."""
    sections = _sections(inspect.getdoc(type(env.unwrapped)) or "")
    rules = "\n\n".join(
        _NOISE.sub("", sections[heading]).strip()
        for heading in ("", "description", "rewards", "reward", "episode end")
        if heading in sections
    )
    return Description(
        rules=re.sub(r"\n{3,}", "\n\n", rules).strip(),
        action_names=_without_common_start(_numbered(sections.get("action space", ""))),
        observation_labels=_numbered(sections.get("observation space", "")) or _starting_labels(sections),
    )


def _sections(text: str) -> dict[str, str]:
    """Split by headings; what stands before the first one has the heading ``""``."""
    parts = re.split(r"^\s*#+\s*(.+?):?\s*$", text, flags=re.MULTILINE)
    return {"": parts[0].strip(), **{heading.casefold(): body.strip("\n") for heading, body in zip(parts[1::2], parts[2::2], strict=True)}}


def _numbered(section: str) -> tuple[str, ...]:
    """Return the texts numbered 0, 1, 2, ... in a list or a table; empty if they are not."""
    for pattern in (_TABULATED, _LISTED):
        found = pattern.findall(section)
        if found and [int(number) for number, _ in found] == list(range(len(found))):
            return tuple(text.replace("`", "") for _, text in found)
    return ()


def _without_common_start(names: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the words that all names begin with ("Move left", "Move right"), where words remain of each."""
    words = [name.split() for name in names]
    common = next((place for place, at_once in enumerate(zip(*words, strict=False)) if len(set(at_once)) > 1), 0)
    short = tuple(" ".join(each[common:]) for each in words)
    return short if all(name[:1].isalpha() for name in short) else names


def _starting_labels(sections: dict[str, str]) -> tuple[str, ...]:
    """Return the first column of the table that lists what a starting state is made of, as Blackjack has it."""
    rows = re.findall(r"^\s*\|\s*([^|]+?)\s*\|", sections.get("starting state", ""), re.MULTILINE)
    return tuple(row for row in rows[1:] if not set(row) <= set("-: "))
