"""The turn loop of `MultiTurnEnv`: the order of its hooks, its stop conditions, how episodes end, fail, time out and clean up."""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tests.clocks import later
from tests.models import InOrder, answer
from vfgym import MultiTurnEnv, Rubric, State, cleanup, stop
from vfgym.errors import InfraError, ModelError, OverlongPromptError, ResetNeeded
from vfgym.messages import AssistantMessage, Message, UserMessage

LIMIT = 0.05
"""Seconds an episode may take in the tests of timeouts."""

PROMPT = [{"role": "user", "content": "go"}]


class Echo(MultiTurnEnv):
    """Answers every message with its text in capitals, and counts cleanups by the id of the episode."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"prompt": PROMPT, "answer": "secret"}], **kwargs})
        self.cleaned: list[str] = []

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [{"role": "user", "content": str(messages[-1]["content"]).upper()}]

    @cleanup
    def note_cleanup(self, state: State) -> None:
        self.cleaned.append(state["trajectory_id"])


ROWS = [{"prompt": PROMPT, "armed": True}, {"prompt": PROMPT}]
IN_A_TURN = ["get_prompt_messages", "env_response", "add_trajectory_step", "apply_action", "a_stop"]
"""Hooks that are called when the model has answered."""


class Hooked(Echo):
    """Notes every call of a hook in ``state["calls"]``; `hook` raises `error` in a turn of an armed task (`setup_state`: before it)."""

    def __init__(self, hook: str = "", error: BaseException | None = None, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, **kwargs})
        self.fault = (hook, error)

    def is_faulty(self, hook: str, state: State) -> bool:
        armed = state["input"].get("armed") and (hook == "setup_state" or bool(state["trajectory"]))
        return bool(armed and hook == self.fault[0])

    def called(self, hook: str, state: State) -> None:
        state.setdefault("calls", []).append(hook)
        if self.is_faulty(hook, state) and self.fault[1] is not None:
            raise self.fault[1]

    def setup_state(self, state: State) -> Any:
        self.called("setup_state", state)
        return super().setup_state(state)

    def get_prompt_messages(self, state: State) -> Any:
        self.called("get_prompt_messages", state)
        return super().get_prompt_messages(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        self.called("env_response", state)
        return super().env_response(messages, state)

    def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
        ready = super().add_trajectory_step(state, trajectory_step)
        self.called("add_trajectory_step", state)
        return ready

    def apply_action(self, message: Message, state: State) -> Any:
        self.called("apply_action", state)
        return super().apply_action(message, state)

    def render_completion(self, state: State) -> Any:
        self.called("render_completion", state)
        return super().render_completion(state)

    @stop(priority=-1)
    def a_stop(self, state: State) -> Any:
        self.called("a_stop", state)
        return False

    @cleanup
    def note_cleanup(self, state: State) -> None:
        super().note_cleanup(state)
        self.called("cleanup", state)


class AsyncHooked(Hooked):
    """The same with async hooks that await the library's own; where there is no error to raise, the hook waits for ever."""

    async def pause(self, hook: str, state: State) -> None:
        await asyncio.sleep(0)
        if self.is_faulty(hook, state) and self.fault[1] is None:
            await asyncio.Event().wait()

    async def setup_state(self, state: State) -> Any:
        await self.pause("setup_state", state)
        await super().setup_state(state)

    async def get_prompt_messages(self, state: State) -> Any:
        await self.pause("get_prompt_messages", state)
        return await super().get_prompt_messages(state)

    async def env_response(self, messages: list[Message], state: State) -> Any:
        await self.pause("env_response", state)
        return super().env_response(messages, state)

    async def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
        await super().add_trajectory_step(state, trajectory_step)
        await self.pause("add_trajectory_step", state)

    async def apply_action(self, message: Message, state: State) -> Any:
        await self.pause("apply_action", state)
        await super().apply_action(message, state)

    async def render_completion(self, state: State) -> Any:
        await self.pause("render_completion", state)
        await super().render_completion(state)

    @stop(priority=-1)
    async def a_stop(self, state: State) -> Any:
        await self.pause("a_stop", state)
        return super().a_stop(state)


class HalfAwaiting(Hooked):
    """Async hooks that call the library's own without awaiting them."""

    async def setup_state(self, state: State) -> None:
        await asyncio.sleep(0)
        super().setup_state(state)

    async def add_trajectory_step(self, state: State, trajectory_step: Any) -> None:
        await asyncio.sleep(0)
        super().add_trajectory_step(state, trajectory_step)

    async def render_completion(self, state: State) -> None:
        await asyncio.sleep(0)
        super().render_completion(state)


