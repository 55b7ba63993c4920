"""PettingZoo's games played in words are the games themselves, and conversations are PettingZoo environments."""

from __future__ import annotations

import copy
import functools
import pickle
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

import vfgym
from tests.environments import Talk
from tests.programs import run_python
from vfgym.errors import ConfigurationError, InvalidAction, MissingExtra, ResetNeeded, UnknownArgument
from vfgym.messages import AssistantMessage, Response, ResponseTokens, SystemMessage, UserMessage
from vfgym.testing import check_environment
from vfgym.wrappers.games.turn_based import Played, TurnBasedGame
from vfgym.wrappers.pettingzoo import PettingZooEnv, PettingZooGame, to_pettingzoo

pettingzoo = pytest.importorskip("pettingzoo")
from pettingzoo import AECEnv, ParallelEnv  # noqa: E402
from pettingzoo.env_registry.exceptions import FailedToImport  # noqa: E402
from pettingzoo.utils import AgentSelector, wrappers  # noqa: E402
from pettingzoo.utils.conversions import aec_to_parallel, parallel_to_aec  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its tests make their environments in a way that it deprecates
    from pettingzoo.test import api_test, seed_test

# PettingZoo's spaces of no-limit hold'em have more digits than their dtype.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")

CLASSIC = [
    "chess_v6",
    "connect_four_v3",
    "go_v5",
    "hanabi_v5",
    "leduc_holdem_v4",
    "rps_v2",
    "texas_holdem_no_limit_v6",
    "texas_holdem_v4",
    "tictactoe_v3",
]
SMALLER: dict[str, dict[str, Any]] = {"go_v5": {"board_size": 5}}
"""Arguments that keep a random game short."""

UNUSUAL = [
    ("hanabi_v5", {"players": 3, "colors": 4, "hand_size": 3}),
    ("texas_holdem_v4", {"num_players": 4}),
    ("rps_v2", {"num_actions": 7}),
]


def factory(name: str, **arguments: Any) -> Callable[[], Any]:
    family = "" if "/" in name else "classic/"
    make_env = functools.partial(pettingzoo.make, "aec", f"{family}{name}", **{**SMALLER.get(name, {}), **arguments})
    try:
        make_env()
    except FailedToImport as missing:
        pytest.skip(str(missing))
    return make_env


def natively(make_env: Callable[[], Any], seed: int, most: int = 100) -> Iterator[tuple[Any, Any]]:
    """Play random legal moves in the environment itself. Yields it before each step, with what comes next: a move, or None."""
    env = make_env()
    env.reset(seed=seed)
    for agent in env.possible_agents:
        env.action_space(agent).seed(seed)
    for _, agent in zip(range(most), env.agent_iter(), strict=False):
        observation, _, terminated, truncated, info = env.last()
        action = None
        if not (terminated or truncated):
            mask = observation["action_mask"] if isinstance(observation, dict) else info.get("action_mask")
            action = env.action_space(agent).sample(mask)
        yield env, action
        env.step(action)


def said(table: PettingZooGame, action: Any) -> AssistantMessage:
    """Return the message that plays an action, as a model would write it."""
    assert table.turn is not None
    return AssistantMessage(f"I have thought about it.\n<action>{table.codecs[table.turn].encode(action)}</action>")


def same(one: Any, other: Any) -> bool:
    return bool(data_equivalence(one, other, exact=True))


def check_same_game(make_env: Callable[[], Any], seed: int, most: int = 100) -> None:
    table = PettingZooGame(make_env)
    table.reset(seed, None)
    played: Played | None = None
    for env, action in natively(make_env, seed, most):
        agent = env.agent_selection
        if played is not None:
            assert played == Played(env.rewards, is_valid=True)
            played = None
        if action is None:  # who has left was let go already at the table
            assert (table.terminations[agent], table.truncations[agent]) == (env.terminations[agent], env.truncations[agent])
            continue
        assert table.turn == agent
        assert same(table.env.observe(agent), env.observe(agent))
        assert table.observe(agent)
        played = table.move(said(table, action))
        assert played.is_valid
    assert (table.turn is None) == (not env.agents)
    table.close()


@pytest.mark.parametrize("name", CLASSIC)
def test_played_in_words_it_is_the_same_game(name: str) -> None:
    """The same seed and the same moves give the same observations, rewards, terminations and truncations."""
    for seed in range(3):
        check_same_game(factory(name), seed, most=30 if name == "chess_v6" else 500)


