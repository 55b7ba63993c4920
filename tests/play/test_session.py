"""A session: what a line that is typed does, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.play.playing import RULES, ScriptedScreen, make, play, save, typed
from tests.wrappers.games.nim import NimEnv, takes_one
from tests.wrappers.gymnasium.toys import Toy
from vfgym.play import Game, Session
from vfgym.play.lines import COMMANDS


def test_what_is_not_a_move_is_asked_again_and_costs_no_turn() -> None:
    game, text = play(make(**RULES), "hello", "help", "?", "", "/moves", "/hint", "/show", "/tools", "/nothing", "down", "right")
    assert (typed(game), game.state["metrics"]["invalid_answers"]) == (["down", "right"], 0)
    assert "that is not a move: it was not played and costs no turn" in text
    assert [text.count(f"\n  /{name}") for name in COMMANDS] == [2] * len(COMMANDS)
    assert text.index('"hello" is not a move. Type 0 (left), 1 (down), 2 (right) or 3 (up)') < text.index("The game is over.")


def test_an_answer_may_have_several_lines() -> None:
    game, text = play(vfgym.SingleTurnEnv([{"question": "A grid?"}]), "/lines", None, "/lines", ".", "/lines", "1 2", "", "help", ".")
    assert (typed(game), text.count("(nothing was sent)")) == (["1 2\n\nhelp"], 2)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("down", "right"), {"hints": 0, "undone": 0, "refused": 0}),
        (("/hint", "/hint", "hello", "down", "/undo", "/undo", "down", "right"), {"hints": 2, "undone": 1, "refused": 1}),
        (("", "help", "/nothing", "/moves", "down", "/hint", None, "y"), {"hints": 1, "undone": 0, "refused": 0}),
    ],
    ids=["none", "some", "left"],
)
def test_a_row_says_what_help_its_player_had(lines: tuple[str | None, ...], expected: dict[str, int], tmp_path: Path) -> None:
    game, text = play(make(**RULES), *lines)
    assert game.help == save(game, tmp_path, env_args=RULES)["human"] == expected
    assert ("With 2 hints, 1 move taken back, 1 answer refused" in text) == (expected["undone"] == 1)


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


FORM = "add(a, b?)\n(one value a line, or all as a JSON object; ? explains, /cancel leaves)"


def test_tools_are_forms_and_plain_text_is_the_answer() -> None:
    env = vfgym.ToolEnv(tools=[add], dataset=[{"question": "1 + 2?", "answer": "3"}])
    lines = ["/add", "one", "1", "", "/add {}", '/add {"a": 5}', "/add", "/cancel", "/call add", '{"a": 7}', "/tools", "/add", None, "3"]
    game, text = play(env, *lines)
    calls = [call.arguments for step in game.state["trajectory"] for call in step["completion"][0].get("tool_calls") or ()]
    assert calls == ['{"a": 1}', '{"a": 5}', '{"a": 7}']
    assert [each.tool_call_id for each in game.state["completion"] if each["role"] == "tool"] == ["typed_1", "typed_2", "typed_3"]
    assert game.help == {"hints": 0, "undone": 0, "refused": 2}, "one in the form, one on a line"
    assert text.splitlines() == [
        *("1 + 2?", "", "(tools: /add(a, b?))"),
        *(*FORM.splitlines(), "('one' is not of type 'integer'; it has to be: integer)", "[tool]", "3", "", "(tools: /add(a, b?))"),
        "(add: 'a' is a required property)",
        *("[tool]", "7", "", "(tools: /add(a, b?))"),
        *(*FORM.splitlines(), "", "(the tool was not called)"),
        *(*FORM.splitlines(), "[tool]", "9", "", "(tools: /add(a, b?))"),
        *("/add(a, b?)", "  Add two numbers.", "    a: integer", "    b: integer, 2 by default"),
        *(*FORM.splitlines(), "", "(the tool was not called)"),
        "You answered without calling a tool: that was your final answer.",
        *("Your reward: 0", "The right answer: 3", "  num_turns: 4", "  total_tool_calls: 3", "  add_calls: 3", "With 2 answers refused"),
    ]


def played(env: Any, *lines: str | None) -> tuple[list[str], list[str]]:
    """Return what was shown, without empty lines, and what was asked."""
    screen = ScriptedScreen(lines)
    Session(Game(env, 1, is_strict=False), screen).play()
    return [line for line in screen.text.splitlines() if line], screen.asked


def test_several_who_sit_here_hand_over() -> None:
    shown, asked = played(NimEnv(sticks=9, opponents="self"), "1", "", "5", "", "1", "x", "", "2", "", "3", " ", "2")
    assert shown == [
        "(player 0, player 1: all of them sit here, and take turns)",
        *("You are player 0. There are 9 sticks.", "(player 0 is to move)", "(legal moves: 1, 2, 3)", "(cleared)"),
        *("You are player 1. There are 9 sticks.", "Player 0 takes 1, 8 are left.", "(player 1 is to move)", "(legal moves: 1, 2, 3)"),
        '"5" is not a move. Type 1, 2 or 3, or /moves to see them again.',
        "(that is not a move: it was not played and costs no turn)",
        "(nothing was typed, so nothing is sent; /help shows what you can do)",
        *("(cleared)", "(nothing was sent: press Enter alone)"),
        *("Player 1 takes 1, 7 are left.", "(player 0 is to move)", "(legal moves: 1, 2, 3)"),
        *("(cleared)", "Player 0 takes 2, 5 are left.", "(player 1 is to move)", "(legal moves: 1, 2, 3)"),
        *("(cleared)", "Player 1 takes 3, 2 are left.", "(player 0 is to move)", "(legal moves: 1, 2)"),
        *("Player 0 wins.", "The game is over.", "player 0 won.", "Rewards: 0 (you) 1, 1 -1", "Your reward: 1"),
        *("  reward_without_a_move: 0", "  game_reward: 1", "  num_turns: 5", "  invalid_answers: 0", "With 1 answer refused"),
    ]
    enter = "player {} is to move: press Enter > ".format
    assert asked == ["> ", enter(1), "> ", "> ", "> ", *[enter(0)] * 2, "> ", enter(1), "> ", enter(0), "> "]


@pytest.mark.parametrize(("answer", "leaves"), [("n", False), ("yes", True), ("Y ", True), (None, True)])
@pytest.mark.parametrize("line", [None, "/quit"])
def test_whoever_wants_to_leave_is_asked(line: str | None, answer: str | None, leaves: bool) -> None:
    shown, asked = played(NimEnv(sticks=4, opponents=takes_one), "1", line, answer, "1")
    assert shown[:5] == [
        *("(player 0: you, player 1: takes_one)", "You are player 0. There are 4 sticks.", "(legal moves: 1, 2, 3)"),
        *("Player 1 takes 1, 2 are left.", "Leave the game? It is saved unfinished. Ctrl-D or y leaves, anything else goes on."),
    ]
    assert asked == ["> ", "> ", "leave? ", *([] if leaves else ["> "])]
    assert shown[5:7] == (["You left before the end.", "Your reward: 0"] if leaves else ["Player 1 takes 1, 0 are left.", "Player 1 wins."])


def test_a_move_that_is_taken_back_is_shown_again_and_so_are_rules_and_moves() -> None:
    shown, _ = played(make(**RULES), "/undo", "down", "/moves", "/tools", "/open", "/undo", "/show", "/rules", None, None)
    prompt = shown[: shown.index("[S]FFF")]
    lake, moved = ["[S]FFF", "FHFH", "FFFH", "HFFG"], ["  (Down)", "SFFF", "[F]HFH", "FFFH", "HFFG", "Reward: 0"]
    assert shown[: shown.index("You left before the end.")] == [
        *(*prompt, *lake, "(there is no move of yours to take back)", *moved, "0 (left), 1 (down), 2 (right), 3 (up)"),
        *("(there are no tools now)", "(there are no images in what you were shown last)", "(your last move is taken back)"),
        *(*lake, *lake, *prompt, "Leave the game? It is saved unfinished. Ctrl-D or y leaves, anything else goes on."),
    ]
    assert (prompt[0], prompt[-1][:30]) == ("You are playing FrozenLake-v1.", "Answer with one action in <act")


def test_many_moves_are_not_all_listed_at_each_turn() -> None:
    env = vfgym.to_chat(lambda: Toy(action_space=gym.spaces.Discrete(42), length=1), rules="Count.", prompt="Count.")
    shown, _ = played(env, "/moves", "3")
    numbers = ", ".join(map(str, range(42)))
    assert " ".join(shown).startswith(
        f"Count. 0 (legal moves: {numbers.removesuffix(', 40, 41')}, and 2 more, which /moves lists) {numbers} 1 "
    )
