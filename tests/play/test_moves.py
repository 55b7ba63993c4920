"""What a player can type: moves as the rules list them, refusals in words for people, the position without the rules."""

from __future__ import annotations

from typing import Any

import pytest

import vfgym
from tests.play.playing import Uncopied, make, play, typed
from vfgym.codecs.problems import HOW_TO_ANSWER
from vfgym.messages import UserMessage
from vfgym.play import Game, Screen
from vfgym.play.moves import describe_moves, explain_refusal, list_moves, without_rules


def make_game(env_id: str, **arguments: Any) -> Any:
    """Make an environment, if what it needs is there."""
    package = {"textarena": "textarena", "pettingzoo": "pettingzoo", "reasoning-gym": "reasoning_gym"}.get(env_id.partition("/")[0])
    if package is not None:
        pytest.importorskip(package, reason="needs its extra")
    return make(env_id, **arguments)


@pytest.mark.parametrize(
    ("env_id", "moves"),
    [
        ("gymnasium/CartPole-v1", ["0 (left)", "1 (right)"]),
        ("gymnasium/Taxi-v4", None),  # its mask
        ("textarena/TicTacToe-v0", [f"[{cell}]" for cell in range(9)]),
        ("textarena/Wordle-v0", []),
        ("pettingzoo/tictactoe-v3", [f"{cell}" for cell in range(9)]),
        ("gymnasium/Pendulum-v1", []),
        ("reasoning-gym/leg_counting-v0", []),
    ],
)
def test_moves_are_listed_as_the_rules_list_them(env_id: str, moves: list[str] | None) -> None:
    game = Game(make_game(env_id), 1)
    assert list_moves(game) == (game.info["legal_actions"] if moves is None else moves)
    if env_id == "gymnasium/Taxi-v4":
        assert 0 < len(list_moves(game)) < 6
    if moves:
        assert all(move.strip("[]") in vfgym.envs.seat.transcript(game.observation) for move in moves)
        assert game.answer(moves[0]) is None, "what is listed can be typed"


def test_moves_without_a_list_are_described_in_the_words_of_the_rules() -> None:
    game, text = play(make("gymnasium/Pendulum-v1"), "/moves", "sideways")
    described = describe_moves(game)
    assert described in text
    assert described in vfgym.envs.seat.transcript(game.state["prompt"])
    assert f'"sideways" is not a move. Type {described}' in text
    assert "<action>" not in text[text.index("sideways") :], "tags are for models"


@pytest.mark.parametrize(
    ("env_id", "line", "told"),
    [
        ("gymnasium/CartPole-v1", "hello", '"hello" is not a move. Type 0 (left) or 1 (right), or /moves'),
        ("gymnasium/CartPole-v1", "a " * 50, f'"{("a " * 50)[:37]}..." is not a move.'),
        ("textarena/TicTacToe-v0", "hello", "Type one of 9 moves, such as [0]; /moves lists them."),
        ("pettingzoo/tictactoe-v3", "12", '"12" is not a move. Type one of 9 moves'),
    ],
)
def test_refusals_speak_to_people(env_id: str, line: str, told: str) -> None:
    game, text = play(make_game(env_id), line)
    assert told in text
    assert (typed(game), game.help["refused"]) == ([], 1)


@pytest.mark.parametrize(
    ("moves", "line", "message", "told"),
    [
        (["up"], "x", "", '"x" is not a move. Type up, the only one that there is.'),
        (["a", "b"], "x", "", '"x" is not a move. Type a or b, or /moves to see them again.'),
        ([*"abcdef"], "x", "", '"x" is not a move. Type a, b, c, d, e or f, or /moves to see them again.'),
        ([*"abcdefg"], "x", "", '"x" is not a move. Type one of 7 moves, such as a; /moves lists them.'),
        (["up"], "x" * 40, "", f'"{"x" * 40}" is not a move. Type up, the only one that there is.'),
        (["up"], "x" * 41, "", f'"{"x" * 37}..." is not a move. Type up, the only one that there is.'),
        (["Up", "down"], " uP ", "It was refused otherwise.", None),
        (["up"], None, "Of a tool.", None),
        ([], "x", f"No. {HOW_TO_ANSWER}", '"x" is not a move. Type a word; /rules shows the rules.'),
        ([], "", f"No. {HOW_TO_ANSWER}", None),
        ([], "x", "No.", None),
    ],
)
def test_a_refusal_names_few_moves(moves: list[str], line: str | None, message: str, told: str | None) -> None:
    class Refusing(Uncopied):
        def step_info(self, state: Any) -> dict[str, Any]:
            return {"legal_actions": moves}

        def describe_moves(self, state: Any) -> str:
            return "a word" if line else ""

    assert explain_refusal(Game(Refusing(), 1), line, message) == told