class PlainPromptOverAsyncResponse(Hooked):
    """A plain get_prompt_messages returns what the library's own gives, which has an async env_response to wait for."""

    async def env_response(self, messages: list[Message], state: State) -> list[Message]:
        await asyncio.sleep(0)
        return list(super().env_response(messages, state))


EITHER = pytest.mark.parametrize("kind", [Hooked, AsyncHooked])
CALLS = ["setup_state", "a_stop", "get_prompt_messages", "add_trajectory_step", "apply_action", "a_stop"]
CALLS += ["get_prompt_messages", "env_response", "add_trajectory_step", "apply_action", "render_completion", "cleanup"]


@pytest.mark.parametrize("kind", [Hooked, AsyncHooked, HalfAwaiting, PlainPromptOverAsyncResponse])
async def test_a_turn_is_recorded_then_stops_are_checked_then_the_environment_responds(kind: type[Hooked]) -> None:
    """Plain hooks, async ones that await the library's own, and async ones that just call it play the same episode."""
    env = kind(max_turns=2)
    await env.areset(seed=0)
    await env.astep("one")
    assert env.state["calls"] == CALLS[:8]
    conversation, _, terminated, truncated, info = await env.astep("two")
    # max_turns_reached ends the check before a condition of lower priority is asked.
    assert (env.state["calls"], [message["content"] for message in conversation]) == (CALLS, ["go", "one", "ONE", "two"])
    assert (terminated, truncated, info["stop_condition"]) == (False, True, "max_turns_reached")
    state = await kind(max_turns=2).rollout({"prompt": PROMPT, "example_id": 0}, InOrder("one", "two"), "m")
    assert (state["calls"], state["completion"]) == (CALLS, env.state["completion"])


def test_the_timing_spans_are_one_a_turn() -> None:
    env = Echo(max_turns=3)
    env.reset(seed=0)
    for text in ("a", "b", "c"):
        env.step(text)
    timing = env.state["timing"]
    assert (len(timing.model.spans), len(timing.env.spans)) == (3, 2)
    assert timing.start_time <= timing.setup.end <= timing.generation.end <= timing.scoring.end
    assert timing.total > 0


# Stop conditions


class Stops(Echo):
    """Several conditions of its own, which hold when the model says their name."""

    def said(self, state: State, word: str) -> bool:
        state.setdefault("asked", []).append(word)
        return bool(state["trajectory"]) and word in state["trajectory"][-1]["completion"][0]["content"]

    @stop
    def b_plain(self, state: State) -> bool:
        return self.said(state, "plain")

    @stop
    async def a_async(self, state: State) -> bool:
        await asyncio.sleep(0)
        return self.said(state, "async")

    @stop(priority=5)
    def urgent(self, env: MultiTurnEnv, state: State) -> bool:
        assert env is self
        return self.said(state, "urgent")

    @stop(priority=-5)
    def last(self, state: State, patience: int = 3) -> bool:
        return self.said(state, "last") and patience == 3


@pytest.mark.parametrize(
    ("text", "condition", "asked"),
    [
        ("urgent plain async last", "urgent", ["urgent"]),
        ("plain async last", "a_async", ["urgent", "async"]),
        ("plain last", "b_plain", ["urgent", "async", "plain"]),
        ("last", "last", ["urgent", "async", "plain", "last"]),
    ],
)
def test_the_first_condition_by_priority_then_name_ends_the_episode(text: str, condition: str, asked: list[str]) -> None:
    """Conditions after the one that holds are not asked; one of the author's own terminates."""
    env = Stops()
    env.reset(seed=0)
    env.state["asked"].clear()
    _, _, terminated, truncated, info = env.step(text)
    assert (terminated, truncated, info["stop_condition"], env.state["asked"]) == (True, False, condition, asked)


@pytest.mark.parametrize(("error", "condition"), [(ModelError("down"), "has_error"), (OverlongPromptError("long"), "prompt_too_long")])
def test_a_model_that_fails_ends_the_episode_whatever_an_overridden_is_completed_says(error: Exception, condition: str) -> None:
    class Deaf(Echo):
        async def is_completed(self, state: State, **kwargs: Any) -> bool:
            return False

    env = Deaf()
    env.reset(seed=0)
    outcome = env.fail(error)
    assert (outcome.info["stop_condition"], env.state["is_completed"]) == (condition, True)
    assert (outcome.terminated, outcome.truncated) == (condition == "has_error", condition != "has_error")


