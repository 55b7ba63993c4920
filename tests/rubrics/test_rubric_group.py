"""`RubricGroup`: rubrics that are added up, each with its own parser and objects, and what a rubric can give."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rubrics.scored import scored
from vfgym import Parser, Rubric, RubricGroup, SingleTurnEnv, State, metric, reward, stop, teardown
from vfgym.errors import ConfigurationError
from vfgym.rubrics.rubric_group import find_reward_bounds, find_rewarding_functions


def test_the_rewards_of_a_rubric_group_add_up_and_so_do_metrics_of_one_name() -> None:
    def right() -> float:
        return 1.0

    group = RubricGroup([Rubric(right, weights=[0.5]), Rubric([right, lambda: 3.0], weights=[2.0, 1.0])])
    group.add_rubric(Rubric(right, weights=[0.0]))
    state = scored(group)
    assert (state["reward"], state["metrics"]) == (5.5, {"right": 3.0, "<lambda>": 3.0})


def test_each_rubric_of_a_group_keeps_its_own_parser_and_objects() -> None:
    def parsed(parser: Parser, completion: Any, judge: int = 0) -> float:
        return float(parser.parse_answer(completion)) + judge

    doubled = Rubric(parsed, parser=Parser(lambda text: str(2 * int(text))))
    doubled.add_class_object("judge", 1000)
    group = RubricGroup([doubled, Rubric(parsed, parser=Parser(lambda text: str(3 * int(text))))])
    assert scored(group)["reward"] == 1084 + 126


def test_what_is_added_to_a_group_goes_to_its_first_rubric() -> None:
    first = Rubric()
    group = RubricGroup([first, Rubric()])
    group.add_reward_func(lambda judge: float(judge))
    group.add_class_object("judge", 2)
    group.add_metric(lambda: 1.0)
    group.add_step_reward_func(lambda step: 4.0)
    assert len(first.funcs) == 2
    other = Rubric()
    group_of_two = RubricGroup(rubrics := [other, Rubric()])
    rubrics.clear()
    group_of_two.add_reward_func(one, 0.5, (0, 2))
    group_of_two.add_metric(one, 0.25)
    group_of_two.add_step_reward_func(one, 0.125)
    assert [(function.weight, function.range) for function in other.functions] == [(0.5, (0.0, 2.0)), (0.25, None)]
    assert ([function.weight for function, _ in other.step_scorers()], len(group_of_two.rubrics)) == ([0.125], 2)
    env = SingleTurnEnv([{"question": "?"}], rubric=group)
    env.reset(seed=0)
    assert env.step("x").reward == 6.0


@pytest.mark.parametrize("mark", [reward(weight=1.0), metric, stop])
def test_a_group_has_no_functions_of_its_own(mark: Any) -> None:
    def marked(self: Any, state: State) -> bool:
        return True

    with pytest.raises(ConfigurationError, match="which does nothing on a Own"):
        type("Own", (RubricGroup,), {"marked": mark(marked)})


def test_groups_may_be_nested_and_have_a_rubric_at_least() -> None:
    group = RubricGroup([RubricGroup([Rubric(lambda: 1.0), Rubric(lambda: 2.0)]), Rubric(lambda: 4.0)])
    assert scored(group)["reward"] == 7.0
    with pytest.raises(ConfigurationError, match="at least one"):
        RubricGroup([])


def test_what_is_added_to_an_authors_group_counts_where_the_group_was_given() -> None:
    """Before or after the environment was made; what is added to the environment is its own."""
    group = RubricGroup([Rubric(lambda: 1.0)])
    first, second = (SingleTurnEnv([{"question": "?"}], rubric=group) for _ in range(2))
    group.add_rubric(Rubric(lambda: 10.0))
    group.add_reward_func(lambda: 100.0)
    first.add_rubric(Rubric(lambda: 1000.0))
    for env, earned in ((first, 1111.0), (second, 111.0)):
        env.reset(seed=0)
        assert env.step("x").reward == earned


def one() -> float:
    return 1.0


def bounded(*ranges: Any, weights: Any = None) -> Rubric:
    rubric = Rubric()
    for number, each in enumerate(ranges):
        rubric.add_reward_func(lambda: 0.5, 1.0 if weights is None else weights[number], each)
    return rubric


class Stepwise(Rubric):
    def __init__(self) -> None:
        super().__init__()
        self.add_step_reward_func(one)


class Ranked(Rubric):
    @property
    def provides_advantages(self) -> bool:
        return True


class OfItsOwn(Rubric):
    def score_rollout(self, state: State) -> Any:
        state["reward"] = 7.0


@pytest.mark.parametrize(
    ("rubric", "bounds"),
    [
        (bounded((0, 1)), (0.0, 1.0)),
        (bounded((0, 1), (-1, 2)), (-1.0, 3.0)),
        (bounded((0, 1), weights=[-2.0]), (-2.0, 0.0)),
        (bounded((0, 1), None, weights=[1.0, 0.0]), (0.0, 1.0)),
        (bounded((0, 0)), (0.0, 0.0)),
        (bounded((0, 1), None), (None, None)),
        (bounded(), (None, None)),
        (Stepwise(), (None, None)),
        (OfItsOwn(), (None, None)),
        (RubricGroup([bounded((0, 1)), bounded((2, 3))]), (2.0, 4.0)),
        (RubricGroup([bounded((0, 1)), RubricGroup([bounded((-1, 0)), bounded((-1, 0))])]), (-2.0, 1.0)),
        (RubricGroup([bounded((0, 1)), Stepwise()]), (None, None)),
        (RubricGroup([bounded((0, 1)), OfItsOwn()]), (None, None)),
        (RubricGroup([bounded((0, 1)), RubricGroup([OfItsOwn()])]), (None, None)),
    ],
)
def test_the_range_of_a_rubric_is_that_of_its_weighted_functions(rubric: Rubric, bounds: tuple[float | None, float | None]) -> None:
    assert find_reward_bounds(rubric) == bounds


def test_functions_with_a_weight_are_found_in_every_rubric() -> None:
    group = RubricGroup([Rubric([one, lambda: 0.0], weights=[1.0, 0.0]), Stepwise(), Rubric(one, weights=[-1.0])])
    assert [function.weight for function in find_rewarding_functions(group) or []] == [1.0, 1.0, -1.0]
    assert find_rewarding_functions(OfItsOwn()) is None


def test_names_are_those_of_all_rubrics_in_order() -> None:
    def lengths(completions: list[Any]) -> list[float]:
        return [0.0 for _ in completions]

    class Timed(Rubric):
        @property
        def timing_names(self) -> list[str]:
            return ["seconds"]

    group = RubricGroup([Rubric(one), Timed(), Rubric(lengths), Stepwise()])
    assert [function.name for function in group.functions] == ["one", "lengths"]
    assert (group.timing_names, group.group_function_names) == (["seconds"], ["lengths"])
    assert group.has_group_rewards
    assert not RubricGroup([Rubric(one)]).has_group_rewards
    assert not group.provides_advantages
    assert RubricGroup([Rubric(), Ranked()]).provides_advantages
    assert len(group.step_scorers()) == 1
    assert RubricGroup([Rubric([one, lengths]), Rubric(one), Stepwise()]).metric_names == ["one", "lengths"]
    parser = Parser()
    assert RubricGroup([Rubric(parser=parser), Rubric()]).parser is parser


def test_an_authors_own_scoring_of_a_member_counts_as_a_rubrics() -> None:
    assert scored(RubricGroup([Rubric(one), OfItsOwn()]))["reward"] == 8.0


async def test_all_are_torn_down_the_group_first_also_where_one_fails() -> None:
    order: list[str] = []

    class Closing(Rubric):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        @teardown
        async def close(self) -> None:
            order.append(self.name)
            raise OSError(self.name)

    class ClosingGroup(RubricGroup):
        @teardown
        def close(self) -> None:
            order.append("group")
            raise OSError("group")

    await ClosingGroup([Closing("a"), RubricGroup([Closing("b")]), Closing("c")]).teardown()
    assert order == ["group", "a", "b", "c"]