def test_where_nobody_knows_the_moves_the_game_itself_says_what_is_wrong() -> None:
    _, text = play(make_game("textarena/Wordle-v0"), "I have no idea at all")
    assert "is not a move. Type" not in text
    assert "it was not played and costs no turn; /rules shows the rules" in text


@pytest.mark.parametrize("arguments", [{}, {"observe": "image"}, {"observe": "both"}], ids=str)
def test_undo_shows_the_position_and_not_the_rules(arguments: dict[str, Any]) -> None:
    if arguments:
        pytest.importorskip("pygame", reason="needs the extra classic")
    _, text = play(make("gymnasium/FrozenLake-v1", is_slippery=False, **arguments), "right", "right", "/undo", "/undo", "/rules")
    shown = [part.partition("\n> ")[0] for part in text.split("(your last move is taken back)")]
    assert "You are playing" in shown[0]
    assert all(part.strip() for part in shown), "the position is shown"
    assert "You are playing" not in shown[1]
    after, _, rules = shown[2].partition("You are playing")
    assert after.strip(), "the position of the beginning is shown"
    assert "Actions: 0 (left)" in rules, "/rules shows the rules"


def test_rules_are_cut_off_only_where_a_message_begins_with_them() -> None:
    said = UserMessage("Rules.\n\nBoard.")
    assert without_rules(said, "Rules.")["content"] == "Board."
    assert without_rules(said, None) is said
    assert without_rules(said, "Other rules.")["content"] == "Rules.\n\nBoard."
    assert without_rules(said, "Rules.\n\nBoard.") is said, "of nothing but rules, the rules are shown"
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = {"type": "text", "text": "Rules."}
    assert without_rules(UserMessage([text, image]), "Rules.")["content"] == [image]
    assert without_rules(UserMessage([image, text]), "Rules.")["content"] == [image, text]
    assert without_rules(UserMessage([text, text, image]), [text])["content"] == [text, image]
    for message, rules in (
        (said, [text]),
        (UserMessage([text]), [text]),
        (UserMessage([text]), [text, image]),
        (UserMessage(""), "Rules."),
    ):
        assert without_rules(message, rules) is message
    named = without_rules(UserMessage("Rules.\nBoard.", name="referee"), "Rules.")
    assert dict(named) == {"role": "user", "content": "Board.", "name": "referee"}
    assert type(named) is UserMessage


def test_who_sits_where_is_said_once() -> None:
    _, text = play(make_game("textarena/TicTacToe-v0"), "0")
    assert text.count("(player 0: you, player 1: random)") == 1
    _, text = play(make_game("textarena/TicTacToe-v0", seat=1, opponents={0: "random"}), "0")
    assert "(player 0: random, player 1: you)" in text
    _, text = play(make_game("textarena/Wordle-v0"), "hello")
    assert ": you" not in text, "of one player there is nothing to say"


class Wide(Screen):
    width = 45  # type: ignore[assignment]


@pytest.mark.parametrize(
    "line",
    [
        "- Your payoff = (tokens kept) + (your share of the public good)",
        "1. Knights move in L-shape (2 squares + 1 square perpendicular)",
        "Game flow:  Ten prestige cards are auctioned one after another.",
        "- Valid moves: '[check]'  |  '[bet X]'  |  '[call]'  |  '[fold]'  (X is a number of chips, at most all that you have)",
    ],
)
def test_sentences_are_broken_between_words(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    Wide().say(line)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 45
    assert shown.split() == line.split(), "no word is broken"


@pytest.mark.parametrize(
    "line",
    [
        "  O   [0,1] [0,2] | [1,0] [1,1] [1,2] | [2,0] [2,1] [2,2]",
        "          / |   Wheat  /V|______/ |  Desert  / |______/ |  Sheep   / |",
        "                   ##########              #    #                          #  # ",
        "======================== RED ========================",
        "  4 |        |        |        | (1) W1 |        |",
        "  _   _   _   T   _   _   _   _   _   _   _   _   _   _ ",
    ],
)
def test_boards_stay_as_they_are(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    Wide().say(line)
    assert capsys.readouterr().out == f"{line}\n"


def test_a_line_that_divides_is_as_wide_as_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    Wide().say("=" * 60 + "\n" + "- " * 40)
    assert capsys.readouterr().out.splitlines()[0] == "=" * 45
