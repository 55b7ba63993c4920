"""A game that a person plays: what is not a move costs nothing, moves can be taken back, and the saved row replays to the same reward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.models import InOrder
from vfgym.endings import Ending, ending_of
from vfgym.errors import ModelError
from vfgym.messages import Message
from vfgym.play import Game, Recording, SavedGame, Screen, Session
from vfgym.play.ending import describe_end
from vfgym.play.hints import hint_for
from vfgym.results import load_results

LAKE = "gymnasium/FrozenLake-v1"
RULES: dict[str, Any] = {"is_slippery": False}


class ScriptedScreen(Screen):
    """Reads given lines, and keeps what is shown. A None is the end of the input."""

    def __init__(self, lines: Sequence[str | None]) -> None:
        super().__init__()
        self.waiting = list(lines)
        self.shown: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    def ask(self, prompt: str) -> str:
        line = self.waiting.pop(0) if self.waiting else None
        if line is None:
            raise EOFError
        return line

    def say(self, text: str = "") -> None:
        self.shown.append(text.replace("\ue000", " "))  # spaces at which no line is broken


def make(env_id: str = LAKE, **arguments: Any) -> gym.Env[Any, Any]:
    return gym.make(env_id, **arguments)


def play(env: gym.Env[Any, Any], *lines: str | None, seed: int = 1, is_strict: bool = False) -> tuple[Game, str]:
    game, screen = Game(env, seed, is_strict=is_strict), ScriptedScreen(lines)
    Session(game, screen).play()
    return game, screen.text


def typed(game: Game) -> list[Any]:
    return [step["completion"][-1]["content"] for step in game.state["trajectory"]]


def save(game: Game, folder: Path, env_id: str = LAKE, env_args: dict[str, Any] | None = None) -> dict[str, Any]:
    with SavedGame(game, env_id=env_id, env_args=env_args or {}, output_dir=folder) as saved:
        saved.write()
    (row,) = load_results(saved.path)["outputs"]
    return row


def test_what_is_not_a_move_is_asked_again_and_costs_no_turn() -> None:
    game, text = play(make(**RULES), "hello", "help", "?", "", "/moves", "/hint", "/show", "/tools", "/nothing", "down", "right")
    assert (typed(game), game.state["metrics"]["invalid_answers"]) == (["down", "right"], 0)
    assert "that is not a move: it was not played and costs no turn" in text
    assert text.index('"hello" is not a move. Type 0 (left), 1 (down), 2 (right) or 3 (up)') < text.index("The game is over.")


def test_an_answer_may_have_several_lines() -> None:
    game, text = play(vfgym.SingleTurnEnv([{"question": "A grid?"}]), "/lines", None, "/lines", ".", "/lines", "1 2", "", "help", ".")
    assert (typed(game), text.count("(nothing was sent)")) == (["1 2\n\nhelp"], 2)


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


class Uncopied(vfgym.GameEnv):
    can_go_back = False  # type: ignore[assignment]

    def open_game(self) -> list[str]:
        return []

    def begin_game(self, game: list[str], state: Any, seed: Any, options: Any) -> list[Message]:
        game.clear()
        return [vfgym.UserMessage("Say a, then b.")]

    def make_move(self, game: list[str], message: Message, state: Any) -> vfgym.Turn:
        game.append(message["content"])
        return vfgym.Turn([vfgym.UserMessage("Go on.")], 1.0, terminated=len(game) == 2, is_valid=message["content"] in "ab")

    def step_info(self, state: Any) -> dict[str, Any]:
        return {"legal_actions": ["a", "b"]}


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


def test_hints_are_right_answers_or_legal_moves_and_change_nothing() -> None:
    rng = np.random.default_rng(0)
    legs = Game(make("reasoning-gym/leg_counting-v0"), 3)
    assert f"{legs.state['answer']}" in str(hint_for(legs, rng))
    lake = Game(make(), 3)
    before = lake.seat.snapshot()
    assert str(hint_for(lake, rng)).rpartition(" ")[2] in ("left", "down", "right", "up")
    assert lake.answer("down") is None
    after = lake.observation
    lake.seat.restore(before)
    assert lake.seat.step("down")[0] == after
    assert hint_for(Game(vfgym.SingleTurnEnv([{"question": "?"}]), 0), rng) is None


def test_leaving_asks_once_and_saves_the_game_unfinished(tmp_path: Path) -> None:
    game, text = play(make(**RULES), "down", None, "no", "up", None, None, "never read")
    assert text.count("Leave the game?") == 2
    row = save(game, tmp_path, env_args=RULES)
    assert (row["stop_condition"], row["is_completed"], row["is_truncated"], row["failed"]) == ("quit", False, True, False)
    assert ending_of(game.state) is ending_of(row) is Ending.CUT
    assert (game.info["stop_condition"], game.info["ending"]) == ("quit", "cut")
    assert (row["counted_reward"], row["failure_reward"]) == (0.0, 0.0)
    assert [message["content"] for message in row["completion"] if message["role"] == "assistant"] == ["down", "up"]
    assert vfgym.replay(row, make(**RULES)).difference is None


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


def test_a_limit_cuts_a_game_off_before_it_is_over() -> None:
    game, text = play(gym.wrappers.TimeLimit(make(**RULES), 2), "left", "left")
    assert ending_of(game.state) is Ending.TRUNCATED
    assert "Cut off after 2 turns: a limit was reached before it was over." in text
    assert "The game is over." not in text
    assert "The game is over." in play(make(**RULES), "down", "right")[1]


@pytest.mark.parametrize(("failure_reward", "counted"), [(-1.0, -1.0), (9.0, 2.0), (None, None)])
def test_a_game_that_was_left_counts_with_the_lower_of_what_it_earned_and_the_failure_reward(
    failure_reward: float | None, counted: float | None, tmp_path: Path
) -> None:
    class Steady(Uncopied):
        def make_move(self, game: list[str], message: Message, state: Any) -> vfgym.Turn:
            return vfgym.Turn([vfgym.UserMessage("Go on.")], 2.0)

    game, _ = play(Steady(failure_reward=failure_reward), "a", "/quit", "y")
    row = save(game, tmp_path, "steady")
    assert (row["ending"], row["reward"], row["counted_reward"]) == ("cut", 2.0, counted)


class Dice(vfgym.MultiTurnEnv):
    """What each answer earns is drawn from the episode's random numbers."""

    def __init__(self, **kwargs: Any) -> None:
        rubric = vfgym.Rubric()
        rubric.add_step_reward_func(lambda step, state: float(state.rng.random()))
        super().__init__(dataset=[{"question": f"{number}"} for number in range(20)], max_turns=3, rubric=rubric, **kwargs)

    def env_response(self, messages: Any, state: Any) -> Any:
        return [vfgym.UserMessage("again")]


