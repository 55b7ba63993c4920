"""Functions that take long: on threads where they are marked, named in a warning where not. Then: oracles and `check_environment`."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from vfgym import AssistantMessage, MultiTurnEnv, Rubric, ScriptedAgent, SingleTurnEnv, State, ToolCall, ToolEnv, UserMessage, aevaluate
from vfgym.concurrency import background_loop, bridge, wait
from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.lifecycle import is_blocking
from vfgym.messages import Message
from vfgym.testing import Check, ScriptedClient, check_environment

SIDE_BY_SIDE = 8
PATIENCE = 20
"""Seconds after which a barrier gives up, so that a test fails instead of hanging."""

name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


def call(tool: str, arguments: str = "{}") -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[ToolCall("1", tool, arguments)])


def loop_thread() -> int:
    """Return the thread of the loop that synchronous callers share."""

    async def here() -> int:
        return threading.get_ident()

    assert not background_loop().is_closed()
    return int(wait(here()))


# The mark


def test_a_marked_function_stays_the_function_it_was() -> None:
    def function() -> float:
        return 1.0

    assert not is_blocking(function)
    assert vfgym.blocking(function) is function
    assert is_blocking(function)


def test_methods_and_wrapped_functions_are_marked_too() -> None:
    class Tools:
        @vfgym.blocking
        def method(self) -> float:
            return 1.0

    @vfgym.blocking
    def function() -> float:
        return 1.0

    @functools.wraps(function)
    def wrapped() -> float:
        return function()

    assert is_blocking(Tools().method)
    assert is_blocking(wrapped)


# Tools


class Library(ToolEnv):
    """A blocking tool that notes where it runs and for whom, and can meet others in the middle of their calls."""

    def __init__(self, parties: int = 1, **kwargs: Any) -> None:
        super().__init__(dataset=[{"question": f"{index}"} for index in range(SIDE_BY_SIDE)], tools=[self.look_up, self.lose], **kwargs)
        self.barrier = threading.Barrier(parties, timeout=PATIENCE)
        self.threads: list[int] = []

    @vfgym.blocking
    def look_up(self, word: str = "") -> str:
        """Look up a word."""
        self.threads.append(threading.get_ident())
        self.barrier.wait()
        return f"{word} for {name.get()}"

    @vfgym.blocking
    def lose(self) -> str:
        """Raise."""
        raise LookupError("it is lost")


def test_a_blocking_tool_runs_in_place_in_plain_code() -> None:
    env = Library()
    env.reset(seed=0)
    token = name.set("ann")
    try:
        assert env.step(call("look_up", '{"word": "x"}')).observation[-1]["content"] == "x for ann"
    finally:
        name.reset(token)
    assert env.threads == [threading.get_ident()]


async def test_blocking_tools_run_at_once_on_threads_in_async_runs() -> None:
    """Each call waits until all are in the middle of one: on the loop, or on a shared thread, none would return."""
    env = Library(SIDE_BY_SIDE)

    async def play(index: int) -> Any:
        name.set(f"reader {index}")
        seat = env.fork()
        await seat.areset(options={"example_id": index})
        return (await seat.astep(call("look_up", f'{{"word": "{index}"}}'))).observation[-1]["content"]

    said = await asyncio.gather(*map(play, range(SIDE_BY_SIDE)))
    assert said == [f"{index} for reader {index}" for index in range(SIDE_BY_SIDE)]
    assert len(set(env.threads)) == SIDE_BY_SIDE
    assert threading.get_ident() not in env.threads


async def test_blocking_tools_of_rollouts_and_bridges_run_on_threads() -> None:
    env = Library(2)

    def stepped() -> Any:
        seat = env.fork()
        seat.reset(seed=0)
        return seat.step(call("look_up")).observation[-1]["content"]

    async def rolled_out() -> Any:
        state = await env.rollout(env.tasks.input(0), ScriptedClient([call("look_up"), "done"]), "m")
        return state["completion"][1]["content"]

    name.set("ann")
    assert await asyncio.gather(bridge(stepped), rolled_out()) == [" for ann", " for ann"]
    assert threading.get_ident() not in env.threads


async def test_an_evaluation_runs_blocking_tools_at_once() -> None:
    env = Library(SIDE_BY_SIDE)
    results = await aevaluate(env, ScriptedAgent([call("look_up"), "done"]), progress=False)
    assert [row["total_tool_calls"] for row in results["outputs"]] == [1.0] * SIDE_BY_SIDE
    assert [row["completion"][1]["content"] for row in results["outputs"]] == [" for nobody"] * SIDE_BY_SIDE
    assert threading.get_ident() not in env.threads


async def test_a_blocking_tool_leaves_the_loop_free_where_plain_code_steps_beside_one() -> None:
    """In a notebook a loop runs in the thread that steps; the loop that synchronous callers share is never held up."""
    env = Library()
    env.reset(seed=0)
    name.set("ann")
    assert env.step(call("look_up")).observation[-1]["content"] == " for ann"
    assert loop_thread() not in env.threads


def test_several_blocking_calls_of_one_answer_run_in_order() -> None:
    """Only async tools of one answer overlap: plain ones may depend on each other."""
    noted: list[str] = []

    @vfgym.blocking
    def write(word: str) -> str:
        """Write a word."""
        noted.append(word)
        return " ".join(noted)

    env = ToolEnv(tools=[write], dataset=[{"question": "?"}])
    calls = [ToolCall(f"{index}", "write", f'{{"word": "{index}"}}') for index in range(3)]

    async def play() -> list[Any]:
        await env.areset(seed=0)
        return [message["content"] for message in (await env.astep(AssistantMessage(None, tool_calls=calls))).observation[-3:]]

    assert asyncio.run(play()) == ["0", "0 1", "0 1 2"]


async def test_what_a_blocking_tool_raises_is_told_the_model() -> None:
    env = Library()
    await env.areset(seed=0)
    assert (await env.astep(call("lose"))).observation[-1]["content"] == "it is lost"
    assert (await env.astep(call("look_up", '{"wrd": 1}'))).observation[-1]["content"] != ""
    assert env.threads == []


# Reward functions


class Judged(Rubric):
    """Blocking functions of every kind, which note where they run."""

    def __init__(self, parties: int = 1) -> None:
        super().__init__([self.given])
        self.barrier = threading.Barrier(parties, timeout=PATIENCE)
        self.threads: dict[str, list[int]] = {}
        self.add_step_reward_func(self.each_turn, weight=0.25)

    def note(self, function: str) -> float:
        self.threads.setdefault(function, []).append(threading.get_ident())
        return 1.0

    @vfgym.blocking
    def given(self, completion: list[Message]) -> float:
        self.barrier.wait()
        return self.note("given")

    @vfgym.blocking
    def each_turn(self, step: Any) -> float:
        return self.note("each_turn")

    @vfgym.reward(weight=0.5)
    @vfgym.blocking
    def marked(self, state: State) -> float:
        state["judged for"] = name.get()
        return self.note("marked")

    @vfgym.blocking
    @vfgym.metric
    def broken(self) -> float:
        self.note("broken")
        raise LookupError("no judge")


class JudgedInGroups(Judged):
    """And one for whole groups."""

    @vfgym.metric(stage="group")
    @vfgym.blocking
    def together(self, states: list[State]) -> list[float]:
        self.note("together")
        return [float(len(states)) for _ in states]


ROWS = [{"question": "?"}]


def test_blocking_reward_functions_run_in_place_in_plain_code() -> None:
    rubric = Judged()
    env = SingleTurnEnv(ROWS, rubric=rubric)
    env.reset(seed=0)
    token = name.set("ann")
    try:
        assert env.step("x").reward == 1.75
    finally:
        name.reset(token)
    here = [threading.get_ident()]
    assert rubric.threads == {"each_turn": here, "given": here, "marked": here, "broken": here}
    assert env.state["judged for"] == "ann"


async def test_blocking_reward_functions_run_on_threads_in_async_runs() -> None:
    rubric = Judged()
    env = SingleTurnEnv(ROWS, rubric=rubric)
    name.set("ann")
    await env.areset(seed=0)
    assert (await env.astep("x")).reward == 1.75
    assert env.state["judged for"] == "ann"
    assert "no judge" in env.state["metrics_errors"]["broken"]
    assert sorted(rubric.threads) == ["broken", "each_turn", "given", "marked"]
    assert threading.get_ident() not in set().union(*rubric.threads.values())


async def test_blocking_reward_functions_of_several_episodes_run_at_once() -> None:
    env = SingleTurnEnv(ROWS, rubric=Judged(SIDE_BY_SIDE))

    async def play(index: int) -> tuple[float, str]:
        name.set(f"player {index}")
        seat = env.fork()
        await seat.areset(seed=index)
        return (await seat.astep("x")).reward, seat.state["judged for"]

    assert await asyncio.gather(*map(play, range(SIDE_BY_SIDE))) == [(1.75, f"player {index}") for index in range(SIDE_BY_SIDE)]


async def test_a_blocking_reward_function_scores_the_episodes_of_a_group_at_once() -> None:
    rubric = JudgedInGroups(SIDE_BY_SIDE)
    env = SingleTurnEnv(ROWS, rubric=rubric)
    states = [await env.rollout(env.tasks.input(0), ScriptedClient(["x"]), "m") for _ in range(SIDE_BY_SIDE)]
    await env.rubric.score_group(states)
    assert [state["reward"] for state in states] == [1.75] * SIDE_BY_SIDE
    assert [state["metrics"]["together"] for state in states] == [float(SIDE_BY_SIDE)] * SIDE_BY_SIDE
    assert len(set(rubric.threads["given"])) == SIDE_BY_SIDE
    assert threading.get_ident() not in set().union(*rubric.threads.values())


# The warning


LONG = 0.12
"""Seconds that are too long on a loop: a plain function may hold it for 0.1."""


def slow_tool() -> str:
    """Take long."""
    time.sleep(LONG)
    return "done"


def slow_reward(state: State) -> float:
    time.sleep(LONG)
    return 1.0


@vfgym.blocking
def slow_on_a_thread(state: State) -> float:
    time.sleep(LONG)
    return 1.0


def slow_in_plain_code() -> float:
    time.sleep(LONG)
    return 1.0


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


async def test_a_plain_tool_that_holds_the_loop_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    env = ToolEnv(tools=[slow_tool], dataset=ROWS)
    await env.areset(seed=0)
    for _ in range(2):
        assert (await env.astep(call("slow_tool"))).observation[-1]["content"] == "done"
    [warning] = warnings_of(caplog)
    assert warning.startswith("slow_tool held up the event loop")
    assert "@vfgym.blocking" in warning


async def test_a_plain_reward_function_that_holds_the_loop_is_named_once_and_a_blocking_one_never(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric([slow_reward, slow_on_a_thread]))
    for _ in range(2):
        await env.areset(seed=0)
        assert (await env.astep("x")).reward == 2.0
    [warning] = warnings_of(caplog)
    assert warning.startswith("slow_reward held up the event loop")


def test_plain_code_may_take_as_long_as_it_likes(caplog: pytest.LogCaptureFixture) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(slow_in_plain_code))
    env.reset(seed=0)
    assert env.step("x").reward == 1.0
    assert warnings_of(caplog) == []


# Oracles


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"answer": "42"}, "42"),
        ({"answer": 42}, "42"),
        ({"answer": ""}, ""),
        ({"answer": [1, 2]}, "[1, 2]"),
        ({"answer": None}, None),
        ({}, None),
        ({"info": {"answer": "42"}}, None),
    ],
)
def test_the_default_oracle_says_the_answer_of_the_task(row: dict[str, Any], answer: str | None) -> None:
    env = SingleTurnEnv([{"question": "6 * 7?", **row}], rubric=Rubric(lambda completion: completion[-1]["content"] == answer))
    env.reset(seed=0)
    assert env.oracle(env.state) == answer
    if answer is not None:
        assert env.step(env.oracle(env.state)).reward == 1.0


def test_an_oracle_answers_for_the_episode_it_is_asked_about() -> None:
    env = SingleTurnEnv([{"question": f"{index}?", "answer": f"{index}"} for index in range(3)])
    seats = [env.fork() for _ in range(3)]
    for index, seat in enumerate(seats):
        seat.reset(options={"example_id": index})
    assert [env.oracle(seat.state) for seat in seats] == ["0", "1", "2"]


# check_environment


CHECKER, SPEC, REPLAY, ACCEPTS, REFUSES, SUM, ONCE, ANSWER, FORKS, FACES, VECTOR = (
    "passes gymnasium's check_env without a warning",
    "its spec survives JSON",
    "replays the same episodes under a seed",
    "accepts every member of its action space",
    "refuses what is no action, and leaves the episode as it was",
    "its step rewards add up to the rubric's score",
    "calls each reward function and each cleanup handler once for an episode",
    "tells no answer in info",
    "forks do not see each other's episodes",
    "step() and rollout() give equal states",
    "runs in SyncVectorEnv",
)
PROMISES = [CHECKER, REPLAY, ACCEPTS, REFUSES, SUM, ONCE, ANSWER, FORKS, FACES, VECTOR]


class Sound(MultiTurnEnv):
    """Three turns, counted in the state."""

    def __init__(self, **kwargs: Any) -> None:
        rows = [{"question": f"{index}?", "answer": f"answer {index}"} for index in range(4)]
        super().__init__(**{"dataset": rows, "max_turns": 3, "rubric": Rubric(self.talkative, weights=[0.1]), **kwargs})
        self.rubric.add_step_reward_func(self.polite, 0.3)

    def talkative(self, completion: list[Message]) -> float:
        return float(len(completion))

    def polite(self, completion: list[Message]) -> float:
        return float("please" in str(completion[0]["content"]))

    def setup_state(self, state: State) -> Any:
        state["said"] = 0
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        state["said"] += 1
        return [UserMessage(f"turn {state['said']}")]


def promises(checks: list[Check]) -> list[str]:
    return [check.promise for check in checks]


def broken(env: Any) -> dict[str, str]:
    """Return the promises that do not hold, with what the check says."""
    return {check.promise: check.detail for check in check_environment(env) if not check.passed}


def test_a_sound_environment_keeps_every_promise() -> None:
    checks = check_environment(Sound)
    assert promises(checks) == PROMISES
    assert [check for check in checks if not check.passed] == []
    assert dict((check.promise, check.detail) for check in checks)[FACES] == "3 turn(s)"


def test_a_registered_environment_has_a_spec_to_check_too() -> None:
    checks = check_environment("gymnasium/FrozenLake-v1")
    assert promises(checks) == [CHECKER, SPEC, *PROMISES[1:], "reads each action of its game as it writes it"]
    assert [check for check in checks if not check.passed] == []


def test_a_spec_that_json_cannot_hold_is_reported() -> None:
    failed = broken(EnvSpec("Local-v0", entry_point=Sound))
    assert list(failed) == [SPEC]


class Careless(Sound):
    """Says what no seed replays: the turns that were played in this process."""

    turns = 0

    def env_response(self, messages: list[Message], state: State) -> Any:
        Careless.turns += 1
        return [UserMessage(f"turn {Careless.turns} of all")]


class CarelessLater(Careless):
    """The same from the second turn on, which Gymnasium's checker does not reach."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        return super().env_response(messages, state) if len(messages) > 2 else [UserMessage("first turn")]


