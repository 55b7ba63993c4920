"""Marked methods at work: when those of environments and rubrics run, in which order, and what happens when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import vfgym
from tests import environments
from vfgym import MultiTurnEnv, Rubric, SingleTurnEnv, State
from vfgym.errors import ConfigurationError, InfraError, ResetNeeded
from vfgym.messages import Message
from vfgym.testing import ScriptedClient

ROWS = [{"question": f"question {index}", "answer": f"answer {index}"} for index in range(3)]
LIMIT = 0.05
"""Seconds an episode may take in the test of timeouts."""


def note(state: State, name: str) -> float:
    """Note in the state of an episode that a method was called, and score 1."""
    state.setdefault("calls", []).append(name)
    return 1.0


async def note_later(state: State, name: str) -> float:
    await asyncio.sleep(0)
    return note(state, name)


class SmallTalk(environments.Talk):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "max_turns": 2, **kwargs})


class Noted(SmallTalk):
    """Has marked methods of every kind, which note their calls."""

    def setup_state(self, state: State) -> Any:
        note(state, "setup_state")
        return super().setup_state(state)

    @vfgym.setup
    def a_setup(self, state: State) -> Any:
        note(state, "a_setup")

    @vfgym.setup(priority=5)
    def urgent_setup(self, state: State) -> None:
        note(state, "urgent_setup")

    @vfgym.cleanup
    def a_cleanup(self, state: State) -> Any:
        note(state, "a_cleanup")

    @vfgym.update(priority=-5)
    def last_update(self, state: State) -> None:
        note(state, "last_update")

    @vfgym.update
    def b_update(self, state: State) -> None:
        note(state, "b_update")

    @vfgym.update
    def a_update(self, state: State) -> Any:
        note(state, "a_update")

    @vfgym.metric(priority=9)
    def a_metric(self, state: State) -> Any:
        return 7 * note(state, "a_metric")

    @vfgym.reward(weight=0.5)
    def a_reward(self, state: State) -> Any:
        return note(state, "a_reward")

    @vfgym.reward(weight=0.25, priority=1)
    def urgent_reward(self, state: State, completion: list[Message], answer: str) -> float:
        assert (len(completion), answer) == (3, "answer 0")
        return note(state, "urgent_reward")


class AwaitingNoted(Noted):
    """The same with async methods."""

    @vfgym.setup
    async def a_setup(self, state: State) -> None:
        await note_later(state, "a_setup")

    @vfgym.cleanup
    async def a_cleanup(self, state: State) -> None:
        await note_later(state, "a_cleanup")

    @vfgym.update
    async def a_update(self, state: State) -> None:
        await note_later(state, "a_update")

    @vfgym.metric(priority=9)
    async def a_metric(self, state: State) -> float:
        return 7 * await note_later(state, "a_metric")

    @vfgym.reward(weight=0.5)
    async def a_reward(self, state: State) -> float:
        return await note_later(state, "a_reward")


class NotedRubric(Rubric):
    @vfgym.metric
    def measured(self, state: State) -> float:
        return 3 * note(state, "measured")

    @vfgym.reward(weight=2.0)
    def rewarded(self, state: State) -> float:
        return note(state, "rewarded")

    @vfgym.reward(priority=1)
    async def rewarded_first(self, state: State) -> float:
        return await note_later(state, "rewarded_first")

    @vfgym.cleanup
    def swept(self, state: State) -> None:
        note(state, "swept")


def given(state: State) -> float:
    return note(state, "given")


BEFORE = ["urgent_setup", "a_setup", "setup_state"]
AFTER = ["a_cleanup", "a_update", "b_update", "last_update"]
OWN_SCORES = ["urgent_reward", "a_reward", "a_metric"]
RUBRIC_SCORES = ["given", "rewarded_first", "rewarded", "measured"]


async def stepped(env: MultiTurnEnv, *answers: str) -> Any:
    """Step through one episode, scored at its end."""
    env.reset(options={"example_id": 0})
    for answer in answers:
        env.step(answer)
    return env.state


async def astepped(env: MultiTurnEnv, *answers: str) -> Any:
    await env.areset(options={"example_id": 0})
    for answer in answers:
        await env.astep(answer)
    return env.state


async def rolled_out(env: MultiTurnEnv, *answers: str) -> Any:
    """Roll out one episode and score it."""
    state = await env.rollout(env.tasks.input(0), ScriptedClient(answers), "scripted")
    await env.rubric.score_rollout(state)
    await env.rubric.cleanup(state)
    return state


Play = Callable[..., Any]
faces = pytest.mark.parametrize("play", [stepped, astepped, rolled_out])


@faces
@pytest.mark.parametrize("kind", [Noted, AwaitingNoted])
async def test_setups_come_before_setup_state_updates_after_cleanup_and_scores_last(kind: type[Noted], play: Play) -> None:
    """Within one kind higher priority comes first, then the name counts; rewards come before metrics, and the rubric's before both."""
    state = await play(kind(), "one", "two")
    assert (state["calls"], state["reward"]) == ([*BEFORE, *AFTER, *OWN_SCORES], 0.75)
    assert state["metrics"] == {"urgent_reward": 1.0, "a_reward": 1.0, "a_metric": 7.0, "num_turns": 2.0}
    assert state.get("cleanup_errors") is state.get("metrics_errors") is None
    rubric = NotedRubric(given, weights=[4.0])
    assert (rubric.weights, rubric.metric_names) == ([4.0, 1.0, 2.0, 0.0], RUBRIC_SCORES)
    state = await play(kind(rubric=rubric), "one", "two")
    assert (state["calls"], state["reward"]) == ([*BEFORE, *AFTER, *RUBRIC_SCORES, *OWN_SCORES, "swept"], 4.0 + 1.0 + 2.0 + 0.75)
    assert state["metrics"]["measured"] == 3.0