@pytest.mark.parametrize(("name", "arguments"), UNUSUAL, ids=lambda value: value if isinstance(value, str) else "")
def test_played_with_other_arguments_it_is_the_same_game(name: str, arguments: dict[str, Any]) -> None:
    for seed in range(3):
        check_same_game(factory(name, **arguments), seed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Box2D and its bindings
def test_played_in_numbers_it_is_the_same_game() -> None:
    """Three walkers with four motors each: what a message says of a float is the float."""
    check_same_game(factory("sisl/multiwalker_v9", max_cycles=20), seed=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CLASSIC)
def test_many_games_are_the_same(name: str) -> None:
    for seed in range(3, 13 if name == "chess_v6" else 60):
        check_same_game(factory(name), seed, most=2000)


@given(seed=st.integers(0, 2**31 - 1))
@settings(max_examples=20)
def test_every_game_of_connect_four_is_the_same(seed: int) -> None:
    check_same_game(factory("connect_four_v3"), seed)


def play(table: TurnBasedGame, *moves: str) -> Played:
    played = Played({})
    for move in moves:
        played = table.move(AssistantMessage(move))
    return played


def opened(name: str, seed: int | None = 0, /, **options: Any) -> PettingZooGame:
    table = PettingZooGame(factory(name), **options)
    table.reset(seed, None)
    return table


# What players are told


def test_the_first_thing_told_is_how_to_play() -> None:
    table = opened("tictactoe_v3")
    text = table.observe("player_1")
    assert text.startswith("You are playing Tic Tac Toe.")
    assert "The first player to place 3 of their marks" in text
    assert "| +1     | -1    |" in text
    assert "You are player_1 (X)." in text
    assert "<action>" in text
    assert text.endswith(
        """\
 0 | 3 | 6
---+---+---
 1 | 4 | 7
---+---+---
 2 | 5 | 8

Legal actions: 0, 1, 2, 3, 4, 5, 6, 7, 8."""
    )


def test_a_player_is_told_what_happened_since_it_was_asked_and_nothing_twice() -> None:
    table = opened("tictactoe_v3")
    table.observe("player_1")
    assert table.observe("player_1") == ""
    play(table, "4")
    assert "You are player_2 (O)." in table.observe("player_2")
    play(table, "0")
    assert (
        table.observe("player_1")
        == """\
player_2 played: 0

 O | 3 | 6
---+---+---
 1 | X | 7
---+---+---
 2 | 5 | 8

Legal actions: 1, 2, 3, 5, 6, 7, 8."""
    )


def test_everybody_is_told_how_it_ended() -> None:
    table = opened("tictactoe_v3")
    played = play(table, "0", "3", "1", "4", "2")
    assert played.rewards == {"player_1": 1.0, "player_2": -1.0}
    assert table.turn is None
    assert not table.was_truncated
    for player, total in (("player_1", "1"), ("player_2", "-1")):
        assert table.observe(player).endswith(f"The game is over. Your total reward is {total}.")
        assert table.observe(player) == ""


def test_connect_four_is_drawn_with_its_columns() -> None:
    table = opened("connect_four_v3")
    play(table, "3", "3", "Column: 0\nAction: 0")
    assert table.observe("player_1").splitlines()[-9:-2] == [
        "0 1 2 3 4 5 6",
        ". . . . . . .",
        ". . . . . . .",
        ". . . . . . .",
        ". . . . . . .",
        ". . . O . . .",
        "X . . X . . .",
    ]


def test_go_is_played_on_named_points() -> None:
    table = opened("go_v5")
    play(table, "B2", "<action>C3</action>", "Pass.")
    assert "white_0 played: C3" in table.observe("black_0")
    assert table.observe("white_0").splitlines()[-9:-2] == [
        "   A B C D E",
        " 5 . . . . .",
        " 4 . . . . .",
        " 3 . . O . .",
        " 2 . X . . .",
        " 1 . . . . .",
        "Stones captured: by black 0, by white 0. Komi: 7.5.",
    ]


def test_go_boards_of_several_sizes_do_not_disturb_each_other() -> None:
    """Games that take turns, and a copy made in the middle of one, are what each is alone."""
    alone = {}
    for size in (19, 5, 9):
        game = natively(factory("go_v5", board_size=size), seed=0, most=80)
        alone[size] = [(np.flatnonzero(env.last()[0]["action_mask"]).tolist(), dict(env.rewards), action) for env, action in game]
    tables = {size: PettingZooGame(factory("go_v5", board_size=size)) for size in alone}
    for table in tables.values():
        table.reset(0, None)
    for turn in range(79):
        for size, steps in alone.items():
            table = tables[size]
            if table.turn is None:
                continue
            (legal, _, action), (_, rewards, _) = steps[turn : turn + 2]
            codec = table.codecs[table.turn]
            assert [codec.decode(text) for text in table.legal_moves(table.turn) or ()] == legal
            assert table.move(said(table, action)) == Played(rewards)
            if turn == 10:
                tables[size] = pickle.loads(pickle.dumps(table))
    assert any(table.turn is None for table in tables.values())
    assert any(table.turn is not None for table in tables.values())


@pytest.mark.parametrize(
    ("answer", "move"),
    [
        ("e4", "e4"),
        ("e2e4", "e4"),
        ("<think>Nf3 or e4?</think>I play <action>e4</action>", "e4"),
        ("My move: **Nf3**!", "Nf3"),
        ("I develop the knight.\n\n**Nf3**", "Nf3"),
        ("\\boxed{e4}", "e4"),
        ("nf3", "Nf3"),
        ("The centre is free.\nMy move: e4 (it is mine)", "e4"),
        ("Action: e4\nIt opens the centre.", "e4"),
    ],
)
def test_chess_moves_are_read_as_players_write_them(answer: str, move: str) -> None:
    table = opened("chess_v6")
    table.observe("player_0")
    assert table.move(AssistantMessage(answer)).is_valid
    assert table.observe("player_1").count(f"player_0 played: {move}\n") == 1


@pytest.mark.parametrize(
    "answer",
    [
        *("e5", "Ke2", "--", "0000", "e4 or d4", "", "hello", "a knight", "O-O", "<action>e4</action><action>d4</action>"),
        *("Move: e4\nMove: d4", "I will not play e4.", "I don\u2019t play e4", "Avoid e4!", "<action>not e4</action>"),
        *(
            "e4?",
            "Should I play e4?",
            "If I play e4, I lose my queen.",
            "My last move was: Nf3",
            "The worst move is Nf3.",
            "I play e4.",
            "1. e4",
            "Move: e4 (or d4)",
        ),
    ],
)
def test_what_is_no_legal_chess_move_is_asked_for_again(answer: str) -> None:
    table = opened("chess_v6")
    assert not table.move(AssistantMessage(answer)).is_valid
    assert "Legal actions:" in table.observe("player_0")
    assert table.turn == "player_0"


def test_chess_has_castling_checks_promotion_and_mate_by_name() -> None:
    table = opened("chess_v6")
    play(table, "f4", "e5", "fxe5", "d6", "exd6", "Qe7", "dxc7", "Qe4")
    assert {"cxb8=Q", "cxb8=N", "cxb8=R"} <= set(table.legal_moves("player_0") or ())
    play(table, "cxb8=N", "Bc5", "e3", "Nf6", "b3", "O-O")
    assert "player_1 played: O-O" in table.observe("player_0")
    table.reset(0, None)
    played = play(table, "f3", "e5", "g4", "Qh4")
    assert played.rewards == {"player_0": -1.0, "player_1": 1.0}
    assert "player_1 played: Qh4#" in table.observe("player_0")


def test_black_moves_are_named_for_black() -> None:
    table = opened("chess_v6")
    play(table, "e4")
    assert "e5" in (table.legal_moves("player_1") or ())
    text = table.observe("player_1")
    assert "You are player_1 (Black)." in text
    assert "4 . . . . P . . ." in text


@pytest.mark.parametrize("name", ["leduc_holdem_v4", "texas_holdem_v4", "texas_holdem_no_limit_v6"])
def test_cards_of_others_are_not_shown(name: str) -> None:
    """The own hand, in suits, and no other; with the chips of all."""
    for seed in range(20):
        table = opened(name, seed)
        hands = {}
        for seat, player in enumerate(table.players):
            cards = table.env.unwrapped.env.game.get_state(seat)["hand"]
            cards = [cards] if isinstance(cards, str) else cards
            hands[player] = {f"{card[1].replace('T', '10')}{'♠♥♦♣'['SHDC'.index(card[0])]}" for card in cards}
        for player in table.players:
            text = table.observe(player)
            words = set(text.replace(".", " ").split())
            assert hands[player] <= words
            assert not any(hands[other] & words for other in table.players if other != player)
            assert "Chips bet: " in text


@pytest.mark.parametrize(
    ("name", "lost", "said"),
    [
        ("leduc_holdem_v4", -0.5, "half of the chips that were won"),
        ("texas_holdem_v4", -0.5, "half of the chips that were won"),
        ("texas_holdem_no_limit_v6", -1.0, "at the end, the chips that were won"),
    ],
)
def test_rewards_of_poker_are_what_the_rules_say(name: str, lost: float, said: str) -> None:
    """Whoever bets first and folds has lost one chip: the small blind."""
    table = opened(name)
    folding = table.turn
    assert folding is not None
    assert said in table.observe(folding)
    assert play(table, "fold").rewards[folding] == lost


def test_hanabi_calls_its_moves_as_open_spiel_does_and_hides_the_own_hand() -> None:
    for arguments in ({}, {"players": 3, "colors": 3, "ranks": 2, "hand_size": 2}):
        table = PettingZooGame(factory("hanabi_v5", **arguments))
        table.reset(0, None)
        game = table.env.unwrapped.hanabi_env.game_state
        for action in np.flatnonzero(table.env.last()[0]["action_mask"]):
            assert f"({table.codecs['player_0'].encode(action)})" == game.action_to_string(0, int(action)).replace("D", "d", 1).replace(
                "P", "p", 1
            ).replace("(R", "(r")
        for player in table.players:
            own, *_ = table.observe(player).partition("Hands:\n")[2].replace("Cur player\n", "").split("-----")
            assert set(own.split("\n")[0].partition("|")[0].strip()) == {"X"}


def test_choices_that_are_made_at_once_are_told_when_all_have_made_theirs() -> None:
    table = opened("rps_v2")
    play(table, "rock")
    assert "rock" not in table.observe("player_1").rpartition("</action>")[2]
    assert play(table, "Paper!").rewards == {"player_0": -1.0, "player_1": 1.0}
    assert table.observe("player_0").endswith("Your opponent's last choice: paper.\n\nYou earned -1.")
    for _ in range(14):
        play(table, "rock", "rock")
    assert table.turn is None
    assert table.was_truncated


def test_larger_games_of_choices_have_the_names_that_their_rules_make_sense_with() -> None:
    table = PettingZooGame(factory("rps_v2", num_actions=5))
    table.reset(0, None)
    assert play(table, "spock", "rock").rewards["player_0"] == 1.0
    assert play(table, "lizard", "spock").rewards["player_0"] == 1.0
    assert play(table, "rock", "lizard").rewards["player_0"] == 1.0


@pytest.mark.parametrize("name", CLASSIC)
def test_every_game_tells_its_rules_and_nothing_about_its_code(name: str) -> None:
    table = opened(name)
    for player in table.players:
        text = table.observe(player)
        rules = text.partition("\n\n")[2].partition("\n\nPlayers: ")[0]
        assert len(rules) > 150
        assert f"You are {player}" in text
        assert not any(word in text for word in ("Our implementation", "```", "| Creation", "Observation Space", "array(", "import "))


def test_what_is_shown_and_how_moves_are_called_can_be_given() -> None:
    table = PettingZooGame(
        factory("tictactoe_v3"),
        rules="Three in a row.",
        obs_to_text=lambda observation: f"{int(observation['observation'].sum())} marks",
        action_names=["top left", "left", "bottom left", "top", "middle", "bottom", "top right", "right", "bottom right"],
    )
    table.reset(0, None)
    assert play(table, "I take the <action>Top Right</action>").is_valid
    text = table.observe("player_2")
    assert "\n\nThree in a row.\n\nPlayers:" in text
    assert "player_1 played: top right\n\n1 marks\n\nLegal actions: top left" in text


# Answers that are not moves


@pytest.mark.parametrize("answer", ["", "4 or 5", "nine", "9", "<think>4</think>"])
def test_who_names_no_move_is_asked_again_and_the_game_stands(answer: str) -> None:
    table = opened("tictactoe_v3")
    table.observe("player_1")
    before = table.env.observe("player_1")
    assert play(table, answer) == Played({"player_1": 0.0}, is_valid=False)
    assert table.turn == "player_1"
    assert same(before, table.env.observe("player_1"))
    assert "Legal actions: 0, 1, 2, 3, 4, 5, 6, 7, 8." in table.observe("player_1")
    assert "player_1 played" not in table.observe("player_2")


FRAGMENTS = ["<action>", "</action>", "</think>", "e4", "Nf3", "--", "4", "²", "9" * 30, "action", ":", "[", "{", '"', "\n", " ", "pass"]


@pytest.mark.parametrize("name", ["chess_v6", "go_v5", "tictactoe_v3"])
@given(answers=st.lists(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=6).map("".join), max_size=12))
@settings(max_examples=20)
def test_whatever_is_answered_is_a_move_or_asked_again(name: str, answers: list[str]) -> None:
    table = opened(name)
    for answer in answers:
        if table.turn is None:
            break
        player, before = table.turn, table.env.observe(table.turn)
        if not play(table, answer).is_valid:
            assert table.turn == player
            assert same(table.env.observe(player), before)


