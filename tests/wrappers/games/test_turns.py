"""`GameTurnsEnv`: tasks that are seeds, what is shown of earlier moves, and how episodes of games end."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import vfgym
from tests.wrappers.games.counting import Answering, Counting, Game
from vfgym.data import RewardBounds
from vfgym.errors import ConfigurationError
from vfgym.state import State
from vfgym.wrappers.games.turns import Turn, copy_info, game_reward


def test_the_tasks_of_a_game_cannot_be_replaced() -> None:
    with pytest.raises(ConfigurationError, match="Counting plays a game, whose tasks are its seeds"):
        Counting().set_tasks("train", [{"question": "?"}])
    with pytest.raises(ValueError, match="'train' or 'eval'"):
        Counting().tasks_of("test")
    assert Counting().listed_moves(State({"input": {}})) == []
    assert [Counting().rules_of(State({"input": {}, **known})) for known in ({}, {"rules": "Count."})] == [None, "Count."]
    for name in ("dataset", "eval_dataset", "few_shot"):
        with pytest.raises(ConfigurationError, match="the tasks of a game are its seeds, and the game writes the prompt"):
            Counting(**{name: []})


class Echo(vfgym.GameEnv):
    """Says after each move how many there were, and is over after five."""

    def open_game(self) -> list[str]:
        return []

    def begin_game(self, game: Any, state: Any, seed: Any, options: Any) -> list[Any]:
        game.clear()
        state["rules"] = "Say anything."
        return [vfgym.UserMessage("Say anything.\n\nmove 0")]

    def make_move(self, game: Any, message: Any, state: Any) -> Turn:
        if message.content == "crash":
            raise vfgym.errors.ToolError("crashed")
        if message.content == "nothing":
            return Turn([vfgym.UserMessage("Say something!")], is_valid=False)
        game.append(message.content)
        return Turn([vfgym.UserMessage(f"move {len(game)}")], 1.0, terminated=len(game) == 5)

    def close_game(self, game: Any) -> None:
        game.clear()


def said(messages: list[Any]) -> list[str]:
    return [message.content for message in messages]


@pytest.mark.parametrize(
    ("history", "shown"),
    [
        (None, ["Say anything.\n\nmove 0", "a", "move 1", "b", "move 2", "c", "move 3"]),
        (3, ["Say anything.\n\nmove 0", "a", "move 1", "b", "move 2", "c", "move 3"]),
        (2, ["Say anything.\n\nmove 1", "b", "move 2", "c", "move 3"]),
        (1, ["Say anything.\n\nmove 2", "c", "move 3"]),
        (0, ["Say anything.\n\nmove 3"]),
    ],
)
def test_history_limits_what_is_shown_and_not_what_is_kept(history: int | None, shown: list[str]) -> None:
    env = Echo(history=history, system_prompt="Be brief.", blocking=False)
    env.reset(seed=0)
    for text in "abc":
        outcome = env.step(text)
    assert said(outcome.observation) == ["Be brief.", *shown]
    assert said(env.state["trajectory"][-1]["prompt"])[-1] == "move 2" or history == 0
    for text in "de":
        outcome = env.step(text)
    whole = ["a", "move 1", "b", "move 2", "c", "move 3", "d", "move 4", "e", "move 5"]
    assert said(env.state["completion"]) == whole
    assert said(outcome.observation) == ["Be brief.", "Say anything.\n\nmove 0", *whole]
    assert env.state["reward"] == 5.0


@pytest.mark.parametrize("history", [None, 0, 1])
@pytest.mark.parametrize("end", ["limit", "outside", "model", "crash"])
def test_what_the_game_answered_to_the_last_move_is_in_the_last_observation_whatever_ended_it(history: int | None, end: str) -> None:
    env = Echo(history=history, max_turns=2 if end == "limit" else -1, blocking=False)
    env.reset(seed=0)
    env.step("a")
    outcome = env.step("b")
    if end == "outside":
        outcome = env.truncate()
    elif end == "model":
        outcome = env.fail(TimeoutError())
    elif end == "crash":  # the game has nothing to say to this move
        outcome = env.step("crash")
    whole = ["a", "move 1", "b", "move 2", *(["crash"] if end == "crash" else [])]
    assert said(env.state["completion"]) == whole
    assert said(outcome.observation)[1:] == whole
    assert outcome.truncated == (end != "crash")


@pytest.mark.parametrize("history", [None, 0, 1])
def test_an_authors_last_words_come_after_what_the_game_answered(history: int | None) -> None:
    class Farewell(Echo):
        def make_move(self, game: Any, message: vfgym.Message, state: State) -> Turn:
            turn = super().make_move(game, message, state)
            if message.content == "b":
                state["final_env_response"] = [vfgym.UserMessage("That is all.")]
            return turn

    env = Farewell(history=history, blocking=False)
    env.reset(seed=0)
    env.step("a")
    assert env.step("b").terminated
    assert said(env.state["completion"]) == ["a", "move 1", "b", "move 2", "That is all."]


def test_an_info_is_copied_value_by_value() -> None:
    lock, board = threading.Lock(), [[0]]
    copied = copy_info({"lock": lock, "board": board})
    assert copied["lock"] is lock
    board[0][0] = 1
    assert copied["board"] == [[0]]


class Own(Counting):
    """Its author does what authors may do with the state."""

    def __init__(self, after_setup: Any = None, in_move: Any = None, **kwargs: Any) -> None:
        super().__init__(blocking=False, **kwargs)
        self.after_setup, self.in_move = after_setup, in_move

    @vfgym.setup
    def prepare(self, state: State) -> None:
        state["turn"] = "nothing yet"

    def setup_state(self, state: State) -> Any:
        state = super().setup_state(state).value
        return state if self.after_setup is None else self.after_setup(state)

    def make_move(self, game: Game, message: vfgym.Message, state: State) -> Turn:
        turn = super().make_move(game, message, state)
        if self.in_move is not None:
            self.in_move(state)
        return turn


def test_a_turn_takes_any_number_for_a_reward_and_messages_that_can_be_read_once_only() -> None:
    env = Answering(lambda: Turn((vfgym.UserMessage(text) for text in ("on", "and on")), np.float32(0.5)))  # type: ignore[arg-type]
    env.reset(seed=0)
    outcome = env.step("up")
    assert said(outcome.observation) == ["go", "up", "on", "and on"]
    assert (outcome.reward, type(env.state["trajectory"][0]["reward"])) == (0.5, float)


def test_an_author_may_end_a_game_that_was_set_up_and_replace_its_state() -> None:
    over = Own(lambda state: state.__setitem__("turn", Turn([], terminated=True)) or state)
    over.reset(seed=0)
    assert (over.state["stop_condition"], over.state["trajectory"]) == ("game_over", [])
    env = Own(lambda state: State({**state, "mine": 1}))
    env.reset(seed=0)
    assert env.state["turn"] != "nothing yet"  # what an author wrote before the game began hides nothing of the game
    outcomes = [env.step(word) for word in ("up", "what?", "up", "up")]
    assert [outcome.terminated for outcome in outcomes] == [False, False, False, True]
    assert (env.state["mine"], env.state["reward"], outcomes[-1].info["metrics"]["invalid_answers"]) == (1, 1.5, 1.0)
    assert [step["extras"].get("invalid_answer", False) for step in env.state["trajectory"]] == [False, True, False, False]


@pytest.mark.parametrize("way", ["its turn", "the turn of its game state", "another turn", "a step function"])
def test_a_turn_that_an_own_apply_action_ends_is_the_last(way: str) -> None:
    class Ending(Counting):
        def apply_action(self, message: vfgym.Message, state: State) -> Any:
            done = super().apply_action(message, state)
            if way == "a step function":
                pass
            elif way == "its turn":
                state["turn"].terminated = True
            elif way == "the turn of its game state":
                state.game_state.turn.terminated = True
            else:
                state.game_state.turn = Turn([], terminated=True)
            return done

    def end(step: Any, state: State) -> float:
        state["turn"].terminated = way == "a step function" or state["turn"].terminated
        return 1.0

    rubric = vfgym.Rubric()
    rubric.add_step_reward_func(end)
    env = Ending(blocking=False, rubric=rubric)
    env.reset(seed=0)
    outcome = env.step("up")
    assert (outcome.terminated, outcome.reward, env.state["stop_condition"]) == (True, 1.0, "game_over")


def test_invalid_moves_that_an_author_counts_end_an_episode_and_a_valid_one_begins_anew() -> None:
    def count(state: State) -> None:
        state["invalid_moves"] += 1

    env = Own(in_move=count, max_invalid_moves=3)
    env.reset(seed=0)
    env.step("up")
    assert env.state["invalid_moves"] == 0
    assert [env.step("what?").terminated for _ in range(2)] == [False, True]
    assert env.state["stop_condition"] == "too_many_invalid_moves"


class Bounded(Counting):
    """Says what its rewards can be."""

    def __init__(self, known: RewardBounds, moves: int | None, invalid_reward: float, answers: int | None, **kwargs: Any) -> None:
        super().__init__(blocking=False, **kwargs)
        self.bounds = self._bounds_of(known, moves, invalid_reward, answers)

    def _game_reward_bounds(self) -> Any:
        return self.bounds


@pytest.mark.parametrize(
    ("known", "moves", "invalid_reward", "answers", "bounds"),
    [
        ({}, 5, 0.0, 5, (0.0, None)),
        ({"episode": -1.0, "highest": 1.0}, None, 0.0, None, (-1.0, 1.0)),
        ({"episode": -1.0, "highest": 0.0}, None, -2.0, 3, (-7.0, 0.0)),
        ({"highest": 1.0}, None, 2.0, 3, (0.0, 7.0)),
        ({"move": -1.0, "highest_move": 0.5}, 4, 0.0, None, (-4.0, 2.0)),
        ({"move": -1.0, "highest_move": 0.5}, None, 0.0, 4, (None, None)),
        ({"episode": -1.0, "highest": 1.0}, 4, -1.0, None, (None, 1.0)),
    ],
)
def test_bounds_of_rewards_add_up_what_a_game_and_invalid_answers_earn(
    known: RewardBounds, moves: int | None, invalid_reward: float, answers: int | None, bounds: tuple[float | None, float | None]
) -> None:
    env = Bounded(known, moves, invalid_reward, answers)
    assert env.bounds == bounds
    assert env.reward_range == (None if None in bounds else bounds)


def test_rewards_of_an_author_have_no_known_bounds() -> None:
    known: Any = ({"episode": -1.0, "highest": 1.0}, None, 0.0, None)

    class OwnMoves(Bounded):
        def apply_action(self, message: vfgym.Message, state: State) -> Any:
            return super().apply_action(message, state)

    rubrics = {"none": vfgym.Rubric(), "half": vfgym.Rubric(), "other": vfgym.Rubric(lambda state: 1.0)}
    rubrics["half"].add_step_reward_func(game_reward, 0.5)
    assert Bounded(*known).reward_range == (-1.0, 1.0)
    assert [OwnMoves(*known).reward_range, *(Bounded(*known, rubric=rubrics[name]).reward_range for name in ("half", "other"))] == [
        None
    ] * 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"split": "test"}, "the reset option 'split' must be 'train' or 'eval', got 'test'"),
        ({"task": {"question": "?"}}, "Counting plays a game, whose tasks are seeds: there is no reset option 'task'"),
        ({"game_options": [1]}, "the reset option 'game_options' must be a dict, got list"),
        ({"example_id": -1}, "the example_id of a game is its seed, an integer from 0; got -1"),
        ({"example_id": "x"}, "the example_id of a game is its seed, an integer from 0; got 'x'"),
        ({"player": 0}, "Counting is not a game for several players, so there is no 'player' to choose"),
    ],
)
def test_reset_options_that_do_not_fit_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        Counting(blocking=False).reset(options=options)


@pytest.mark.parametrize(
    ("seed", "options", "task"),
    [
        (None, {}, {"prompt": [], "example_id": -1, "seed": None, "game_options": None}),
        (0, {"split": "eval"}, {"prompt": [], "example_id": 0, "seed": 0, "game_options": None}),
        (3, {"example_id": 0, "game_options": {"a": 1}}, {"prompt": [], "example_id": 0, "seed": 0, "game_options": {"a": 1}}),
    ],
)
def test_a_task_is_a_seed(seed: int | None, options: dict[str, Any], task: dict[str, Any]) -> None:
    assert Counting(blocking=False).choose_task(seed, options) == task


@pytest.mark.parametrize("given", [0, True, 1.5, "3", None])
def test_a_number_of_invalid_moves_below_one_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^max_invalid_moves must be a whole number of at least 1, got {given!r}$"):
        Counting(max_invalid_moves=given)
    assert Counting(max_invalid_moves=1).max_invalid_moves == 1


@pytest.mark.parametrize(("max_turns", "max_invalid_moves", "count"), [(2, 3, 2), (3, 2, 2), (-1, 3, 3), (0, 3, 3)])
def test_answers_without_a_move_end_an_episode_at_the_lower_limit(max_turns: int, max_invalid_moves: int, count: int) -> None:
    env = Echo(max_turns=max_turns, max_invalid_moves=max_invalid_moves, blocking=False)
    env.reset(seed=0)
    outcomes = [env.step("nothing") for _ in range(count)]
    assert [outcome.terminated for outcome in outcomes] == [False] * (count - 1) + [True]
    assert (env.state["stop_condition"], outcomes[-1].info["metrics"]["invalid_answers"]) == ("too_many_invalid_moves", float(count))


@pytest.mark.parametrize(
    ("terminated", "truncated", "stop"), [(True, False, "game_over"), (True, True, "game_over"), (False, True, "game_truncated")]
)
def test_the_game_says_how_it_ended(terminated: bool, truncated: bool, stop: str) -> None:
    env = Answering(lambda: Turn([vfgym.UserMessage("end")], terminated=terminated, truncated=truncated), max_turns=1, blocking=False)
    env.reset(seed=0)
    outcome = env.step("up")
    assert (outcome[2:4], env.state["stop_condition"]) == ((terminated, truncated), stop)


@pytest.mark.parametrize("reward", ["a", None, 10**400, [1.0]])
def test_a_reward_that_is_no_number_is_refused(reward: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"Turn.reward must be a number, got {reward!r}")):
        Turn([], reward)
