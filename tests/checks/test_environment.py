"""Oracles, and `check_environment`: each promise that an environment breaks is reported, and a sound one keeps all."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from tests import environments
from tests.wrappers.gymnasium.toys import Toy
from vfgym import MultiTurnEnv, Rubric, RubricGroup, SingleTurnEnv, State, UserMessage
from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.messages import Message
from vfgym.testing import Check, check_environment

# Oracles


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        *[({"answer": "42"}, "42"), ({"answer": 42}, "42"), ({"answer": ""}, ""), ({"answer": [1, 2]}, "[1, 2]")],
        *[({"answer": None}, None), ({}, None), ({"info": {"answer": "42"}}, None)],
    ],
)
def test_the_default_oracle_says_the_answer_of_the_task(row: dict[str, Any], answer: str | None) -> None:
    env = SingleTurnEnv([{"question": "6 * 7?", **row}], rubric=Rubric(lambda completion: completion[-1]["content"] == answer))
    env.reset(seed=0)
    assert env.oracle(env.state) == answer
    if answer is not None:
        assert env.step(env.oracle(env.state)).reward == 1.0


# check_environment


CHECKER, SPEC, REPLAY, ACCEPTS, REFUSES, SUM, SCORES, ONCE, ANSWER, FORKS, FACES, VECTOR = (
    *["passes gymnasium's check_env without a warning", "its spec survives JSON", "replays the same episodes under a seed"],
    "accepts every member of its action space",
    "refuses what is not an action, and leaves the episode as it was",
    "its step rewards add up to the rubric's score",
    "its reward functions score any answer, and an episode without one",
    "calls each reward function and each cleanup handler once for an episode",
    *["tells no answer in info", "forks do not see each other's episodes", "step() and rollout() give equal states"],
    "runs in SyncVectorEnv",
)
WORDS = "reads each action of its game as it writes it"
PROMISES = [CHECKER, REPLAY, ACCEPTS, REFUSES, SUM, SCORES, ONCE, ANSWER, FORKS, FACES, VECTOR]


class Sound(MultiTurnEnv):
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


DETAILS = {
    **{CHECKER: "", REPLAY: "3 episodes", ACCEPTS: "6 silly answers", REFUSES: "5 wrong answers", SUM: "3 episodes", SCORES: "10 episodes"},
    **{ONCE: "4 functions", ANSWER: "", FORKS: "2 forks", FACES: "3 turn(s)", VECTOR: "2 environments"},
}


def test_a_sound_environment_keeps_every_promise() -> None:
    assert check_environment(Sound) == [Check(promise, True, DETAILS[promise]) for promise in PROMISES]


def test_a_game_is_checked_further_and_each_one_that_is_made_is_closed() -> None:
    made = []

    class Counted(Toy):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options, closed=0)
            made.append(self)

        def close(self) -> None:
            self.closed += 1

    checks = check_environment(lambda: vfgym.to_chat(Counted, rules="Count."))
    details = {
        **DETAILS,
        **{FACES: "20 turn(s)", "tells what its actions and observations are": "", WORDS: "100 samples"},
        **{f"is its game again when turned back with to_gym, by {way}": "100 moves" for way in ("text", "tool call")},
    }
    assert checks == [Check(promise, True, detail) for promise, detail in details.items()]
    assert [game.closed for game in made] == [1] * len(made) != []


def test_a_registered_environment_has_a_spec_to_check_too() -> None:
    checks = check_environment("gymnasium/FrozenLake-v1")
    assert promises(checks)[: len(PROMISES) + 1] == [CHECKER, SPEC, *PROMISES[1:]]
    assert [check for check in checks if not check.passed] == []


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
    assert failed[REPLAY].startswith("two runs from the same seed differ, first in turn ")
    assert set(failed) <= {CHECKER, REPLAY, FORKS, FACES}


class Touchy(Sound):
    def env_response(self, messages: list[Message], state: State) -> Any:
        if messages[-1].get("tool_calls"):
            raise ValueError("I expected words")
        return super().env_response(messages, state)


def test_an_environment_that_raises_on_a_silly_answer_is_reported() -> None:
    failed = broken(Touchy)
    assert failed == dict.fromkeys([ACCEPTS, SCORES], "ValueError('I expected words')")


def says(completion: list[Message], answer: str) -> float:
    return float(answer in (completion[-1]["content"] or ""))


def test_a_reward_function_that_fails_where_there_is_no_answer_is_reported() -> None:
    """Such a rollout has failed. A metric that fails, and one that has a number for everything, are not faults."""
    rows = [{"question": "6 * 7?", "answer": "42"}]
    failed = broken(lambda: SingleTurnEnv(rows, rubric=Rubric(says)))
    assert list(failed) == [SCORES]
    error = "IndexError('list index out of range')"
    assert failed[SCORES] == (
        f"says raised {error} in an episode that ended before the first answer: return a number there, too, 0.0 say; "
        f"logged: reward function says failed and scores 0.0: {error}"
    )
    assert broken(lambda: SingleTurnEnv(rows, rubric=Rubric(says, weights=[0.0]))) == {}
    assert broken(lambda: SingleTurnEnv(rows, rubric=Rubric(lambda completion, answer, parser: 1.0))) == {}


def exact(completion: list[Message], answer: str) -> float:
    return float(completion[-1]["content"].strip() == answer)  # which may be None, in a message that calls tools


def test_what_is_provoked_on_purpose_is_told_by_its_check_and_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A reward function that fails on odd answers breaks one promise, and nothing is logged for it but there."""
    checks = check_environment(lambda: SingleTurnEnv([{"question": "6 * 7?", "answer": "42"}], rubric=Rubric(exact)))
    assert ([check.promise for check in checks if not check.passed], caplog.records) == ([SCORES], [])
    told = [check for check in checks if "reward function exact failed and scores 0.0: AttributeError" in check.detail]
    assert len(told) == 1, "and once"
    with caplog.at_level(logging.DEBUG, "vfgym"):
        check_environment(lambda: SingleTurnEnv([{"question": "6 * 7?", "answer": "42"}], rubric=Rubric(exact)))
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
    assert f"while it was checked that it {told[0].promise}" in caplog.text
    assert f'File "{__file__}"' in caplog.text
    failed = broken(lambda: Touchy(rubric=Rubric(exact)))
    assert list(failed) == [ACCEPTS, SCORES]
    logging.getLogger("vfgym.tests").warning("heard again")
    assert caplog.messages[-1] == "heard again"


