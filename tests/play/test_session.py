"""A session: what a line that is typed does, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import vfgym
from tests.play.playing import RULES, make, play, save, typed


def test_what_is_not_a_move_is_asked_again_and_costs_no_turn() -> None:
    game, text = play(make(**RULES), "hello", "help", "?", "", "/moves", "/hint", "/show", "/tools", "/nothing", "down", "right")
    assert (typed(game), game.state["metrics"]["invalid_answers"]) == (["down", "right"], 0)
    assert "that is not a move: it was not played and costs no turn" in text
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


def test_tools_are_forms_and_plain_text_is_the_answer() -> None:
    env = vfgym.ToolEnv(tools=[add], dataset=[{"question": "1 + 2?", "answer": "3"}])
    lines = ["/add", "one", "1", "", "/add {}", '/add {"a": 5}', "/add", "/cancel", "/call add", '{"a": 7}', "3"]
    game, text = play(env, *lines)
    calls = [call.arguments for step in game.state["trajectory"] for call in step["completion"][0].get("tool_calls") or ()]
    assert calls == ['{"a": 1}', '{"a": 5}', '{"a": 7}']
    assert [each.tool_call_id for each in game.state["completion"] if each["role"] == "tool"] == ["typed_1", "typed_2", "typed_3"]
    assert "'a' is a required property" in text
    assert game.help["refused"] == 2, "one in the form, one on a line"
    assert "The right answer: 3" in text
