"""What vfgym knows of the packages behind its registered ids without importing them.

``scripts/generate_registry.py`` writes the JSON files beside this module. Written by hand are ``reward_bounds.json``, which says why each
number holds, ``gymnasium_prompts.json``, ``other_prompts.json`` and ``openspiel.json``, what players of games are told, and
``answer_words.json``, the words that the reader of answers sets aside.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple, Required, TypedDict, cast


class ReasoningGymDataset(TypedDict):
    """A dataset of reasoning-gym."""

    name: str
    category: str
    oracle: str | None
    """Where an entry holds an answer that scores 1.0: ``"answer"``, ``"metadata:<key>"``, or None where it holds none."""
    oracle_is_json: bool
    """Whether that value must be JSON-encoded to be an answer."""


class GymnasiumEnvironment(TypedDict):
    """An environment of Gymnasium."""

    id: str
    group: str
    """``"toy_text"``, ``"classic_control"``, ``"box2d"`` or ``"mujoco"``."""
    action_space: str
    observation_space: str


class PromptText(TypedDict, total=False):
    """Texts of a prompt that hold for some settings of a game."""

    texts: Required[list[str]]
    when: dict[str, Any]
    """Settings, and the value that each has, or a list of values: the texts are told where all hold."""
    unless: dict[str, Any]
    """The same: the texts are not told where all hold."""
    each: list[str]
    """Words that take the place of ``{each}`` in the texts, one after the other."""


class GamePrompt(TypedDict, total=False):
    """What a player of a game is told. Each list is in the order in which it is told; labels are in that of the numbers."""

    settings: dict[str, Any]
    """What some versions of the game do not let one set."""
    rules: Required[list[str | PromptText]]
    rewards: Required[list[str | PromptText]]
    episode_end: list[str | PromptText]
    """Without the limit of steps, which is that of the game as it was made."""
    observations: list[str | PromptText]
    """What is to be said to a player who sees numbers."""
    map: list[str | PromptText]
    """What such a player does not see, whatever a wrapper makes of the numbers."""
    legend: list[str | PromptText]
    """What is to be said to a player who sees the game's drawing in text."""
    actions: list[str | PromptText]
    action_names: list[str | PromptText]
    """Of the actions of a `Discrete` space."""
    noop: str
    """The name of the action that does nothing."""
    action_labels: list[str | PromptText]
    """Of the numbers of an action."""
    observation_labels: list[str | PromptText]
    """Of the numbers of an observation, with their units."""


class OtherPrompt(TypedDict, total=False):
    """What a player is told of another package's game that this does not say itself; each list is in the order in which it is told."""

    title: str
    """What it is called, where the name of its class does not say."""
    rules: list[str | PromptText]
    """What goes before its docstring: rules, rewards and ends."""
    actions: list[str | PromptText]
    observations: list[str | PromptText]


class GymnasiumPrompts(TypedDict):
    """What players of Gymnasium's games are told."""

    version: int
    """Grows with every change of a text, so that results can say which one a model was given."""
    games: dict[str, GamePrompt]
    """By ``module:class`` of the game, without the version of the module."""


class PettingZooEnvironment(TypedDict):
    """A classic game of PettingZoo."""

    id: str
    """As PettingZoo calls it: ``"classic/chess_v6"``."""
    players: int


class RewardBounds(TypedDict, total=False):
    """The lowest and the highest reward that an episode of a game can have, for one player."""

    episode: float
    """The lowest."""
    move: float
    """What each move adds to the lowest."""
    highest: float
    """The highest; it is not known where neither this nor the next is there."""
    highest_move: float
    """What each move adds to the highest."""
    highest_with: dict[str, float]
    """The highest where an argument is given."""
    free: list[str]
    """Arguments of the game that leave all this as it is (``"*"``: all do). With any other nothing is known."""
    why: str