def test_stop_conditions_are_checked_before_the_first_turn() -> None:
    """An episode that is over at once asks the model nothing; its first step only tells the outcome."""

    class Over(Echo):
        def setup_state(self, state: State) -> None:
            state["final_env_response"] = [UserMessage("too late")]

    env = Over(rubric=Rubric(lambda state: 1.0))
    conversation, info = env.reset(seed=0)
    assert (conversation, info["stop_condition"]) == (PROMPT, "has_final_env_response")
    outcome = env.step("hello?")
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (1.0, True, False)
    assert (env.state["trajectory"], env.state["completion"], len(env.cleaned)) == ([], [], 1)


def test_max_turns_that_is_not_positive_is_no_limit() -> None:
    for limit in (0, -1):
        env = Echo(max_turns=limit)
        env.reset(seed=0)
        assert not any(env.step("on").truncated for _ in range(20))


def test_final_env_response_ends_the_episode_without_another_model_call() -> None:
    class Game(Echo):
        def env_response(self, messages: list[Message], state: State) -> list[Message]:
            state["final_env_response"] = [{"role": "user", "content": "you win"}]
            return []

    env = Game(max_turns=5)
    env.reset(seed=0)
    conversation, _, terminated, truncated, info = env.step("move")
    assert [message["content"] for message in conversation] == ["go", "move", "you win"]
    assert (terminated, truncated, info["stop_condition"]) == (True, False, "has_final_env_response")
    assert env.state["completion"] == [AssistantMessage("move"), UserMessage("you win")]
    assert len(env.state["timing"].env.spans) == 1


def test_a_move_made_in_apply_action_counts_in_the_last_turn() -> None:

    class Countdown(Echo):
        def setup_state(self, state: State) -> None:
            state["left"] = 2

        def apply_action(self, message: Message, state: State) -> None:
            state["left"] -= 1
            if state["left"] == 0:
                state["final_env_response"] = "boom"

    env = Countdown(max_turns=2)
    env.reset(seed=0)
    env.step("a")
    _, _, terminated, truncated, info = env.step("b")
    assert (terminated, truncated, info["stop_condition"]) == (True, False, "has_final_env_response")
    assert env.state["completion"][-1] == {"role": "text", "content": "boom"}


def test_max_total_completion_tokens_counts_what_the_answers_report() -> None:
    env = Echo()
    env.set_max_total_completion_tokens(8)
    env.reset(seed=0)
    assert env.step("no usage at all").info["stop_condition"] is None
    assert env.step(answer("x", completion_tokens=5)).info["stop_condition"] is None
    _, _, terminated, truncated, info = env.step(answer("y", completion_tokens=5))
    assert (terminated, truncated, info["stop_condition"]) == (False, True, "max_total_completion_tokens_reached")
    assert env.get_state_usage(env.state) == {"input_tokens": 2.0, "output_tokens": 10.0}
    assert dict(env.state["usage"]) == {"input_tokens": 2.0, "output_tokens": 10.0}


async def test_a_rollout_counts_tokens_once() -> None:
    env = Echo()
    env.set_max_total_completion_tokens(8)
    client = InOrder(answer("x", completion_tokens=5), answer("y", completion_tokens=5))
    state = await env.rollout({"prompt": PROMPT}, client, "m")
    assert (state["stop_condition"], state["usage"]["output_tokens"]) == ("max_total_completion_tokens_reached", 10.0)


# Prompts, trajectory and completion


def test_env_response_gets_the_whole_conversation_as_a_list_of_its_own() -> None:
    seen: list[list[Message]] = []

    class Greedy(Echo):
        def env_response(self, messages: list[Message], state: State) -> str:
            seen.append(list(messages))
            messages.clear()
            return "raw text"

    env = Greedy()
    env.reset(seed=0)
    env.step("a")
    conversation = env.step("b").observation
    assert seen == [conversation[:2], conversation[:4]]
    assert [message["role"] for message in conversation] == ["user", "assistant", "text", "assistant", "text"]


