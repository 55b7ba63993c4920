"""`GameEnv`: a game belongs to its player, gets its seed verbatim, and never holds up an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vfgym
from vfgym.errors import ConfigurationError, Error
from vfgym.state import State
from vfgym.testing import ScriptedClient, check_environment
from vfgym.wrappers.games.turns import Turn, copy_info


class Game:
    """Counts; records what happened to it, and on which thread."""

    def __init__(self) -> None:
        self.seeds: list[int | None] = []
        self.threads: set[int] = {threading.get_ident()}
        self.count = 0
        self.closed = 0

    def touch(self) -> None:
        self.threads.add(threading.get_ident())


class Counting(vfgym.GameEnv):
    """Say "up" until the game has counted to three; each move is worth a half."""

    barrier: threading.Barrier | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.games: list[Game] = []

    def open_game(self) -> Game:
        self.games.append(Game())
        return self.games[-1]

    def begin_game(self, game: Game, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        game.touch()
        game.seeds.append(seed)
        game.count = 0 if options is None else options["count"]
        return [vfgym.UserMessage("count to three")]

    def make_move(self, game: Game, message: vfgym.Message, state: State) -> Turn:
        game.touch()
        if self.barrier is not None:
            self.barrier.wait(timeout=20)
        if message.content != "up":
            return Turn([vfgym.UserMessage("say up")], is_valid=False)
        game.count += 1
        return Turn([vfgym.UserMessage(str(game.count))], reward=0.5, terminated=game.count == 3, info={"count": game.count})

    def close_game(self, game: Game) -> None:
        game.closed += 1


def test_seeds_reach_the_game_verbatim_and_an_unseeded_reset_continues_it() -> None:
    env = Counting(blocking=False)
    _, first = env.reset(seed=17)
    env.reset()
    _, picked = env.reset(options={"example_id": 4})
    assert env.games[0].seeds == [17, None, 4]
    assert len(env.games) == 1
    assert (first["example_id"], picked["example_id"]) == (17, 4)


def test_rewards_are_emitted_as_they_come_and_sum_to_the_score() -> None:
    env = Counting(blocking=False)
    env.reset(seed=0)
    assert [env.step("up").reward for _ in range(3)] == [0.5, 0.5, 0.5]
    assert env.state["reward"] == 1.5
    assert env.state["metrics"]["game_reward"] == 1.5
    assert [step["extras"]["game_info"]["count"] for step in env.state["trajectory"]] == [1, 2, 3]
    assert [message.content for message in env.state["completion"]] == ["up", "1", "up", "2", "up", "3"]


def test_game_options_reach_the_game_and_other_tasks_are_refused() -> None:
    env = Counting(blocking=False)
    env.reset(options={"game_options": {"count": 2}})
    assert env.step("up").terminated
    with pytest.raises(ConfigurationError, match="no reset option 'task'"):
        env.reset(options={"task": {"question": "?"}})


def test_each_fork_has_a_game_of_its_own_and_closes_it() -> None:
    env = Counting(blocking=False)
    seats = [env.fork() for _ in range(3)]
    for turns, seat in enumerate(seats):
        seat.reset(seed=turns)
        for _ in range(turns):
            seat.step("up")
    assert [game.count for game in env.games] == [0, 1, 2]
    for seat in seats:
        seat.close()
        seat.close()
    assert [game.closed for game in env.games] == [1, 1, 1]


def test_a_rollout_asks_the_model_once_a_move_and_closes_its_game() -> None:
    env = Counting(blocking=False)
    client = ScriptedClient(["up", "down", "up", "up"])
    state = asyncio.run(_rollout(env, client))
    assert client.calls == 4
    assert state["reward"] == 1.5
    assert state["stop_condition"] == "game_over"
    assert env.games[0].closed == 1


async def _rollout(env: vfgym.GameEnv, client: ScriptedClient) -> State:
    state = await env.rollout(env.tasks.input(0), client, "scripted")
    await env.rubric.score_rollout(state)
    return state


def test_blocking_games_run_at_once_in_async_runs_each_on_its_own_thread() -> None:
    """Every move waits until all eight games are in the middle of one: on the loop, or on a shared thread, none would return."""
    env = Counting()
    env.barrier = threading.Barrier(8)

    async def run() -> list[State]:
        return await asyncio.gather(*(_rollout(env, ScriptedClient(["up"] * 3)) for _ in range(8)))

    states = asyncio.run(run())
    assert [state["reward"] for state in states] == [1.5] * 8
    threads = [game.threads for game in env.games]
    assert all(len(own) == 1 for own in threads)
    assert threading.get_ident() not in set().union(*threads)
    assert len(set().union(*threads)) == 8


class BeginsSlowly(Counting):
    """Its first game lets the event loop have many turns before it has begun; the others begin once all of them do."""

    def __init__(self, others: int, *, fails: bool) -> None:
        super().__init__()
        self.barrier_of_others = threading.Barrier(others, timeout=20)
        self.fails = fails
        self.begun: list[str] = []
        self.loop: asyncio.AbstractEventLoop

    def begin_game(self, game: Game, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        self.begun.append("begins")
        if len(self.begun) > 1:
            self.barrier_of_others.wait()
        else:
            asyncio.run_coroutine_threadsafe(self._have_turns(), self.loop).result(20)
            self.begun.append("has begun")
            if self.fails:
                raise Error("it cannot begin")
        return super().begin_game(game, state, seed, options)

    async def _have_turns(self) -> None:
        for _ in range(200):
            await asyncio.sleep(0)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_pickled", [False, True])
def test_the_first_game_on_a_thread_begins_alone_and_then_all_others_at_once(fails: bool, is_pickled: bool) -> None:
    """So what it imports is whole when the others want it. That it has begun elsewhere, in another process, says nothing."""

    async def run(env: BeginsSlowly) -> list[State]:
        env.loop = asyncio.get_running_loop()
        return await asyncio.gather(*(_rollout(env, ScriptedClient(["up"] * 3)) for _ in range(6)))

    env = BeginsSlowly(5, fails=fails)
    if is_pickled:
        env._imported_in = -1  # as it stands in a pickle of another process
    states = asyncio.run(run(env))
    assert env.begun == ["begins", "has begun", *["begins"] * 5]
    assert sorted(state["error"] is None for state in states) == [not fails, *[True] * 5]
    env.begun = ["begins"]
    env.barrier_of_others = threading.Barrier(6, timeout=20)
    asyncio.run(run(env))
    assert env.begun == ["begins"] * 7


def test_a_blocking_game_stepped_from_plain_code_stays_on_the_callers_thread() -> None:
    env = Counting()
    env.reset(seed=0)
    env.step("up")
    assert env.games[0].threads == {threading.get_ident()}


class Busy(Counting):
    """The port of its first game is taken."""

    def open_game(self) -> Game:
        game = super().open_game()
        if len(self.games) == 1:
            raise RuntimeError("port busy")
        return game


def test_a_game_that_could_not_be_opened_is_opened_at_the_next_reset() -> None:
    env = Busy(blocking=False)
    with pytest.raises(RuntimeError, match="port busy"):
        env.reset(seed=0)
    for seed in (1, 2):
        env.reset(seed=seed)
        assert env.step("up").reward == 0.5
    env.close()
    assert [game.seeds for game in env.games] == [[], [1, 2]]
    assert [game.closed for game in env.games] == [0, 1]


@pytest.mark.parametrize("blocking", [False, True])
def test_a_game_that_could_not_be_opened_costs_one_episode_of_a_run(blocking: bool) -> None:
    results = vfgym.evaluate(Busy(blocking=blocking), lambda observation, info: "up", num_examples=4, max_concurrent=1, progress=False)
    errors = [row["error"] and row["error"]["error_chain_repr"] for row in results["outputs"]]
    assert errors == ["RuntimeError('port busy')", None, None, None]


async def test_the_thread_of_a_game_that_could_not_be_opened_ends() -> None:
    env = Busy()
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="port busy"):
        await env.areset(seed=0)
    for thread in set(threading.enumerate()) - before:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive()


def test_the_tasks_of_a_game_cannot_be_replaced() -> None:
    with pytest.raises(ConfigurationError, match="Counting plays a game, whose tasks are its seeds"):
        Counting().set_tasks("train", [{"question": "?"}])


def test_a_game_keeps_every_promise() -> None:
    broken = [check for check in check_environment(lambda: Counting(blocking=False)) if not check.passed]
    assert broken == []


class Answering(vfgym.GameEnv):
    """Answers a move with what it is given. Its game, which has no `close`, is a dict."""

    def __init__(self, answer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answer = answer

    def open_game(self) -> dict[str, int]:
        return {}

    def begin_game(self, game: Any, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[vfgym.Message]:
        return [vfgym.UserMessage("go")]

    def make_move(self, game: Any, message: vfgym.Message, state: State) -> Turn:
        return self.answer()  # type: ignore[no-any-return]


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: None, "make_move must be a plain method that returns a Turn, got NoneType"),
        (lambda: ([], 1.0, False, False, {}), "returns a Turn, got tuple"),
        (lambda: Turn(["text"]), r"Turn\.messages\[0\]: expected a chat message .*, got str: 'text'"),  # type: ignore[list-item]
        (lambda: Turn(["text"], 1.0, terminated=True), r"Turn\.messages\[0\]"),  # type: ignore[list-item]
        (lambda: Turn([], np.array([1.0])), r"Turn\.reward must be a number, got array\(\[1\.\]\)"),  # type: ignore[arg-type]
        (lambda: Turn([], 10**400), r"Turn\.reward must be a number, got 1000"),
        (lambda: Turn([], None), r"Turn\.reward must be a number, got None"),  # type: ignore[arg-type]
    ],
)
async def test_what_an_author_returns_by_mistake_is_raised_and_no_error_of_the_episode(answer: Any, message: str, blocking: bool) -> None:
    env = Answering(answer, blocking=blocking)
    await env.areset(seed=0)
    with pytest.raises(TypeError, match=message):
        await env.astep("up")
    await env.aclose()


def test_a_turn_takes_messages_that_can_be_read_once_only() -> None:
    env = Answering(lambda: Turn(vfgym.UserMessage(text) for text in ("on", "and on")))  # type: ignore[arg-type]
    env.reset(seed=0)
    assert [message["content"] for message in env.step("up").observation] == ["go", "up", "on", "and on"]


def test_a_turn_takes_any_number_for_a_reward() -> None:
    env = Answering(lambda: Turn([vfgym.UserMessage("on")], np.float32(0.5)))  # type: ignore[arg-type]
    env.reset(seed=0)
    assert env.step("up").reward == 0.5
    assert type(env.state["trajectory"][0]["reward"]) is float


def test_a_game_that_has_a_close_is_closed_and_any_other_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[bool] = []

    class Closing(Answering):
        def open_game(self) -> Any:
            return SimpleNamespace(close=lambda: closed.append(True))

    for kind in (Answering, Closing):
        results = vfgym.evaluate(
            kind(lambda: Turn([], 1.0, terminated=True)), lambda conversation, info: "up", num_examples=2, progress=False
        )
        assert results["metadata"]["avg_reward"] == 1.0
    assert closed
    assert not caplog.records


def test_answers_that_name_no_move_are_counted_in_the_episode() -> None:
    env = Counting(blocking=False)
    env.reset(seed=0)
    outcomes = [env.step(answer) for answer in ("what?", "up", "what?", "what?", "up", "up")]
    assert outcomes[-1].info["metrics"]["invalid_answers"] == 3.0
    assert [step["extras"].get("invalid_answer", False) for step in env.state["trajectory"]] == [True, False, True, True, False, False]


def test_a_wrong_limit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_invalid_moves must be a whole number of at least 1, got 0"):
        Counting(max_invalid_moves=0)


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


@pytest.mark.parametrize("history", [None, 0, 1, 9])
@pytest.mark.parametrize("answers", [["a"], ["a", "b"], ["a", "b", "crash"]])
def test_a_limited_history_leaves_the_completion_alone_however_it_ends(history: int | None, answers: list[str]) -> None:
    """A limit, an error, or the outside ends the episode: the completion is that of the same game with all of its history."""
    completions = []
    for limit in (history, None):
        env = Echo(history=limit, max_turns=2 if answers[-1] != "crash" else -1, blocking=False)
        env.reset(seed=0)
        for text in answers:
            env.step(text)
        env.truncate()
        completions.append(said(env.state["completion"]))
    assert completions[0] == completions[1]


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


@given(st.lists(st.sampled_from(["something", "nothing"]), max_size=6), st.integers(0, 3))
def test_a_limited_history_holds_the_last_moves_and_all_answers_since_that_made_none(answers: list[str], history: int) -> None:
    env = Echo(history=history, blocking=False)
    shown, _ = env.reset(seed=0)
    count = 0
    for answer in answers:
        outcome = env.step(answer)
        count += answer == "something"
        if outcome.terminated:
            return
        shown = outcome.observation
        first, *rest = said(shown)
        assert first.startswith("Say anything.")
        assert f"move {count}" in "\n\n".join([first, *rest]).split("\n\n")
        assert rest.count("something") == min(history, count)
        assert (rest == []) == (history == 0 and answer == "something")
        assert rest == [] or rest[-2:] == [answer, f"move {count}" if answer == "something" else "Say something!"]


def test_an_info_is_copied_value_by_value() -> None:
    lock, board = threading.Lock(), [[0]]
    copied = copy_info({"lock": lock, "board": board})
    assert copied["lock"] is lock
    board[0][0] = 1
    assert copied["board"] == [[0]]


@pytest.mark.parametrize("history", [-1, 1.5, "all", True])
def test_a_history_that_is_no_number_of_moves_is_refused(history: Any) -> None:
    with pytest.raises(ConfigurationError, match="history"):
        Echo(history=history)


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


def test_what_an_author_wrote_before_the_game_began_hides_nothing_of_the_game() -> None:
    env = Own()
    env.reset(seed=0)
    assert [env.step("up").terminated for _ in range(3)] == [False, False, True]
    assert env.state["turn"].info == {"count": 3}


def test_a_game_that_is_over_when_it_was_set_up_ends_at_once() -> None:
    def over(state: State) -> State:
        state["turn"] = Turn([], terminated=True)
        return state

    env = Own(over)
    env.reset(seed=0)
    assert (env.state["stop_condition"], env.state["trajectory"]) == ("game_over", [])


def test_a_state_that_takes_the_place_of_the_games_keeps_the_game() -> None:
    env = Own(lambda state: State({**state, "mine": 1}))
    env.reset(seed=0)
    assert [env.step(word).terminated for word in ("up", "what?", "up", "up")] == [False, False, False, True]
    assert (env.state["mine"], env.state["reward"]) == (1, 1.5)


@pytest.mark.parametrize("way", ["its turn", "the turn of its game state", "another turn"])
def test_a_turn_that_an_own_apply_action_ends_is_the_last(way: str) -> None:
    class Ending(Counting):
        def apply_action(self, message: vfgym.Message, state: State) -> Any:
            done = super().apply_action(message, state)
            if way == "its turn":
                state["turn"].terminated = True
            elif way == "the turn of its game state":
                state.game_state.turn.terminated = True
            else:
                state.game_state.turn = Turn([], terminated=True)
            return done

    env = Ending(blocking=False)
    env.reset(seed=0)
    assert env.step("up").terminated
    assert env.state["stop_condition"] == "game_over"


def test_a_turn_that_a_step_function_ends_is_the_last() -> None:
    def end(step: Any, state: State) -> float:
        state["turn"].truncated = True
        return 1.0

    rubric = vfgym.Rubric()
    rubric.add_step_reward_func(end)
    env = Counting(blocking=False, rubric=rubric)
    env.reset(seed=0)
    outcome = env.step("up")
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (1.0, False, True)


def test_invalid_moves_that_an_author_counts_end_an_episode_and_a_valid_one_begins_anew() -> None:
    def count(state: State) -> None:
        state["invalid_moves"] += 1

    env = Own(in_move=count, max_invalid_moves=3)
    env.reset(seed=0)
    env.step("up")
    assert env.state["invalid_moves"] == 0
    assert [env.step("what?").terminated for _ in range(2)] == [False, True]
    assert env.state["stop_condition"] == "too_many_invalid_moves"