class OpenSpielPrompt(TypedDict, total=False):
    """What players of a game of OpenSpiel are told. What stands between backticks is a move, word for word."""

    rules: Required[str]
    """How it is played, with the arguments that it has by default."""
    observation: str
    """How to read what a player sees."""
    outcome: Literal["win", "draw"]
    """``"win"``: one of two players wins, and its reward is 1, the other one's -1. ``"draw"``: so it is, or both get 0."""
    goal: str
    """What is rewarded, where there is no such outcome."""
    returns: list[float]
    """All rewards that a player can have in the end, where they are few."""
    roles: list[str]
    """What the players play, in order."""


class TextArenaEnvironment(TypedDict):
    """An environment of TextArena."""

    id: str
    base: str
    """The id without what is added to it for a variant."""
    game: str
    """The game, of which several ids are played with different options: the name of its module."""
    variant: str
    """``"default"``, ``"raw"`` or ``"train"``: which of TextArena's wrappers are around the same game."""
    shows: str
    """What a player is told: ``"all"``, ``"messages"``, ``"messages and board"``, ``"board"``."""
    brackets: bool
    """Whether a move without brackets is put into some."""
    clips: bool
    """Whether only the last 1,000 characters of a move count."""
    players: tuple[int, int, int]
    """How many play by default, at least, and at most."""
    missing: str | None
    """What is needed that not everybody has: ``"Python 3.12"``, ``"OPENROUTER_API_KEY"``, or what the package itself lacks. Else None."""


@functools.cache
def reasoning_gym_datasets() -> dict[str, ReasoningGymDataset]:
    """Return the datasets of reasoning-gym by name."""
    datasets: list[ReasoningGymDataset] = _read("reasoning_gym")["datasets"]
    return {dataset["name"]: dataset for dataset in datasets}


@functools.cache
def gymnasium_environments() -> dict[str, GymnasiumEnvironment]:
    """Return those environments of Gymnasium that are registered as chat environments, by id."""
    environments: list[GymnasiumEnvironment] = _read("gymnasium")["environments"]
    return {environment["id"]: environment for environment in environments}


@functools.cache
def gymnasium_prompts() -> GymnasiumPrompts:
    """Return what players of Gymnasium's games are told."""
    return cast(GymnasiumPrompts, _read("gymnasium_prompts"))


@functools.cache
def other_prompts() -> dict[str, OtherPrompt]:
    """Return what players of other packages' games are told that these do not say themselves, by ``module:class``."""
    prompts: dict[str, OtherPrompt] = _read("other_prompts")["games"]
    return prompts


@functools.cache
def openspiel_prompts() -> dict[str, OpenSpielPrompt]:
    """Return what players of OpenSpiel's games are told, by OpenSpiel's short names."""
    prompts: dict[str, OpenSpielPrompt] = _read("openspiel")["games"]
    return prompts


@functools.cache
def pettingzoo_environments() -> dict[str, PettingZooEnvironment]:
    """Return the classic games of PettingZoo by id."""
    environments: list[PettingZooEnvironment] = _read("pettingzoo")["environments"]
    return {environment["id"]: environment for environment in environments}


@functools.cache
def textarena_environments() -> dict[str, TextArenaEnvironment]:
    """Return the environments of TextArena by id, in TextArena's order."""
    environments: dict[str, TextArenaEnvironment] = {}
    for described in _read("textarena")["environments"]:
        for suffix, wrappers in described["wrappers"].items():
            env_id = described["id"] + suffix
            environments[env_id] = {
                "id": env_id,
                "base": described["id"],
                "game": described["game"],
                "variant": suffix.removeprefix("-") or "default",
                "shows": wrappers["shows"],
                "brackets": "brackets" in wrappers["moves"],
                "clips": "clips" in wrappers["moves"],
                "players": tuple(described["players"]),
                "missing": described.get("missing"),
            }
    return environments


