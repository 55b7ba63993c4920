"""What some modules of textarena 0.7.4 need so that their games end, do not wait, and are the same in every process."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from vfgym.wrappers.textarena.searches import play_backwards, sudoku_solutions


class NobodyLeft(Exception):
    """Every player was put out of a game, which does not notice it (PublicGoodsGame, after invalid moves of all)."""


def _let_games_end(names: dict[str, Any]) -> None:
    """Give states what games call to end but is not there, and end a game that everybody was put out of."""
    one, two, many = names["SinglePlayerState"], names["TwoPlayerState"], names["FFAMultiPlayerState"]
    set_winner, set_draw, step = two.set_winner, two.set_draw, many.step

    def solve(self: Any, player_ids: list[int], reason: str) -> None:
        self.set_outcome(reward=1.0, reason=reason)

    def set_winner_by_either_name(self: Any, player_id: int | None = None, reason: str = "", *, player_ids: int | None = None) -> None:
        # Stratego gives a list of one reason.
        set_winner(self, player_id if player_ids is None else player_ids, "".join(reason))

    def set_draw_by_either_name(self: Any, reason: str = "", *, reson: str = "") -> None:
        set_draw(self, reason or reson)

    def set_winner_that_is_named(self: Any, reward: float, reason: str) -> None:
        # The reward that is given would be that of the player to move. Who won is said in the reason alone: "Player 2 wins with ...".
        self.set_winners([int(player) for player in re.findall(r"Player (\d+) wins", reason)], reason)

    def step_to_somebody(self: Any, rotate_player: bool = True) -> Any:
        if len(self.elimination_order) >= self.num_players:  # some may be in it twice
            looks_for_the_next = rotate_player and not self.done and not self.made_invalid_move
            if looks_for_the_next and all(player in self.elimination_order for player in range(self.num_players)):
                raise NobodyLeft  # where it would look for ever
        return step(self, rotate_player)

    one.set_winners = solve  # FifteenPuzzle, when it is solved
    two.set_winner = set_winner_by_either_name  # the winning move of Tak says player_ids
    two.set_winners = set_winner_by_either_name  # Checkers says player_id; the original fails whatever is said
    two.set_draw = set_draw_by_either_name  # ScenarioPlanning says reson
    many.set_outcome = set_winner_that_is_named  # Briscola and Golf with more than two players
    many.step = step_to_somebody


def _let_remarks_have_a_kind(names: dict[str, Any]) -> None:
    """Let CharacterConclave tell what it does not say the kind of.

    It has a state of its own for that, since the games that share one tell much, and each call more would cost them 0.1 µs.
    """
    ta = names["ta"]

    class FFAMultiPlayerState(ta.FFAMultiPlayerState):  # type: ignore[misc, name-defined]
        def add_observation(self, message: str, observation_type: Any = None, from_id: int = -1, to_id: int = -1) -> None:
            kind = ta.ObservationType.GAME_MESSAGE if from_id == -1 else ta.ObservationType.PLAYER_ACTION
            super().add_observation(message, observation_type or kind, from_id, to_id)

    FFAMultiPlayerState.__module__, FFAMultiPlayerState.__qualname__ = names["__name__"], "FFAMultiPlayerState"  # where pickle looks
    names["FFAMultiPlayerState"] = FFAMultiPlayerState
    names["ta"] = SimpleNamespace(**{**vars(ta), "FFAMultiPlayerState": FFAMultiPlayerState})


def _let_three_have_equal_hands(names: dict[str, Any]) -> None:
    """Let Briscola leave out a two when three play, as its rules do: of 40 cards one player would keep one when the others have none."""
    env = names["BriscolaEnv"]
    deal = env._init_game

    def deal_equally(self: Any) -> None:
        if self.state.num_players == 3:
            self.deck = [card for card in self.deck if (card["rank"], card["suit"]) != ("2", "♥")]
        deal(self)

    env._init_game = deal_equally


def _let_both_armies_win(names: dict[str, Any]) -> None:
    """Let Stratego see who has nothing left to move.

    The original asks where the pieces of a list stand, from which defused bombs are not taken (a TypeError on the empty square that a
    miner leaves), and takes player 0, who won, for nobody.
    """
    env = names["StrategoEnv"]
    step = env.step

    def who_won(self: Any) -> int | None:
        for player in (0, 1):
            army = (piece for row in self.board for piece in row if isinstance(piece, dict) and piece["player"] == player)
            if all(piece["rank"] in ("Bomb", "Flag") for piece in army):
                return 1 - player
        return None

    def step_and_look(self: Any, action: str) -> Any:
        is_over, info = step(self, action)
        if not is_over and who_won(self) == 0:
            self.state.set_winner(player_id=0, reason="Player 0 wins! Player 1 has no more movable pieces.")
            is_over = True
        return is_over, info

    env._check_winner = who_won
    env.step = step_and_look


def _draw_from_a_sorted_list(names: dict[str, Any]) -> None:
    """Let WordChains draw from a list in alphabetical order. It makes one of a set of strings: in another order in each process."""
    names["list"] = sorted


def _remember_ladders(names: dict[str, Any]) -> None:
    """Let WordLadder look only once for all the pairs of words that are so many steps apart, which takes a second."""
    find = names["WordLadderEnv"]._find_valid_pairs
    found: dict[tuple[tuple[str, ...], int, int], list[tuple[str, str, None]]] = {}

    def find_once(self: Any, neighbours: dict[str, list[str]], min_steps: int, max_steps: int) -> list[tuple[str, str, None]]:
        key = tuple(neighbours), min_steps, max_steps
        if key not in found:  # without the ways between them, which nobody asks for and would take 30 MB
            found[key] = [(start, target, None) for start, target, _ in find(self, neighbours, min_steps, max_steps)]
        return found[key]

    names["WordLadderEnv"]._find_valid_pairs = find_once


def _remember_dictionaries(names: dict[str, Any]) -> None:
    """Let the files of the spelling dictionaries be read only once, which takes a second."""
    load = names["EnglishDictionary"]._load_dic
    loaded: dict[tuple[Any, ...], set[str]] = {}

    def load_once(self: Any, *files: str) -> set[str]:
        key = *files, self.keep_proper_nouns, self.keep_non_alpha
        if key not in loaded:
            loaded[key] = load(self, *files)
        return loaded[key]

    names["EnglishDictionary"]._load_dic = load_once


def _bound_the_search_for_rooms(names: dict[str, Any]) -> None:
    """Let Sokoban look for a room for a moment, not for minutes, and for each table apart."""
    names["reverse_playing"] = play_backwards


def _solve_by_the_fullest_squares(names: dict[str, Any]) -> None:
    """Let Sudoku find in a moment whether its puzzle has one solution."""

    def count(self: Any, grid: list[list[int]], solutions: list[list[list[int]]], limit: int = 2) -> int:
        solutions.extend(sudoku_solutions(grid, limit - len(solutions)))
        return len(solutions)

    names["SudokuEnv"]._count_solutions = count


REPAIRS: dict[str, Callable[[dict[str, Any]], None]] = {
    "textarena.state": _let_games_end,
    "textarena.envs.CharacterConclave.env": _let_remarks_have_a_kind,
    "textarena.envs.Briscola.env": _let_three_have_equal_hands,
    "textarena.envs.Sokoban.utils": _bound_the_search_for_rooms,
    "textarena.envs.Sudoku.env": _solve_by_the_fullest_squares,
    "textarena.envs.Stratego.env": _let_both_armies_win,
    "textarena.envs.utils.word_lists": _remember_dictionaries,
    "textarena.envs.WordChains.env": _draw_from_a_sorted_list,
    "textarena.envs.WordLadder.env": _remember_ladders,
}
"""What is done to the names that a module knows, once, after it was imported."""
