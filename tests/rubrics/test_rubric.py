"""Rubrics: what reward functions get and may return, how scores add up, and that every function is called exactly once."""

from __future__ import annotations

import asyncio
import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, List  # noqa: UP035

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.environments import Talk
from tests.models import InOrder
from tests.rubrics.scored import PROMPT, finished, played, scored, scored_group
from vfgym import MultiTurnEnv, Rubric, RubricGroup, SingleTurnEnv, State, cleanup, metric, reward, setup, stop, teardown, update
from vfgym.aio.steps import Steps
from vfgym.errors import ConfigurationError, Error, InfraError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, Message
from vfgym.rubrics.scoring import Score

# What functions get


def test_a_function_gets_the_arguments_it_names() -> None:
    seen: dict[str, Any] = {}

    def named(prompt: Any, completion: Any, answer: Any, info: Any, state: Any, task: Any, parser: Any, difficulty: Any) -> float:
        seen.update(locals())
        return 1.0

    rubric = Rubric(named)
    state = scored(rubric, played(difficulty="hard"))
    del seen["seen"]
    assert seen == {
        "prompt": PROMPT,
        "completion": [AssistantMessage("42")],
        "answer": "42",
        "info": {"level": 3},
        "state": state,
        "task": state["task"],
        "parser": rubric.parser,
        "difficulty": "hard",
    }


def test_a_function_that_takes_anything_gets_everything() -> None:
    seen: set[str] = set()

    def greedy(completion: Any, **rest: Any) -> float:
        seen.update(rest)
        return 1.0

    scored(Rubric(greedy), played(difficulty="hard"))
    assert {"prompt", "answer", "info", "state", "task", "parser", "difficulty", "example_id"} <= seen
    assert "completion" not in seen


@pytest.mark.parametrize(
    "func",
    [
        lambda: 1.0,
        lambda answer, /: float(answer == "42"),
        lambda answer, missing=1.0: missing,
        lambda *, answer: float(answer == "42"),
        functools.partial(lambda answer, want: float(answer == want), want="42"),
    ],
)
def test_every_kind_of_signature_is_understood(func: Callable[..., Any]) -> None:
    state = scored(Rubric([func]))
    assert state["reward"] == 1.0, state.get("metrics_errors")


def test_methods_and_callable_objects_are_functions_too() -> None:
    class Exact:
        def __call__(self, completion: Any, answer: str) -> bool:
            return bool(completion[-1].content == answer)

        def method(self, completion: Any) -> int:
            return len(completion)

    state = scored(Rubric([Exact(), Exact().method], weights=[1.0, 0.5]))
    assert (state["reward"], state["metrics"]) == (1.5, {"Exact": 1.0, "method": 1.0})


def test_an_argument_that_does_not_exist_scores_zero_and_is_reported() -> None:
    def wants(nonsense: Any) -> float:
        return 1.0

    state = scored(Rubric(wants))
    assert (state["reward"], state["metrics"]) == (0.0, {"wants": 0.0})
    assert "nonsense" in state["metrics_errors"]["wants"]


# Construction


def test_one_bare_function_stands_for_a_list_of_it() -> None:
    def right() -> float:
        return 1.0

    assert Rubric(right).funcs == Rubric([right]).funcs == [right]


def test_functions_and_weights_are_those_of_the_moment() -> None:
    rubric = Rubric(len)
    assert (rubric.funcs, rubric.weights) == ([len], [1.0])
    rubric.add_reward_func(abs, 0.5)
    assert (rubric.funcs, rubric.weights) == ([len, abs], [1.0, 0.5])


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 3.0]])
def test_there_is_one_weight_for_each_function(weights: list[float]) -> None:
    with pytest.raises(ConfigurationError, match=f"got {len(weights)} for 2"):
        Rubric([len, abs], weights=weights)


