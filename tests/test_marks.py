"""Marked methods at work: when those of environments and rubrics run, in which order, and what happens when one fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import vfgym
from tests import environments
from vfgym import MultiTurnEnv, Rubric, ScriptedAgent, SingleTurnEnv, State, aevaluate
from vfgym.errors import ConfigurationError, Error, InfraError, OverlongPromptError, ResetNeeded
from vfgym.messages import Message
from vfgym.testing import ScriptedClient

ROWS = [{"question": f"question {index}", "answer": f"answer {index}"} for index in range(3)]
LIMIT = 0.05
"""Seconds an episode may take in the test of timeouts."""


def note(state: State, name: str) -> float:
    """Note in the state of an episode that a method was called, and score 1."""
    state.setdefault("calls", []).append(name)
    return 1.0


class SmallTalk(environments.Talk):
    """Two turns of small talk."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "max_turns": 2, **kwargs})


class Noted(SmallTalk):
    """Has marked methods of every kind, which note their calls."""

    def setup_state(self, state: State) -> Any:
        note(state, "setup_state")
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        note(state, "env_response")
        return super().env_response(messages, state)

    @vfgym.setup
    def a_setup(self, state: State) -> None:
        note(state, "a_setup")

    @vfgym.setup(priority=5)
    def urgent_setup(self, state: State) -> None:
        note(state, "urgent_setup")

    @vfgym.cleanup
    def a_cleanup(self, state: State) -> None:
        note(state, "a_cleanup")

    @vfgym.update(priority=-5)
    def last_update(self, state: State) -> None:
        note(state, "last_update")

    @vfgym.update
    def b_update(self, state: State) -> None:
        assert state["completion"][-1]["content"] == "two"
        note(state, "b_update")

    @vfgym.update
    def a_update(self, state: State) -> None:
        note(state, "a_update")

    @vfgym.metric(priority=9)
    def a_metric(self, state: State) -> float:
        return 7 * note(state, "a_metric")

    @vfgym.reward(weight=0.5)
    def a_reward(self, state: State) -> float:
        return note(state, "a_reward")

    @vfgym.reward(weight=0.25, priority=1)
    def urgent_reward(self, state: State, completion: list[Message], answer: str) -> float:
        assert (len(completion), answer) == (3, "answer 0")
        return note(state, "urgent_reward")


class AwaitingNoted(Noted):
    """The same with async methods."""

    async def setup_state(self, state: State) -> None:
        await asyncio.sleep(0)
        await super().setup_state(state)

    @vfgym.setup
    async def a_setup(self, state: State) -> None:
        await asyncio.sleep(0)
        super().a_setup(state)

    @vfgym.setup(priority=5)
    async def urgent_setup(self, state: State) -> None:
        await asyncio.sleep(0)
        super().urgent_setup(state)

    @vfgym.cleanup
    async def a_cleanup(self, state: State) -> None:
        await asyncio.sleep(0)
        super().a_cleanup(state)

    @vfgym.update(priority=-5)
    async def last_update(self, state: State) -> None:
        await asyncio.sleep(0)
        super().last_update(state)

    @vfgym.update
    async def a_update(self, state: State) -> None:
        await asyncio.sleep(0)
        super().a_update(state)

    @vfgym.metric(priority=9)
    async def a_metric(self, state: State) -> float:
        await asyncio.sleep(0)
        return super().a_metric(state)

    @vfgym.reward(weight=0.5)
    async def a_reward(self, state: State) -> float:
        await asyncio.sleep(0)
        return super().a_reward(state)


class NotedRubric(Rubric):
    """A rubric with marked methods."""

    @vfgym.metric
    def measured(self, state: State) -> float:
        return 3 * note(state, "measured")

    @vfgym.reward(weight=2.0)
    def rewarded(self, state: State) -> float:
        return note(state, "rewarded")

    @vfgym.reward(priority=1)
    async def rewarded_first(self, state: State) -> float:
        await asyncio.sleep(0)
        return note(state, "rewarded_first")

    @vfgym.cleanup
    def swept(self, state: State) -> None:
        note(state, "swept")


def given(state: State) -> float:
    return note(state, "given")


BEFORE = ["urgent_setup", "a_setup", "setup_state"]
AFTER = ["a_cleanup", "a_update", "b_update", "last_update"]
OWN_SCORES = ["urgent_reward", "a_reward", "a_metric"]
RUBRIC_SCORES = ["given", "rewarded_first", "rewarded", "measured"]


def stepped(env: MultiTurnEnv, *answers: str) -> State:
    """Step through one episode, scored at its end."""
    env.reset(options={"example_id": 0})
    for answer in answers:
        env.step(answer)
    assert env.state is not None
    return env.state