def test_get_prompt_messages_may_rewrite_history() -> None:
    """What the model is shown is the observation; the default completion is cut by the length of the prompt."""

    class Forgetful(Echo):
        def get_prompt_messages(self, state: State) -> list[Any]:
            if not state["trajectory"]:
                return list(state["prompt"])
            last = state["trajectory"][-1]["completion"][0]
            return [{"role": "user", "content": f"you said {last['content']}"}]

        def render_completion(self, state: State) -> None:
            state["completion"] = [step["completion"][0] for step in state["trajectory"]]

    env = Forgetful(max_turns=3)
    env.reset(seed=0)
    assert (env.step("a").observation, env.step("b").observation) == ([UserMessage("you said a")], [UserMessage("you said b")])
    assert env.step("c").observation == [*PROMPT, *map(AssistantMessage, "abc")]
    prompts = [list(step["prompt"]) for step in env.state["trajectory"]]
    assert prompts == [PROMPT, [UserMessage("you said a")], [UserMessage("you said b")]]


def test_the_prompts_of_past_turns_stay_what_the_model_was_shown() -> None:
    env = Echo(max_turns=4)
    shown = [env.reset(seed=0)[0]]
    shown += [env.step(text).observation for text in "abcd"]
    steps = env.state["trajectory"]
    assert [step["prompt"] for step in steps] == shown[:4]
    assert [step["prompt"] + step["completion"] for step in steps] == [
        messages[:length] for messages, length in zip(shown[1:], (2, 4, 6, 8), strict=True)
    ]
    assert env.state["completion"] == shown[4][1:]


@pytest.mark.parametrize("is_async", [False, True])
def test_add_trajectory_step_may_set_reward_and_extras(is_async: bool) -> None:
    class Graded(Echo):
        def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
            trajectory_step["reward"] = 0.25
            trajectory_step["extras"]["note"] = "seen"
            return self.later(state, trajectory_step) if is_async else super().add_trajectory_step(state, trajectory_step)

        async def later(self, state: State, trajectory_step: Any) -> None:
            await asyncio.sleep(0)
            await super().add_trajectory_step(state, trajectory_step)

    env = Graded(max_turns=2, rubric=Rubric(lambda state: 1.0))
    env.reset(seed=0)
    env.step("a")
    env.step("b")
    assert [step["reward"] for step in env.state["trajectory"]] == [0.25, 0.25]
    assert [step["extras"] for step in env.state["trajectory"]] == [{"note": "seen", "reward": 0.0}, {"note": "seen", "reward": 1.0}]


def test_setup_state_may_return_the_state() -> None:

    class Old(Echo):
        async def setup_state(self, state: State) -> State:
            state["mark"] = 1
            return state

    class New(Echo):
        def setup_state(self, state: State) -> State:
            return State({**state, "mark": float(state.rng.random())})

    env = Old()
    env.reset(seed=0)
    assert env.state["mark"] == 1
    env = New()
    marks = []
    for _ in range(2):
        env.reset(seed=0)
        marks.append(env.state["mark"])
    env.step("a")
    assert marks[0] == marks[1]


def test_the_random_numbers_of_a_new_state_are_still_those_of_the_player() -> None:
    class New(Echo):
        def setup_state(self, state: State) -> State:
            return State(state)

        def env_response(self, messages: list[Message], state: State) -> str:
            return str(state.rng.random())

    env = New()
    replies = []
    for _ in range(2):
        env.reset(seed=0)
        replies.append(env.step("a").observation[-1])
    assert replies[0] == replies[1]


# Errors in hooks


@EITHER
@pytest.mark.parametrize("hook", IN_A_TURN)
def test_an_error_of_the_library_in_a_hook_ends_the_episode_and_is_recorded(hook: str, kind: type[Hooked]) -> None:
    error = InfraError("the sandbox is gone")
    env = kind(hook, error, rubric=Rubric(lambda state: 1.0))
    env.reset(options={"example_id": 0})
    outcome = env.step("a")
    if outcome.info["stop_condition"] is None:
        outcome = env.step("b")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (True, False, "has_error")
    assert "the sandbox is gone" in outcome.info["error"]
    assert env.state["error"] is error
    assert outcome.reward == env.state["reward"] == 1.0, "an episode with an error is scored like any other"
    assert len(env.cleaned) == 1
    with pytest.raises(ResetNeeded):
        env.step("c")


