"""How an episode ended, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.play.playing import RULES, make, play
from vfgym.endings import CUT_STOPS, TRUNCATING_STOPS, UNREADABLE, Ending, ending_of
from vfgym.play import Game
from vfgym.play.ending import describe_end


def test_a_limit_cuts_a_game_off_before_it_is_over() -> None:
    game, text = play(gym.wrappers.TimeLimit(make(**RULES), 2), "left", "left")
    assert ending_of(game.state) is Ending.TRUNCATED
    assert "Cut off after 2 turns: a limit was reached before it was over." in text
    assert "The game is over." not in text
    assert "The game is over." in play(make(**RULES), "down", "right")[1]


@pytest.mark.parametrize(
    "stop_condition", [*sorted(CUT_STOPS | TRUNCATING_STOPS - {"truncated"}), UNREADABLE, "game_over", "no_tools_called"]
)
def test_what_ends_episodes_of_the_library_is_said_in_a_sentence(stop_condition: str) -> None:
    said = over(stop_condition)[0]
    assert said.endswith(".")
    assert stop_condition not in said


def test_who_won_is_said_in_words() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    game, text = play(make("textarena/TicTacToe-v0", opponents="self"), "[0]", "", "[3]", "", "[1]", "", "[4]", "", "[2]")
    assert "player 1 is to move" in text
    assert "player 0 won." in list(describe_end(game))
    against = Game(make("textarena/TicTacToe-v0", opponents=vfgym.ScriptedAgent(["[3]", "[4]", "[5]"])), 0)
    for move in ("[0]", "[1]", "[8]"):
        against.answer(move)
    assert "You lost: player 1 won." in list(describe_end(against))


def over(stop_condition: str = "game_over", *, rewards: Any = None, player: Any = 0, is_hot_seat: bool = False, **facts: Any) -> list[str]:
    state = {"stop_condition": stop_condition, "error": None, "trajectory": [1], "ending": "terminated", **facts}
    info = {"rewards": rewards, "player": player, "metrics": facts.get("metrics", {})}
    taken = {"hints": 0, "undone": 0, "refused": 0, **facts.get("help", {})}
    return list(describe_end(SimpleNamespace(state=state, info=info, is_hot_seat=is_hot_seat, episode_return=0.5, help=taken)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (over("max_turns_reached"), ["That was the last turn.", "Your reward: 0.5"]),
        (over("at_once"), ["The episode is over: at_once.", "Your reward: 0.5"]),
        (over(error=KeyError("x")), ["An error ended the episode: 'x'", "Your reward: 0.5"]),
        (over(ending="truncated"), ["Cut off after 1 turn: a limit was reached before it was over.", "Your reward: 0.5"]),
        (over("timeout_reached", ending="truncated"), ["The time is up.", "Your reward: 0.5"]),
        (over("quit", rewards={0: 1, 1: 0}, error=KeyError("x"), metrics={"turns": 0.0})[1:], ["Your reward: 0.5", "  turns: 0"]),
        (over("truncated", ending="truncated", trajectory=[])[:1], ["Cut off after 0 turns: a limit was reached before it was over."]),
        (over(rewards={0: -2, 1: -1, "ann": -3}, player="ann")[1:3], ["You lost: player 1 won.", "Rewards: 0 -2, 1 -1, ann (you) -3"]),
        (over(rewards={0: 1, 1: 1, 2: 0}, player=0, is_hot_seat=True)[1:2], ["player 0 and player 1 won."]),
        (over(help={"hints": 1, "undone": 2, "refused": 1})[2:], ["With 1 hint, 2 moves taken back, 1 answer refused"]),
        (over("quit", rewards={0: 1, 1: 0}, answer="3"), ["You left before the end.", "Your reward: 0.5"]),
        (over(answer=0, metrics={"turns": 2.0})[1:], ["Your reward: 0.5", "The right answer: 0", "  turns: 2"]),
        (over(answer="", help={"hints": 1})[1:], ["Your reward: 0.5", "With 1 hint"]),
        (over(help={"hints": 2, "undone": 1, "refused": 3})[2:], ["With 2 hints, 1 move taken back, 3 answers refused"]),
        (over(rewards={0: 1.0})[1:], ["Your reward: 0.5"]),
        (over(rewards={0: 1, 1: 1})[1:3], ["Nobody has won: all players earned the same.", "Rewards: 0 (you) 1, 1 1"]),
        (over(rewards={0: 1, 1: 0})[1:3], ["You won.", "Rewards: 0 (you) 1, 1 0"]),
        (over(rewards={0: 1, 1: 1, "ann": -1})[1:2], ["You won, together with player 1."]),
        (over(rewards={0: 0, 1: 1, "ann": 1})[1:2], ["You lost: player 1 and ann won."]),
        (over(rewards={0: 1, 1: 0}, player=None, is_hot_seat=True)[1:3], ["player 0 won.", "Rewards: 0 1, 1 0"]),
    ],
)
def test_the_end_is_told_with_who_won_what_it_earned_and_what_help_there_was(lines: list[str], expected: list[str]) -> None:
    assert lines == expected
