"""The machine: what each step tells, and what ends an episode, whoever wrote it, and however."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.clocks import later
from tests.environments import Talk
from tests.models import Failing, Mute
from vfgym import MultiTurnEnv, Rubric, State, UserMessage, setup, update
from vfgym.errors import Error, ModelError
from vfgym.limits import RolloutLimits, RolloutMeter
from vfgym.messages import AssistantMessage, Message

ENDS = {
    "error": (Error("broken"), "has_error"),
    "final_env_response": ([], "has_final_env_response"),
    "prompt_too_long": (True, "prompt_too_long"),
    "timed_out": (True, "timeout_reached"),
}


@pytest.mark.parametrize("item", ENDS)
@pytest.mark.parametrize("write", [State.__setitem__, dict.__setitem__, dict.setdefault], ids=["state", "dict", "setdefault"])
def test_an_item_that_ends_an_episode_ends_it_before_the_environment_answers(item: str, write: Any) -> None:
    value, stop_condition = ENDS[item]

    class Ending(MultiTurnEnv):
        def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
            dict.pop(state, item, None)  # so that `setdefault` writes
            write(state, item, value)
            return super().add_trajectory_step(state, trajectory_step)

        def env_response(self, messages: Any, state: State) -> Any:
            raise AssertionError("the episode is over")

    env = Ending(dataset=[{"question": "?"}])
    env.reset(seed=0)
    outcome = env.step("hello")
    assert outcome.terminated or outcome.truncated
    assert outcome.info["stop_condition"] == stop_condition


LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": False},
    },
}


class Told(Talk):
    """Has a tool, a function for each turn, one for the whole, and something to tell besides."""

    def __init__(self, **kwargs: Any) -> None:
        rubric = Rubric(lambda completion: len(completion))
        rubric.add_step_reward_func(self.turn, weight=0.5)
        super().__init__(**{"rubric": rubric, "max_turns": 2, "tool_defs": [LOOK], **kwargs})

    def turn(self, step: Any) -> float:
        return len(step["completion"][0]["content"])

    def step_info(self, state: State) -> dict[str, Any]:
        return {"turn": len(state["trajectory"])}


def test_each_step_tells_the_conversation_what_it_emits_and_the_same_facts() -> None:
    """What the turns emit is told at once, the rest of the reward at the end, and the metrics of the score only there."""
    env = Told()
    asked, on = UserMessage("?"), UserMessage("go on")
    running = {"example_id": 0, "tools": [LOOK], "stop_condition": None, "ending": None}
    metrics = {"<lambda>": 0.0, "turn": 0.0, "num_turns": 0.0}
    scored = {"<lambda>": 3.0, "turn": 5.0, "num_turns": 2.0}
    assert env.reset(seed=0) == ([asked], {**running, "metrics": metrics, "turn": 0})
    assert env.episode is not None
    assert env.episode.outcome() == ([asked], 0.0, False, False, {**running, "metrics": metrics, "turn": 0})
    said = [asked, AssistantMessage("ab"), on]
    assert env.step("ab") == (said, 1.0, False, False, {**running, "metrics": metrics, "turn": 1})
    over = {**running, "metrics": scored, "stop_condition": "max_turns_reached", "ending": "truncated", "turn": 2}
    end = ([*said, AssistantMessage("abc")], 1.5 + 3.0, False, True, over)
    assert env.step("abc") == end
    assert env.truncate() == end, "an episode that is over keeps its outcome"
    assert env.cleaned == 1


def test_what_is_not_scored_emits_what_its_turns_do() -> None:
    env = Told()
    env.defers_scoring = True
    env.reset(seed=0)
    env.step("ab")
    outcome = env.step("abc")
    assert (outcome.reward, outcome.truncated, outcome.info["metrics"]) == (1.5, True, {"<lambda>": 0.0, "turn": 0.0, "num_turns": 0.0})
    env.reset(seed=0)
    env.step("ab")
    assert env.truncate().reward == 0.0, "what the turn emitted is not emitted again"
    unscored = Told(score_rollouts=False)
    unscored.reset(seed=0)
    assert ([unscored.step("ab").reward, unscored.step("abc").reward], unscored.state["reward"]) == ([0.0, 0.0], 0.0)


def test_a_task_of_ones_own_without_tools_tells_so() -> None:
    env = Talk()
    _, info = env.reset(seed=0, options={"task": {"question": "!"}})
    assert info == {"example_id": -1, "tools": [], "metrics": {"num_turns": 0.0}, "stop_condition": None, "ending": None}


class Updating(Talk):
    """An update that raises what the test wants, at the end."""

    failure: BaseException | None = None

    @update
    def note(self, state: State) -> None:
        state["updates"] = state.get("updates", 0) + 1
        if self.failure is not None:
            raise self.failure


def test_an_error_of_an_update_is_the_episodes_where_nothing_failed_before() -> None:
    env, failure, before = Updating(max_turns=1), Error("lost"), ModelError("busy")
    env.failure = failure
    env.reset(seed=0)
    outcome = env.step("a")
    assert (outcome.terminated, outcome.truncated, env.cleaned) == (True, False, 1)
    assert [outcome.info[name] for name in ("stop_condition", "ending", "error")] == ["has_error", "environment_failed", repr(failure)]
    assert (env.state["error"], env.state["updates"], env.state["is_completed"]) == (failure, 1, True)
    env.reset(seed=0)
    assert env.fail(before).info["error"] == repr(before), "what failed first is the episode's error"
    env.failure = ZeroDivisionError("a bug")
    env.reset(seed=0)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        env.step("a")
    assert (env.cleaned, env.state["updates"]) == (3, 1)
    env.reset(seed=0)
    assert env.episode is not None
    episode = env.episode
    env.close()  # nothing was completed: what an update raises then is kept in the state
    assert (env.cleaned, list(episode.state["cleanup_errors"]), episode.state["error"]) == (4, ["note"], None)


class Waiting(Talk):
    """Waits for ever while it sets up, or for what `error` raises."""

    error: BaseException | None = None

    async def setup_state(self, state: State) -> None:
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()


def test_setting_up_may_take_no_longer_than_the_episode() -> None:
    env = Waiting(timeout_seconds=0.0)
    env.reset(seed=0)
    assert env.episode is not None
    state = env.state
    assert (env.episode.is_over, env.cleaned, state["timed_out"], state["error"]) == (True, 1, True, None)
    assert (state["stop_condition"], state["ending"], state["trajectory"]) == ("timeout_reached", "cut", [])
    assert state["timing"].setup.end >= state["timing"].setup.start > 0
    env.error = error = Error("no room")
    with pytest.raises(Error, match="no room"):
        env.reset(seed=0)
    assert (env.state["error"], env.state["stop_condition"], env.cleaned) == (error, "has_error", 2)
    env.error = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError, match="a bug"):
        env.reset(seed=0)
    assert (env.state["error"], env.cleaned) == (None, 3)


async def test_whoever_does_not_answer_in_time_ends_the_rollout_and_is_given_up() -> None:
    env, model = Talk(timeout_seconds=0.01), Mute()
    state = await env.rollout(env.tasks.input(0), model, "m")
    assert (state["stop_condition"], state["timed_out"], state["completion"], model.cancelled) == ("timeout_reached", True, [], 1)
    assert (env.cleaned, state["error"], state["is_completed"]) == (1, None, True)


def test_what_is_put_off_ends_as_much_later(monkeypatch: pytest.MonkeyPatch) -> None:
    env, endless = Talk(timeout_seconds=60), Talk()
    env.reset(seed=0)
    endless.reset(seed=0)
    assert env.episode is not None
    assert endless.episode is not None
    before = env.episode.deadline
    assert before is not None
    env.episode.put_off(30.0)
    endless.episode.put_off(30.0)
    assert (env.episode.deadline, endless.episode.deadline) == (before + 30.0, None)
    later(monkeypatch, "monotonic", 80)
    assert not env.step("in time").truncated
    later(monkeypatch, "monotonic", 20)
    assert env.step("late").info["stop_condition"] == "timeout_reached"
    assert not endless.step("at last").truncated


def test_setups_come_before_the_hook_which_may_return_another_state() -> None:
    class Prepared(Talk):
        async def init_state(self, input: Any, client: Any = None, model: str = "", sampling_args: Any = None) -> State:
            state = await super().init_state(input, client, model, sampling_args)
            state["notes"] = ["made"]
            return state

        @setup(priority=1)
        async def first(self, state: State) -> None:
            state["notes"].append("first")

        @setup
        def second(self, state: State) -> None:
            state["notes"].append("second")

        def setup_state(self, state: State) -> Any:
            return State({**state, "notes": [*state["notes"], "hook"]})

    env = Prepared()
    env.reset(seed=0)
    env.step("a")
    assert (env.state["notes"], len(env.state["trajectory"])) == (["made", "first", "second", "hook"], 1)


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), KeyboardInterrupt()])
async def test_what_is_no_error_of_the_model_is_raised_after_one_cleanup(error: Any) -> None:
    env = Talk()
    with pytest.raises(type(error)):
        await env.rollout(env.tasks.input(0), Failing(error), "m")
    assert env.cleaned == 1


@pytest.mark.parametrize(("turns", "said"), [(1, 1), (2, 2), (None, 3)])
def test_an_episode_ends_when_what_its_rollout_may_spend_is_used_up(turns: int | None, said: int) -> None:
    env = Talk(max_turns=3)
    env.next_limit = meter = RolloutMeter(RolloutLimits(turns=turns))
    env.reset(seed=0)
    outcomes = [env.step("a") for _ in range(said)]
    assert [outcome.truncated for outcome in outcomes] == [False] * (said - 1) + [True]
    stop = "limit_reached" if turns else "max_turns_reached"
    assert (outcomes[-1].info["stop_condition"], meter.is_over, env.state["is_truncated"]) == (stop, True, turns is not None)


def test_what_a_hook_of_the_base_class_cleans_up_is_not_cleaned_up_again() -> None:
    """An author's own `cleanup` is asked in place of the handlers, once."""

    class Own(Talk):
        async def cleanup(self, state: State) -> None:
            self.cleaned += 10

    env = Own(max_turns=1)
    env.reset(seed=0)
    env.step("a")
    env.close()
    assert env.cleaned == 10


def test_the_authors_own_word_ends_an_episode_without_a_name() -> None:
    class Enough(Talk):
        async def is_completed(self, state: State, **kwargs: Any) -> bool:
            return len(state["trajectory"]) == 2

        def get_prompt_messages(self, state: State) -> list[Message]:
            return [UserMessage(f"turn {len(state['trajectory'])}")]

    env = Enough()
    observations = [env.reset(seed=0)[0], env.step("a").observation]
    assert observations == [[UserMessage("turn 0")], [UserMessage("turn 1")]]
    outcome = env.step("b")
    assert (outcome.terminated, outcome.info["stop_condition"], outcome.info["ending"]) == (True, None, "terminated")