@EITHER
@pytest.mark.parametrize("hook", IN_A_TURN)
def test_a_foreign_exception_in_a_hook_is_raised_after_one_cleanup(hook: str, kind: type[Hooked]) -> None:
    env = kind(hook, ZeroDivisionError("a bug"))
    env.reset(options={"example_id": 0})

    def play() -> None:
        for text in "ab":
            env.step(text)

    with pytest.raises(ZeroDivisionError):
        play()
    assert len(env.cleaned) == 1
    with pytest.raises(ResetNeeded):
        env.step("c")
    env.reset(options={"example_id": 1})
    assert len(env.cleaned) == 1
    env.step("works")
    env.close()
    assert len(env.cleaned) == 2


@EITHER
@pytest.mark.parametrize("error", [InfraError("no sandbox"), ZeroDivisionError("a bug")])
def test_reset_raises_what_setup_state_raises_after_cleanup(error: Exception, kind: type[Hooked]) -> None:
    env = kind("setup_state", error)
    with pytest.raises(type(error)):
        env.reset(options={"example_id": 0})
    assert len(env.cleaned) == 1
    with pytest.raises(ResetNeeded):
        env.step("a")
    env.reset(options={"example_id": 1})
    env.step("works")
    assert len(env.cleaned) == 1


class Unbegun(Echo):
    def __init__(self, error: Exception, **kwargs: Any) -> None:
        super().__init__(dataset=[{"prompt": PROMPT}, {"prompt": PROMPT}], **kwargs)
        self.error = error

    async def init_state(self, input: Any, client: Any = None, model: str = "", sampling_args: Any = None) -> State:
        if input["example_id"] == 0:
            raise self.error
        return await super().init_state(input, client, model, sampling_args)


@pytest.mark.parametrize("error", [InfraError("no sandbox"), ZeroDivisionError("a bug")])
def test_reset_raises_what_keeps_a_state_from_being_made_and_there_is_nothing_to_clean_up(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    env = Unbegun(error, render_mode="ansi")
    for _ in range(2):
        with pytest.raises(type(error)):
            env.reset(options={"example_id": 0})
    assert (env.state["input"]["prompt"], env.state["trajectory"], env.render()) == (PROMPT, [], "[user] go")
    with pytest.raises(ResetNeeded):
        env.step("a")
    env.reset(options={"example_id": 1})
    env.step("works")
    assert env.cleaned == []
    env.close()
    assert (len(env.cleaned), caplog.text) == (1, "")


@EITHER
@pytest.mark.parametrize("hook", IN_A_TURN)
async def test_a_rollout_records_errors_and_raises_foreign_exceptions(hook: str, kind: type[Hooked]) -> None:
    error = InfraError("gone")
    env = kind(hook, error)
    state = await env.rollout(ROWS[0], InOrder("a", "b"), "m")
    assert (state["error"], state["stop_condition"], env.cleaned) == (error, "has_error", [state["trajectory_id"]])

    env = kind(hook, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await env.rollout(ROWS[0], InOrder("a", "b"), "m")
    assert len(env.cleaned) == 1


@pytest.mark.parametrize("error", [InfraError("gone"), ZeroDivisionError()])
def test_an_error_while_rendering_keeps_neither_cleanup_nor_scoring_from_running(error: Exception) -> None:
    env = Hooked("render_completion", error, max_turns=1, rubric=Rubric(lambda completion: len(completion)))
    env.reset(options={"example_id": 0})
    outcome = env.step("a")
    assert (outcome.truncated, outcome.reward, len(env.cleaned)) == (True, 0.0, 1)
    assert list(env.state["cleanup_errors"]) == ["render_state"]


# Models that fail


@pytest.mark.parametrize(
    ("error", "flags", "stop_condition"),
    [
        (OverlongPromptError("too long"), (False, True), "prompt_too_long"),
        (TimeoutError(), (False, True), "timeout_reached"),
        (ModelError("503"), (True, False), "has_error"),
        (ConnectionError("refused"), (True, False), "has_error"),
    ],
)
@pytest.mark.parametrize("turns", [0, 1])
def test_fail_ends_the_episode_as_the_rollout_contract_says(
    error: Exception, flags: tuple[bool, bool], stop_condition: str, turns: int
) -> None:
    rubric = Rubric(lambda completion: 1.0)
    rubric.add_step_reward_func(lambda step: 0.5)
    env = Echo(rubric=rubric)
    env.reset(seed=0)
    rewards = [env.step("a").reward for _ in range(turns)]
    outcome = env.fail(error)
    assert env.observation_space.contains(outcome.observation)
    assert ((outcome.terminated, outcome.truncated), outcome.info["stop_condition"]) == (flags, stop_condition)
    assert ("error" in outcome.info) == (stop_condition == "has_error")
    assert sum([*rewards, outcome.reward]) == env.state["reward"] == 1.0 + 0.5 * turns
    assert len(env.cleaned) == 1
    with pytest.raises(ResetNeeded):
        env.fail(error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            OverlongPromptError("too long"),
            {"stop_condition": "prompt_too_long", "is_truncated": True, "error": None, "prompt_too_long": True},
        ),
        (ModelError("503"), {"stop_condition": "has_error", "is_truncated": False}),
    ],
)
async def test_a_model_that_fails_in_a_rollout_ends_it_like_fail(error: Exception, expected: dict[str, Any]) -> None:
    env = Echo()
    state = await env.rollout({"prompt": PROMPT}, InOrder("a", error), "m")
    assert {key: state[key] for key in expected} == expected
    assert ([message["content"] for message in state["completion"]], env.cleaned) == (["a"], [state["trajectory_id"]])