@pytest.mark.parametrize("decorator", [vfgym.setup, vfgym.update, vfgym.cleanup(priority=3), vfgym.stop])
def test_a_handler_that_asks_for_the_unknown_is_refused_when_the_class_is_made(decorator: Any) -> None:
    def handler(self: Any, state: State, messages: list[Message]) -> None: ...

    with pytest.raises(ConfigurationError, match=r"Wrong\.handler .*'messages'.*env, state"):
        type("Wrong", (SmallTalk,), {"handler": decorator(handler)})


@faces
async def test_marked_methods_may_come_from_a_class_that_knows_nothing_of_environments(play: Play) -> None:
    class Counting:
        @vfgym.setup
        def zero(self, state: State) -> None:
            state["count"] = 40

        @vfgym.update
        def add(self, state: State) -> None:
            state["count"] += 2

        @vfgym.reward
        def count(self, state: State) -> float:
            return float(state["count"])

    class Counted(Counting, SmallTalk): ...

    class CountedRubric(Counting, Rubric): ...

    assert (await play(Counted(), "one", "two"))["reward"] == 42.0
    assert (await play(Counted(rubric=CountedRubric()), "one", "two"))["reward"] == 84.0


# However an episode ends

ENDS: dict[str, Callable[[SmallTalk], Any]] = {
    "an answer": lambda env: env.step("one"),
    "a model that failed": lambda env: env.fail(InfraError("no model")),
    "a limit from outside": lambda env: env.truncate(),
    "another reset": lambda env: env.reset(),
    "closing": lambda env: env.close(),
}


@pytest.mark.parametrize("end", list(ENDS))
def test_updates_run_once_however_the_episode_ends(end: str) -> None:
    """What was not played to an end is not scored."""
    updated: list[str] = []
    rewarded: list[str] = []

    class Watched(SmallTalk):
        @vfgym.update
        def watch(self, state: State) -> None:
            updated.append(state["trajectory_id"])

        @vfgym.reward
        def score(self, state: State) -> float:
            rewarded.append(state["trajectory_id"])
            return 1.0

    env = Watched(max_turns=1)
    env.reset(seed=0)
    ids = [env.state["trajectory_id"]]
    ENDS[end](env)
    assert (updated, rewarded) == (ids, [] if end in ("another reset", "closing") else ids)