def test_an_illegal_move_is_not_played_though_the_game_would_end_with_it() -> None:
    table = opened("tictactoe_v3", invalid_reward=-0.5)
    play(table, "4")
    assert play(table, "4") == Played({"player_2": -0.5}, is_valid=False)
    assert table.turn == "player_2"
    assert table.observe("player_2").endswith("You earned -0.5.")
    play(table, "4", "0")
    assert "You cannot play 4 now.\n\nLegal actions: 0, 1, 2, 3, 5, 6, 7, 8." not in table.observe("player_1")


def test_an_illegal_move_is_told_with_what_is_legal() -> None:
    table = opened("tictactoe_v3")
    play(table, "4")
    table.observe("player_2")
    play(table, "4")
    assert table.observe("player_2") == "You cannot play 4 now.\n\nLegal actions: 0, 1, 2, 3, 5, 6, 7, 8."


def test_an_invalid_answer_can_end_the_game() -> None:
    table = opened("tictactoe_v3", on_invalid="terminate", invalid_reward=-1)
    play(table, "4")
    assert play(table, "4") == Played({"player_2": -1.0}, is_valid=False)
    assert table.turn is None
    assert not table.was_truncated
    assert table.terminations == {"player_1": True, "player_2": True}
    assert "You cannot play 4 now." in table.observe("player_2")
    assert table.observe("player_1").endswith("The game is over. Your total reward is 0.")


def test_a_game_is_truncated_after_its_most_moves() -> None:
    table = opened("connect_four_v3", max_moves=3)
    play(table, "0", "no move", "1")
    assert table.turn is None
    assert table.was_truncated
    assert table.truncations == {"player_0": True, "player_1": True}
    assert table.observe("player_0").endswith("The game was cut off after 3 moves. Your total reward is 0.")
    with pytest.raises(ResetNeeded):
        play(table, "1")


# Seeds and copies


@pytest.mark.parametrize("name", CLASSIC)
def test_random_numbers_are_the_tables_own(name: str) -> None:
    """Games without a seed follow from the last seed too, and nobody else's random numbers are touched."""
    state, numpy_state = random.getstate(), np.random.get_state()[1].tolist()
    tables = [opened(name, 7), opened(name, 7)]
    told = []
    for table in tables:
        first = [table.observe(player) for player in table.players]
        table.reset(None, None)
        second = [table.observe(player) for player in table.players]
        table.reset(7, None)
        assert [table.observe(player) for player in table.players] == first
        told.append((first, second))
    assert told[0] == told[1]
    assert random.getstate() == state
    assert np.random.get_state()[1].tolist() == numpy_state


def test_games_without_a_seed_differ() -> None:
    table = opened("texas_holdem_v4", None)
    hands = set()
    for _ in range(10):
        table.reset(None, None)
        hands.add(table.observe("player_0").partition("Your hand")[2])
    assert len(hands) > 5


@pytest.mark.parametrize("name", CLASSIC)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))], ids=["deepcopy", "pickle"])
def test_a_copy_goes_on_from_the_middle_of_a_game(name: str, copied: Callable[[PettingZooGame], PettingZooGame]) -> None:
    table, rng = opened(name, 3), np.random.default_rng(3)
    for _ in range(2):
        table.reset(None, None)
    for _ in range(5):
        if table.turn is not None:
            table.observe(table.turn)
            table.move(table.sample_move(table.turn, rng))
    if table.turn is not None:
        play(table, "no move at all")
    twin = copied(table)
    assert twin.env is not table.env
    for _ in range(20):
        assert twin.turn == table.turn
        assert [twin.observe(player) for player in twin.players] == [table.observe(player) for player in table.players]
        if table.turn is None:
            break
        move = table.sample_move(table.turn, rng)
        assert twin.move(move) == table.move(move)
    twin.reset(None, None)
    table.reset(None, None)
    assert twin.observe(twin.players[0]) == table.observe(table.players[0])


def test_a_copy_of_a_stopped_game_is_stopped() -> None:
    table = opened("tictactoe_v3", max_moves=2)
    play(table, "4", "0")
    twin = pickle.loads(pickle.dumps(table))
    assert twin.turn is None
    assert twin.was_truncated
    assert twin.observe("player_1") == table.observe("player_1")


# Other environments


