"""What holds for the moves of every game: the game takes them, and whoever looks for them changes nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from tests.wrappers.textarena.playing import begun, playable, say
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena import TextArenaGame, textarena_games
from vfgym.wrappers.textarena.moves import MOST_LISTED, NO_MOVE, legal_moves, sample_move

REFUSES_GUESSES = {"Crosswords", "Minesweeper", "Sudoku"}
"""Games that count a wrong guess at what is hidden as an invalid move."""

ENDLESS = {"RushHour"}
"""Games that random play may not decide within some thousand moves."""


def is_taken(table: TextArenaGame, move: str) -> bool:
    """Make a move. Return whether the game takes it."""
    return table.move(AssistantMessage(move)).is_valid


def positions(env_id: str, number: int) -> Iterator[TextArenaGame]:
    """Yield the table of a random game before each of its first moves."""
    table, rng = begun(env_id), np.random.default_rng(0)
    for _ in range(number):
        if table.turn is None:
            return
        yield table
        table.move(AssistantMessage(sample_move(table.raw, int(table.turn), rng)))


def moves_of_games(*known: Mapping[str, Any], number: Mapping[str, int] | None = None) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the tests of all these games that can be played here: that they take moves, and that random games end.

    Args:
        *known: The games, by name.
        number: In how many positions of a game moves are tried, where it is slow: else in ten of forty.
    """
    games = textarena_games()
    first = {games[env_id]["game"]: env_id for env_id in reversed(playable("raw"))}
    ids = sorted(env_id for game, env_id in first.items() if any(game in of_kind for of_kind in known))
    of_ids = pytest.mark.parametrize("env_id", ids)

    @of_ids
    def test_the_game_takes_what_is_listed_and_drawn(env_id: str) -> None:
        _check_moves(env_id, (number or {}).get(games[env_id]["game"], 40))

    @pytest.mark.exhaustive
    @of_ids
    def test_random_games_end(env_id: str) -> None:
        """Play whole random games: they end, and take what is played."""
        for seed in range(3):
            table, rng, refused = begun(env_id, seed, max_moves=3000), np.random.default_rng(seed), set()
            while table.turn is not None:
                move = sample_move(table.raw, int(table.turn), rng)
                if not is_taken(table, move):
                    refused.add(move)
            assert refused <= {NO_MOVE} or games[env_id]["game"] in REFUSES_GUESSES
            assert not table.was_truncated or games[env_id]["game"] in ENDLESS

    return test_the_game_takes_what_is_listed_and_drawn, test_random_games_end


def _check_moves(env_id: str, number: int) -> None:
    """Try moves in every fourth of the first positions of a random game."""
    rng, game = np.random.default_rng(0), textarena_games()[env_id]["game"]
    for place, table in enumerate(positions(env_id, number)):
        if place % 4:
            continue
        player, as_it_was = int(table.turn or 0), pickle.dumps(table)
        moves = legal_moves(table.raw, player)
        sampled, again = (sample_move(table.raw, player, np.random.default_rng(place)) for _ in range(2))
        assert sampled == again, "the same generator gives the same move"
        assert pickle.dumps(table) == as_it_was, "looking changes nothing"
        if moves is None:
            tried = [] if game in REFUSES_GUESSES else [sampled]
        else:
            assert len(set(moves)) == len(moves) <= MOST_LISTED
            assert sampled in (moves or [NO_MOVE])
            tried = [str(move) for move in rng.permutation(np.array(moves, dtype=object))[:3]]
            listed = moves.copy()
            moves.clear()
            assert legal_moves(table.raw, player) == listed, "a list is its asker's own"
        for move in tried:
            assert is_taken(copy.deepcopy(table), move), move


def listed(env_id: str, *made: str) -> set[str]:
    """Return the legal moves after some moves."""
    table = begun(env_id)
    for move in made:
        say(table, move)
    return set(legal_moves(table.raw, int(table.turn or 0)) or [])