# Errors


async def raise_later(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


class BrokenUpdate(Noted):
    """Its most urgent update fails with `error`."""

    def __init__(self, error: Exception, is_async: bool) -> None:
        super().__init__()
        self.error, self.is_async = error, is_async
        self.states: list[State] = []

    @vfgym.update(priority=1)
    def broken(self, state: State) -> Any:
        self.states.append(state)
        if self.is_async:
            return raise_later(self.error)
        raise self.error


either = pytest.mark.parametrize("is_async", [False, True])


@faces
@either
async def test_an_error_of_an_update_is_the_episodes_and_any_other_exception_is_raised(is_async: bool, play: Play) -> None:
    """After the other handlers. Rewards follow from what updates write, so there are none where one was raised."""
    error = InfraError("the disk is full")
    state = await play(BrokenUpdate(error, is_async), "one", "two")
    assert (state["error"], state["stop_condition"], state["reward"]) == (error, "has_error", 0.75)
    assert state["calls"] == [*BEFORE, *AFTER, *OWN_SCORES]
    env = BrokenUpdate(KeyError("trajektory"), is_async)  # type: ignore[assignment]
    with pytest.raises(KeyError, match="trajektory"):
        await play(env, "one", "two")
    (state,) = env.states
    assert (state["calls"], state["reward"]) == ([*BEFORE, *AFTER], None)
    with pytest.raises(ResetNeeded):
        env.step("three")


@pytest.mark.parametrize("end", ["a model that failed", "another reset", "closing"])
def test_an_update_that_fails_after_another_error_or_in_an_episode_that_is_given_up_is_only_recorded(end: str) -> None:
    class BrokenEnd(SmallTalk):
        @vfgym.update
        def broken(self, state: State) -> None:
            raise KeyError("trajektory")

    env = BrokenEnd()
    env.reset(options={"example_id": 0})
    state = env.state
    ENDS[end](env)
    assert state["cleanup_errors"] == {"broken": "KeyError('trajektory')"}
    assert repr(state["error"]) == ("InfraError('no model')" if end == "a model that failed" else "None")


class BrokenSetup(Noted):
    """Its most urgent setup fails with `error`, or never ends."""

    def __init__(self, error: Exception | None, is_async: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error, self.is_async = error, is_async

    @vfgym.setup(priority=1)
    def broken(self, state: State) -> Any:
        if self.error is None:
            return asyncio.Event().wait()
        if self.is_async:
            return raise_later(self.error)
        raise self.error


@either
@pytest.mark.parametrize("error", [InfraError("no sandbox"), ZeroDivisionError("a bug")])
async def test_an_error_in_a_setup_ends_the_episode_before_setup_state(error: Exception, is_async: bool) -> None:
    """A rollout has it in its state if it is one of the library's, a reset raises it; what cleans up runs."""
    env = BrokenSetup(error, is_async)
    with pytest.raises(type(error)):
        await env.areset(seed=0)
    assert env.state["calls"] == ["urgent_setup", *AFTER]
    rollout = env.rollout(env.tasks.input(0), ScriptedClient([]), "m")
    if isinstance(error, InfraError):
        state = await rollout
        assert (state["error"], state["stop_condition"], state["completion"]) == (error, "has_error", [])
        assert state["calls"] == ["urgent_setup", *AFTER]
    else:
        with pytest.raises(ZeroDivisionError):
            await rollout


def test_a_setup_counts_in_the_time_of_its_episode() -> None:
    env = BrokenSetup(None, timeout_seconds=LIMIT)
    _, info = env.reset(seed=0)
    assert (info["stop_condition"], env.state["calls"]) == ("timeout_reached", ["urgent_setup", *AFTER])
    outcome = env.step("too late")
    assert outcome.info["ending"] == "environment_failed"  # the reward functions expect answers, and fail without
    assert (outcome.terminated, outcome.truncated) == (True, False)


@faces
@either
async def test_a_marked_reward_that_fails_scores_zero_and_is_reported(play: Play, is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        @vfgym.reward(priority=1)
        def broken(self, state: State) -> Any:
            error = ValueError("no such word")
            if is_async:
                return raise_later(error)
            raise error

        @vfgym.metric
        def confused(self, no_such_column: str) -> float:
            return 1.0

        @vfgym.reward(weight=0.5)
        def sound(self) -> float:
            return 1.0

    class FailingEnv(Failing, SmallTalk): ...

    class FailingRubric(Failing, Rubric): ...

    for env in (FailingEnv(), SmallTalk(rubric=FailingRubric())):
        state = await play(env, "one", "two")
        assert (state["reward"], state["metrics"]) == (0.5, {"broken": 0.0, "sound": 1.0, "confused": 0.0, "num_turns": 2.0})
        assert "no such word" in state["metrics_errors"]["broken"]
        assert "no_such_column" in state["metrics_errors"]["confused"]
    assert "reward function broken failed" in caplog.text


# Groups


class Compared:
    """Methods that score the episodes of one task together."""

    returned: Any = None

    @vfgym.reward(stage="group", weight=10.0)
    def longest(self, completions: list[list[Message]]) -> Any:
        if self.returned is not None:
            return self.returned
        lengths = [len(completion[0]["content"]) for completion in completions]
        return [float(length == max(lengths)) for length in lengths]

    @vfgym.metric(stage="group")
    async def rank(self, states: list[State], answers: list[str], tasks: list[Any], infos: list[Any], prompts: list[Any]) -> list[int]:
        await asyncio.sleep(0)
        assert len(states) == len(answers) == len(tasks) == len(infos) == len(prompts)
        return [*range(len(states))]

    @vfgym.reward
    def alone(self, completion: list[Message]) -> float:
        return float(completion[0]["content"] == "long")


class ComparedEnv(Compared, SingleTurnEnv): ...


class ComparedRubric(Compared, Rubric): ...


async def states_of(env: SingleTurnEnv) -> list[State]:
    states = [await env.rollout(env.tasks.input(0), ScriptedClient([answer]), "m") for answer in ("long", "s", "tiny")]
    await env.rubric.score_group(states)
    return states


@pytest.mark.parametrize("make", [lambda: ComparedEnv(ROWS), lambda: SingleTurnEnv(ROWS, rubric=ComparedRubric())])
async def test_methods_for_groups_score_the_episodes_of_a_group_together(make: Callable[[], SingleTurnEnv]) -> None:
    states = await states_of(make())
    assert [state["reward"] for state in states] == [11.0, 0.0, 10.0]
    assert [state["metrics"]["rank"] for state in states] == [0.0, 1.0, 2.0]
    assert [state["advantage"] for state in states] == [4.0, -7.0, 3.0]


@pytest.mark.parametrize("returned", [[1.0], [1.0, 2.0, 3.0, 4.0], [None, 1.0, 1.0], 0.0])
async def test_a_method_for_groups_that_does_not_return_one_number_an_episode_scores_zero(returned: Any) -> None:
    env = ComparedEnv(ROWS)
    env.returned = returned
    states = await states_of(env)
    assert [state["reward"] for state in states] == [1.0, 0.0, 0.0]
    assert [list(state["metrics_errors"]) for state in states] == [["longest"]] * 3


def test_a_method_that_computes_advantages_is_refused_when_the_class_is_made() -> None:
    """Advantages are always rewards minus the mean of their group, so an author's own would be ignored."""

    class Centered:
        @vfgym.advantage
        def best_minus_worst(self, states: list[State]) -> list[float]:
            return [0.0 for _ in states]

    with pytest.raises(ConfigurationError, match=r"Direct marks a method as @advantage.*minus the group's mean"):
        type("Direct", (SmallTalk,), {"own": vfgym.advantage(priority=2)(lambda self, states: [])})
    with pytest.raises(ConfigurationError, match="Inherited marks a method as @advantage"):
        type("Inherited", (Centered, SingleTurnEnv), {})