async def astepped(env: MultiTurnEnv, *answers: str) -> State:
    await env.areset(options={"example_id": 0})
    for answer in answers:
        await env.astep(answer)
    assert env.state is not None
    return env.state


async def rolled_out(env: MultiTurnEnv, *answers: str) -> State:
    """Roll out one episode and score it."""
    state = await env.rollout(env.tasks.input(0), ScriptedClient(answers), "scripted")
    await env.rubric.score_rollout(state)
    await env.rubric.cleanup(state)
    return state


def run_alone(play: Callable[..., Awaitable[State]]) -> Callable[..., State]:
    async def call(env: MultiTurnEnv, *answers: str) -> State:
        return await play(env, *answers)

    return lambda env, *answers: asyncio.run(call(env, *answers))


Play = Callable[..., State]
PLAYS = {"stepped": stepped, "stepped async": run_alone(astepped), "rolled out": run_alone(rolled_out)}
faces = pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)


# Order


@faces
@pytest.mark.parametrize("kind", [Noted, AwaitingNoted])
def test_setups_come_before_setup_state_updates_after_cleanup_and_scores_last(kind: type[Noted], play: Play) -> None:
    """Within one kind higher priority comes first, then the name counts; rewards come before metrics."""
    state = play(kind(), "one", "two")
    assert state["calls"] == [*BEFORE, "env_response", *AFTER, *OWN_SCORES]
    assert state["reward"] == 0.75
    assert state["metrics"] == {"urgent_reward": 1.0, "a_reward": 1.0, "a_metric": 7.0, "num_turns": 2.0}
    assert state.get("cleanup_errors") is state.get("metrics_errors") is None


@faces
def test_the_marked_methods_of_a_rubric_come_after_the_functions_it_was_given(play: Play) -> None:
    state = play(SmallTalk(rubric=NotedRubric([given], weights=[4.0])), "one", "two")
    assert state["calls"] == [*RUBRIC_SCORES, "swept"]
    assert state["reward"] == 4.0 + 1.0 + 2.0
    assert list(state["metrics"]) == [*RUBRIC_SCORES, "num_turns"]
    assert state["metrics"]["measured"] == 3.0


@faces
def test_the_marked_methods_of_an_environment_come_after_its_rubric(play: Play) -> None:
    state = play(Noted(rubric=NotedRubric(given)), "one", "two")
    assert state["calls"] == [*BEFORE, "env_response", *AFTER, *RUBRIC_SCORES, *OWN_SCORES, "swept"]
    assert state["reward"] == 1.0 + 1.0 + 2.0 + 0.75


def test_a_rubric_lists_its_marked_methods_with_their_weights() -> None:
    rubric = NotedRubric(given, weights=[4.0])
    assert rubric.funcs == [given, rubric.rewarded_first, rubric.rewarded, rubric.measured]
    assert rubric.weights == [4.0, 1.0, 2.0, 0.0]
    assert rubric.metric_names == RUBRIC_SCORES


def test_a_rubric_with_marked_methods_is_scored_without_an_environment() -> None:
    state = State(input=ROWS[0], completion=[])
    asyncio.run(_finished(NotedRubric().score_rollout(state)))
    assert (state["reward"], state["metrics"]) == (3.0, {"rewarded_first": 1.0, "rewarded": 1.0, "measured": 3.0})


def test_a_reward_of_weight_zero_is_measured_and_not_rewarded() -> None:
    class Watching(Rubric):
        @vfgym.reward(weight=0.0)
        def watched(self) -> float:
            return 5.0

    rubric = Watching()
    state = State(input=ROWS[0], completion=[])
    asyncio.run(_finished(rubric.score_rollout(state)))
    assert (rubric.weights, state["reward"], state["metrics"]) == ([0.0], 0.0, {"watched": 5.0})