class Elimination(AECEnv):
    """Three agents name numbers in turn. Whoever names the highest number of its vector leaves; the last one wins. No masks."""

    metadata = {"name": "elimination_v0", "render_modes": []}

    def __init__(self, size: int = 2, longest: int = 12) -> None:
        super().__init__()
        self.possible_agents = ["red_0", "green_0", "blue_0"]
        self.longest = longest
        self.render_mode = None
        self._actions = {agent: gym.spaces.MultiDiscrete([3, 3]) for agent in self.possible_agents}
        self._observations = {agent: gym.spaces.Box(0, 9, (size,), np.float32) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self._observations[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.options = options
        self.agents = [*self.possible_agents]
        self._selector = AgentSelector(self.agents)
        self.agent_selection = self._selector.reset()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"mood": "good"} for agent in self.agents}
        self.steps = 0

    def observe(self, agent: str) -> Any:
        assert agent in self.agents, "who has left sees nothing"
        return np.full(self._observations[agent].shape, self.steps % 10, np.float32)

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        assert self._actions[agent].contains(action)
        self.steps += 1
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.rewards[agent] = 0.25
        following = self._selector.next()
        if np.max(action) == 2:
            self.terminations[agent] = True
            self._selector = AgentSelector([other for other in self.agents if not self.terminations[other]])
            if len(self._selector.agent_order) == 1:
                (winner,) = self._selector.agent_order
                self.rewards[winner] += 10.0
                self.terminations[winner] = True
            following = self._selector.next()
        if self.steps >= self.longest:
            self.truncations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()
        self.agent_selection = following
        self._deads_step_first()


class Masked(Elimination):
    """Nobody leaves, but the number that was named last is not legal. The mask stands in the info; the first number is 3."""

    def __init__(self) -> None:
        super().__init__()
        self._actions = {agent: gym.spaces.Discrete(4, start=3) for agent in self.possible_agents}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        super().reset(seed, options)
        self._mask(3)

    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None:
            self._mask(int(action))

    def _mask(self, named: int) -> None:
        mask = (np.arange(3, 7) != named).astype(np.int8)
        self.infos = {agent: {"action_mask": mask, "mood": "good"} for agent in self.agents}


class Emptied(Elimination):
    """Empties `agents` itself once it is over, without a last step for each of them."""

    def __init__(self, flag: str) -> None:
        super().__init__(longest=2)
        self.flag = flag

    def observe(self, agent: str) -> Any:
        return np.zeros(2, np.float32)

    def step(self, action: Any) -> None:
        super().step(action)
        if self.steps == 2:
            self.terminations = dict.fromkeys(self.possible_agents, self.flag == "terminations")
            self.truncations = dict.fromkeys(self.possible_agents, self.flag == "truncations")
            self.agents = []


@pytest.mark.parametrize(("flag", "ends"), [("terminations", (True, False)), ("truncations", (False, True)), ("none", (True, False))])
def test_an_environment_that_empties_its_agents_is_over(flag: str, ends: tuple[bool, bool]) -> None:
    env = PettingZooEnv(lambda: Emptied(flag), opponents=lambda observation, info: "[0, 0]")
    env.reset(seed=0)
    outcome = env.step("[0, 0]")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (*ends, "game_over" if ends[0] else "game_truncated")


class Drawn(Elimination):
    """Draws itself as text."""

    def __init__(self, render_mode: str) -> None:
        super().__init__(size=1000)
        self.render_mode = render_mode

    def render(self) -> str:
        return f"\x1b[31m{self.steps}\x1b[0m steps so far"


@pytest.mark.parametrize("make_env", [Elimination, Masked, functools.partial(Elimination, longest=3)])
def test_any_environment_is_the_same_game(make_env: Callable[[], Any]) -> None:
    for seed in range(20):
        check_same_game(make_env, seed)


def test_a_mask_in_the_info_counts() -> None:
    table = PettingZooGame(Masked, action_names={"red_0": ["a", "b", "c", "d"], "blue_0": None})
    table.reset(0, None)
    assert table.legal_moves("red_0") == ["b", "c", "d"]
    assert table.info("red_0") == {"mood": "good"}
    assert not play(table, "a").is_valid
    assert play(table, "c").is_valid
    assert table.legal_moves("green_0") == ["3", "4", "6"]
    rng = np.random.default_rng(0)
    assert {table.sample_move("green_0", rng).content for _ in range(50)} == {"3", "4", "6"}


def test_a_drawing_in_text_is_shown_and_colours_as_brackets() -> None:
    table = PettingZooGame(Drawn, game_options={"render_mode": "ansi"})
    table.reset(0, None)
    assert table.observe("red_0").endswith("\n\n[0] steps so far")


def test_players_leave_one_by_one() -> None:
    """Who is out is shown the game as it left it, is not asked again, and still earns what the others' moves earn it."""
    table = PettingZooGame(Elimination)
    table.reset(0, None)
    assert table.players == ("red_0", "green_0", "blue_0")
    assert "Three agents name numbers in turn." in table.observe("red_0")
    assert table.info("red_0") == {"mood": "good"}
    assert play(table, "[2, 0]").rewards == {"red_0": 0.25, "green_0": 0.0, "blue_0": 0.0}
    assert table.turn == "green_0"
    assert table.terminations == {"red_0": True, "green_0": False, "blue_0": False}
    assert "You are out of the game." in table.observe("red_0")
    assert table.info("red_0") == {}
    assert play(table, "[1, 1]", "[0, 0]").is_valid
    assert table.observe("red_0") != ""
    assert play(table, "<action>[1, 2]</action>").rewards == {"green_0": 0.25, "blue_0": 10.0}
    assert table.turn is None
    assert not table.was_truncated
    assert table.observe("blue_0").endswith("The game is over. Your total reward is 10.25.")
    assert table.observe("red_0").endswith("The game is over. Your total reward is 0.25.")


def test_a_limit_of_the_environment_truncates() -> None:
    table = PettingZooGame(functools.partial(Elimination, longest=2))
    table.reset(0, {"speed": "high"})
    assert table.env.options == {"speed": "high"}
    play(table, "[2, 0]", "[0, 0]")
    assert table.turn is None
    assert table.was_truncated
    assert (table.terminations["red_0"], table.truncations["red_0"]) == (True, False)
    assert table.truncations["blue_0"]


def test_what_cannot_be_copied_is_told_as_it_is() -> None:
    table, lock = PettingZooGame(Elimination), threading.Lock()
    table.reset(0, None)
    table.env.infos["red_0"] = {"lock": lock, "moods": ["good"]}
    told = table.info("red_0")
    assert told == {"lock": lock, "moods": ["good"]}
    assert told["moods"] is not table.env.infos["red_0"]["moods"]


def test_a_mask_that_allows_nothing_is_named() -> None:
    table = PettingZooGame(Masked)
    table.reset(0, None)
    table.env.infos["red_0"]["action_mask"] = np.zeros(4, np.int8)
    with pytest.raises(ConfigurationError, match=r"red_0 .* mask allows no action"):
        table.sample_move("red_0", np.random.default_rng(0))


class Choosy(Elimination):
    """Nobody leaves. Actions are of any space, and the same mask holds in every turn: in the observation, or in the info."""

    def __init__(self, space: gym.Space[Any], mask: Any, is_observed: bool = False) -> None:
        super().__init__()
        self._actions = {agent: copy.deepcopy(space) for agent in self.possible_agents}
        self.mask, self.is_observed = mask, is_observed
        if is_observed:
            space_of_mask = gym.spaces.Tuple([gym.spaces.MultiBinary(len(part)) for part in mask])
            self._observations = {
                agent: gym.spaces.Dict(observation=numbers, action_mask=space_of_mask) for agent, numbers in self._observations.items()
            }

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        super().reset(seed, options)
        if not self.is_observed:
            self.infos = {agent: {"action_mask": self.mask} for agent in self.agents}

    def observe(self, agent: str) -> Any:
        numbers = np.full(2, self.steps % 10, np.float32)
        return {"observation": numbers, "action_mask": self.mask} if self.is_observed else numbers

    def step(self, action: Any) -> None:
        assert self._actions[self.agent_selection].contains(action)
        self.steps += 1
        self.agent_selection = self._selector.next()


def choosy(space: gym.Space[Any], mask: Any, is_observed: bool = False, **options: Any) -> PettingZooGame:
    table = PettingZooGame(functools.partial(Choosy, space, mask, is_observed), **options)
    table.reset(0, None)
    return table