# Timeouts


@pytest.mark.parametrize("hook", ["setup_state", *IN_A_TURN])
async def test_a_hook_that_takes_too_long_ends_the_episode(hook: str) -> None:
    env = AsyncHooked(hook, None, timeout_seconds=LIMIT, rubric=Rubric(lambda completion: 1.0))
    async with asyncio.timeout(2):
        await env.areset(options={"example_id": 0})
        outcome = await env.astep("a")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (False, True, "timeout_reached")
    assert (env.state["timed_out"], env.state["is_completed"], env.state["is_truncated"]) == (True, True, False)
    assert (outcome.reward, len(env.cleaned)) == (1.0, 1)


@pytest.mark.parametrize("hook", ["setup_state", *IN_A_TURN])
async def test_a_rollout_times_out_in_a_hook(hook: str) -> None:
    env = AsyncHooked(hook, None, timeout_seconds=LIMIT)
    async with asyncio.timeout(2):
        state = await env.rollout(ROWS[0], InOrder("a", "b"), "m")
    assert (state["stop_condition"], state["timed_out"], state["error"]) == ("timeout_reached", True, None)
    assert state["completion"] == ([] if hook == "setup_state" else [AssistantMessage("a")])
    assert env.cleaned == [state["trajectory_id"]]


async def test_a_model_that_takes_too_long_ends_the_rollout_with_what_was_said_before() -> None:
    env = Echo(timeout_seconds=LIMIT)
    state = await env.rollout({"prompt": PROMPT}, InOrder("a", asyncio.Event()), "m")
    assert (state["stop_condition"], state["timed_out"], state["is_truncated"]) == ("timeout_reached", True, False)
    assert [message["content"] for message in state["completion"]] == ["a"]


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_wall_clock_that_is_set_changes_no_deadline(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    env = Echo(timeout_seconds=60)
    env.reset(seed=0)
    later(monkeypatch, "time", seconds)
    assert not env.step("in time").truncated
    later(monkeypatch, "monotonic", 61)
    outcome = env.step("late")
    assert (outcome.truncated, outcome.info["stop_condition"]) == (True, "timeout_reached")
    assert [message["content"] for message in outcome.observation] == ["go", "in time"]


# Ending from outside


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_truncate_ends_and_scores_the_episode(turns: int) -> None:
    rubric = Rubric(lambda completion: 1.0)
    rubric.add_step_reward_func(lambda step: 0.5)
    env = Echo(rubric=rubric)
    env.reset(seed=0)
    rewards = [env.step("a").reward for _ in range(turns)]
    outcome = env.truncate()
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (False, True, "truncated")
    assert (len(env.cleaned), env.state["reward"]) == (1, 1.0 + 0.5 * turns)
    assert sum([*rewards, outcome.reward]) == env.state["reward"], "the steps and the end emit the score, once"
    assert (env.truncate().info["stop_condition"], len(env.cleaned)) == ("truncated", 1)
    with pytest.raises(ResetNeeded):
        env.step("b")


@pytest.mark.parametrize("end", ["reset", "close"])
def test_reset_and_close_clean_up_an_unfinished_episode_once(end: str) -> None:
    env = Echo()
    env.reset(seed=0)
    first = env.state["trajectory_id"]
    env.step("a")
    getattr(env, end)()
    assert env.cleaned == [first]
    env.close()
    env.close()
    assert len(env.cleaned) == len(set(env.cleaned)) == (2 if end == "reset" else 1)


# Cleanup handlers


class Tidy(Echo):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_turns=1, **kwargs)
        self.order: list[str] = []

    @cleanup
    def b_plain(self, state: State) -> None:
        self.order.append("b_plain")
        assert state["completion"] == [AssistantMessage("a")], "the completion is rendered before handlers of lower priority"

    @cleanup
    async def a_async(self, state: State, task: Any, env: MultiTurnEnv) -> None:
        await asyncio.sleep(0)
        assert (env, task["prompt"]) == (self, PROMPT)
        self.order.append("a_async")

    @cleanup(priority=10)
    def fails(self, state: State) -> None:
        self.order.append("fails")
        raise OSError("the disk is gone")

    @cleanup(priority=-1)
    def last(self, state: State) -> None:
        self.order.append("last")

    @cleanup(priority=1000)
    def first(self, state: State) -> None:
        assert state["completion"] is None
        self.order.append("first")


