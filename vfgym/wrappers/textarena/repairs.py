"""What some modules of textarena 0.7.4 need so that their games end, do not wait, and are the same in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class NobodyLeft(Exception):
    """Every player was put out of a game, which does not notice it (PublicGoodsGame, after invalid moves of all)."""


def _let_games_end(names: dict[str, Any]) -> None:
    """Let Tak be won, and a game that everybody was put out of be over."""
    set_winner, step = names["TwoPlayerState"].set_winner, names["FFAMultiPlayerState"].step

    def set_winner_by_either_name(self: Any, player_id: int | None = None, reason: str = "", *, player_ids: int | None = None) -> None:
        set_winner(self, player_id if player_ids is None else player_ids, reason)  # the winning move of Tak says player_ids

    def step_to_somebody(self: Any, rotate_player: bool = True) -> Any:
        looks_for_the_next = rotate_player and not self.done and not self.made_invalid_move
        if looks_for_the_next and all(player in self.elimination_order for player in range(self.num_players)):
            raise NobodyLeft  # where it would look for ever
        return step(self, rotate_player)

    names["TwoPlayerState"].set_winner = set_winner_by_either_name
    names["FFAMultiPlayerState"].step = step_to_somebody


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


REPAIRS: dict[str, Callable[[dict[str, Any]], None]] = {
    "textarena.state": _let_games_end,
    "textarena.envs.utils.word_lists": _remember_dictionaries,
    "textarena.envs.WordChains.env": _draw_from_a_sorted_list,
    "textarena.envs.WordLadder.env": _remember_ladders,
}
"""What is done to the names that a module knows, once, after it was imported."""