TWO_CHOICES = gym.spaces.MultiDiscrete([3, 3])


@pytest.mark.parametrize(
    ("space", "mask", "legal", "illegal"),
    [
        (TWO_CHOICES, ([False, True, False], [1, 0, 1]), {"[1, 0]", "[1, 2]"}, ["[0, 0]", "[1, 1]", "[2, 2]"]),
        (gym.spaces.MultiBinary(3), [0, 1, 2], {"[0, 1, 0]", "[0, 1, 1]"}, ["[1, 1, 0]", "[0, 0, 1]"]),
        (
            gym.spaces.Tuple([gym.spaces.Discrete(3, start=5), gym.spaces.Discrete(2)]),
            (np.array([0, 1, 1], np.int8), None),
            {"[6, 0]", "[6, 1]", "[7, 0]", "[7, 1]"},
            ["[5, 0]", "[5, 1]"],
        ),
        (
            gym.spaces.Dict(move=gym.spaces.Discrete(3), aim=TWO_CHOICES),
            {"move": [1, 0, 0], "aim": ([1, 0, 0], [0, 1, 0])},
            {'{"move": 0, "aim": [0, 1]}'},
            ['{"move": 1, "aim": [0, 1]}', '{"move": 0, "aim": [1, 1]}', '{"move": 0, "aim": [0, 0]}'],
        ),
    ],
    ids=["MultiDiscrete", "MultiBinary", "Tuple", "Dict"],
)
def test_a_mask_of_any_space_is_kept_to(space: gym.Space[Any], mask: Any, legal: set[str], illegal: list[str]) -> None:
    """What it forbids is not played: the player is told and asked again. What it allows is played, and is what random players do."""
    table, rng = choosy(space, mask, invalid_reward=-0.5), np.random.default_rng(0)
    assert {table.sample_move("red_0", rng).content for _ in range(60)} == legal
    table.observe("red_0")
    for move in illegal:
        assert play(table, move) == Played({"red_0": -0.5}, is_valid=False)
        assert table.observe("red_0").split("\n\n") == [f"You cannot play {move} now.", "You earned -0.5."]
        assert (table.turn, table.env.steps) == ("red_0", 0)
    for steps, move in enumerate(sorted(legal), 1):
        assert play(table, move).is_valid
        assert table.env.steps == steps


def test_a_move_of_several_choices_that_is_not_legal_can_end_the_game() -> None:
    table = choosy(TWO_CHOICES, ([1, 0, 0], [1, 1, 1]), on_invalid="terminate")
    assert not play(table, "[1, 1]").is_valid
    assert table.turn is None
    assert table.env.steps == 0


def test_a_mask_that_is_not_told_as_a_list_of_moves_is_shown() -> None:
    mask = (np.array([0, 1, 0], np.int8), np.array([1, 0, 1], np.int8))
    table = choosy(TWO_CHOICES, mask, is_observed=True)
    assert table.legal_moves("red_0") is None
    shown = table.observe("red_0").partition("</action>")[2]
    assert "action_mask" in shown
    assert "[0, 1, 0]" in shown
    assert not play(table, "[0, 0]").is_valid
    assert play(table, "[1, 2]").is_valid
    assert same(choosy(TWO_CHOICES, mask).info("red_0"), {"action_mask": mask})


@pytest.mark.parametrize("mask", [[1, 0, 1], ([1, 0, 1], [1, 0]), ([1, 0, 1], [1, 0, 2]), 1, ([1, 0, 1], None)])
def test_a_mask_that_is_none_of_its_space_is_named(mask: Any) -> None:
    table = choosy(TWO_CHOICES, mask)
    with pytest.raises(ConfigurationError, match=r"expected an action mask of MultiDiscrete\(\[3 3\]\)"):
        play(table, "[0, 0]")
    with pytest.raises(ConfigurationError, match=r"expected an action mask of MultiDiscrete\(\[3 3\]\)"):
        table.sample_move("red_0", np.random.default_rng(0))


def test_any_action_space_is_played_and_sampled() -> None:
    table, rng = PettingZooGame(Elimination), np.random.default_rng(0)
    table.reset(0, None)
    while table.turn is not None:
        assert table.legal_moves(table.turn) is None
        assert table.move(table.sample_move(table.turn, rng)).is_valid
    assert not play_after_reset(table, "[3, 0]").is_valid
    assert not play(table, "[1]").is_valid


def play_after_reset(table: PettingZooGame, move: str) -> Played:
    table.reset(0, None)
    return play(table, move)


class Careless(Elimination):
    """Prints its drawing, and cannot be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.render_mode = "ansi"

    def render(self) -> None:
        print("a drawing")

    def close(self) -> None:
        raise RuntimeError("already closed")


def test_what_is_printed_and_what_close_raises_costs_no_game(caplog: pytest.LogCaptureFixture) -> None:
    env = vfgym.to_chat(Careless)
    assert str(env.reset(seed=0)[0][-1].content).endswith("[0, 0]")
    results = vfgym.evaluate(env, agent=lambda observation, info: "[1, 2]", num_examples=1)
    assert [row["error"] for row in results["outputs"]] == [None]
    env.close()
    assert {record.message.partition(" could not be closed: ")[2] for record in caplog.records} == {"RuntimeError('already closed')"}


class Guessing(ParallelEnv):
    """Both name a number at once, twice; who names the higher one in a round wins it."""

    metadata = {"name": "guessing_v0", "render_modes": []}
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = ["low_0", "high_0"]
        self._actions = {agent: gym.spaces.Discrete(5) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Discrete(3)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents, self.rounds = [*self.possible_agents], 0
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        low, high = (int(actions[agent]) for agent in self.agents)
        self.rounds += 1
        told, is_over = dict.fromkeys(self.agents, self.rounds), dict.fromkeys(self.agents, self.rounds == 2)
        rewards, infos = {"low_0": float(low > high), "high_0": float(high > low)}, {agent: {} for agent in self.agents}
        self.agents = self.agents if self.rounds < 2 else []
        return told, rewards, is_over, dict.fromkeys(is_over, False), infos


@pytest.mark.parametrize("make_parallel", [Guessing, "classic/rps_v2", "butterfly/knights_archers_zombies_v11"])
def test_the_agents_of_a_parallel_environment_act_in_turn(make_parallel: Any) -> None:
    if isinstance(make_parallel, str):
        factory(make_parallel)
        make_parallel = functools.partial(pettingzoo.make, "parallel", make_parallel)
    table, rng = PettingZooGame(make_parallel, max_moves=50), np.random.default_rng(0)
    table.reset(0, None)
    movers = []
    while table.turn is not None:
        movers.append(table.turn)
        assert table.move(table.sample_move(table.turn, rng)).is_valid
    assert movers[: 2 * len(table.players)] == [*table.players] * 2
    table.close()


def test_a_parallel_environment_is_found_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    from pettingzoo.env_registry import registration

    monkeypatch.delitem(registration.aec_registry, "classic/rps-v2")
    env = vfgym.to_chat("classic/rps_v2")
    env.reset(seed=0)
    assert not env.step("rock").truncated


def test_a_parallel_environment_whose_agents_act_in_turn_is_the_same_game() -> None:
    for seed in range(5):
        check_same_game(lambda: parallel_to_aec(Guessing()), seed)
    table = PettingZooGame(Guessing)
    table.reset(0, None)
    assert play(table, "3").rewards == {"low_0": 0.0, "high_0": 0.0}
    assert "3" not in table.observe("high_0").rpartition("</action>")[2]
    assert play(table, "4").rewards == {"low_0": 0.0, "high_0": 1.0}
    assert play(table, "2", "1").rewards == {"low_0": 1.0, "high_0": 0.0}
    assert table.turn is None
    assert table.observe("low_0").endswith("The game is over. Your total reward is 1.")


@pytest.mark.parametrize(
    ("make_env", "options", "said"),
    [
        (lambda: gym.make("CartPole-v1"), {}, "plays PettingZoo's environments, got TimeLimit"),
        (Elimination(), {}, "an id or a function that makes an environment, got Elimination"),
        (functools.partial(Elimination, size=1000), {}, "give obs_to_text"),
        (Elimination, {"on_invalid": "ignore"}, "on_invalid must be one of feedback, terminate"),
        ("classic/tictactoe_v0", {}, "Did you mean `classic/tictactoe_v3`"),
        ("classic/ches_v6", {}, "Did you mean `classic/chess_v6`"),
        ("board/chess_v6", {}, "Did you mean `classic/chess_v6`"),
        (Elimination, {"max_moves": 0}, "max_moves must be at least 1"),
        (Elimination, {"action_names": ["a"]}, "names"),
    ],
)
def test_what_cannot_be_played_is_refused(make_env: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        PettingZooGame(make_env, **options)


def test_an_environment_that_is_there_is_refused_with_what_to_give() -> None:
    with pytest.raises(ConfigurationError, match="Guessing is an environment of PettingZoo, of which to_chat has to make more"):
        vfgym.to_chat(Guessing())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="give it its id, or a function that makes it"):
        vfgym.to_chat(factory("tictactoe_v3")())


def test_arguments_of_the_game_are_told_from_unknown_ones() -> None:
    with pytest.raises(UnknownArgument, match=r"'board_size', which is one of the game: give game_options=\{'board_size': 5\}"):
        vfgym.to_chat("classic/go_v5", board_size=5)
    with pytest.raises(UnknownArgument, match=r"no argument 'max_turn'\. Did you mean `max_turns`"):
        vfgym.to_chat("classic/go_v5", max_turn=5)


def test_players_are_asked_for_by_name_and_after_a_reset() -> None:
    table = PettingZooGame(Elimination)
    with pytest.raises(ResetNeeded):
        table.observe("red_0")
    with pytest.raises(ResetNeeded):
        play(table, "[0, 0]")
    table.reset(0, None)
    with pytest.raises(ConfigurationError, match="no player 'player_0' at this table; there are red_0, green_0, blue_0"):
        table.observe("player_0")


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_a_table_serves_a_chat_environment(opponents: str) -> None:
    env = PettingZooEnv("classic/tictactoe_v3", opponents=opponents)
    agent = vfgym.RandomAgent()
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        answer = agent.for_episode(env)
        over = False
        while not over:
            observation, _, terminated, truncated, info = env.step(answer(observation, info))
            over = terminated or truncated
        assert info["stop_condition"] == "game_over"
        assert sum(info["rewards"].values()) == 0.0
    env.close()


@pytest.mark.parametrize("name", ["chess_v6", "leduc_holdem_v4", "rps_v2", "tictactoe_v3"])
def test_a_seat_is_all_that_an_environment_must_be(name: str) -> None:
    """Gymnasium's checks, seeds, copies in the middle of an episode, and the rest of what ``vfgym check`` looks at."""
    factory(name)
    checks = check_environment(functools.partial(PettingZooEnv, f"classic/{name}", max_turns=8))
    assert not [check for check in checks if not check.passed]


