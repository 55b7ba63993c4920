"""What textarena 0.7.4 cannot do, and its games can at a table of vfgym: be won."""

from __future__ import annotations

import importlib
import logging
import random
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.wrappers.textarena.playing import begun, original, say
from vfgym.wrappers.textarena.package import textarena
from vfgym.wrappers.textarena.repairs import REPAIRS, NobodyLeft

pytest.importorskip("textarena", reason="needs the extra textarena")


@pytest.fixture(autouse=True)
def _no_game_raises(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("state", "num_players", "call", "arguments", "rewards"),
    [
        ("SinglePlayerState", 1, "set_winners", {"player_ids": [0]}, {0: 1}),
        *(("TwoPlayerState", 2, "set_winner", {"player_ids": player}, {player: 1, 1 - player: -1}) for player in (1, 0)),
        ("TwoPlayerState", 2, "set_winners", {"player_id": 1}, {0: -1, 1: 1}),
        ("TwoPlayerState", 2, "set_draw", {}, {0: 0, 1: 0}),
        ("FFAMultiPlayerState", 3, "set_outcome", {"reward": 0}, {0: -1, 1: -1, 2: 1}),
    ],
    ids=["FifteenPuzzle", "Tak", "Tak of player 0", "Checkers", "ScenarioPlanning", "Briscola and Golf"],
)
def test_states_take_the_calls_that_end_games(state: str, num_players: int, call: str, arguments: Any, rewards: Any) -> None:
    """They are called as these games call them."""
    reason = {"reson" if call == "set_draw" else "reason": "Player 2 wins with 9 points!\n\nPlayer 0: 1 points"}
    as_it_is = getattr(original("textarena.state"), state)(num_players=num_players)
    as_it_is.reset()
    with pytest.raises((AttributeError, TypeError)):
        getattr(as_it_is, call)(**arguments, **reason)
    repaired = getattr(textarena(), state)(num_players=num_players)
    repaired.reset()
    getattr(repaired, call)(**arguments, **reason)
    assert repaired.done
    assert repaired.rewards == rewards
    assert all(info["reason"].startswith("Player 2 wins") for player, info in repaired.game_info.items() if player >= 0)


def test_states_still_take_the_calls_of_all_other_games() -> None:
    state = textarena().TwoPlayerState(num_players=2)
    for how, rewards in [((1, "Won."), {0: -1, 1: 1}), ((0, "Won."), {0: 1, 1: -1})]:
        state.reset()
        state.set_winner(*how)
        assert (state.rewards, state.game_info[1]["reason"]) == (rewards, "Won.")
    state.reset()
    state.set_draw(reason="Nobody won.")
    assert (state.rewards, state.game_info[1]["reason"]) == ({0: 0, 1: 0}, "Nobody won.")


def test_a_game_that_everybody_was_put_out_of_says_so() -> None:
    """Where it would look for the next player for ever; some may have been put out twice."""
    state = textarena().FFAMultiPlayerState(num_players=3)
    state.reset()
    state.elimination_order += [1, 1, 0]
    state.step()
    assert state.current_player_id == 2
    state.elimination_order.append(2)
    state.step(rotate_player=False)
    with pytest.raises(NobodyLeft):
        state.step()


@pytest.mark.parametrize(("env_id", "num_players"), [("Briscola-v0", 3), ("Briscola-v0", 4), ("Golf-v0", 3), ("Golf-v0-medium", 4)])
def test_card_games_with_more_than_two_have_one_winner(env_id: str, num_players: int) -> None:
    table, rng = begun(env_id, num_players=num_players), np.random.default_rng(0)
    while table.turn is not None:
        played = table.move(table.sample_move(table.turn, rng))
        assert played.is_valid
    assert not table.was_truncated
    winner = max(played.rewards, key=played.rewards.__getitem__)
    assert sorted(played.rewards.values()) == [-1.0] * (num_players - 1) + [1.0]
    assert f"You won. Game Over! Player {winner} wins with" in table.observe(winner)


