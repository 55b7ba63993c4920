"""`PettingZooGame`: a PettingZoo environment as a table at which players write and read text."""

from __future__ import annotations

import copy
import functools
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wrappers.pettingzoo.tables import CLASSIC, Elimination, check_same_game, factory, opened, play, same
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.wrappers.games.turn_based import Played
from vfgym.wrappers.pettingzoo import PettingZooGame

# PettingZoo's spaces of no-limit hold'em have more digits than their dtype.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Box2D and its bindings
def test_played_in_numbers_it_is_the_same_game() -> None:
    """Three walkers with four motors each: what a message says of a float is the float."""
    check_same_game(factory("sisl/multiwalker_v9", max_cycles=20), seed=0)


def board(*rows: str) -> str:
    return "\n---+---+---\n".join(rows)


def test_a_player_is_told_how_to_play_what_happened_and_how_it_ended_and_nothing_twice() -> None:
    table = opened("tictactoe_v3")
    first = table.observe("player_1")
    assert first.startswith("You are playing Tic Tac Toe.")
    for part in ("The first player to place 3 of their marks", "| +1     | -1    |", "You are player_1 (X).", "<action>"):
        assert part in first
    assert first.endswith(f"{board(' 0 | 3 | 6', ' 1 | 4 | 7', ' 2 | 5 | 8')}\n\nLegal actions: 0, 1, 2, 3, 4, 5, 6, 7, 8.")
    assert table.observe("player_1") == ""
    play(table, "4")
    assert "You are player_2 (O)." in table.observe("player_2")
    play(table, "4")
    assert table.observe("player_2") == "You cannot play 4 now.\n\nLegal actions: 0, 1, 2, 3, 5, 6, 7, 8."
    play(table, "0")
    shown = board(" O | 3 | 6", " 1 | X | 7", " 2 | 5 | 8")
    assert table.observe("player_1") == f"player_2 played: 0\n\n{shown}\n\nLegal actions: 1, 2, 3, 5, 6, 7, 8."
    table.reset(0, None)
    assert play(table, "0", "3", "1", "4", "2").rewards == {"player_1": 1.0, "player_2": -1.0}
    assert (table.turn, table.was_truncated) == (None, False)
    for player, total in (("player_1", "1"), ("player_2", "-1")):
        assert table.observe(player).endswith(f"The game is over. Your total reward is {total}.")
        assert table.observe(player) == ""


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


def test_an_invalid_answer_costs_what_is_said_and_can_end_the_game() -> None:
    table = opened("tictactoe_v3", invalid_reward=-0.5)
    play(table, "4")
    assert (play(table, "4"), table.turn) == (Played({"player_2": -0.5}, is_valid=False), "player_2")
    assert table.observe("player_2").endswith("You earned -0.5.")
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
    twin = pickle.loads(pickle.dumps(table))
    assert (twin.turn, twin.was_truncated, twin.observe("player_1")) == (None, True, table.observe("player_1"))


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


class Drawn(Elimination):
    """Draws itself as text."""

    def __init__(self, render_mode: str) -> None:
        super().__init__(size=1000)
        self.render_mode = render_mode

    def render(self) -> str:
        return f"\x1b[31m{self.steps}\x1b[0m steps so far"


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
    table = PettingZooGame(functools.partial(Elimination, longest=2))  # a limit of the environment truncates
    table.reset(0, {"speed": "high"})
    assert table.env.options == {"speed": "high"}
    play(table, "[2, 0]", "[0, 0]")
    assert (table.turn, table.was_truncated, table.terminations["red_0"], table.truncations["red_0"]) == (None, True, True, False)
    assert table.truncations["blue_0"]


def test_what_cannot_be_copied_is_told_as_it_is() -> None:
    table, lock = PettingZooGame(Elimination), threading.Lock()
    table.reset(0, None)
    table.env.infos["red_0"] = {"lock": lock, "moods": ["good"]}
    told = table.info("red_0")
    assert told == {"lock": lock, "moods": ["good"]}
    assert told["moods"] is not table.env.infos["red_0"]["moods"]