def test_the_game_of_a_seat_is_made_with_its_options() -> None:
    env = PettingZooEnv("classic/go_v5", game_options={"board_size": 5}, rules="Five by five.", opponents=lambda observation, info: "pass")
    (message,), info = env.reset(seed=0)
    assert "Five by five." in message.content
    assert len(info["legal_actions"]) == 26
    assert env.env_id == "pettingzoo/go-v5"
    *_, terminated, truncated, _ = env.step("pass")
    assert (terminated, truncated) == (True, False)


@pytest.mark.parametrize("env_id", [env_id for env_id, spec in gym.registry.items() if spec.namespace == "pettingzoo"])
def test_an_environment_has_the_name_under_which_it_is_registered(env_id: str) -> None:
    factory(gym.spec(env_id).kwargs["game"])
    assert gym.make(env_id).unwrapped.env_id == env_id


def test_a_seat_ends_as_its_player_does() -> None:
    """Red is out by the rules at its first move, and the limit of the environment ends the game of the others."""
    moves = {"red_0": "[2, 0]", "green_0": "[0, 0]", "blue_0": "[0, 1]"}
    for seat, (player, ends) in enumerate({"red_0": (True, False), "green_0": (False, True), "blue_0": (False, True)}.items()):
        others = {other: lambda observation, info, move=move: move for other, move in moves.items() if other != player}
        env = PettingZooEnv(functools.partial(Elimination, longest=4), seat=seat, opponents=others)
        env.reset(seed=0)
        is_over = False
        while not is_over:
            _, _, *ended, info = env.step(moves[player])
            is_over = any(ended)
        assert (tuple(ended), info["stop_condition"]) == (ends, "game_over" if ends[0] else "game_truncated")
        env.close()


# Conversations as PettingZoo environments


def chat_aec(name: str, /, **options: Any) -> Any:
    return to_pettingzoo(functools.partial(PettingZooGame, factory(name)), **options)


def test_of_the_options_of_a_reset_those_that_are_known_are_handed_on() -> None:
    aec: Any = to_pettingzoo(lambda: PettingZooGame(Elimination))
    aec.reset(seed=0, options={"game_options": {"speed": "high"}, "options": 1})
    assert aec.game.env.options == {"speed": "high"}
    solo: Any = to_pettingzoo(vfgym.to_chat("CartPole-v1"))
    solo.reset(seed=0, options={"example_id": 7, "options": 1})
    assert solo.infos["player_0"]["example_id"] == 7


@pytest.mark.parametrize("make", [lambda: chat_aec("tictactoe_v3"), lambda: to_pettingzoo(vfgym.to_chat("CartPole-v1"))])
def test_an_agent_that_there_is_not_is_named(make: Any) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="no agent 'nobody'; there are player_0"):
        env.observe("nobody")


@pytest.mark.parametrize("name", CLASSIC)
@pytest.mark.filterwarnings("ignore::UserWarning")  # it would rather have arrays
def test_pettingzoos_own_test_passes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    api_test(chat_aec(name), num_cycles=30)
    assert "Passed API test" in capsys.readouterr().out


@pytest.mark.parametrize("name", CLASSIC)
def test_pettingzoos_own_test_of_seeds_passes(name: str) -> None:
    seed_test(functools.partial(chat_aec, name), num_cycles=10)


@pytest.mark.parametrize("name", CLASSIC)
def test_there_and_back_it_is_the_same_game(name: str) -> None:
    """An environment that became a table that became an environment has the agents, rewards and ends of the first one."""
    make_env = factory(name)
    for seed in range(2):
        env = chat_aec(name)
        env.reset(seed=seed)
        for native, action in natively(make_env, seed, most=30):
            if action is None:
                break
            assert env.players[env.agent_selection] == native.agent_selection
            assert not env.last()[2]
            env.step(said(env.game, action))
            named = {env.players[agent]: env.rewards[agent] for agent in env.agents}
        else:
            continue
        assert named == native.rewards
        assert {env.players[agent]: env.terminations[agent] for agent in env.agents} == native.terminations
        assert {env.players[agent]: env.truncations[agent] for agent in env.agents} == native.truncations