def place(raw: Any, *pieces: tuple[int, int, str, int]) -> None:
    """Place a few pieces on an empty board of Stratego: ``(row, column, rank, owner)``."""
    raw.board[:] = [[None] * 10 for _ in range(10)]
    raw.player_pieces.update({player: [(row, col) for row, col, _, owner in pieces if owner == player] for player in (0, 1)})
    for row, col, rank, owner in pieces:
        raw.board[row][col] = {"rank": rank, "player": owner}


@pytest.mark.parametrize("winner", [0, 1])
def test_stratego_is_won_against_an_army_without_a_piece_to_move(winner: int) -> None:
    table = begun("Stratego-v0")
    if winner == 1:
        table.move(table.sample_move(0, np.random.default_rng(0)))
    place(table.raw, (0, 0, "Flag", 1 - winner), (9, 9, "Flag", winner), (5, 0, "Major", winner), (5, 1, "Captain", 1 - winner))
    assert say(table, "[F0 F1]") == ({winner: 1.0, 1 - winner: -1.0}, True)
    assert f"You won. Player {winner} wins! Player {1 - winner} has no more movable pieces." in table.observe(winner)


def test_stratego_goes_on_after_a_bomb_was_defused() -> None:
    pieces = [(0, 0, "Flag", 0), (9, 9, "Flag", 1), (9, 0, "Major", 1), (5, 0, "Miner", 0), (5, 1, "Bomb", 1)]
    fails = original("textarena.envs.Stratego.env").StrategoEnv()
    fails.reset(2)
    moves, table = ["[F0 F1]", "[J0 I0]", "[F1 G1]"], begun("Stratego-v0")
    for raw in (fails, table.raw):
        place(raw, *pieces)
    for move in moves[:2]:
        fails.step(move)
    with pytest.raises(TypeError):
        fails.step(moves[2])
    assert [say(table, move).is_valid for move in moves] == [True] * 3
    assert table.turn == 1


def test_the_character_conclave_talks_and_votes() -> None:
    table = begun("CharacterConclave-v0")
    for _ in range(3):
        say(table, "a" * 1000)
    assert "[Player 1] aaa" in table.observe(0)
    assert "Please now vote" in table.observe(1)
    votes = {0: 1, 1: 2, 2: 1}
    while table.turn is not None:
        played = say(table, f"[player {votes[table.turn]}]")
    assert played.rewards == {0: -1.0, 1: 1.0, 2: 0.0}


# Searches with which games begin


@pytest.mark.parametrize("clues", [60, 40])
def test_puzzles_of_sudoku_are_those_of_textarena(clues: int) -> None:
    begun("Sudoku-v0")
    drawn, boards = random.getstate(), []
    for module in (importlib.import_module("textarena.envs.Sudoku.env"), original("textarena.envs.Sudoku.env")):
        random.seed(3)
        boards.append(module.SudokuEnv(clues)._generate_board())
    random.setstate(drawn)
    assert boards[0] == boards[1]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("env_id", ["Sokoban-v0-medium-train", "Sudoku-v0-hard-train"])
def test_games_whose_own_search_takes_minutes_begin_in_a_moment(env_id: str) -> None:
    """And their seed decides them. For TextArena's own searches, the first seed is one of those that take longest."""
    one, again, other = (begun(env_id, seed=seed).observe(0) for seed in (5, 5, 8))
    assert one == again != other


def test_tables_of_sokoban_that_begin_at_once_do_not_disturb_each_other() -> None:
    def room(seed: int) -> str:
        return begun("Sokoban-v0-medium", seed=seed).observe(0)

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(room, range(2))] == [*map(room, range(2))]


# What is looked for once


def test_ladders_are_looked_for_once_for_the_same_words_and_steps() -> None:
    asked: list[Any] = []

    class Ladders:
        def _find_valid_pairs(self, neighbours: Any, min_steps: int, max_steps: int) -> Any:
            asked.append((tuple(neighbours), min_steps, max_steps))
            return [("cat", "dog", ["cat", "cot", "dog"])] * len(asked)

    REPAIRS["textarena.envs.WordLadder.env"]({"WordLadderEnv": Ladders})
    cat, dog = {"cat": ["cot"]}, {"dog": ["dot"]}
    questions = [(cat, 1, 2), (cat, 1, 3), (cat, 2, 2), (dog, 1, 2)]
    found = [Ladders()._find_valid_pairs(*question) for question in questions * 2]
    assert asked == [(tuple(words), least, most) for words, least, most in questions]
    assert found == [[("cat", "dog", None)] * number for number in (1, 2, 3, 4)] * 2


