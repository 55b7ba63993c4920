"""A game that a person plays: what is not a move costs nothing, moves can be taken back, and the saved row replays to the same reward."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.models import InOrder
from tests.play.playing import RULES, Uncopied, make, play, typed
from tests.wrappers.gymnasium.toys import Toy
from vfgym.errors import ModelError
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.play import Game
from vfgym.play.game import Refusal
from vfgym.wrappers.gymnasium.game import GymnasiumGame


def test_a_table_says_what_is_not_a_move() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    for env_id, wrong in (("textarena/ConnectFour-v0", "help me"), ("textarena/ConnectFour-v0-raw", "[col 9]")):
        game = Game(make(env_id), 3)
        before = game.observation
        for _ in range(3):  # the second would lose the game
            assert game.answer(wrong) is not None
        assert (game.observation, game.is_over, game.num_undoable) == (before, False, 0)
        assert game.answer("[col 1]") is None
        assert not game.state["trajectory"][0]["extras"].get("invalid_answer")


def test_where_nobody_can_go_back_the_legal_moves_say_what_is_one_and_undo_says_why() -> None:
    game, text = play(Uncopied(), "x", "a", "/undo", "B")
    assert typed(game) == ["a", "B"]
    assert '"x" is not a move. Type a or b' in text
    assert "cannot go back: this environment cannot go back in an episode" in text
    assert "B" in play(Uncopied(), "/say x", "a", "B")[0].state["trajectory"][-1]["completion"][-1]["content"]


def test_undo_goes_back_before_the_last_move_with_rewards_and_wrappers() -> None:
    env = gym.wrappers.TimeLimit(make(**RULES), 3)
    game, text = play(env, "/undo", "right", "right", "/undo", "/undo", "down", "/undo", "right", "left", "left")
    assert typed(game) == ["right", "left", "left"], "the limit counts moves that were not taken back"
    assert "there is no move of yours to take back" in text
    assert text.count("(your last move is taken back)") == 3


def test_what_is_told_of_an_answer_that_is_not_a_move() -> None:
    game = Game(make(**RULES), 1)
    told = '"up there" is not a move. Type 0 (left), 1 (down), 2 (right) or 3 (up), or /moves to see them again.'
    assert game.answer("up there") == Refusal([vfgym.UserMessage(told)], "that is not a move: it was not played and costs no turn")
    quiet = Game(Strict(blocking=False), 1)
    for typed_ in ("x", AssistantMessage("x", tool_calls=[ToolCall("c", "act", "{}")])):
        refusal = quiet.answer(typed_)
        assert refusal == Refusal(
            [vfgym.UserMessage("Say a.")], "that is not a move: it was not played and costs no turn; /rules shows the rules"
        )
    assert (quiet.help, quiet.state["trajectory"]) == ({"hints": 0, "undone": 0, "refused": 2}, [])
    strict = Game(Strict(blocking=False), 1, is_strict=True)
    assert strict.answer("x") is None
    assert (typed(strict), strict.help["refused"]) == (["x"], 0)


class Strict(Uncopied):
    """Takes an "a", and knows before it is played what is none."""

    can_go_back = True  # type: ignore[assignment]

    def why_no_action(self, message: Message, state: Any) -> str | None:
        return None if message["content"] == "a" else "Say a."

    def step_info(self, state: Any) -> dict[str, Any]:
        return {}


def test_moves_are_taken_back_up_to_a_limit() -> None:
    game = Game(vfgym.to_chat(lambda: Toy(length=1000), history=0), 0)
    for _ in range(102):
        assert game.answer("1") is None
    assert (game.num_undoable, game.episode_return) == (100, 102.0)
    for _ in range(100):
        game.undo()
    assert (game.num_undoable, game.episode_return, game.observation[-1]["content"][-1], game.help["undone"]) == (0, 2.0, "2", 100)


def test_a_game_that_its_player_leaves_is_cut_and_scored_as_it_stands() -> None:
    game = Game(vfgym.to_chat(Toy, failure_reward=-1.0), 0)
    game.answer("1")
    game.quit()
    expected = {"stop_condition": "quit", "ending": "cut", "is_completed": False, "is_truncated": True, "reward": 1.0}
    assert {name: game.state[name] for name in expected} == expected
    assert (game.state.failure_reward, game.is_over, game.episode_return) == (-1.0, True, 1.0)
    assert (game.info["stop_condition"], game.info["ending"]) == ("quit", "cut")
    info, said = game.info, game.observation
    game.quit()
    assert (game.info, game.observation) == (info, said)
    over = Game(vfgym.to_chat(lambda: Toy(length=1)), 0)
    over.answer("1")
    over.quit()
    assert (over.state["stop_condition"], over.state["is_completed"]) == ("game_over", True)


@pytest.mark.parametrize("copied", [True, False])
def test_a_step_that_is_broken_off_is_taken_back_where_the_game_can_be_copied(copied: bool) -> None:
    def step(action: Any) -> Any:
        raise KeyboardInterrupt

    class Copied(GymnasiumGame):
        can_go_back = copied  # type: ignore[assignment]

    game = Game(Copied(Toy), 0)
    assert game.return_after_break()
    game.answer("1")
    said = game.observation
    game.state.session.game.step = step
    with pytest.raises(KeyboardInterrupt):
        game.answer("2")
    assert game.return_after_break() == copied
    assert (game.observation, game.episode_return, game.num_undoable) == (said, 1.0, int(copied))
    if copied:
        assert [step["completion"][0]["content"] for step in game.state["trajectory"]] == ["1"]


class OneModel(InOrder):
    """The same model for every copy of a game, as behind a server."""

    def __deepcopy__(self, memo: Any) -> OneModel:
        return self


def test_a_move_that_an_opponent_could_not_answer_can_be_tried_again() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    client = OneModel("[1]", ModelError("busy"), "[2]")
    game = Game(make("textarena/TicTacToe-v0", opponents=vfgym.ModelAgent(client, "m")), 0)
    assert game.answer("[0]") is None
    before = game.observation
    refusal = game.answer("[4]")
    assert refusal is not None
    assert "busy" in refusal.messages[0]["content"]
    assert (game.observation, game.is_over) == (before, False)
    assert game.help["refused"] == 0, "it was a move"
    assert game.answer("[4]") is None
    assert "[Player 1] [2]" in game.observation[-1]["content"]