@given(st.lists(st.sampled_from(["[0, 0]", "[1, 1]", "[2, 0]"]), min_size=8, max_size=8))
@settings(max_examples=40)
def test_agents_who_leave_at_different_times_end_as_they_do_natively(moves: list[str]) -> None:
    def ends(env: Any, reads: Callable[[str], Any]) -> dict[str, tuple[float, bool, bool]]:
        env.reset(seed=0)
        named, totals, ended = iter(moves), dict.fromkeys(env.agents, 0.0), {}
        for agent in env.agent_iter():
            _, reward, terminated, truncated, _ = env.last()
            totals[agent] += reward
            ended[agent] = (totals[agent], terminated, truncated)
            env.step(None if terminated or truncated else reads(next(named)))
        return ended

    make_env = functools.partial(Elimination, longest=8)
    native = ends(make_env(), lambda move: np.array([int(move[1]), int(move[4])]))
    env = to_pettingzoo(lambda: PettingZooGame(make_env))
    assert {env.players[agent]: end for agent, end in ends(env, str).items()} == native


def test_a_limit_of_the_chat_environment_truncates_those_who_are_still_in_the_game() -> None:
    aec = to_pettingzoo(PettingZooEnv(Elimination, max_invalid_moves=1))
    aec.reset(seed=0)
    aec.step("[2, 0]")
    aec.step("banana")
    ended = {aec.players[agent]: (aec.terminations[agent], aec.truncations[agent]) for agent in aec.agents}
    assert ended == {"red_0": (True, False), "green_0": (False, True), "blue_0": (False, True)}
    assert {info["stop_condition"] for info in aec.infos.values()} == {"too_many_invalid_moves"}


def test_legal_actions_are_told_where_the_chat_environment_tells_them() -> None:
    for told in (True, False):
        aec = to_pettingzoo(PettingZooEnv("classic/tictactoe_v3", tell_legal_actions=told))
        aec.reset(seed=0)
        assert ("legal_actions" in aec.last()[4]) is told


def test_agents_have_conversations_of_their_own() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    for move in ("4", "0", {"role": "assistant", "content": "Action: 1"}, AssistantMessage("<action>2</action>")):
        env.last()
        env.step(move)
    conversation, reward, terminated, truncated, info = env.last()
    assert env.agent_selection == "player_0"
    assert [message.role for message in conversation] == ["user", "assistant"] * 2 + ["user"]
    assert [message.content for message in conversation[1::2]] == ["4", "Action: 1"]
    assert "player_2 played: 0" in conversation[2].content
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert info == {"player": "player_1", "game_info": {}, "legal_actions": ["3", "5", "6", "7", "8"]}
    assert env.observation_space("player_0").contains(conversation)
    assert env.observe("player_0") == conversation


def test_a_conversation_holds_what_was_said_and_nothing_of_how_it_was_sampled() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    tokens = ResponseTokens([1], [0], [2], [1], [-0.1])
    env.step(Response("r", 0, "m", None, {"content": "4", "reasoning_content": "Hm.", "finish_reason": "stop", "tokens": tokens}))
    said = env.observe("player_0")[1]
    assert type(said) is AssistantMessage
    assert said == {"role": "assistant", "content": "4", "reasoning_content": "Hm."}


def test_what_an_agent_is_told_between_two_of_its_messages_is_one_message() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    early = env.observe("player_1")
    env.step("4")
    conversation = env.observe("player_1")
    assert len(early) == len(conversation) == 1
    assert conversation[0].content.startswith(early[0].content)
    assert "player_1 played: 4" in conversation[0].content


def test_an_agent_that_names_no_move_stays_selected_and_is_told() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    env.step("somewhere")
    assert env.agent_selection == "player_0"
    conversation = env.last()[0]
    assert [message.role for message in conversation] == ["user", "assistant", "user"]
    with pytest.raises(InvalidAction):
        env.step(UserMessage("4"))
    assert env.last()[0] == conversation


def test_all_leave_when_the_game_is_over() -> None:
    env = chat_aec("tictactoe_v3", name="noughts_v0")
    assert str(env) == "noughts_v0"
    env.reset(seed=0)
    for move in "03142":
        env.step(move)
    ends = {}
    with pytest.raises(ValueError, match="None"):
        env.step("4")
    for agent in env.agent_iter():
        conversation, reward, terminated, truncated, info = env.last()
        ends[agent] = (reward, terminated, truncated)
        assert "The game is over." in conversation[-1].content
        assert "legal_actions" not in info
        env.step(None)
    assert ends == {"player_0": (1.0, True, False), "player_1": (-1.0, True, False)}
    assert env.agents == []
    with pytest.raises(ResetNeeded):
        env.step(None)
    env.reset(seed=0)
    assert env.agents == ["player_0", "player_1"]


def test_it_can_be_wrapped_as_any_other() -> None:
    env = wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(chat_aec("connect_four_v3")))
    with pytest.raises(AttributeError, match="before reset"):
        _ = env.agent_selection
    env.reset(seed=1)
    with pytest.raises(AssertionError, match="not in action space"):
        env.step(3)
    for agent in env.agents:
        env.action_space(agent).seed(1)
    total = 0.0
    for agent in env.agent_iter():
        _, reward, terminated, truncated, _ = env.last()
        total += abs(reward)
        env.step(None if terminated or truncated else env.action_space(agent).sample())
    assert total == 2.0


def test_samples_are_legal_moves_of_whose_turn_it_is_and_words_else() -> None:
    env = chat_aec("connect_four_v3")
    env.reset(seed=0)
    assert {env.action_space("player_0").sample().content for _ in range(60)} == set("0123456")
    assert not {env.action_space("player_1").sample().content for _ in range(20)} <= set("0123456")


def test_it_is_copied_in_the_middle() -> None:
    env = chat_aec("tictactoe_v3")
    env.reset(seed=0)
    env.step("4")
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert twin.last() == env.last()
        twin.step("0")
        assert twin.agent_selection == "player_0"
        assert env.agent_selection == "player_1"
        assert twin.action_space("player_0").sample().content in twin.infos["player_0"]["legal_actions"]


def test_it_renders_conversations(capsys: pytest.CaptureFixture[str]) -> None:
    env = chat_aec("tictactoe_v3", render_mode="ansi")
    env.reset(seed=0)
    env.last()
    env.step("Action: 4")
    assert "player_0:\n[user] You are playing Tic Tac Toe." in env.render()
    assert "[assistant] Action: 4" in env.render()
    env = chat_aec("tictactoe_v3", render_mode="human")
    env.reset(seed=0)
    env.observe("player_1")
    env.step("4")
    assert env.render() is None
    printed = capsys.readouterr().out
    assert printed.count("[user] You are playing") == 2
    assert printed.count("[assistant] 4") == 1
    assert printed.count("player_1 played: 4") == 1
    with pytest.raises(ConfigurationError, match="render_mode must be one of ansi, human"):
        chat_aec("tictactoe_v3", render_mode="rgb_array")


def test_a_multiplayer_environment_becomes_its_game() -> None:
    env = to_pettingzoo(PettingZooEnv("classic/connect_four_v3", system_prompt="Play well."))
    env.reset(seed=0)
    first, second = env.observe("player_1")
    assert first == SystemMessage("Play well.")
    assert isinstance(second, UserMessage)
    env.step("0")
    assert env.agent_selection == "player_1"


def test_a_chat_environment_becomes_an_environment_of_one_agent(capsys: pytest.CaptureFixture[str]) -> None:
    def make(render_mode: str | None = None) -> Any:
        sums = vfgym.SingleTurnEnv(dataset=[{"question": "1 + 1", "answer": "2"}, {"question": "2 + 2", "answer": "4"}])
        return to_pettingzoo(sums, render_mode=render_mode)

    env = make("human")
    env.reset(seed=0)
    assert env.agents == ["player_0"]
    conversation, *_ = env.last()
    assert conversation[-1].role == "user"
    env.step("2")
    conversation, reward, terminated, truncated, info = env.last()
    assert conversation[-1].content == "2"
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert "stop_condition" in info
    env.step(None)
    assert env.agents == []
    assert env.render() is None
    assert capsys.readouterr().out.count("[assistant] 2") == 1
    seed_test(make)
    parallel = aec_to_parallel(make())
    parallel.reset(seed=0)
    observations, rewards, terminations, _, _ = parallel.step({"player_0": "2"})
    assert terminations == {"player_0": True}
    assert rewards == {"player_0": 0.0}
    assert observations["player_0"][-1].content == "2"