def test_dictionaries_are_read_once_for_the_same_files_and_options() -> None:
    read: list[Any] = []

    class Words:
        def __init__(self, keep_proper_nouns: bool, keep_non_alpha: bool) -> None:
            self.keep_proper_nouns, self.keep_non_alpha = keep_proper_nouns, keep_non_alpha

        def _load_dic(self, *files: str) -> set[str]:
            read.append((*files, self.keep_proper_nouns, self.keep_non_alpha))
            return {str(len(read))}

    REPAIRS["textarena.envs.utils.word_lists"]({"EnglishDictionary": Words})
    questions = [(("a", "b"), False, False), (("b", "a"), False, False), (("a", "b"), True, False), (("a", "b"), False, True)]
    found = [Words(*options)._load_dic(*files) for files, *options in questions * 2]
    assert read == [(*files, *options) for files, *options in questions]
    assert found == [{str(number)} for number in (1, 2, 3, 4)] * 2


def test_solutions_are_counted_with_those_that_were_found_before() -> None:
    class Sudoku:
        _count_solutions: Any

    REPAIRS["textarena.envs.Sudoku.env"]({"SudokuEnv": Sudoku})
    grid = [[0] * 9 for _ in range(9)]
    for before, limit, count in ((0, None, 2), (0, 1, 1), (1, None, 2), (2, 5, 5), (2, 2, 2)):
        solutions: list[Any] = [[[0]]] * before
        assert Sudoku()._count_solutions(grid, solutions, **({} if limit is None else {"limit": limit})) == count == len(solutions)
        assert solutions[:before] == [[[0]]] * before


def test_remarks_get_a_kind_where_they_have_none() -> None:
    told: list[Any] = []

    class State:
        def add_observation(self, message: str, observation_type: Any, from_id: int, to_id: int) -> None:
            told.append((message, observation_type, from_id, to_id))

    kinds = SimpleNamespace(GAME_MESSAGE="message", PLAYER_ACTION="action")
    names: dict[str, Any] = {"ta": SimpleNamespace(FFAMultiPlayerState=State, ObservationType=kinds, other=3), "__name__": "a.module"}
    REPAIRS["textarena.envs.CharacterConclave.env"](names)
    state = names["FFAMultiPlayerState"]()
    state.add_observation("a")
    state.add_observation("b", from_id=0, to_id=2)
    state.add_observation("c", "kept", 1, 0)
    assert told == [("a", "message", -1, -1), ("b", "action", 0, 2), ("c", "kept", 1, 0)]
    assert (names["ta"].FFAMultiPlayerState, names["ta"].other) == (names["FFAMultiPlayerState"], 3)
    assert (type(state).__module__, type(state).__qualname__) == ("a.module", "FFAMultiPlayerState")


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_three_players_of_briscola_play_without_one_two(num_players: int) -> None:
    deck = [{"rank": rank, "suit": suit} for rank in "2A" for suit in "♥♠"]

    class Briscola:
        def __init__(self) -> None:
            self.state, self.deck = SimpleNamespace(num_players=num_players), deck

        def _init_game(self) -> None:
            self.dealt = list(self.deck)

    REPAIRS["textarena.envs.Briscola.env"]({"BriscolaEnv": Briscola})
    game = Briscola()
    game._init_game()
    assert game.dealt == (deck[1:] if num_players == 3 else deck)


def test_words_are_drawn_from_a_list_in_order() -> None:
    names: dict[str, Any] = {}
    REPAIRS["textarena.envs.WordChains.env"](names)
    assert names["list"]({"b", "c", "a"}) == ["a", "b", "c"]
