"""Games of OpenSpiel through shimmy: positions and moves are written as OpenSpiel writes them."""

from __future__ import annotations

import functools
import pickle
import re
import time
import warnings
from typing import Any

import numpy as np
import pytest

import vfgym
from vfgym.data import OpenSpielPrompt, openspiel_prompts
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage
from vfgym.wrappers.pettingzoo import PettingZooGame

pyspiel = pytest.importorskip("pyspiel")
shimmy = pytest.importorskip("shimmy.openspiel_compatibility")


def table_of(game: str) -> PettingZooGame:
    table = PettingZooGame(functools.partial(shimmy.OpenSpielCompatibilityV0, game_name=game))
    table.reset(seed=0, options=None)
    return table


def play(table: PettingZooGame, move: str) -> bool:
    return table.move(AssistantMessage(f"<action>{move}</action>")).is_valid


def test_a_game_is_told_by_its_name_and_shown_by_its_position() -> None:
    table = table_of("tic_tac_toe")
    told = table.observe("player_0")
    assert told.startswith(
        "You are playing Tic Tac Toe.\n\nPut marks on a board of 3 by 3: x(0,0) is row 0, column 0. Three in a row, across, down or"
        " diagonally, win. A full board is a draw.\n\nRewards: 1 for who wins, -1 for the other, 0 for a draw."
        "\n\nPlayers: player_0, player_1. You are player_0 (x, first)."
    )
    assert "like this: <action>x(0,0)</action>" in told
    assert "\n\n...\n...\n...\n\nLegal actions: x(0,0), x(0,1)," in told
    assert "compatibility" not in told.lower()


def test_moves_have_the_names_of_the_position_and_of_the_player() -> None:
    table = table_of("tic_tac_toe")
    assert play(table, "x(1,1)")
    assert "...\n.x.\n..." in table.observe("player_1")
    assert not play(table, "x(0,0)")  # a move of the other player's
    assert not play(table, "o(1,1)")  # a square that is taken
    assert table.turn == "player_1"
    assert play(table, "O(0,0)")
    assert "o..\n.x.\n..." in table.observe("player_0")
    cards = table_of("kuhn_poker")  # each player is dealt one of three cards, and is not shown the other's
    assert cards.legal_moves("player_0") == ["Pass", "Bet"]
    for player, move in enumerate(("bet", "pass")):
        own, other = (cards.env.unwrapped.game_state.observation_string(seat) for seat in (player, 1 - player))
        assert cards.observe(f"player_{player}").split("\n\n")[-2] == own != other
        assert play(cards, move)
    assert "\x1b" not in table_of("twixt").observe("player_0")


def test_arguments_in_a_name_hold_after_a_reset() -> None:
    """Shimmy 2.0 loads the game by its short name then."""
    table = table_of("hex(board_size=3)")
    assert len(table.legal_moves("player_0") or ()) == 9
    table.reset(seed=1, options=None)
    assert len(table.legal_moves("player_0") or ()) == 9
    assert len(pickle.loads(pickle.dumps(table)).legal_moves("player_0")) == 9


@pytest.mark.parametrize(("game", "move"), [("nim", "pile:4, take:7;"), ("nim", "Pile:4, take:7"), ("einstein_wurfelt_nicht", None)])
def test_moves_are_read_as_openspiel_writes_them(game: str, move: str | None) -> None:
    """Some end with a semicolon, or with a star."""
    for legal in [move] if move else table_of(game).legal_moves("player_0") or []:
        assert play(table_of(game), legal)


def test_a_mean_field_game_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a population plays and no player can"):
        table_of("mfg_crowd_modelling")


def test_arguments_that_are_not_the_usual_ones_are_told() -> None:
    assert "other than written here: rows is 5." in table_of("connect_four(rows=5)").rules("player_0")
    for usual in ("connect_four", "connect_four(columns=7)", "quoridor", "twixt(ansi_color_output=False)"):
        assert "other than written" not in table_of(usual).rules("player_0")