def test_cleanup_handlers_run_by_priority_then_name_and_one_that_fails_keeps_no_other_from_running() -> None:
    env = Tidy()
    env.reset(seed=0)
    outcome = env.step("a")
    assert env.order == ["first", "fails", "a_async", "b_plain", "last"]
    assert (outcome.info["stop_condition"], list(env.state["cleanup_errors"])) == ("max_turns_reached", ["fails"])
    assert "the disk is gone" in env.state["cleanup_errors"]["fails"]


# Cancellation


class Hanging(Echo):
    async def env_response(self, messages: list[Message], state: State) -> Any:
        if len(state["trajectory"]) > 1:
            await asyncio.Event().wait()
        return super().env_response(messages, state)


async def cancelled(awaitable: Any) -> None:
    """Cancel something after it had every chance to begin waiting."""
    task = asyncio.ensure_future(awaitable)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_step_cleans_up_once_and_the_next_asks_for_reset() -> None:
    env = Hanging()
    await env.areset(seed=0)
    await env.astep("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(env.astep("b"), 0.01)
    assert len(env.cleaned) == 1
    with pytest.raises(ResetNeeded):
        await env.astep("c")
    await env.areset(seed=0)
    await env.astep("a")
    assert len(env.cleaned) == 1


async def test_a_cancelled_rollout_cleans_up_once() -> None:
    env = Echo()
    await cancelled(env.rollout({"prompt": PROMPT}, InOrder("a", asyncio.Event()), "m"))
    assert len(env.cleaned) == 1


@pytest.mark.parametrize("end", ["astep", "atruncate", "afail", "aclose"])
async def test_cancellation_while_cleaning_up_keeps_no_handler_from_running_and_loses_no_failure(end: str) -> None:
    class SlowToTidy(Echo):
        @cleanup(priority=20)
        def fails(self, state: State) -> None:
            raise OSError("the disk is gone")

        @cleanup(priority=10)
        async def hangs(self, state: State) -> None:
            await asyncio.Event().wait()

    env = SlowToTidy(max_turns=1)
    await env.areset(seed=0)
    calls: dict[str, Callable[[], Any]] = {
        "astep": lambda: env.astep("a"),
        "atruncate": env.atruncate,
        "afail": lambda: env.afail(ModelError("503")),
        "aclose": env.aclose,
    }
    await cancelled(calls[end]())
    assert (len(env.cleaned), env.state["cleanup_errors"]) == (1, {"fails": "OSError('the disk is gone')"})
    with pytest.raises(ResetNeeded):
        await env.astep("b")


# Copies


class Counting(Echo):
    """Ends after `limit` turns (an author's own name) and draws random numbers, so that copies can be told apart."""

    limit = 3

    @stop
    def enough(self, state: State, env: Any) -> bool:
        return len(state["trajectory"]) >= min(self.limit, env.limit)

    def env_response(self, messages: list[Message], state: State) -> Any:
        return f"{messages[-1]['content']} {state.rng.integers(1000)}"


def length(completion: list[Message]) -> float:
    """Return the number of messages."""
    return float(len(completion))


DUPLICATES = pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])