@pytest.mark.parametrize("mark", [stop, setup, update])
def test_a_mark_that_does_nothing_on_a_rubric_and_a_hook_that_cannot_be_called_are_refused(mark: Any) -> None:
    def marked(self: Any, state: State) -> bool:
        return True

    with pytest.raises(ConfigurationError, match=r"Own.marked is marked as @\w+, which does nothing on a Own"):
        type("Own", (Rubric,), {"marked": mark(marked)})
    type("Mixed", (type("Mixin", (), {"marked": mark(marked)}), Rubric), {})  # it may serve environments too
    with pytest.raises(ConfigurationError, match="score_rollout"):
        type("Own", (Rubric,), {"score_rollout": lambda self: None})


@pytest.mark.parametrize("weights", ["12", {1.0: 2}, {1.0, 2.0}, 3.0])
def test_weights_are_a_list(weights: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Rubric([len, abs], weights=weights)
    assert str(raised.value) == f"weights must be a list with one number for each reward function, got {weights!r}"


def right() -> float:
    return 1.0


class MarkedFunctions(Rubric):
    @metric
    def a_metric(self) -> float:
        return 2.0

    @metric(weight=0.25)
    def b_metric(self) -> float:
        return 4.0

    @reward(weight=0.0, range=(0, 5))
    def y_reward(self) -> float:
        return 8.0

    @reward
    def z_reward(self) -> float:
        return 16.0


class MarkedForGroups(Rubric):
    @reward(stage="group", weight=2.0)
    def together(self) -> list[float]:
        return [1.0]


def test_marked_methods_come_after_what_is_given_rewards_first_with_their_own_weights() -> None:
    rubric = MarkedFunctions(right, [3.0])
    rubric.add_reward_func(len, 0.5, (0, 9))
    rubric.add_metric(abs, 0.125)
    rubric.add_metric(sum)
    rubric.add_step_reward_func(right, 7.0)
    assert [(function.name, function.weight, function.range, function.when) for function in rubric.functions] == [
        *[("right", 3.0, None, "episode"), ("y_reward", 0.0, (0.0, 5.0), "episode"), ("z_reward", 1.0, None, "episode")],
        *[("a_metric", 0.0, None, "episode"), ("b_metric", 0.25, None, "episode"), ("len", 0.5, (0.0, 9.0), "episode")],
        *[("abs", 0.125, None, "episode"), ("sum", 0.0, None, "episode")],
    ]
    assert rubric.metric_names == [*[function.name for function in rubric.functions], "right"]
    assert [(function.weight, function.when, objects) for function, objects in rubric.step_scorers()] == [
        (7.0, "step", rubric.class_objects)
    ]
    rubric.functions.clear()
    assert len(rubric.functions) == 8
    assert (rubric.timing_names, rubric.has_group_rewards, rubric.group_function_names) == ([], False, [])
    assert scored(MarkedFunctions())["reward"] == 17.0
    group = MarkedForGroups()
    assert [(function.name, function.weight, function.when) for function in group.functions] == [("together", 2.0, "group")]
    assert (group.has_group_rewards, group.group_function_names) == (True, ["together"])
    assert [each.name for each in Rubric.of_marked(MarkedFunctions()).functions] == ["y_reward", "z_reward", "a_metric", "b_metric"]


class TornDown(Rubric):
    def teardown(self) -> Any: ...


class Closing(Rubric):
    @teardown
    def close(self) -> None: ...


def test_whether_there_is_something_to_tear_down() -> None:
    put_on = Rubric()
    put_on.teardown = lambda: None  # type: ignore[method-assign]
    assert [rubric.has_teardown for rubric in (Rubric(), TornDown(), Closing(), put_on)] == [False, True, True, True]
    assert [RubricGroup([Rubric(), rubric]).has_teardown for rubric in (Rubric(), TornDown(), Closing(), put_on)] == [
        False,
        True,
        True,
        True,
    ]


def test_a_rubric_has_a_log_of_its_own() -> None:
    assert Closing().logger.name == f"{__name__}.Closing"


def test_advantages_of_a_rubrics_own_are_kept() -> None:
    class Ranked(Rubric):
        @property
        def provides_advantages(self) -> bool:
            return True

    states = [played(), played("x")]
    for state in states:
        state["advantage"] = 7.0
    rubric = Ranked(lambda completion: float(len(completion[-1].content)))
    assert [(state["reward"], state["advantage"]) for state in scored_group(rubric, states)] == [(2.0, 7.0), (1.0, 7.0)]
    assert scored_group(rubric, []) == []


def test_what_an_authors_own_scoring_wrote_before_it_failed_does_not_count() -> None:
    class Broken(Rubric):
        def score_rollout(self, state: State) -> Any:
            state["reward"], state["metrics"] = 0.5, {"broken": 1.0}
            state.emitted.append(4.0)
            raise LookupError("no judge")

    state = played()
    state.emitted, state.step_metrics = [0.25], {"steps": 1.0}
    with pytest.raises(LookupError):
        scored(RubricGroup([Rubric(right), Broken()]), state)
    assert (state["reward"], state["metrics"], state.emitted, state.step_metrics) == (None, None, [0.25], {"steps": 1.0})


def test_the_lists_that_a_rubric_was_made_of_stay_the_callers() -> None:
    functions: list[Any] = [lambda: 1.0]
    weights = [2.0]
    rubric = Rubric(functions, weights)
    rubric.add_reward_func(lambda: 5.0)
    assert (len(functions), weights) == (1, [2.0])
    functions.clear()
    assert scored(rubric)["reward"] == 7.0


def test_an_empty_rubric_scores_zero() -> None:
    state = scored(Rubric())
    assert (state["reward"], state["metrics"]) == (0.0, {})


def test_functions_run_in_the_order_they_were_added_and_see_what_earlier_ones_wrote() -> None:
    async def first(state: State) -> float:
        await asyncio.sleep(0)
        state["noted"] = 2.0
        return 0.0

    def second(state: State) -> float:
        return float(state["noted"])

    rubric = Rubric(first)
    rubric.add_metric(second)
    rubric.add_reward_func(second, weight=0.5)
    state = scored(rubric)
    assert (state["reward"], state["metrics"]) == (1.0, {"first": 0.0, "second": 2.0})


def test_weight_zero_makes_a_metric() -> None:
    def nan() -> float:
        return math.nan

    def infinite() -> float:
        return math.inf

    rubric = Rubric([lambda: 1.0, nan], weights=[2.0, 0.0])
    rubric.add_metric(infinite)
    state = scored(rubric)
    assert state["reward"] == 2.0, "a metric has no part in the reward, whatever it measures"
    assert math.isnan(state["metrics"]["nan"])
    assert state["metrics"]["infinite"] == math.inf


# What functions return


@pytest.mark.parametrize(("returned", "value"), [(True, 1.0), (False, 0.0), ("0.5", 0.5), (3, 3.0), (-0.25, -0.25)])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_a_number_counts(returned: Any, value: float, is_async: bool) -> None:
    async def later() -> Any:
        await asyncio.sleep(0)
        return returned

    state = scored(Rubric(later if is_async else lambda: returned))
    assert state["reward"] == value
    assert type(state["reward"]) is float
    assert [type(metric) for metric in state["metrics"].values()] == [float]
    assert "metrics_errors" not in state


@pytest.mark.parametrize("returned", [None, [1.0], {}, "half"])
def test_what_is_no_number_scores_zero_and_is_reported(returned: Any) -> None:
    def odd(state: State) -> Any:
        return returned

    state = scored(Rubric([odd, lambda: 1.0]))
    assert state["reward"] == 1.0
    assert list(state["metrics_errors"]) == ["odd"]


@pytest.mark.parametrize("error", [ValueError("bad"), Error("bad"), KeyError("bad"), IndexError("bad")])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_that_raises_scores_zero_and_is_reported(error: Exception, is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def later() -> float:
        await asyncio.sleep(0)
        raise error

    def broken() -> Any:
        if is_async:
            return later()
        raise error

    state = scored(Rubric([broken, lambda: 1.0]))
    assert (state["reward"], state["metrics"]["broken"]) == (1.0, 0.0)
    assert "bad" in state["metrics_errors"]["broken"]
    assert "broken" in caplog.text


async def test_cancellation_is_not_taken_for_a_function_that_failed() -> None:
    async def endless() -> float:
        await asyncio.Event().wait()
        return 1.0

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Rubric(endless).score_rollout(played()), 0.01)


# Groups of episodes


def lengths(completions: list[Any]) -> list[float]:
    return [float(len(completion[-1].content)) for completion in completions]


async def ranks(states: list[State], answers: list[Any], prompts: list[Any], infos: list[Any], tasks: list[Any], parser: Any) -> list[int]:
    await asyncio.sleep(0)
    assert len(states) == len(answers) == len(prompts) == len(infos) == len(tasks)
    return [*range(len(states))]


def test_a_function_with_plural_names_scores_a_group() -> None:
    rubric = Rubric([lengths, ranks, lambda answer: float(answer)], weights=[1.0, 10.0, 100.0])
    assert rubric.has_group_rewards
    states = scored_group(rubric, [played("a"), played("bb"), played("ccc", answer="0")])
    assert [state["reward"] for state in states] == [4201.0, 4212.0, 23.0]
    assert states[1]["metrics"] == {"lengths": 2.0, "ranks": 1.0, "<lambda>": 42.0}


def test_an_annotation_tells_what_the_names_do_not() -> None:
    """Also a textual one; a singular argument says that an episode is scored, whatever is returned."""

    def whole() -> Any:
        return [1.0, 2.0]

    def one(completion: Any) -> list[float]:
        return [1.0]

    for annotation in (list[float], List[float], list, List, "list[float]", "List[float]", "typing.List[float]"):  # noqa: UP006
        whole.__annotations__["return"] = annotation
        assert Rubric(whole).has_group_rewards, annotation
    assert [state["reward"] for state in scored_group(Rubric(whole), [played(), played()])] == [1.0, 2.0]
    assert scored_group(Rubric(whole), []) == []
    for annotation in (float, Sequence, "Listing", "Any"):
        whole.__annotations__["return"] = annotation
        assert not Rubric(whole).has_group_rewards, annotation
    assert not Rubric(one).has_group_rewards


@pytest.mark.parametrize("returned", [[1.0], [1.0, 2.0, 3.0], [None, 1.0], ["x", "y"], None, 1.0])
def test_a_group_function_that_does_not_return_one_number_an_episode_scores_zero(returned: Any) -> None:
    def wrong(states: list[State]) -> Any:
        return returned

    states = scored_group(Rubric([wrong, lambda: 1.0]), [played(), played()])
    assert [state["reward"] for state in states] == [1.0, 1.0]
    assert [list(state["metrics_errors"]) for state in states] == [["wrong"], ["wrong"]]


def test_an_episode_with_group_functions_cannot_be_scored_alone() -> None:
    with pytest.raises(ConfigurationError, match="lengths scores whole groups"):
        scored(RubricGroup([Rubric(), Rubric(lengths)]))


def test_advantage_is_the_reward_minus_the_mean_of_the_group_once_and_over_the_total() -> None:
    """It also fills the steps that have no values of their own."""
    states = [played("42"), played("no")]
    states[0]["trajectory"].append({**states[0]["trajectory"][0], "reward": 0.125, "advantage": 9.0, "extras": {}})
    group = RubricGroup([Rubric(lambda completion, answer: completion[-1].content == answer), Rubric(lambda: 1.0), Rubric()])
    scored_group(group, states)
    assert [state["advantage"] for state in states] == [0.5, -0.5]
    assert [(step["reward"], step["advantage"]) for step in states[0]["trajectory"]] == [(2.0, 0.5), (0.125, 9.0)]
    assert [(step["reward"], step["advantage"]) for step in states[1]["trajectory"]] == [(1.0, -0.5)]


def test_an_async_function_scores_the_episodes_of_a_group_at_once() -> None:
    both_here = []

    async def meets(state: State) -> float:
        both_here.append(state)
        while len(both_here) < 2:
            await asyncio.sleep(0)
        return 1.0

    assert [state["reward"] for state in scored_group(Rubric(meets), [played(), played()])] == [1.0, 1.0]


def test_a_function_that_raises_for_one_episode_of_a_group_scores_the_others() -> None:
    def picky(completion: Any) -> float:
        return 1.0 / (len(completion[-1].content) - 1)

    async def later(completion: Any) -> float:
        await asyncio.sleep(0)
        return picky(completion)

    for func in (picky, later):
        states = scored_group(Rubric(func), [played("a"), played("bb")])
        assert [state["reward"] for state in states] == [0.0, 1.0]
        assert ["metrics_errors" in state for state in states] == [True, False]


class OnePass(Rubric):
    """Computes two metrics at once, beside what its functions measure."""

    @property
    def metric_names(self) -> list[str]:
        return ["length", "half", *super().metric_names]

    def scoring_steps(self, state: State) -> Steps[Score]:
        score = yield from super().scoring_steps(state)
        length = float(len(state["completion"][-1]["content"]))
        score.add(Score(length, {"length": length, "half": length / 2}))
        return score


def test_metrics_that_are_computed_in_one_pass_are_the_same_in_a_group() -> None:
    """`scoring_steps` is all that such a rubric has to write, whatever it is scored with."""
    alone = scored(OnePass(), played("abcd"))
    assert (alone["reward"], alone["metrics"]) == (4.0, {"length": 4.0, "half": 2.0})
    for rubric in (OnePass(), RubricGroup([OnePass(), Rubric()])):
        first, second = scored_group(rubric, [played("abcd"), played("ab")])
        assert (first["reward"], first["metrics"]) == (4.0, {"length": 4.0, "half": 2.0})
        assert (second["reward"], second["metrics"]) == (2.0, {"length": 2.0, "half": 1.0})
    beside = OnePass([lengths, lambda completion: 0.25], weights=[10.0, 1.0])
    first, second = scored_group(beside, [played("a"), played("ab")])
    assert first["metrics"] == {"<lambda>": 0.25, "length": 1.0, "half": 0.5, "lengths": 1.0}
    assert (first["reward"], second["reward"]) == (11.25, 22.25)


# An author's own


@pytest.mark.parametrize("is_async", [False, True])
def test_an_author_may_replace_score_rollout(is_async: bool) -> None:
    class Custom(Rubric):
        def score_rollout(self, state: State) -> Any:
            state["reward"], state["metrics"] = 0.5, {"custom": 0.5}

    class AsyncCustom(Rubric):
        async def score_rollout(self, state: State) -> None:
            await super().score_rollout(state)
            state["reward"] += 0.25

    rubric = AsyncCustom(lambda: 0.25) if is_async else Custom()
    env = SingleTurnEnv([{"question": "?"}], rubric=rubric)
    env.reset(seed=0)
    outcome = env.step("x")
    assert outcome.reward == env.state["reward"] == 0.5
    assert outcome.info["metrics"]["num_turns"] == 1.0


def test_an_author_may_replace_score_group() -> None:
    class Tournament(Rubric):
        async def score_group(self, states: list[State]) -> None:
            await super().score_group(states)
            for place, state in enumerate(states):
                state["reward"] += place

    group = RubricGroup([Tournament(lambda: 1.0), Rubric(lambda: 10.0)])
    states = scored_group(group, [played(), played(), played()])
    assert [state["reward"] for state in states] == [11.0, 12.0, 13.0]
    assert [state["advantage"] for state in states] == [-1.0, 0.0, 1.0]
    [alone] = scored_group(RubricGroup([type("Flat", (Tournament,), {})(lambda: 4.0), Rubric(lambda: 10.0)]), [played()])
    assert alone["reward"] == 14.0


# Handlers of rubrics


def test_cleanup_methods_of_a_rubric_run_after_scoring_and_teardown_methods_once() -> None:
    class Tidy(Rubric):
        def __init__(self) -> None:
            super().__init__(lambda: 1.0)
            self.order: list[Any] = []

        @cleanup
        async def later(self, state: State, completion: Any, judge: Any) -> None:
            await asyncio.sleep(0)
            self.order.append((state["reward"], len(completion), judge))

        @cleanup(priority=10)
        def fails(self) -> None:
            self.order.append("fails")
            raise OSError("the disk is gone")

        @teardown
        async def close(self) -> None:
            await asyncio.sleep(0)
            self.order.append("closed")

    rubric = Tidy()
    rubric.add_class_object("judge", "j")
    env = SingleTurnEnv([{"question": "?"}], rubric=rubric)
    env.reset(seed=0)
    env.step("x")
    assert rubric.order == ["fails", (1.0, 1, "j")]
    assert env.state["cleanup_errors"] == {"fails": "OSError('the disk is gone')"}
    env.close()
    env.close()
    assert rubric.order[2:] == ["closed"]


def test_the_cleanup_methods_of_the_environment_a_group_and_all_its_rubrics_run_and_what_fails_in_them_is_recorded() -> None:
    order: list[str] = []

    def failing(name: str) -> Any:
        def close(self: Any) -> None:
            order.append(name)
            raise OSError(name)

        close.__name__ = name
        return cleanup(close)

    first, second = (type("Untidy", (Rubric,), {name: failing(name)})(lambda: 1.0) for name in ("close_files", "close_socket"))
    group = type("UntidyGroup", (RubricGroup,), {"close_group": failing("close_group")})([first, second])
    env = type("UntidyEnv", (SingleTurnEnv,), {"close_game": failing("close_game")})([{"question": "?"}], rubric=group)
    env.reset(seed=0)
    env.step("x")
    assert order == ["close_game", "close_group", "close_files", "close_socket"]
    assert env.state["cleanup_errors"] == {name: f"OSError('{name}')" for name in order}


# Step reward functions


def test_step_functions_are_emitted_as_they_happen_and_count_in_the_score() -> None:
    seen: list[Any] = []

    def longer(step: Any, completion: Any, state: State, answer: str) -> float:
        seen.append((step is state["trajectory"][-1], [message["content"] for message in completion], answer))
        return float(len(completion[0]["content"]))

    async def always() -> float:
        await asyncio.sleep(0)
        return 1.0

    def final(completion: Any, answer: str) -> float:
        return float(completion[-1]["content"] == answer)

    rubric = Rubric(final, weights=[10.0])
    rubric.add_step_reward_func(longer, weight=0.5)
    rubric.add_step_reward_func(always, weight=0.0)
    env = Talk(dataset=[{"question": "go", "answer": "c"}], max_turns=3, rubric=rubric)
    env.reset(seed=0)
    outcomes = [env.step(text) for text in ("aa", "bbb", "c")]
    assert [outcome.reward for outcome in outcomes] == [1.0, 1.5, 10.5]
    assert seen == [(True, [text], "c") for text in ("aa", "bbb", "c")]
    assert env.state["reward"] == 13.0
    assert [step["extras"]["reward"] for step in env.state["trajectory"]] == [1.0, 1.5, 10.5]
    assert [step["reward"] for step in env.state["trajectory"]] == [None, None, None]
    assert env.state["metrics"] == {"final": 1.0, "longer": 6.0, "always": 3.0, "num_turns": 3.0}
    assert [outcome.info["metrics"]["longer"] for outcome in outcomes] == [0.0, 0.0, 6.0], "metrics are zero until scored"


def test_a_step_function_that_raises_scores_zero_for_its_turn() -> None:
    def picky(completion: Any) -> float:
        return float(completion[0]["content"])

    rubric = Rubric()
    rubric.add_step_reward_func(picky)
    env = Talk(max_turns=3, rubric=rubric)
    env.reset(seed=0)
    assert [env.step(text).reward for text in ("1", "two", "3")] == [1.0, 0.0, 3.0]
    assert list(env.state["metrics_errors"]) == ["picky"]


def test_nothing_is_scored_where_scoring_is_off() -> None:
    calls: list[str] = []
    rubric = Rubric(lambda: calls.append("episode") or 1.0)
    rubric.add_step_reward_func(lambda: calls.append("step") or 1.0)
    env = Talk(max_turns=2, rubric=rubric, score_rollouts=False)
    env.reset(seed=0)
    assert [env.step("x").reward for _ in range(2)] == [0.0, 0.0]
    assert (env.state["reward"], env.state["metrics"], calls) == (0.0, {}, [])


# The sum of the rewards is the score: a property of any rubric and any episode


class Varied(MultiTurnEnv):
    """An episode that ends as its task says: after some turns by a limit, an error, or the environment's last word."""

    def __init__(self, end: str, turns: int, rubric: Rubric) -> None:
        super().__init__(dataset=[{"question": "go"}], rubric=rubric, **({"max_turns": turns} if end == "max_turns" else {}))
        self.end, self.turns = end, turns

    async def env_response(self, messages: list[Message], state: State) -> str:
        await asyncio.sleep(0)
        if len(state["trajectory"]) == self.turns:
            if self.end == "final":
                state["final_env_response"] = "bye"
            if self.end == "error":
                raise InfraError("gone")
        return "on"


NUMBERS = st.floats(-10, 10) | st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1.0])
MANNERS = ["plain", "async", "raises", "async raises", "none"]
FUNCTIONS = st.tuples(st.sampled_from(["episode", "step"]), st.sampled_from(MANNERS), NUMBERS, st.sampled_from([1.0, 0.1, 0.7, 0.0, -2.0]))
RUBRICS = st.lists(st.lists(FUNCTIONS, max_size=4), min_size=1, max_size=3)
ENDS = ["max_turns", "final", "error", "fail", "overlong", "truncate"]