class Choosy(Elimination):
    """Nobody leaves. Actions are of any space, and the same mask holds in every turn: in the observation, or in the info."""

    def __init__(self, space: gym.Space[Any], mask: Any, is_observed: bool = False) -> None:
        super().__init__()
        self._actions = {agent: copy.deepcopy(space) for agent in self.possible_agents}
        self.mask, self.is_observed = mask, is_observed
        if is_observed:
            space_of_mask: gym.spaces.Space[Any] = gym.spaces.MultiBinary(len(mask))
            if isinstance(mask, tuple):
                space_of_mask = gym.spaces.Tuple([gym.spaces.MultiBinary(len(part)) for part in mask])
            for agent, numbers in self._observations.items():
                self._observations[agent] = gym.spaces.Dict(observation=numbers, action_mask=space_of_mask)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        super().reset(seed, options)
        if not self.is_observed:
            self.infos = {agent: {"action_mask": self.mask, "mood": "good"} for agent in self.agents}

    def observe(self, agent: str) -> Any:
        numbers = np.full(2, self.steps % 10, np.float32)
        return {"observation": numbers, "action_mask": self.mask} if self.is_observed else numbers

    def step(self, action: Any) -> None:
        if action is None:
            return super().step(action)
        assert self._actions[self.agent_selection].contains(action)
        self.steps += 1
        self.truncations = dict.fromkeys(self.agents, self.steps >= self.longest)
        self.agent_selection = self._selector.next()


def choosy(space: gym.Space[Any], mask: Any, is_observed: bool = False, **options: Any) -> PettingZooGame:
    table = PettingZooGame(functools.partial(Choosy, space, mask, is_observed), **options)
    table.reset(0, None)
    return table


def test_a_mask_in_the_info_counts() -> None:
    space = gym.spaces.Discrete(4, start=3)
    table = choosy(space, [0, 1, 1, 1], action_names={"red_0": ["a", "b", "c", "d"], "blue_0": None})
    assert (table.legal_moves("red_0"), table.info("red_0")) == (["b", "c", "d"], {"mood": "good"})
    assert [play(table, move).is_valid for move in ("a", "c")] == [False, True]
    assert table.legal_moves("green_0") == ["4", "5", "6"]
    rng = np.random.default_rng(0)
    assert {table.sample_move("green_0", rng).content for _ in range(50)} == {"4", "5", "6"}
    with pytest.raises(ConfigurationError, match=r"red_0 .* mask allows no action"):
        choosy(space, np.zeros(4, np.int8)).sample_move("red_0", rng)


def test_a_mask_in_the_observation_is_told_as_a_list_of_moves() -> None:
    table = choosy(gym.spaces.Discrete(4), [0, 1, 1, 1], is_observed=True)
    assert table.observe("red_0").endswith("</action>\n\n[0, 0]\n\nLegal actions: 1, 2, 3.")


def test_hands_that_are_dealt_anew_are_shown() -> None:
    table, shown = opened("leduc_holdem_v4"), set()
    for seed in range(8):
        table.observe("player_0")
        table.resample_hidden("player_1", np.random.default_rng(seed))
        card = table.env.unwrapped.env.game.players[0].hand.get_index()
        assert f"Your card: {card[1].replace('T', '10')}" in table.observe("player_0")
        assert same(table.native_observations["player_0"], table.env.observe("player_0"))
        shown.add(card)
    assert len(shown) > 1


MASKED = functools.partial(Choosy, gym.spaces.Discrete(4), np.array([0, 1, 1, 1], np.int8))


@pytest.mark.parametrize("make_env", [Elimination, MASKED, functools.partial(Elimination, longest=3)])
def test_any_environment_is_the_same_game(make_env: Callable[[], Any]) -> None:
    for seed in range(20):
        check_same_game(make_env, seed)


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


def test_a_mask_that_is_not_told_as_a_list_of_moves_is_shown() -> None:
    mask = (np.array([0, 1, 0], np.int8), np.array([1, 0, 1], np.int8))
    table = choosy(TWO_CHOICES, mask, is_observed=True)
    assert table.legal_moves("red_0") is None
    shown = table.observe("red_0").partition("</action>")[2]
    assert "action_mask" in shown
    assert "[0, 1, 0]" in shown
    assert not play(table, "[0, 0]").is_valid
    assert play(table, "[1, 2]").is_valid
    assert same(choosy(TWO_CHOICES, mask).info("red_0"), {"action_mask": mask, "mood": "good"})


@pytest.mark.parametrize("mask", [[1, 0, 1], ([1, 0, 1], [1, 0]), ([1, 0, 1], [1, 0, 2]), 1, ([1, 0, 1], None)])
def test_a_mask_that_is_none_of_its_space_is_named(mask: Any) -> None:
    table = choosy(TWO_CHOICES, mask)
    with pytest.raises(ConfigurationError, match=r"expected an action mask of MultiDiscrete\(\[3 3\]\)"):
        play(table, "[0, 0]")
    with pytest.raises(ConfigurationError, match=r"expected an action mask of MultiDiscrete\(\[3 3\]\)"):
        table.sample_move("red_0", np.random.default_rng(0))