_TEXTARENA_BOUNDS: RewardBounds = {
    "episode": -1.0,
    "highest": 1.0,
    "free": ["*"],
    "why": "-1 for a loss, the last of a ranking and a second invalid move, 1 for a win; a game for one gives the share that was solved",
}
"""What holds for the games of TextArena that ``reward_bounds.json`` does not list, whatever their arguments are (textarena 0.7.4)."""


def reward_bounds(library: str, game: str, arguments: Collection[str] = ()) -> RewardBounds | None:
    """Return the lowest and the highest reward of a game; None where they are not known.

    Args:
        library: ``"gymnasium"``, ``"pettingzoo"`` or ``"textarena"``.
        game: What the library calls it; for TextArena the name of its module.
        arguments: Names of the arguments that it is made with otherwise than the library does.
    """
    known = _reward_bounds()[library].get(game, _TEXTARENA_BOUNDS if library == "textarena" else None)
    if known is None:
        return None
    free = known.get("free", [])
    if "*" not in free and not set(arguments) <= set(free):
        return None
    raised = [highest for argument, highest in known.get("highest_with", {}).items() if argument in arguments]
    return {**known, "highest": max(raised)} if raised else known


@functools.cache
def _reward_bounds() -> dict[str, dict[str, RewardBounds | None]]:
    return _read("reward_bounds")


class AnswerWords(NamedTuple):
    """Words by which answers are read (see `vfgym.codecs.reading`), in lower case, without apostrophes."""

    left_out: frozenset[str]
    """Articles, and words such as "go" and "my", which say nothing about which action an answer names."""
    left_out_in_marks: frozenset[str]
    """These, and more that say nothing where the action is marked, such as "position" and "please"."""
    units: frozenset[str]
    """What may stand after a number."""
    labels: frozenset[str]
    """Words of which one makes a label of the words before a colon: "action"."""
    beside_labels: frozenset[str]
    """What may stand beside them: "my", "final"."""
    reasons: tuple[str, ...]
    """What begins a reason behind an action, without any sign before it: "because"."""
    purposes: frozenset[str]
    """What begins one after a comma, a dash or a full stop: "to"."""
    negations: frozenset[str]
    """What says no, or that something is bad."""
    turns: frozenset[str]
    """What makes another thing of an action that was named: alternatives, conditions, doubts, changes."""
    corrections: tuple[str, ...]
    """What begins a correction of a mark: "wait"."""
    not_corrections: frozenset[str]
    """What stands between marks that are alternatives, or follow each other."""
    said_of_others: tuple[str, ...]
    """What stands before a mark that is an example, or of the past."""


@functools.cache
def answer_words() -> AnswerWords:
    """Return the words of ``answer_words.json``."""
    listed = _read("answer_words")
    left_out = frozenset(listed["articles"].split()) | frozenset(listed["words"].split())

    def of_all(kind: str, separator: str | None = None) -> list[str]:
        texts = (language.get(kind, "") for language in listed["languages"].values())
        return [word.strip().replace("_", " ") for text in texts for word in text.split(separator) if word.strip()]

    return AnswerWords(
        left_out,
        left_out | frozenset(listed["words_in_marks"].split()),
        frozenset(listed["units"]),
        frozenset(of_all("labels")),
        frozenset(of_all("beside_labels")),
        tuple(of_all("reasons")),
        frozenset(of_all("purposes")),
        frozenset(of_all("negations")),
        frozenset(of_all("turns")),
        tuple(of_all("corrections", ";")),
        frozenset(listed["not_corrections"].split()),
        tuple(listed["said_of_others"]),
    )


@functools.cache
def english_words() -> dict[str, frozenset[str]]:
    """Return common English words of 3 to 8 letters: the ``nouns``, and the ``others``."""
    text = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8")
    _, nouns, others = text.split("\n\n")
    return {"nouns": frozenset(nouns.split()), "others": frozenset(others.split())}


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    return content
