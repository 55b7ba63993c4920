"""Random and legal moves of TextArena's games: the games take them, random games end, and looking changes nothing."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import SEED
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena.catalogue import textarena_games, why_not
from vfgym.wrappers.textarena.match import TextArenaGame
from vfgym.wrappers.textarena.moves import LEGAL, MOST_LISTED, NO_MOVE, SAMPLED, legal_moves, sample_move

pytest.importorskip("textarena", reason="needs the extra textarena")

SLOW = {"Sokoban", "SpellingBee", "Stratego", "WordChains", "WordLadder", "WordSearch", "Wordle"}
"""Games that take seconds; played with the whole family only."""

REFUSES_GUESSES = {"Crosswords", "Minesweeper", "Sudoku"}
"""Games that count a wrong guess at what is hidden as an invalid move."""

ENDLESS = {"RushHour"}
"""Games that random play may not decide within some thousand moves."""


def _one_id_a_game() -> list[str]:
    """Return the first id of each game that can be played here."""
    games = textarena_games()
    playable = [env_id for env_id, described in games.items() if described["variant"] == "raw" and why_not(env_id) is None]
    return sorted({games[env_id]["game"]: env_id for env_id in reversed(playable)}.values())


IDS = _one_id_a_game()
DRAWN = random.Random(SEED).sample([id for id in IDS if textarena_games()[id]["game"] not in SLOW], 8)


def in_turn() -> pytest.MarkDecorator:
    """Return the parameters of a test: a few games, drawn with the seed of the run, and all of them with the whole family."""
    others = [pytest.param(env_id, marks=pytest.mark.exhaustive) for env_id in IDS if env_id not in DRAWN]
    return pytest.mark.parametrize("env_id", [*DRAWN, *others])


def game_of(env_id: str) -> str:
    """Return the name of the game that an id stands for."""
    return textarena_games()[env_id]["game"]


def table(env_id: str, seed: int = 0, max_moves: int = 3000) -> TextArenaGame:
    """Return a table at which a game begins."""
    game = TextArenaGame(env_id, max_moves=max_moves)
    game.reset(seed)
    return game


def is_taken(game: TextArenaGame, move: str) -> bool:
    """Make a move. Return whether the game takes it."""
    return game.move(AssistantMessage(move)).is_valid


def positions(env_id: str, number: int) -> Iterator[TextArenaGame]:
    """Yield the table of a random game before each of its first moves."""
    game, rng = table(env_id), np.random.default_rng(0)
    for _ in range(number):
        if game.turn is None:
            return
        yield game
        game.move(AssistantMessage(sample_move(game.raw, int(game.turn), rng)))


# All games


def test_every_game_that_can_be_played_is_known() -> None:
    games = {described["game"] for env_id, described in textarena_games().items() if why_not(env_id) is None}
    assert games <= LEGAL.keys() | SAMPLED.keys()


@in_turn()
def test_random_games_end_and_their_moves_are_taken(env_id: str) -> None:
    for seed in range(3):
        game, rng, refused = table(env_id, seed), np.random.default_rng(seed), set()
        while game.turn is not None:
            move = sample_move(game.raw, int(game.turn), rng)
            if not is_taken(game, move):
                refused.add(move)
        assert refused <= {NO_MOVE} or game_of(env_id) in REFUSES_GUESSES
        assert not game.was_truncated or game_of(env_id) in ENDLESS


@in_turn()
def test_the_game_takes_every_legal_move(env_id: str) -> None:
    rng = np.random.default_rng(0)
    for game in positions(env_id, 30):
        moves = legal_moves(game.raw, int(game.turn or 0)) or []
        assert len(set(moves)) == len(moves) <= MOST_LISTED
        for move in rng.permutation(np.array(moves, dtype=object))[:6]:
            assert is_taken(copy.deepcopy(game), move), move


@in_turn()
def test_a_list_of_moves_is_its_askers_own(env_id: str) -> None:
    for game in positions(env_id, 3):
        moves = legal_moves(game.raw, int(game.turn or 0))
        if moves:
            as_they_were = [*moves]
            moves.clear()
            assert legal_moves(game.raw, int(game.turn or 0)) == as_they_were


@in_turn()
def test_looking_changes_nothing(env_id: str) -> None:
    before = random.getstate(), pickle.dumps(np.random.get_state())
    for game in positions(env_id, 15):
        as_it_was = pickle.dumps(game)
        legal_moves(game.raw, int(game.turn or 0))
        sample_move(game.raw, int(game.turn or 0), np.random.default_rng(0))
        assert pickle.dumps(game) == as_it_was
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before


@in_turn()
def test_the_same_generator_gives_the_same_moves(env_id: str) -> None:
    first, second = (
        [sample_move(game.raw, int(game.turn or 0), np.random.default_rng(turn)) for turn, game in enumerate(positions(env_id, 20))]
        for _ in range(2)
    )
    assert first == second


@in_turn()
def test_samples_are_legal_moves(env_id: str) -> None:
    for game in positions(env_id, 15):
        player = int(game.turn or 0)
        moves = legal_moves(game.raw, player)
        if moves:
            assert sample_move(game.raw, player, np.random.default_rng(1)) in moves


# Choosing


def test_each_legal_move_is_as_likely() -> None:
    raw, rng = table("TicTacToe-v0").raw, np.random.default_rng(0)
    drawn = [sample_move(raw, 0, rng) for _ in range(900)]
    assert all(70 <= drawn.count(f"[{cell}]") <= 130 for cell in range(9))


def test_where_no_move_is_possible_there_is_one_that_says_so() -> None:
    raw = table("TowerOfHanoi-v0").raw
    raw.state.game_state["towers"] = {"A": [], "B": [], "C": []}
    assert legal_moves(raw, 0) == []
    assert sample_move(raw, 0, np.random.default_rng(0)) == NO_MOVE


class Later:
    """A game of a later version of textarena."""

    class state:  # noqa: N801 - as games have it
        """What a player has yet to be told."""

        observations = {0: [(-1, "Say [left] or [right].", None)], 1: []}


Later.__module__ = "textarena.envs.Later.env"


def test_in_a_game_that_is_not_known_something_shown_is_said() -> None:
    rng = np.random.default_rng(0)
    assert legal_moves(Later(), 0) is None
    assert {sample_move(Later(), 0, rng) for _ in range(20)} == {"[left]", "[right]"}
    assert sample_move(Later(), 1, rng) == "[0]"
    assert sample_move(Later(), 1, rng, seen="Now [jump]!") == "[jump]"


@pytest.mark.parametrize("env_id", ["Crosswords-v0", "Minesweeper-v0", "Sudoku-v0-very-easy", "Mastermind-v0", "Poker-v0", "DontSayIt-v0"])
def test_moves_that_cannot_be_listed_are_not(env_id: str) -> None:
    assert legal_moves(table(env_id).raw, 0) is None


@pytest.mark.parametrize("env_id", ["Wordle-v0", "SpellingBee-v0-large", "WordChains-v0", "MemoryGame-v0-hard"])
def test_where_there_are_very_many_moves_they_are_drawn_from_but_not_listed(env_id: str) -> None:
    unlisted = [game for game in positions(env_id, 3) if legal_moves(game.raw, int(game.turn or 0)) is None]
    drawn = {sample_move(unlisted[0].raw, int(unlisted[0].turn or 0), np.random.default_rng(seed)) for seed in range(20)}
    assert len(drawn) > 15
    assert all(is_taken(copy.deepcopy(unlisted[0]), move) for move in drawn)


# What is listed


@pytest.mark.parametrize(
    ("env_id", "moves"),
    [
        ("ConnectFour-v0", {f"[col {col}]" for col in range(7)}),
        ("FrozenLake-v0", {"[down]", "[right]"}),
        ("Nim-v0", {f"[{pile} {number}]" for pile, size in enumerate((3, 4, 5)) for number in range(1, size + 1)}),
        ("Othello-v0", {"[2, 3]", "[3, 2]", "[4, 5]", "[5, 4]"}),
        ("PegJump-v0", {"[12 5]", "[14 5]"}),
        ("TowerOfHanoi-v0", {"[A B]", "[A C]"}),
        ("Chopsticks-v0", {"[attack 0 0]", "[attack 0 1]", "[attack 1 0]", "[attack 1 1]", "[split 0 2]", "[split 2 0]"}),
        ("KuhnPoker-v0", {"[check]", "[bet]"}),
        ("IteratedMatchingPennies-v0", {"[heads]", "[tails]"}),
    ],
)
def test_what_is_legal_at_the_beginning(env_id: str, moves: set[str]) -> None:
    game = table(env_id)
    assert set(legal_moves(game.raw, int(game.turn or 0)) or []) == moves


@given(st.lists(st.lists(st.sampled_from([0, 2, 2, 4, 8]), min_size=3, max_size=3), min_size=3, max_size=3))
def test_directions_of_2048_are_those_that_move_tiles(board: list[list[int]]) -> None:
    raw = TextArenaGame("2048-v0-3x3").raw
    raw.reset(num_players=1)
    raw.state.game_state["board"] = board
    moving = []
    for index, name in enumerate(("[Up]", "[Down]", "[Left]", "[Right]")):
        raw.state.game_state["board"] = copy.deepcopy(board)
        moved, _ = raw._apply_move(index)
        moving += [name] * moved
    raw.state.game_state["board"] = board
    assert legal_moves(raw, 0) == moving


def test_a_stack_of_tak_leaves_pieces_along_a_line() -> None:
    raw = table("Tak-v0").raw
    raw.board[0][0] = ["F1", "F0"]
    moves = set(legal_moves(raw, 0) or [])
    assert {move for move in moves if move.startswith("[move")} == {
        "[move (0,0) {(1,0): [F0]}]",
        "[move (0,0) {(0,1): [F0]}]",
        "[move (0,0) {(1,0): [F1, F0]}]",
        "[move (0,0) {(0,1): [F1, F0]}]",
        "[move (0,0) {(1,0): [F1], (2,0): [F0]}]",
        "[move (0,0) {(0,1): [F1], (0,2): [F0]}]",
    }
    assert {"[place () {(1,0): [W0]}]", "[place () {(1,0): [F0]}]"} <= moves
    assert not any("(0,0): " in move for move in moves if move.startswith("[place"))


def test_a_bid_of_liars_dice_never_asks_for_more_dice_than_there_are() -> None:
    game = table("LiarsDice-v0-small")
    game.move(AssistantMessage("[Bid: 5, 6]"))
    assert legal_moves(game.raw, 1) == ["[Call]", "[Bid: 6, 6]"]


def test_an_offer_is_answered_only_while_it_is_open() -> None:
    game, rng = table("NewRecruit-v0"), np.random.default_rng(0)
    assert {sample_move(game.raw, 0, rng).split()[0] for _ in range(50)} == {"[Propose]"}
    game.move(AssistantMessage("[Propose] AAAAAAAA"))
    assert {sample_move(game.raw, 1, rng).split()[0] for _ in range(50)} == {"[Propose]", "[Accept]", "[Reject]"}


# What is not known


@pytest.mark.parametrize("seed", range(3))
def test_ranks_of_the_other_army_do_not_matter(seed: int) -> None:
    raw = table("Stratego-v0", seed).raw
    moves = legal_moves(raw, 0)
    for row, col in raw.player_pieces[1]:
        raw.board[row][col]["rank"] = "Flag"
    assert legal_moves(raw, 0) == moves


def test_hidden_ships_do_not_matter() -> None:
    raw = table("Battleship-v0").raw
    moves = legal_moves(raw, 0)
    raw.state.game_state["board"][1] = [["~"] * raw.grid_size for _ in range(raw.grid_size)]
    assert legal_moves(raw, 0) == moves


@pytest.mark.parametrize(
    ("env_id", "hidden"),
    [
        ("GuessTheNumber-v0", {"game_number": 3}),
        ("Minesweeper-v0-small", {"grid": [[-1] * 5 for _ in range(5)]}),
        ("Sudoku-v0-very-easy", {"full_grid": [[1] * 9 for _ in range(9)]}),
        ("ThreeCardMonte-v0", {"ball_pos": 2}),
    ],
)
def test_the_solution_does_not_matter(env_id: str, hidden: dict[str, Any]) -> None:
    raw = table(env_id).raw
    moves = [sample_move(raw, 0, np.random.default_rng(seed)) for seed in range(20)]
    vars(raw).update(hidden)
    assert [sample_move(raw, 0, np.random.default_rng(seed)) for seed in range(20)] == moves