def test_players_are_asked_for_by_name_and_after_a_reset() -> None:
    table = PettingZooGame(Elimination)
    with pytest.raises(ResetNeeded):
        table.observe("red_0")
    with pytest.raises(ResetNeeded):
        play(table, "[0, 0]")
    table.reset(0, None)
    with pytest.raises(ConfigurationError, match="no player 'player_0' at this table; there are red_0, green_0, blue_0"):
        table.observe("player_0")


class Drawing(Elimination):
    """What is seen is drawn at random. It writes to the options and to the actions that it is given."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        super().reset(seed, copy.deepcopy(options))
        self.rng = np.random.default_rng(seed)
        self.drawn = self.rng.integers(10)
        if options:
            options["marks"].clear()

    def observe(self, agent: str) -> Any:
        return np.full(2, self.drawn, np.float32)

    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None:
            action[:] = 1
            self.drawn = self.rng.integers(10)


def told(table: PettingZooGame) -> list[Any]:
    return [table.turn, table.env.drawn, *(table.observe(player) for player in table.players)]


def test_a_copy_plays_what_was_played_whatever_was_changed_since() -> None:
    game_options, options = {"longest": 6}, {"marks": ["a"], "level": 1}
    table = PettingZooGame(Drawing, game_options=game_options)
    table.reset(0, options)
    game_options["longest"] = options["level"] = 2
    play(table, "[2, 0]")
    table.reseed(1)
    play(table, "[0, 0]", "[1, 0]")
    table.reseed(2)
    play(table, "[0, 1]")
    twin = pickle.loads(pickle.dumps(table))
    assert twin.env.options == {"marks": ["a"], "level": 1}
    assert (twin.env.longest, twin.env.terminations) == (6, table.env.terminations)
    assert told(twin) == told(table)
    for each in (twin, table):
        play(each, "[0, 0]")
    assert told(twin) == told(table)
    for each in (twin, table):
        each.reset(None, None)
        play(each, "[0, 0]")
    again = pickle.loads(pickle.dumps(table))
    assert told(twin) == told(table) == told(again)


def test_random_numbers_that_begin_anew_are_those_of_the_seed() -> None:
    def drawn(*seeds: int, first: int | None) -> list[int]:
        table = PettingZooGame(Drawing)
        if first is not None:
            table.reseed(first)
        table.reset(None if first is not None else 0, None)
        numbers = [table.env.drawn]
        for seed in seeds:
            table.reseed(seed)
        for _ in range(6):
            play(table, "[0, 0]")
            numbers.append(table.env.drawn)
        return numbers

    assert drawn(first=5) == drawn(first=5) != drawn(first=6)
    assert drawn(1, first=None) == drawn(2, 1, first=None) != drawn(first=None)


@pytest.mark.parametrize("legal", [1, 64, 65])
def test_a_prompt_lists_sixty_four_legal_actions_and_no_more(legal: int) -> None:
    table = choosy(gym.spaces.Discrete(70), [0] * (70 - legal) + [1] * legal)
    moves = [str(move) for move in range(70 - legal, 70)]
    table.legal_moves("red_0").clear()  # type: ignore[union-attr]
    assert table.legal_moves("red_0") == moves
    assert table.observe("red_0").endswith(f"\n\nLegal actions: {', '.join(moves)}." if legal < 65 else "\n\n[0, 0]")


def test_a_random_move_follows_from_the_random_numbers_that_are_given_and_takes_none_of_the_environment() -> None:
    table = PettingZooGame(Elimination)
    table.reset(0, None)
    space = table.env.action_space("red_0")
    space.seed(3)
    before = copy.deepcopy(space)
    sampled = [[table.sample_move("red_0", rng).content for _ in range(20)] for rng in map(np.random.default_rng, (0, 0, 1))]
    assert sampled[0] == sampled[1] != sampled[2]
    assert same([space.sample() for _ in range(9)], [before.sample() for _ in range(9)])


def test_what_is_given_comes_before_what_the_game_has_of_its_own() -> None:
    rules = PettingZooGame(Elimination, rules="").rules("red_0")
    assert rules.startswith("You are playing elimination_v0.\n\nPlayers: red_0, green_0, blue_0. You are red_0.\n\nActions: ")
    own, given = opened("hanabi_v5"), opened("hanabi_v5", obs_to_text=lambda observation: "five cards")
    assert ["Each hand has a card a line" in table.rules("player_0") for table in (own, given)] == [True, False]
    assert "\n\nfive cards\n\nLegal actions: " in given.observe("player_0")
    assert opened("tictactoe_v3").describe_moves("player_1").startswith("the number of an empty cell")
    assert opened("tictactoe_v3", action_names=list("abcdefghi")).describe_moves("player_1").startswith("0 (a), 1 (b), 2 (c), ")
    drawn = PettingZooGame(Drawn, game_options={"render_mode": "ansi"}, obs_to_text=lambda observation: f"{len(observation)} numbers")
    drawn.reset(0, None)
    assert drawn.observe("red_0").endswith("\n\n1000 numbers")


def test_who_shows_the_game_in_words_or_draws_it_needs_no_labels() -> None:
    nine = functools.partial(Elimination, size=9)
    assert ["have no labels" in problem for problem in PettingZooGame(nine).prompt_problems] == [True]
    assert PettingZooGame(nine, obs_to_text=str).prompt_problems == ()
    assert PettingZooGame(Drawn, game_options={"render_mode": "ansi"}).prompt_problems == ()


def test_rewards_add_up_until_they_are_told() -> None:
    table = PettingZooGame(Elimination, invalid_reward=-0.125)
    table.reset(0, None)
    play(table, "[0, 0]", "[0, 0]", "[0, 0]", "[1, 1]", "nothing", "[0, 0]")
    assert [table.observe(player).rpartition("\n\n")[2] for player in table.players] == [
        "You earned 0.5.",
        "You earned 0.375.",
        "You earned 0.25.",
    ]
    assert "earned" not in table.observe("red_0")


@pytest.mark.parametrize(("flag", "flags"), [("terminations", (True, False)), ("truncations", (False, True))])
def test_who_left_early_does_not_decide_how_the_game_ends(flag: str, flags: tuple[bool, bool]) -> None:
    class Leaving(Elimination):
        def step(self, action: Any) -> None:
            super().step(action)
            if action is not None and self.steps == 1:
                getattr(self, flag)["red_0"] = True
                self._selector = type(self._selector)(["green_0", "blue_0"])
                self._selector.next()
                self._deads_step_first()

    table = PettingZooGame(Leaving)
    table.reset(0, None)
    play(table, "[0, 0]")
    assert [table.observe(player).endswith("You are out of the game.") for player in table.players] == [True, False, False]
    assert play(table, "[2, 0]").rewards == {"green_0": 0.25, "blue_0": 10.0}
    assert (table.turn, table.was_truncated, table.end_flags("red_0"), table.end_flags("blue_0")) == (None, False, flags, (True, False))
    ending = "The game is over." if flags[0] else "The game was cut off after 2 moves."
    assert table.observe("red_0") == f"[1, 1]\n\n{ending} Your total reward is 0.25."
    assert table.observe("blue_0").endswith("The game is over. Your total reward is 10.")


def test_a_game_that_ends_with_its_last_move_is_not_cut_off_and_the_next_one_counts_anew() -> None:
    table = opened("tictactoe_v3", max_moves=5)
    play(table, *"03142")
    assert (table.turn, table.was_truncated, table.end_flags("player_1")) == (None, False, (True, False))
    for _ in range(2):
        table.reset(0, None)
        play(table, *"0314")
        assert (table.turn, table.was_truncated) == ("player_1", False)
        play(table, "0")
        assert (table.turn, table.was_truncated, table.end_flags("player_1")) == (None, True, (False, True))
    table.reset(0, None)
    play(table, *"03142")
    assert table.observe("player_1").endswith("The game is over. Your total reward is 1.")
    table = opened("tictactoe_v3", max_moves=1)
    play(table, "0")
    assert table.was_truncated


def test_who_is_dealt_a_new_hand_keeps_what_it_earned() -> None:
    table = opened("leduc_holdem_v4", invalid_reward=-0.5)
    first = table.turn
    other = next(player for player in table.players if player != first)
    assert first is not None
    for player in table.players:
        table.observe(player)
    play(table, "no move")
    table.resample_hidden(other, np.random.default_rng(0))
    assert table.observe(other) == ""
    again = table.observe(first)
    assert again.startswith("You are playing Leduc")
    assert again.endswith("You earned -0.5.")
    total, rng = -0.5, np.random.default_rng(0)
    while table.turn is not None:
        total += table.move(table.sample_move(table.turn, rng)).rewards[first]
    assert table.observe(first).endswith(f"Your total reward is {total:g}.")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_environment_is_closed_of_which_no_table_comes(error: type[BaseException]) -> None:
    closed = []

    class Interrupted(Elimination):
        def action_space(self, agent: str) -> gym.Space[Any]:
            raise error

        def close(self) -> None:
            closed.append(self)

    with pytest.raises(error):
        PettingZooGame(Interrupted)
    assert len(closed) == 1