class Lenient(gym.ActionWrapper[Any, Any, Any]):
    def action(self, action: Any) -> Any:
        return action if action in self.action_space else str(action)


class Anything(gym.Space[Any]):
    """The space of messages, in which everything else is too."""

    def __init__(self, messages: gym.Space[Any]) -> None:
        super().__init__()
        self.sample, self.seed = messages.sample, messages.seed  # type: ignore[method-assign]

    def contains(self, x: Any) -> bool:
        return True


class Wordy(Anything):
    """The space of messages without the empty one."""

    def __init__(self, messages: gym.Space[Any]) -> None:
        super().__init__(messages)
        self._messages = messages

    def contains(self, x: Any) -> bool:
        return x != "" and x in self._messages


class Narrow(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self) -> None:
        super().__init__(Sound())
        self.action_space = Wordy(self.env.action_space)


class Boundless(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self) -> None:
        super().__init__(Sound())
        self.action_space = Anything(self.env.action_space)


class Whole(gym.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> Any:
        return round(10 * reward)


class Hasty(gym.ActionWrapper[Any, Any, Any]):
    """Refuses what is not an action, but not before a turn is played."""

    def action(self, action: Any) -> Any:
        if action in self.action_space:
            return action
        self.env.step("a turn")
        raise InvalidAction("that is not a message")


class Doubled(gym.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> Any:
        return 2 * reward


class Infinite(Sound):
    def polite(self, completion: list[Message]) -> float:
        return math.inf


class Whispering(Sound):
    def step_info(self, state: State) -> dict[str, Any]:
        return {"hint": state["answer"]}


class Telling(Sound):
    """Tells something as the answer, which an agent would take for it."""

    def step_info(self, state: State) -> dict[str, Any]:
        return {"answer": "I will not tell"}


class Gossiping(Sound):
    def step_info(self, state: State) -> dict[str, Any]:
        return {"hints": [{"of": ("a", state["answer"])}]}


class Forgetful(Sound):
    def setup_state(self, state: State) -> Any:
        self.said = 0
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        self.said += 1
        return [UserMessage(f"turn {self.said}")]


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


class Endless(environments.Talk):
    """Goes on without an end where there is no limit, and is scored in every way."""

    def __init__(self, **kwargs: Any) -> None:
        rows = [{"question": f"{index}?", "answer": f"answer {index}"} for index in range(4)]
        rubric = RubricGroup([Rubric(self.length), Rubric(self.fails, weights=[0.0])])
        rubric.add_step_reward_func(self.one)
        super().__init__(**{"dataset": rows, "max_turns": -1, "rubric": rubric, **kwargs})

    async def length(self, completion: list[Message]) -> float:
        return float(len(completion))

    def fails(self, completion: list[Message]) -> float:
        raise ValueError("not today")

    def one(self, completion: list[Message]) -> float:
        return 1.0


class TwoFaced(Endless):
    """Answers agents who step otherwise than models who are asked."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage("who steps?" if state["client"] is None else "who is asked?")]


class ScoresItself(Endless):
    async def rollout(self, *args: Any, **kwargs: Any) -> State:
        state = await super().rollout(*args, **kwargs)
        await self.rubric.score_rollout(state)
        return state


class CleansUpItself(Endless):
    def env_response(self, messages: list[Message], state: State) -> Any:
        for handler in self.hooks.cleanups:
            handler.call(state)
        return super().env_response(messages, state)


class ScoresWhatIsClosed(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(Endless(**kwargs))

    def close(self) -> None:
        if self.env.state is not None:
            self.env.truncate()
        super().close()


@pytest.mark.parametrize(
    ("make", "promise", "says"),
    [
        (EnvSpec("Local-v0", entry_point=Sound), SPEC, "Callable found in Local-v0 for entry_point attribute"),
        (lambda: Lenient(Sound()), REFUSES, "None was accepted"),
        (lambda: Hasty(Sound(max_turns=20)), REFUSES, "the episode changed"),
        (lambda: Doubled(Sound()), SUM, "the steps emitted 1.0, the score is 0.5"),
        (Infinite, CHECKER, "The reward is an inf value."),
        *[(kind, ANSWER, "the answer 'answer 3' stands in info") for kind in (Whispering, Telling, Gossiping)],
        (Forgetful, FORKS, "two forks played in turns differ from the same two played one after the other"),
        *[(make, FACES, "state['completion'] is [AssistantMessage(") for make in (lambda: TwoFaced(max_turns=3), TwoFaced)],
        (OnlyOne, VECTOR, "OSError('the device is in use')"),
    ],
    ids=[
        *("a spec that JSON cannot hold", "takes anything for an action", "moves before it refuses", "rewards are not the score"),
        *(
            "an infinite reward",
            "tells the answer",
            "tells something as the answer",
            "tells it inside",
            "episodes interfere",
            "knows whether it is stepped",
        ),
        *("knows whether it is stepped, without an end", "only one can be made"),
    ],
)
def test_an_environment_that_breaks_a_promise_is_reported(make: Any, promise: str, says: str) -> None:
    failed = broken(make)
    assert list(failed) == [promise]
    assert says in failed[promise]


def test_spaces_and_types_that_do_not_fit_are_reported() -> None:
    assert broken(Boundless)[REFUSES] == "None is not an assistant message, but in the action space"
    assert broken(Narrow)[ACCEPTS] == "'' is an assistant message, but not in the action space"
    failed = broken(lambda: Whole(Sound()))
    assert failed[ACCEPTS] == "'' gave an observation outside its space, or a reward that is not a float"
    assert list(failed) == [ACCEPTS, SUM]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (ScoresItself, "length was called 2 times, not 1, for an episode that was played"),
        (CleansUpItself, "render_state was called 3 times, not 1, for an episode that was played"),
        (ScoresWhatIsClosed, "length was called 1 times, not 0, for an episode that was abandoned"),
    ],
)
def test_an_environment_that_does_the_librarys_work_too_is_reported(kind: Callable[..., gym.Env[Any, Any]], says: str) -> None:
    assert broken(lambda: kind(max_turns=3))[ONCE] == says


# Long episodes, and games in words


def details(env: Any) -> dict[str, str]:
    return {check.promise: check.detail for check in check_environment(env)}


def test_functions_are_counted_in_every_kind_of_rubric() -> None:
    assert details(Endless)[ONCE] == "6 functions"  # length, fails, one and count, and two of the library: num_turns, render_state
    assert broken(lambda: Endless(max_turns=2)) == {}
    assert broken(lambda: Endless(score_rollouts=False)) == {}


def test_a_game_reads_the_words_that_it_writes() -> None:
    assert details(lambda: vfgym.to_chat("Taxi-v4"))[WORDS] == "100 samples"
    assert WORDS not in details(Endless)


def test_an_environment_that_scores_whole_groups_can_only_be_evaluated() -> None:
    [check] = check_environment(lambda: Sound(rubric=Rubric(lambda completions: [0.0 for _ in completions])))
    assert check == Check("can be stepped alone", False, "the rubric scores whole groups: evaluate it with rollouts_per_example > 1")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: 3, "returned int, no gymnasium.Env"),
        (Endless(), "a function that makes the environment anew each time, got Endless"),
        ("nowhere_at_all:Talk-v0", "there is no module 'nowhere_at_all'"),
        ("gymnasium/FrozenLak-v1", "Did you mean"),
        (lambda: gym.make("CartPole-v1"), r"CartPole.*vfgym\.to_chat"),
    ],
)
def test_what_cannot_be_checked_is_refused(env: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_environment(env)


class Stopwatch(Rubric):
    def __init__(self, timing_names: list[str]) -> None:
        super().__init__()
        self._timing_names = timing_names
        self.add_metric(self.seconds)

    @property
    def timing_names(self) -> list[str]:
        return self._timing_names

    def seconds(self, state: State) -> float:
        return time.perf_counter()


@pytest.mark.parametrize("grouped", [False, True])
def test_metrics_that_measure_seconds_may_differ_where_they_are_named(grouped: bool) -> None:
    def differing(*names: str) -> set[str]:
        def make() -> MultiTurnEnv:
            rubric = Stopwatch([*names])
            return environments.Talk(
                dataset=[{"question": "?"}], max_turns=3, rubric=RubricGroup([Rubric(), rubric]) if grouped else rubric
            )

        return {check.promise for check in check_environment(make) if not check.passed}

    assert differing("seconds") == set()
    assert "replays the same episodes under a seed" in differing()