@pytest.mark.parametrize("make", [Careless, CarelessLater])
def test_an_environment_that_no_seed_replays_is_reported(make: Callable[[], Sound]) -> None:
    """It cannot be compared with itself, so what else is compared differs too."""
    failed = broken(make)
    assert failed[REPLAY] == "two runs from the same seed differ"
    assert set(failed) <= {CHECKER, REPLAY, FORKS, FACES}


class Touchy(Sound):
    """Cannot read an answer that is a tool call."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        if messages[-1].get("tool_calls"):
            raise ValueError("I expected words")
        return super().env_response(messages, state)


def test_an_environment_that_raises_on_a_silly_answer_is_reported() -> None:
    failed = broken(Touchy)
    assert list(failed) == [ACCEPTS]
    assert "I expected words" in failed[ACCEPTS]


class Lenient(gym.ActionWrapper[Any, Any, Any]):
    """Makes text of whatever it gets."""

    def action(self, action: Any) -> Any:
        return action if action in self.action_space else str(action)


class Hasty(gym.ActionWrapper[Any, Any, Any]):
    """Refuses what is no action, but not before a turn is played."""

    def action(self, action: Any) -> Any:
        if action in self.action_space:
            return action
        self.env.step("a turn")
        raise InvalidAction("that is no message")


def test_an_environment_that_takes_anything_for_an_action_is_reported() -> None:
    assert broken(lambda: Lenient(Sound())) == {REFUSES: "None was accepted"}


def test_an_environment_that_moves_before_it_refuses_is_reported() -> None:
    failed = broken(lambda: Hasty(Sound(max_turns=20)))
    assert list(failed) == [REFUSES]


class Doubled(gym.RewardWrapper[Any, Any]):
    """Pays more than the rubric scores."""

    def reward(self, reward: Any) -> Any:
        return 2 * reward


def test_an_environment_whose_rewards_are_not_its_score_is_reported() -> None:
    failed = broken(lambda: Doubled(Sound()))
    assert list(failed) == [SUM]
    assert "the steps emitted" in failed[SUM]


class Infinite(Sound):
    """Gives a reward that Gymnasium warns of."""

    def polite(self, completion: list[Message]) -> float:
        return math.inf


def test_what_gymnasium_warns_of_is_reported() -> None:
    failed = broken(Infinite)
    assert list(failed) == [CHECKER]
    assert "inf" in failed[CHECKER]


class Whispering(Sound):
    """Tells the answer, under another name."""

    def step_info(self, state: State) -> dict[str, Any]:
        return {"hint": state["answer"]}


class Telling(Sound):
    """Tells something as the answer, which an agent would take for it."""

    def step_info(self, state: State) -> dict[str, Any]:
        return {"answer": "I will not tell"}


@pytest.mark.parametrize("make", [Whispering, Telling])
def test_an_environment_that_tells_the_answer_is_reported(make: Callable[[], Sound]) -> None:
    failed = broken(make)
    assert list(failed) == [ANSWER]
    assert "stands in info" in failed[ANSWER]


class Forgetful(Sound):
    """Keeps what belongs to one episode on itself."""

    def setup_state(self, state: State) -> Any:
        self.said = 0
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        self.said += 1
        return [UserMessage(f"turn {self.said}")]


def test_an_environment_whose_episodes_interfere_is_reported() -> None:
    failed = broken(Forgetful)
    assert list(failed) == [FORKS]
    assert "two forks" in failed[FORKS]


class TwoFaced(Sound):
    """Answers agents who step otherwise than models who are asked."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage("who steps?" if state["client"] is None else "who is asked?")]


def test_an_environment_that_knows_whether_it_is_stepped_is_reported() -> None:
    failed = broken(TwoFaced)
    assert list(failed) == [FACES]
    assert "state['completion']" in failed[FACES]


class OnlyOne(Sound):
    """Holds what only one environment of a process can hold."""

    held = 0

    def __init__(self) -> None:
        super().__init__()
        if OnlyOne.held:
            raise OSError("the device is in use")
        OnlyOne.held += 1

    @vfgym.teardown
    def release(self) -> None:
        OnlyOne.held -= 1


def test_an_environment_of_which_there_can_be_only_one_is_reported() -> None:
    failed = broken(OnlyOne)
    assert list(failed) == [VECTOR]
    assert "in use" in failed[VECTOR]


def test_an_environment_that_scores_whole_groups_can_only_be_evaluated() -> None:
    [check] = check_environment(lambda: Sound(rubric=Rubric(lambda completions: [0.0 for _ in completions])))
    assert (check.promise, check.passed) == ("can be stepped alone", False)
    assert "rollouts_per_example" in check.detail


def test_what_is_no_chat_environment_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"CartPole.*vfgym\.to_chat"):
        check_environment("CartPole-v1")