@DUPLICATES
def test_an_environment_can_be_copied_in_the_middle_of_an_episode(duplicate: Callable[[Counting], Counting]) -> None:
    """Both go on from the same turn with the same random numbers, and neither sees what the other does."""
    env = Counting(rubric=Rubric(length))
    env.reset(seed=7)
    env.step("a")
    twin = duplicate(env)
    outcomes = {}
    for name, each in (("env", env), ("twin", twin)):
        each.step("b")
        outcomes[name] = each.step("c")
    assert (outcomes["env"], outcomes["twin"].info["stop_condition"]) == (outcomes["twin"], "enough")
    assert (outcomes["twin"].reward, len(env.cleaned), len(twin.cleaned), env.reset()[0]) == (5.0, 1, 1, twin.reset()[0])
    env.step("only here")
    assert len(twin.state["trajectory"]) == 0


@pytest.mark.parametrize("difference", [3600, -3600])
def test_an_episode_that_goes_on_under_another_clock_has_the_time_that_was_left(difference: float, monkeypatch: pytest.MonkeyPatch) -> None:
    env = Counting(timeout_seconds=60)
    env.reset(seed=7)
    later(monkeypatch, "monotonic", 40)
    kept = pickle.dumps(env)
    later(monkeypatch, "monotonic", difference)
    twin = pickle.loads(kept)
    later(monkeypatch, "monotonic", 10)
    assert not twin.step("a").truncated
    later(monkeypatch, "monotonic", 20)
    assert twin.step("b").info["stop_condition"] == "timeout_reached"


def test_a_stop_condition_around_the_librarys_own_is_asked() -> None:
    condition = MultiTurnEnv.max_turns_reached

    @functools.wraps(condition)
    def max_turns_reached(self: Any, state: State) -> bool:
        return "done" in str(state["trajectory"][-1:]) or condition(self, state)

    class Wrapped(Counting):
        pass

    Wrapped.max_turns_reached = stop(max_turns_reached)  # type: ignore[method-assign]
    env = Wrapped(max_turns=5)
    env.reset(seed=7)
    assert not env.step("on").truncated
    assert env.step("done").info["stop_condition"] == "max_turns_reached"


class Keeping(Echo):
    """Keeps something from episode to episode, which it notes when it is closed."""

    closed: tuple[str, ...] = ()

    def setup_state(self, state: State) -> Any:
        state.session = state.session or "kept"
        return super().setup_state(state)

    def close_session(self, session: str) -> None:
        self.closed += (session,)


async def test_a_rollout_closes_what_it_kept_and_counts_its_turns() -> None:
    env = Keeping(max_turns=2)
    state = await env.rollout({"prompt": PROMPT}, InOrder("a", "b"), "m")
    assert (env.closed, state.session) == (("kept",), None)
    await env.rubric.score_rollout(state)
    assert state["metrics"] == {"num_turns": 2.0}


@pytest.mark.parametrize(("priority", "condition"), [(100, "a_stop"), (99, "has_error")])
def test_an_error_is_a_stop_condition_of_priority_100(priority: int, condition: str) -> None:
    class Failing(Echo):
        def env_response(self, messages: list[Message], state: State) -> Any:
            raise InfraError("gone")

        @stop(priority=priority)
        def a_stop(self, state: State) -> bool:
            return state["error"] is not None

    env = Failing()
    env.reset(seed=0)
    assert env.step("a").info["stop_condition"] == condition


ENDS = {"final_env_response": [], "error": InfraError("gone"), "prompt_too_long": True, "timed_out": True}


@pytest.mark.parametrize("item", ENDS)
def test_what_may_stop_an_episode_is_seen_without_asking_the_conditions(item: str) -> None:
    env = Echo()
    env.reset(seed=0)
    assert not env.may_stop(env.state)
    env.state[item] = ENDS[item]
    assert env.may_stop(env.state)


def test_limits_of_an_environment_are_looked_at_from_1_on() -> None:
    def may_stop(turns: int, **limits: int) -> bool:
        env = Echo()
        for name, limit in limits.items():
            setattr(env, name, limit)
        env.reset(seed=0)
        env.state["trajectory"] = [{}] * turns
        return env.may_stop(env.state)

    assert [may_stop(turns, max_turns=2) for turns in range(4)] == [False, False, True, True]
    assert [may_stop(9, max_turns=turns) for turns in (-1, 0, 1)] == [False, False, True]
    assert [may_stop(0, max_total_completion_tokens=tokens) for tokens in (-1, 0, 1)] == [False, False, True]