def counted(plan: list[list[tuple[str, str, float, float]]]) -> tuple[Rubric, Counter[tuple[int, int]]]:
    """Return a rubric of a plan of functions, and how often each was called."""
    calls: Counter[tuple[int, int]] = Counter()

    def function(number: tuple[int, int], manner: str, value: float) -> Callable[..., Any]:
        def plain(state: State) -> Any:
            calls[number] += 1
            if "raises" in manner:
                raise ValueError("a reward function that raises")
            return None if manner == "none" else value * len(state["trajectory"])

        async def later(state: State) -> Any:
            await asyncio.sleep(0)
            return plain(state)

        return later if "async" in manner else plain

    rubrics = [Rubric() for _ in plan]
    for which, (rubric, functions) in enumerate(zip(rubrics, plan, strict=True)):
        for number, (kind, manner, value, weight) in enumerate(functions):
            add = rubric.add_step_reward_func if kind == "step" else rubric.add_reward_func
            add(function((which, number), manner, value), weight)
    return RubricGroup(rubrics) if rubrics[1:] else rubrics[0], calls


@given(plan=RUBRICS, end=st.sampled_from(ENDS), turns=st.integers(1, 4))
def test_the_rewards_of_an_episode_sum_to_its_score_and_each_function_is_called_once(
    plan: list[list[tuple[str, str, float, float]]], end: str, turns: int
) -> None:
    """Through step(), and through rollout(), scored alone and as a group of one: the same numbers, to the last bit."""
    expected_calls = {
        (which, number): turns if kind == "step" else 1
        for which, functions in enumerate(plan)
        for number, (kind, *_) in enumerate(functions)
    }
    failures = {"fail": ModelError("503"), "overlong": OverlongPromptError("long")}
    rubric, calls = counted(plan)
    env = Varied(end, turns, rubric)
    env.reset(seed=0)
    rewards = [env.step("say").reward for _ in range(turns)]
    if end in failures:
        rewards.append(env.fail(failures[end]).reward)
    elif end == "truncate":
        rewards.append(env.truncate().reward)
    assert calls == expected_calls
    assert all(type(reward) is float for reward in rewards)
    state = env.state
    assert state["reward"] == functools.reduce(operator.add, rewards, 0.0)
    recorded = [step["extras"]["reward"] for step in state["trajectory"]]
    assert recorded == [
        *rewards[: turns - 1],
        functools.reduce(operator.add, rewards[turns - 1 :], 0.0),
    ]  # what comes last is its last turn's
    for in_group in (False, True) if end != "truncate" else ():  # a rollout is not truncated from outside
        rubric, calls = counted(plan)
        env = Varied(end, turns, rubric)
        client = InOrder(*["say"] * turns, *([failures[end]] if end in failures else []))
        rolled: State = asyncio.run(finished(env.rollout(env.tasks.input(0), client, "m")))
        (scored_group(env.rubric, [rolled]) if in_group else scored(env.rubric, rolled))
        assert calls == expected_calls
        for key in ("reward", "metrics", "stop_condition", "completion", "is_truncated"):
            assert rolled[key] == state[key]
        assert [step["extras"]["reward"] for step in rolled["trajectory"]] == recorded