async def _finished(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def test_metrics_are_named_in_info_from_the_beginning_and_told_at_the_end() -> None:
    env = Noted()
    _, info = env.reset(options={"example_id": 0})
    assert info["metrics"] == {"urgent_reward": 0.0, "a_reward": 0.0, "a_metric": 0.0, "num_turns": 0.0}
    assert env.step("one").info["metrics"] == info["metrics"]
    outcome = env.step("two")
    assert outcome.reward == 0.75
    assert outcome.info["metrics"] == {"urgent_reward": 1.0, "a_reward": 1.0, "a_metric": 7.0, "num_turns": 2.0}


@faces
def test_a_reward_sees_what_an_update_wrote(play: Play) -> None:
    class Counted(SmallTalk):
        @vfgym.update
        def count(self, state: State) -> None:
            state["words"] = sum(len(message["content"].split()) for message in state["completion"])

        @vfgym.reward
        def many_words(self, state: State) -> float:
            return float(state["words"])

    assert play(Counted(), "one two", "three")["reward"] == 5.0


def test_every_seat_calls_the_marked_methods_of_the_definition_for_its_own_episode() -> None:
    class Told(SmallTalk):
        @vfgym.setup
        def begin(self, state: State) -> None:
            self.begun = [*getattr(self, "begun", []), state["example_id"]]
            state["mine"] = state["answer"]

        @vfgym.reward
        def said_it(self, state: State, completion: list[Message]) -> float:
            return float(completion[0]["content"] == state["mine"])

    env = Told(max_turns=1)
    seats = [env.fork() for _ in range(3)]
    for index, seat in enumerate(seats):
        seat.reset(options={"example_id": index})
    assert [seat.step("answer 1").reward for seat in seats] == [0.0, 1.0, 0.0]
    assert env.begun == [0, 1, 2]


# What the methods may be and ask for


@faces
def test_handlers_get_what_they_name(play: Play) -> None:
    class Asking(SmallTalk):
        @vfgym.setup
        def begin(self, env: Any, task: Any, state: State) -> None:
            assert env is self
            assert task is state["task"]
            note(state, "begin")

        @vfgym.update
        async def end(self, state: State, task: Any, patience: int = 3) -> None:
            assert task is state["task"]
            note(state, f"end {patience}")

    state = play(Asking(), "one", "two")
    assert (state["calls"], state.get("cleanup_errors")) == (["begin", "end 3"], None)


@pytest.mark.parametrize("decorator", [vfgym.setup, vfgym.update, vfgym.cleanup(priority=3)])
def test_a_handler_that_asks_for_the_unknown_is_refused_when_the_class_is_made(decorator: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Wrong\.handler .*'messages'.*env, state"):

        class Wrong(SmallTalk):
            @decorator
            def handler(self, state: State, messages: list[Message]) -> None: ...


@faces
def test_marks_are_inherited_and_an_override_without_the_mark_is_not_called(play: Play) -> None:
    class Quieter(Noted):
        def a_setup(self, state: State) -> None:
            note(state, "never")

        def b_update(self, state: State) -> None:
            note(state, "never")

        def a_reward(self, state: State) -> float:
            return note(state, "never")

        @vfgym.metric
        def urgent_reward(self, state: State) -> float:  # type: ignore[override]
            return note(state, "now a metric")

    state = play(Quieter(), "one", "two")
    before, after = ["urgent_setup", "setup_state"], ["a_cleanup", "a_update", "last_update"]
    assert state["calls"] == [*before, "env_response", *after, "a_metric", "now a metric"]
    assert state["reward"] == 0.0


@faces
def test_marked_methods_may_come_from_a_class_that_knows_nothing_of_environments(play: Play) -> None:
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

    assert play(Counted(), "one", "two")["reward"] == 42.0
    assert play(Counted(rubric=CountedRubric()), "one", "two")["reward"] == 84.0


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
    assert updated == ids
    assert rewarded == ([] if end in ("another reset", "closing") else ids)


def test_where_scoring_is_off_updates_run_and_rewards_do_not() -> None:
    state = stepped(Noted(score_rollouts=False), "one", "two")
    assert state["calls"] == [*BEFORE, "env_response", *AFTER]
    assert state["reward"] == 0.0


# Errors


class BrokenUpdate(Noted):
    """Its most urgent update fails with `error`."""

    def __init__(self, error: Exception, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error
        self.states: list[State] = []

    @vfgym.update(priority=1)
    def broken(self, state: State) -> Any:
        self.states.append(state)
        raise self.error


class AwaitingBrokenUpdate(BrokenUpdate):
    """The same, async."""

    @vfgym.update(priority=1)
    async def broken(self, state: State) -> Any:
        self.states.append(state)
        await _raising(self.error)


broken_updates = pytest.mark.parametrize("kind", [BrokenUpdate, AwaitingBrokenUpdate])


@faces
@broken_updates
def test_an_error_of_an_update_is_the_episodes_and_keeps_nothing_from_running(kind: type[BrokenUpdate], play: Play) -> None:
    error = InfraError("the disk is full")
    state = play(kind(error), "one", "two")
    assert (state["error"], state["stop_condition"]) == (error, "has_error")
    assert state["calls"] == [*BEFORE, "env_response", *AFTER, *OWN_SCORES]
    assert state["reward"] == 0.75


@pytest.mark.parametrize(
    ("error", "flags", "stop_condition"),
    [
        (InfraError("the disk is full"), (True, False), "has_error"),
        (OverlongPromptError("too long"), (False, True), "prompt_too_long"),
    ],
)
def test_an_error_of_an_update_ends_the_episode_as_one_of_any_other_hook(
    error: Error, flags: tuple[bool, bool], stop_condition: str
) -> None:
    env = BrokenUpdate(error)
    env.reset(options={"example_id": 0})
    env.step("one")
    outcome = env.step("two")
    assert ((outcome.terminated, outcome.truncated), outcome.info["stop_condition"]) == (flags, stop_condition)
    assert ("error" in outcome.info) == (stop_condition == "has_error")


@faces
@broken_updates
def test_any_other_exception_of_an_update_is_raised_after_the_other_handlers(kind: type[BrokenUpdate], play: Play) -> None:
    """Rewards follow from what updates write, so there are none."""
    env = kind(KeyError("trajektory"))
    with pytest.raises(KeyError, match="trajektory"):
        play(env, "one", "two")
    (state,) = env.states
    assert state["calls"] == [*BEFORE, "env_response", *AFTER]
    assert state["reward"] is None
    with pytest.raises(ResetNeeded):
        env.step("three")


class BrokenEnd(SmallTalk):
    """Its only update fails."""

    @vfgym.update
    def broken(self, state: State) -> None:
        raise KeyError("trajektory")


@pytest.mark.parametrize("end", ["a model that failed", "another reset", "closing"])
def test_an_update_that_fails_after_another_error_or_in_an_episode_that_is_given_up_is_only_recorded(end: str) -> None:
    env = BrokenEnd()
    env.reset(options={"example_id": 0})
    state = env.state
    ENDS[end](env)
    assert state["cleanup_errors"] == {"broken": "KeyError('trajektory')"}
    assert repr(state["error"]) == ("InfraError('no model')" if end == "a model that failed" else "None")


@pytest.mark.parametrize("error", [InfraError("the disk is full"), KeyError("trajektory")])
def test_results_tell_of_an_update_that_failed(error: Exception) -> None:
    results = vfgym.evaluate(BrokenUpdate(error), ScriptedAgent(["one", "two"]), num_examples=1, progress=False)
    assert results["outputs"][0]["error"]["error_chain_repr"] == repr(error)


async def _raising(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


class BrokenSetup(Noted):
    """Its most urgent setup fails with `error`."""

    error: BaseException = InfraError("no sandbox")

    @vfgym.setup(priority=1)
    def broken(self, state: State) -> Any:
        raise self.error

    @vfgym.update
    def b_update(self, state: State) -> None:
        note(state, "b_update")


class AwaitingBrokenSetup(BrokenSetup):
    """The same, async."""

    @vfgym.setup(priority=1)
    async def broken(self, state: State) -> Any:
        await _raising(self.error)


@pytest.mark.parametrize("kind", [BrokenSetup, AwaitingBrokenSetup])
def test_an_error_in_a_setup_ends_the_episode_before_setup_state(kind: type[BrokenSetup]) -> None:
    """A rollout has it in its state, a reset raises it; what cleans up runs."""
    calls = ["urgent_setup", *AFTER]
    env = kind()
    state = asyncio.run(_finished(env.rollout(env.tasks.input(0), ScriptedClient([]), "m")))
    assert (state["error"], state["stop_condition"], state["calls"]) == (kind.error, "has_error", calls)
    assert state["completion"] == []
    with pytest.raises(InfraError, match="no sandbox"):
        env.reset(seed=0)
    assert env.state["calls"] == calls


@pytest.mark.parametrize("kind", [BrokenSetup, AwaitingBrokenSetup])
def test_any_other_exception_in_a_setup_is_raised_after_cleanup(kind: type[BrokenSetup], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "error", ZeroDivisionError("a bug"))
    env = kind()
    with pytest.raises(ZeroDivisionError):
        env.reset(seed=0)
    assert env.state["calls"] == ["urgent_setup", *AFTER]
    with pytest.raises(ZeroDivisionError):
        asyncio.run(_finished(env.rollout(env.tasks.input(0), ScriptedClient([]), "m")))


def test_a_setup_counts_in_the_time_of_its_episode() -> None:
    class Waiting(Noted):
        @vfgym.setup(priority=1)
        async def waiting(self, state: State) -> None:
            await asyncio.sleep(200 * LIMIT)

        @vfgym.update
        def b_update(self, state: State) -> None:
            note(state, "b_update")

    env = Waiting(timeout_seconds=LIMIT)
    _, info = env.reset(seed=0)
    assert info["stop_condition"] == "timeout_reached"
    assert env.state["calls"] == ["urgent_setup", *AFTER]
    outcome = env.step("too late")
    assert outcome.info["ending"] == "environment_failed"  # the reward functions expect answers, and fail without
    assert (outcome.terminated, outcome.truncated) == (True, False)


@faces
@pytest.mark.parametrize("is_async", [False, True])
def test_a_marked_reward_that_fails_scores_zero_and_is_reported(play: Play, is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        @vfgym.reward(priority=1)
        def broken(self, state: State) -> Any:
            error = ValueError("no such word")
            if is_async:
                return _raising(error)
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
        state = play(env, "one", "two")
        assert (state["reward"], state["metrics"]) == (0.5, {"broken": 0.0, "sound": 1.0, "confused": 0.0, "num_turns": 2.0})
        assert "no such word" in state["metrics_errors"]["broken"]
        assert "no_such_column" in state["metrics_errors"]["confused"]
    assert "reward function broken failed" in caplog.text


# Groups


class Compared:
    """Methods that score the episodes of one task together."""

    @vfgym.reward(stage="group", weight=10.0)
    def longest(self, completions: list[list[Message]]) -> list[float]:
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


GROUPS = [lambda: ComparedEnv(ROWS), lambda: SingleTurnEnv(ROWS, rubric=ComparedRubric())]
group_holders = pytest.mark.parametrize("make", GROUPS, ids=["environment", "rubric"])
Make = Callable[[], SingleTurnEnv]


@group_holders
async def test_methods_for_groups_score_the_episodes_of_a_group_together(make: Make) -> None:
    env = make()
    states = [await env.rollout(env.tasks.input(0), ScriptedClient([answer]), "m") for answer in ("long", "s", "tiny")]
    await env.rubric.score_group(states)
    assert [state["reward"] for state in states] == [11.0, 0.0, 10.0]
    assert [state["metrics"]["rank"] for state in states] == [0.0, 1.0, 2.0]
    assert [state["advantage"] for state in states] == [4.0, -7.0, 3.0]


@group_holders
async def test_an_evaluation_with_several_rollouts_of_each_example_scores_their_groups(make: Make) -> None:
    results = await aevaluate(make(), ScriptedAgent(["long"]), rollouts_per_example=2, progress=False)
    assert [row["reward"] for row in results["outputs"]] == [11.0] * 6
    assert [row["rank"] for row in results["outputs"]] == [0.0, 1.0] * 3


@group_holders
def test_an_environment_with_methods_for_groups_cannot_be_stepped_alone(make: Make) -> None:
    env = make()
    assert env.requires_group_rollouts
    with pytest.raises(ConfigurationError, match=r"whole groups \(longest, rank\).*rollouts_per_example > 1"):
        env.reset(seed=0)


@pytest.mark.parametrize("returned", [[1.0], [1.0, 2.0, 3.0], [None, 1.0], None])
async def test_a_method_for_groups_that_does_not_return_one_number_an_episode_scores_zero(returned: Any) -> None:
    class Wrong(Rubric):
        @vfgym.reward(stage="group")
        def wrong(self, states: list[State]) -> Any:
            return returned

        @vfgym.reward
        def one(self) -> float:
            return 1.0

    env = SingleTurnEnv(ROWS, rubric=Wrong())
    states = [await env.rollout(env.tasks.input(0), ScriptedClient(["x"]), "m") for _ in range(2)]
    await env.rubric.score_group(states)
    assert [state["reward"] for state in states] == [1.0, 1.0]
    assert [list(state["metrics_errors"]) for state in states] == [["wrong"], ["wrong"]]


# Advantages


def test_a_method_that_computes_advantages_is_refused_when_the_class_is_made() -> None:
    """Advantages are always rewards minus the mean of their group, so an author's own would be ignored."""

    class Centered:
        @vfgym.advantage
        def best_minus_worst(self, states: list[State]) -> list[float]:
            return [0.0 for _ in states]

    with pytest.raises(ConfigurationError, match=r"Direct marks a method as @advantage.*minus the group's mean"):

        class Direct(SmallTalk):
            @vfgym.advantage(priority=2)
            def own(self, states: list[State]) -> list[float]:
                return [0.0 for _ in states]

    with pytest.raises(ConfigurationError, match="Inherited marks a method as @advantage"):

        class Inherited(Centered, SingleTurnEnv): ...


def test_marked_methods_say_nothing_where_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "vfgym"):
        stepped(AwaitingNoted(rubric=NotedRubric(given)), "one", "two")
    assert caplog.records == []