@pytest.mark.parametrize("make_env", [lambda: make(), Dice, lambda: make("reasoning-gym/leg_counting-v0")])
def test_a_saved_game_replays_to_the_same_reward(make_env: Any, tmp_path: Path) -> None:
    game, _ = play(make_env(), "right", "/undo", "down", "nonsense", "down", "right", *["up"] * 200, seed=11)
    row = save(game, tmp_path)
    assert (row["seed"], row["reward"], row["return"]) == (11, game.state["reward"], pytest.approx(game.episode_return))
    played_again = vfgym.replay(row, make_env())
    assert played_again.difference is None
    assert sum(played_again.rewards) == pytest.approx(row["reward"])
    without = {key: value for key, value in row.items() if key != "trajectory"}
    assert vfgym.replay(without, make_env()).difference is None


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


def test_who_won_is_said_in_words() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    game, text = play(make("textarena/TicTacToe-v0", opponents="self"), "[0]", "", "[3]", "", "[1]", "", "[4]", "", "[2]")
    assert "player 1 is to move" in text
    assert "player 0 won." in list(describe_end(game))
    against = Game(make("textarena/TicTacToe-v0", opponents=vfgym.ScriptedAgent(["[3]", "[4]", "[5]"])), 0)
    for move in ("[0]", "[1]", "[8]"):
        against.answer(move)
    assert "You lost: player 1 won." in list(describe_end(against))


def test_boards_are_kept_and_sentences_broken_at_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    board = "| a | b | c | d | e | f |\n+---+---+---+---+---+---+\n 1  2  3  4  5  6  7  8"
    screen.say(f"A sentence that is longer than that.\n{board}\x1b[2J")
    assert capsys.readouterr().out == f"A sentence that is\nlonger than that.\n{board}\\x1b[2J\n"
    screen.say_list(["col 1", "col 2", "col 3"], before="(", after=")")
    assert capsys.readouterr().out == "(col 1, col 2,\ncol 3)\n"


def test_a_recording_has_a_frame_for_each_position(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs the extra images")
    recording = Recording(tmp_path / "game.gif")
    game = Game(make(render_mode="rgb_array", **RULES), 1, recording=recording)
    for line in ("down", "nonsense", "down", "left"):
        game.answer(line)
    game.undo()
    game.answer("right")
    recording.save()
    with image.open(tmp_path / "game.gif") as film:
        assert (film.format, film.n_frames) == ("GIF", 4)


@pytest.mark.parametrize(("name", "message"), [("game.png", "must end in .gif"), ("nowhere/game.gif", "is not a directory that can be")])
def test_a_recording_that_cannot_be_written_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(vfgym.errors.ConfigurationError, match=message):
        Recording(tmp_path / name)