def test_an_episode_that_a_wrapper_ends_is_scored_in_its_last_step() -> None:
    """As `evaluate` and `to_textarena` do."""

    def answers(completion: Any) -> float:
        return float(sum(message.role == "assistant" for message in completion))

    rubric = vfgym.Rubric(answers)
    rubric.add_step_reward_func(lambda: 0.25)
    env = to_pettingzoo(gym.wrappers.TimeLimit(Talk(rubric=rubric), 2))
    env.reset(seed=0)
    seen = []
    for _ in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        seen.append((reward, terminated, truncated, info["stop_condition"], info["metrics"]["answers"]))
        env.step(None if truncated else "a")
    assert seen == [(0.0, False, False, None, 0.0), (0.25, False, False, None, 0.0), (2.25, False, True, "truncated", 2.0)]
    env.reset(seed=1)
    assert env.last()[4]["stop_condition"] is None


def test_an_id_does_as_well_as_an_environment() -> None:
    one, several = to_pettingzoo("gymnasium/CartPole-v1"), to_pettingzoo(gym.spec("pettingzoo/tictactoe-v3"))
    assert (one.possible_agents, several.possible_agents) == (["player_0"], ["player_0", "player_1"])
    several.reset(seed=0)
    assert several.last()[4]["player"] == "player_1"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (gym.make("CartPole-v1", disable_env_checker=True), "take 'gymnasium/CartPole-v1', or wrap it with vfgym.to_chat"),
        ("CartPole-v1", "take 'gymnasium/CartPole-v1', or wrap it with vfgym.to_chat"),
        (3, "to_pettingzoo takes a chat environment, the id of one"),
    ],
)
def test_what_is_no_conversation_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        to_pettingzoo(given)


# The limits of the chat environment


def endings(aec: Any, answers: Iterator[str]) -> tuple[int, set[bool], set[str]]:
    """Play a game to its end. Return how many answers were given, whether agents were truncated, and the stop conditions they are told."""
    aec.reset(seed=0)
    answered, conditions, truncations = 0, set(), set()
    for _ in aec.agent_iter():
        _, _, terminated, truncated, info = aec.last()
        if terminated or truncated:
            truncations.add(truncated)
            conditions.add(info["stop_condition"])
            aec.step(None)
        else:
            aec.step(next(answers))
            answered += 1
    return answered, truncations, conditions


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_an_agent_that_finds_no_valid_move_truncates_the_game_as_in_conversation(opponents: str) -> None:
    env = PettingZooEnv("classic/tictactoe_v3", max_invalid_moves=3, opponents=opponents)
    answers = ["4", "banana", "banana", "0", "banana", "banana", "8", "banana", "banana", "banana"]
    assert endings(to_pettingzoo(env), iter(answers)) == (10, {True}, {"too_many_invalid_moves"})
    env.reset(seed=0)
    outcome = [env.step("banana") for _ in range(3)][-1]
    assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "too_many_invalid_moves")
    env.close()


def test_invalid_moves_of_one_agent_are_none_of_another() -> None:
    aec = to_pettingzoo(PettingZooEnv("classic/tictactoe_v3", max_invalid_moves=2))
    moves = ["banana", "0", "banana", "1", "banana", "3", "banana", "4", "banana", "6"]
    assert endings(aec, iter(moves)) == (10, {False}, {"game_over"})


def test_who_has_had_all_its_turns_truncates_the_game() -> None:
    """Each agent has as many turns as the policy has in the conversation; in self-play that are the turns of all."""
    moves = [f"[{cell}]" for cell in (0, 1, 2, 4, 3, 5, 7, 6, 8)]
    for most, together, answered in ((2, False, 4), (3, True, 3), (-1, False, 9)):
        env = vfgym.TextArenaEnv("TicTacToe-v0", max_turns=most, opponents="self" if together else "random")
        reason = "max_turns_reached" if most > 0 else "game_over"
        assert endings(to_pettingzoo(env), iter(moves)) == (answered, {most > 0}, {reason})


def test_a_table_has_no_limits_but_its_own() -> None:
    aec = to_pettingzoo(lambda: PettingZooGame("classic/tictactoe_v3", max_moves=30))
    assert endings(aec, iter(["banana"] * 30)) == (30, {True}, {"game_truncated"})


def test_without_pettingzoo_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtra, match=r"PettingZooGame needs .*vfgym\[pettingzoo\]"):
        PettingZooGame("classic/tictactoe_v3")
    with pytest.raises(MissingExtra, match=r"to_pettingzoo needs .*vfgym\[pettingzoo\]"):
        to_pettingzoo(lambda: PettingZooGame(Elimination))


def test_importing_it_does_not_import_pettingzoo() -> None:
    code = "import sys, vfgym.wrappers.pettingzoo; sys.exit('pettingzoo' in sys.modules)"
    assert run_python(code).returncode == 0


def cut_off(text: str) -> vfgym.Response:
    return vfgym.Response("r", 0, "m", None, vfgym.ResponseMessage(text, finish_reason="length"))


def connect_four(**options: Any) -> PettingZooEnv:
    factory("connect_four_v3")
    return PettingZooEnv("classic/connect_four_v3", **options)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("opponents", ["random", "self"])
async def test_a_sentence_that_was_cut_off_is_no_move(opponents: str, blocking: bool) -> None:
    env = connect_four(opponents=opponents, blocking=blocking)
    await env.areset(seed=0)
    said = "Action: 3"
    first = await env.astep(cut_off(said))
    assert "cut off" in first.observation[-1].content
    second = await env.astep(cut_off(f"<action>3</action> {said}, or rather"))
    assert "cut off" not in second.observation[-1].content
    whole = await env.astep(said)
    assert "names no action" not in whole.observation[-1].content
    await env.aclose()


def test_an_opponents_sentence_that_was_cut_off_is_no_move() -> None:
    answers = iter([cut_off("Action: 3"), "Action: 3"])
    shown = []

    def opponent(observation: list[vfgym.Message], info: dict[str, Any]) -> Any:
        shown.append(observation[-1].content)
        return next(answers)

    env = connect_four(opponents=opponent, blocking=False)
    env.reset(seed=0)
    env.step("0")
    assert len(shown) == 2
    assert "cut off" in shown[1]


def test_an_agents_sentence_that_was_cut_off_is_no_move() -> None:
    aec = to_pettingzoo(connect_four())
    aec.reset(seed=0)
    agent = aec.agent_selection
    aec.step(cut_off("Action: 3"))
    assert aec.agent_selection == agent
    assert "cut off" in aec.observe(agent)[-1].content
    aec.step("Action: 3")
    assert aec.agent_selection != agent


def test_nobody_wins_by_answers_that_are_no_moves() -> None:
    env = vfgym.to_chat("classic/tictactoe_v3", opponents=lambda observation, info: "I'd play the centre.")
    for output in vfgym.evaluate(env, "random", num_examples=2)["outputs"]:
        assert (output["ending"], output["reward"]) == ("environment_failed", 0.0)
        assert "the opponent at the seat of 'player_2' found no valid move in 10 answers" in output["error"]["error_chain_repr"]
    for policy in (lambda observation, info: "pass", lambda observation, info: "center"):
        results = vfgym.evaluate(vfgym.to_chat("classic/tictactoe_v3"), policy, num_examples=2)
        assert [output["ending"] for output in results["outputs"]] == ["policy_failed"] * 2
