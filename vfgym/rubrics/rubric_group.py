"""Several rubrics as one: each scores with its own parser and objects, and the numbers are added up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vfgym.aio.steps import Steps, eager, run_handlers
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import discover_decorated
from vfgym.overrides import hook, is_replaced, items_of
from vfgym.rubrics.rubric import Rubric, call_author_scoring, clean_up_after
from vfgym.rubrics.scoring import UNKNOWN_BOUNDS, Bounds, RewardFunc, RewardFunction, Score, StepScorer
from vfgym.state import State


class RubricGroup(Rubric):
    """Several rubrics that score one after another. The reward is their sum; metrics of one name are added."""

    _unused_marks = (*Rubric._unused_marks, "reward", "metric")  # a group has no functions of its own: put a rubric into it

    def __init__(self, rubrics: Sequence[Rubric]) -> None:
        """Combine `rubrics`.

        Raises:
            ConfigurationError: If there are none.
        """
        self.rubrics: list[Rubric] = items_of(rubrics, "rubrics", "rubrics")
        if not self.rubrics:
            raise ConfigurationError("a RubricGroup needs at least one rubric, got none")
        super().__init__(parser=self.rubrics[0].parser)

    def add_rubric(self, rubric: Rubric) -> None:
        """Add a rubric at the end."""
        self.rubrics.append(rubric)

    def add_reward_func(self, func: RewardFunc, weight: float = 1.0, range: Sequence[float] | None = None) -> None:
        """Add a reward function to the first rubric."""
        self.rubrics[0].add_reward_func(func, weight, range)

    def add_metric(self, func: RewardFunc, weight: float = 0.0) -> None:
        """Add a metric to the first rubric."""
        self.rubrics[0].add_metric(func, weight)

    def add_step_reward_func(self, func: RewardFunc, weight: float = 1.0) -> None:
        """Add a function for single turns to the first rubric."""
        self.rubrics[0].add_step_reward_func(func, weight)

    def add_class_object(self, name: str, obj: Any) -> None:
        """Offer `obj` to the reward functions of the first rubric."""
        self.rubrics[0].add_class_object(name, obj)

    @property
    def functions(self) -> list[RewardFunction]:
        """The functions of all rubrics as they were registered, in order."""
        return [function for rubric in self.rubrics for function in rubric.functions]

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics of all rubrics, each once."""
        return list(dict.fromkeys(name for rubric in self.rubrics for name in rubric.metric_names))

    @property
    def timing_names(self) -> list[str]:
        """Names of the metrics of all rubrics that measure seconds."""
        return [name for rubric in self.rubrics for name in rubric.timing_names]

    @property
    def has_group_rewards(self) -> bool:
        """Whether some function needs a whole group."""
        for rubric in self.rubrics:  # noqa: SIM110 -- asked for every episode, and any() takes three times as long
            if rubric.has_group_rewards:
                return True
        return False

    @property
    def provides_advantages(self) -> bool:
        """Whether some rubric sets advantages of its own."""
        return any(rubric.provides_advantages for rubric in self.rubrics)

    @property
    def group_function_names(self) -> list[str]:
        """Names of the functions of all rubrics that need a whole group."""
        return [name for rubric in self.rubrics for name in rubric.group_function_names]

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Return the sum of what the rubrics find of one episode, as steps."""
        total = Score()
        for rubric in self.rubrics:
            by_author = call_author_scoring(rubric, [state], as_group=False)
            if by_author is not None:
                total.add((yield from by_author)[0])
            else:
                total.add((yield from rubric.scoring_steps(state)))
        return total

    def group_scoring_steps(self, states: list[State]) -> Steps[list[Score]]:
        """Return the sums of what the rubrics find of each episode of a group, as steps."""
        totals = [Score() for _ in states]
        for rubric in self.rubrics:
            scores = yield from (call_author_scoring(rubric, states, as_group=True) or rubric.group_scoring_steps(states))
            for total, score in zip(totals, scores, strict=True):
                total.add(score)
        return totals

    def step_scorers(self) -> list[StepScorer]:
        """Return the step functions of all rubrics, each with the objects it may ask for."""
        return [scorer for rubric in self.rubrics for scorer in rubric.step_scorers()]

    def cleanup_steps(self, state: State) -> Steps[None]:
        """Run the `@cleanup` methods of the group, then have all rubrics clean up, as steps."""
        yield from super().cleanup_steps(state)
        for rubric in self.rubrics:
            yield from clean_up_after(rubric, state)

    @property
    def has_teardown(self) -> bool:
        """Whether there is a `@teardown` method to run, of the group or of a rubric, or a `teardown` of the author's own."""
        is_own = is_replaced(self, "teardown", RubricGroup.teardown) or bool(discover_decorated(self, "teardown"))
        return is_own or any(rubric.has_teardown for rubric in self.rubrics)

    @hook
    @eager
    def teardown(self) -> Steps[None]:
        """Run the `@teardown` methods of the group, then tear all rubrics down. Can be awaited."""
        yield super().teardown()
        yield from run_handlers([("teardown of a rubric", rubric.teardown) for rubric in self.rubrics])


_SCORING = ("score_rollout", "score_group", "scoring_steps", "group_scoring_steps")


def find_rewarding_functions(rubric: Rubric) -> list[RewardFunction] | None:
    """Return the functions that have a weight in a rubric's reward; None where code of the author's own scores."""
    base = RubricGroup if isinstance(rubric, RubricGroup) else Rubric
    if any(is_replaced(rubric, name, getattr(base, name)) for name in _SCORING):
        return None
    if not isinstance(rubric, RubricGroup):
        functions = [*rubric.functions, *(function for function, _ in rubric.step_scorers())]
        return [function for function in functions if function.weight]
    found: list[RewardFunction] = []
    for member in rubric.rubrics:
        functions_of_member = find_rewarding_functions(member)
        if functions_of_member is None:
            return None
        found += functions_of_member
    return found


def find_reward_bounds(rubric: Rubric) -> Bounds:
    """Return the lowest and the highest reward that a rubric gives, as far as its functions declare their ranges."""
    functions = find_rewarding_functions(rubric)
    if not functions or any(function.range is None or function.when == "step" for function in functions):
        return UNKNOWN_BOUNDS
    ends = [sorted(function.weight * end for end in function.range or ()) for function in functions]
    return math.fsum(low for low, _ in ends), math.fsum(high for _, high in ends)
