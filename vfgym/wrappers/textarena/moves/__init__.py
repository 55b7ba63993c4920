"""Random moves for TextArena's games, and the legal ones where they can be listed.

`sample_move` is the random opponent of the games, and its mean reward is the score of random play. So its moves are legal wherever
what the player may know tells which ones are; elsewhere they have the form that the game asks for. Both functions only look: nothing in the
game changes, its random numbers and what it has to tell the players included. Nothing hidden is used but to find out what is legal.

Each game is known by the name of its module (``textarena.envs.TicTacToe.env`` is ``"TicTacToe"``), and `boards`, `cards`, `puzzles`,
`choices` and `words` hold what is known about them. Written for textarena 0.7.4.
"""

from __future__ import annotations

import functools
import re

import numpy as np

from vfgym.wrappers.textarena.moves import boards, cards, choices, puzzles, words
from vfgym.wrappers.textarena.moves.parts import MOST_LISTED, Legal, Raw, Sampler, pick

__all__ = ["LEGAL", "MOST_LISTED", "NO_MOVE", "SAMPLED", "legal_moves", "sample_move"]

LEGAL: dict[str, Legal] = {**boards.LEGAL, **cards.LEGAL, **puzzles.LEGAL, **choices.LEGAL, **words.LEGAL}
"""What lists the legal moves of a game, for the games where they can be listed, at least at times."""

SAMPLED: dict[str, Sampler] = {**cards.SAMPLED, **puzzles.SAMPLED, **choices.SAMPLED, **words.SAMPLED}
"""What makes up a move of a game whose legal moves are not listed, or not always."""

NO_MOVE = "[pass]"
"""What is said where a game lets its player no move: some games do not notice that, and this loses them."""


def legal_moves(raw: Raw, player: int) -> list[str] | None:
    """Return the legal moves of the player whose turn it is, as texts that the game takes.

    Left out are other ways to write a listed move (``[w]`` for ``[up]``), moves that change nothing, and those that nobody means
    seriously: a bid of more dice than there are, in Tak a stack that turns corners, three times the same card for a set.

    Args:
        raw: A TextArena game without wrappers (``textarena.make("TicTacToe-v0-raw")``), after its ``reset``.
        player: The player whose turn it is, ``raw.state.current_player_id``.

    Returns:
        The moves, each once, in an order that depends on the state only. Empty if the game waits for a move where none is
        possible. None if they cannot be listed: where anything may be said, where there are too many (bids, codes; now more than
        `MOST_LISTED`), and where the game refuses moves for what the player cannot know (Crosswords, Minesweeper, Sudoku).
    """
    lister = LEGAL.get(_name_of(raw.__class__))
    if lister is None:
        return None
    moves = lister(raw, player)
    return moves if moves is None or len(moves) <= MOST_LISTED else None


def sample_move(raw: Raw, player: int, rng: np.random.Generator, seen: str = "") -> str:
    """Return a random move for the player whose turn it is.

    That is one of the legal moves, each with the same probability, where they are known, however many. Elsewhere it is a move of the
    form that the game asks for: bets in the means of the player, votes for those who live, an answer to an offer only while one is
    open, a remark where people talk. For a game that is not known here (of a later version of textarena) it is something in brackets
    that the player was shown, and ``"[0]"`` if there is nothing of that kind.

    Args:
        raw: A TextArena game without wrappers, after its ``reset``.
        player: The player whose turn it is.
        rng: Where the choice comes from; the same state and generator give the same move.
        seen: What the player was shown, used for unknown games only; what the game has yet to tell it is known anyway.
    """
    game = _name_of(raw.__class__)
    lister = LEGAL.get(game)
    moves = None if lister is None else lister(raw, player)
    if moves is not None:
        return pick(rng, moves) if moves else NO_MOVE
    sampler = SAMPLED.get(game)
    return _has_rendered(raw, player, rng, seen) if sampler is None else sampler(raw, player, rng)


@functools.cache
def _name_of(game: type) -> str:
    """Return the name of the module of a game's class; empty for one from elsewhere."""
    parts = game.__module__.split(".")
    return parts[2] if parts[:2] == ["textarena", "envs"] and len(parts) > 2 else ""


def _has_rendered(raw: Raw, player: int, rng: np.random.Generator, seen: str) -> str:
    """Return something in brackets from what the player was or will be shown."""
    messages = [seen, *(str(message) for _, message, _ in raw.state.observations[player])]
    shown: list[str] = re.findall(r"\[[^\[\]\n]{1,40}\]", "\n".join(messages))
    return pick(rng, shown or ["[0]"])