def test_a_game_about_which_nothing_is_written_is_warned_of() -> None:
    made = functools.partial(shimmy.OpenSpielCompatibilityV0, game_name="misere(game=tic_tac_toe())")
    with pytest.warns(UserWarning, match="nothing is known of its rules: give rules"):
        vfgym.to_chat(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vfgym.to_chat(made, rules="Do not get three in a row.").prompt_problems == ()


def named_moves(prompt: OpenSpielPrompt) -> set[str]:
    return set(re.findall(r"`([^`]+)`", prompt["rules"]))


def play_at_random(game: Any, rng: np.random.Generator, names: bool, most_moves: int) -> tuple[list[float] | None, set[str]]:
    """Play a game of OpenSpiel, and return what it earned everybody (None where it was not ended) and what its moves were called."""
    state, met = game.new_initial_state(), set()
    for _ in range(most_moves):
        if state.is_terminal():
            return [round(each, 4) for each in state.returns()], met
        if state.is_chance_node():
            outcomes, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(int(rng.choice(outcomes, p=np.array(chances) / sum(chances))))
            continue
        players = range(game.num_players()) if state.is_simultaneous_node() else [state.current_player()]
        legal = {player: state.legal_actions(player) for player in players}
        if names:
            met |= {state.action_to_string(player, action) for player, actions in legal.items() for action in actions}
        chosen = [int(rng.choice(actions)) if actions else 0 for actions in legal.values()]
        if state.is_simultaneous_node():
            state.apply_actions(chosen)
        else:
            state.apply_action(chosen[0])
    return None, met


def contradiction(game: Any, prompt: OpenSpielPrompt, returns: list[float]) -> str:
    """Return how the end of a game contradicts what is written about it; empty where it does not."""
    if "outcome" in prompt:
        expected = [[-1.0, 1.0]] if prompt["outcome"] == "win" else [[-1.0, 1.0], [0.0, 0.0]]
        if sorted(returns) not in expected:
            return f"a game that ends with {prompt['outcome']!r} earned {returns}"
    if "returns" in prompt and not set(returns) <= set(prompt["returns"]):
        return f"{returns} is not among {prompt['returns']}"
    if prompt.get("goal", "").startswith("alike") and len(set(returns)) != 1:
        return f"{returns} is not alike for all"
    if "other loses as much" in prompt.get("goal", "") and abs(sum(returns)) > 1e-6:
        return f"{returns} do not add up to 0"
    return ""


QUICK = ("kuhn_poker", "matrix_pd", "catch", "sheriff")


def first_player(game: Any) -> int:
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return int(state.current_player())


def check_written(name: str, seconds: float) -> None:
    prompt, game = openspiel_prompts()[name], pyspiel.load_game(name)
    roles = prompt.get("roles", [])
    assert len(roles) in (0, game.num_players())
    if any("first" in role for role in roles):
        assert "first" in roles[first_player(game)]
    assert "outcome" in prompt or prompt["goal"]
    unmet, rng, until = named_moves(prompt), np.random.default_rng(0), time.monotonic() + seconds
    played = 0
    while not played or (time.monotonic() < until and (unmet or played < 300)):
        returns, met = play_at_random(game, rng, bool(unmet), 30_000)
        unmet -= met
        assert returns is not None
        assert not contradiction(game, prompt, returns)
        played += 1
    assert not unmet, f"the text names moves that there are none of in {played} games"


@pytest.mark.parametrize("name", QUICK)
def test_what_is_written_holds_in_games_at_random(name: str) -> None:
    check_written(name, 0.1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", openspiel_prompts())
def test_what_is_written_about_every_game_holds_in_games_at_random(name: str) -> None:
    check_written(name, 10.0)


UNPLAYED = {
    "add_noise", "cached_tree", "efg_game", "misere", "nfg_game", "normal_form_extensive_game", "repeated_game", "repeated_poker",
    "restricted_nash_response", "start_at", "turn_based_simultaneous_game", "zerosum",  # made of another game, which has to be given
    "mfg_crowd_modelling", "mfg_crowd_modelling_2d", "mfg_dynamic_routing", "mfg_garnet",  # of populations
    "crazy_eights", "crossword", "go_fish",  # shimmy cannot make or reset them
}  # fmt: skip


def test_every_game_that_plays_is_written_about() -> None:
    assert {game.short_name for game in pyspiel.registered_games()} - UNPLAYED - set(openspiel_prompts()) == set()
    assert set(openspiel_prompts()) <= {game.short_name for game in pyspiel.registered_games()}


@pytest.mark.parametrize(
    ("name", "moves", "rewards"),
    [
        ("kuhn_poker", "pass bet bet", (2, -2)),  # what chance decides is not counted as a move, which Shimmy 2.0 does
        ("tic_tac_toe", "x(0,0) o(1,0) x(0,1) o(1,1) x(0,2)", (1, -1)),
        ("connect_four", "x0 o1 x0 o1 x0 o1 x0", (1, -1)),
        ("nim", "pile:4,_take:7; pile:3,_take:5; pile:2,_take:3; pile:1,_take:1;", (1, -1)),  # who takes the last object has lost
        ("breakthrough", "a7a6 h2h3 a6a5 h3h4 a5a4 h4h5 a4a3 h5h6 a3b2* c1b2* b7b6 h6g7* b6b5 g7f8*", (-1, 1)),
        ("hex(board_size=3)", "a1 b1 a2 b2 a3", (1, -1)),  # from top to bottom
        ("hex(board_size=3)", "a1 a2 c1 b2 b3 c2", (-1, 1)),  # from left to right
        ("gomoku", "0,0 1,0 0,1 1,1 0,2 1,2 0,3 1,3 0,4", (1, -1)),
        ("chess", "f3 e5 g4 Qh4#", (1, -1)),
        ("matrix_pd", "Defect Cooperate", (10, 0)),
        ("matrix_pd", "Cooperate Defect", (0, 10)),
        ("matrix_brps", "Rock Scissors", (50, -50)),
        ("matrix_brps", "Rock Paper", (-25, 25)),
        ("matrix_brps", "Scissors Paper", (5, -5)),
        ("matrix_bos", "Bach Bach", (3, 2)),
        ("matrix_cd", "Dare Chicken", (4, 1)),
        ("matrix_sh", "Stag Hare", (0, 1)),
        ("matching_pennies_3p", "Heads Tails Heads", (-1, -1, -1)),
        ("coordinated_mp", "Heads Heads", (1, -1)),
        ("sheriff", "PlaceIllegalItems(num=2)" + " Bribe(amount=1) InspectionFeedback(will_inspect=False)" * 4, (1, 1)),
        ("sheriff", "PlaceIllegalItems(num=2)" + " Bribe(amount=1) InspectionFeedback(will_inspect=True)" * 4, (-4, 4)),
        ("sheriff", "PlaceIllegalItems(num=0)" + " Bribe(amount=1) InspectionFeedback(will_inspect=True)" * 4, (3, -3)),
    ],
)
def test_games_that_were_played_end_as_it_is_written(name: str, moves: str, rewards: tuple[float, ...]) -> None:
    table = table_of(name)
    for move in moves.split():
        assert play(table, move.replace(",_", ", ")), f"{move} is not among {table.legal_moves(table.turn)}"
    assert table.turn is None
    assert tuple(table._seats[player].total for player in table.players) == rewards
    assert set(table.terminations.values()) == {True}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", openspiel_prompts())
def test_every_legal_move_can_be_typed(name: str) -> None:
    table, rng = table_of(name), np.random.default_rng(0)
    for _ in range(60):
        if table.turn is None:
            break
        legal = table.legal_moves(table.turn) or []
        assert len({*legal}) == len(legal)
        assert play(table, str(rng.choice(legal)))
