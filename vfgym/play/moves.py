"""What a player can type in a position: the moves as the rules list them, what a line that is none of them is told, and the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vfgym.codecs.problems import HOW_TO_ANSWER
from vfgym.messages import Content, Message
from vfgym.wrappers.games.turns import GameTurnsEnv

if TYPE_CHECKING:
    from vfgym.play.game import Game

_MOST_NAMED = 6
"""Moves that a refusal names one by one; of more it gives an example."""

_LONGEST_QUOTE = 40
"""Characters of a line that a refusal repeats."""


def list_moves(game: Game) -> list[str]:
    """Return the moves that can be made now, as the rules list them; empty where neither they nor the environment list moves."""
    definition = game.definition
    listed = definition.listed_moves(game.state) if isinstance(definition, GameTurnsEnv) else []
    return listed or game.legal_actions


def describe_moves(game: Game) -> str:
    """Return what can be typed now, in the words of the rules; empty where only the rules themselves say it."""
    definition = game.definition
    return definition.describe_moves(game.state) if isinstance(definition, GameTurnsEnv) else "any text is an answer here"


def rules_of(game: Game) -> Content | None:
    """Return the rules, for whoever is to move; None where the environment does not know which part of its prompt they are."""
    definition = game.definition
    return definition.rules_of(game.state) if isinstance(definition, GameTurnsEnv) else None


def explain_refusal(game: Game, typed: str | None, message: str) -> str | None:
    """Return what a player is told of a line that is not a move: what to type instead.

    Args:
        game: The game, where the line was refused.
        typed: The line; None for a call of a tool.
        message: What the environment says of it, for a model to read.

    Returns:
        The text; None where nobody knows the moves, so that the environment's own words are the best ones.
    """
    moves = list_moves(game)
    if typed is None or (moves and _is_among(typed, moves)):
        return None
    if moves:
        return f"{_quote(typed)} is not a move. {_what_to_type(moves)}"
    described = describe_moves(game)
    if described and HOW_TO_ANSWER in message:
        return f"{_quote(typed)} is not a move. Type {described}; /rules shows the rules."
    return None


def without_rules(message: Message, rules: Content | None) -> Message:
    """Return a message without the rules that it begins with; as it is where it begins with something else, or holds nothing else."""
    content = message["content"]
    rest: Content | None = None
    if isinstance(content, str) and isinstance(rules, str):
        rest = content.removeprefix(rules).lstrip("\n")
    elif content and rules and not isinstance(content, str):
        parts = [{"type": "text", "text": rules}] if isinstance(rules, str) else list(rules)
        rest = list(content[len(parts) :]) if list(content[: len(parts)]) == parts else None
    return message.of_fields({**message, "content": rest}) if rest else message


def _is_among(typed: str, moves: Sequence[str]) -> bool:
    return typed.strip().casefold() in {move.casefold() for move in moves}


def _what_to_type(moves: Sequence[str]) -> str:
    if len(moves) == 1:
        return f"Type {moves[0]}, the only one that there is."
    if len(moves) <= _MOST_NAMED:
        return f"Type {', '.join(moves[:-1])} or {moves[-1]}, or /moves to see them again."
    return f"Type one of {len(moves)} moves, such as {moves[0]}; /moves lists them."


def _quote(typed: str) -> str:
    text = " ".join(typed.split())
    return f'"{text}"' if len(text) <= _LONGEST_QUOTE else f'"{text[: _LONGEST_QUOTE - 3]}..."'
