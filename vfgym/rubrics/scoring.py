"""Reward functions with their call plans, and how scores are put into a state."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_origin

import numpy as np

from vfgym.aio.background import running_loop
from vfgym.aio.steps import Steps, Together
from vfgym.aio.threads import in_place, on_thread
from vfgym.calls import CallPlan, is_awaitable, rollout_failure
from vfgym.context import within
from vfgym.endings import failure_cause
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import declared_range, is_blocking
from vfgym.state import State, TrajectoryStep, write

logger = logging.getLogger(__name__)

IndividualRewardFunc: TypeAlias = Callable[..., Any]
"""Scores one rollout: ``(completion, answer, ...) -> float``, plain or async."""
GroupRewardFunc: TypeAlias = Callable[..., Any]
"""Scores the rollouts of one task together: ``(completions, answers, ...) -> list[float]``, plain or async."""
RewardFunc: TypeAlias = IndividualRewardFunc | GroupRewardFunc

Bounds: TypeAlias = "tuple[float | None, float | None]"
"""The lowest and the highest reward that there can be; None for what is not known."""
UNKNOWN_BOUNDS: Bounds = (None, None)

When: TypeAlias = Literal["episode", "group", "step"]
"""What a reward function scores: an episode, the episodes of a group together, or each turn."""

_ALWAYS_THERE: tuple[tuple[str, Any], ...] = (("prompt", None), ("answer", ""), ("info", {}))
_OF_THE_TURN = frozenset({"state", "step", "completion"})
_PLURAL = frozenset({"states", "prompts", "completions", "answers", "tasks", "infos"})
_SINGULAR = frozenset({"state", "prompt", "completion", "answer", "task", "info"})


class RewardFunction:
    """A reward function as it was registered: its call plan, its weight, and what it scores."""

    __slots__ = ("asks_for_task", "has_failed", "is_blocking", "name", "plan", "range", "weight", "when")

    def __init__(self, func: RewardFunc, weight: float, when: When | None = None, range: Sequence[float] | None = None) -> None:
        """Read the signature of `func`.

        Args:
            func: Plain or async; it gets the arguments that it names.
            weight: Factor of its score in the reward; 0 makes it a metric.
            when: What it scores. None tells from the signature whether it scores episodes or groups.
            range: The lowest and the highest number that it gives. None for what its `vfgym.reward` mark says, if it has one.
        """
        try:
            self.plan = CallPlan(func)
        except TypeError as error:
            raise ConfigurationError(f"a reward function must be a function: {error}") from None
        self.name = self.plan.name
        if not isinstance(weight, int | float | np.number):
            raise ConfigurationError(f"the weight of {self.name} must be a number, got {weight!r}")
        self.weight = float(weight)
        self.range = _checked_range(self.name, declared_range(func) if range is None else range)
        self.has_failed = False
        self.is_blocking = is_blocking(func)
        self.asks_for_task = self.plan.takes_any or not _OF_THE_TURN.issuperset(self.plan.names)
        self.when: When = when or ("group" if _scores_groups(self.plan) else "episode")


def _checked_range(name: str, declared: Any) -> tuple[float, float] | None:
    if declared is None:
        return None
    is_pair = isinstance(declared, Sequence) and not isinstance(declared, str) and len(declared) == 2
    if not (is_pair and all(isinstance(end, int | float | np.number) and math.isfinite(end) for end in declared)):
        raise ConfigurationError(f"the range of {name} must be the lowest and the highest number that it gives, got {declared!r}")
    low, high = map(float, declared)
    if low > high:
        raise ConfigurationError(f"the range of {name} must begin with the lowest number that it gives, got {declared!r}")
    return low, high


def _scores_groups(plan: CallPlan) -> bool:
    """Tell by the names of the arguments; where they say nothing, by a return annotation that is a list."""
    names = frozenset(plan.names)
    if names & _PLURAL:
        return True
    if names & _SINGULAR:
        return False
    annotation = inspect.signature(plan.func).return_annotation
    if isinstance(annotation, str):  # from __future__ import annotations
        return annotation.removeprefix("typing.").lower().partition("[")[0] == "list"
    return (get_origin(annotation) or annotation) is list


StepScorer: TypeAlias = "tuple[RewardFunction, Mapping[str, Any]]"
"""A step function, and the objects of its rubric."""


@dataclass(slots=True)
class Score:
    """What a rubric found of one episode."""

    reward: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    failure: Exception | None = None
    """What a function raised that ends the rollout of a group's member, and not the function's own number (see `rollout_failure`)."""

    def fail(self, error: BaseException) -> None:
        """Note what a function raised for this member of a group; raise it if it ends the whole run."""
        self.failure = self.failure or rollout_failure(error)

    def add(self, other: Score) -> None:
        """Add what another rubric found; metrics of one name are added up."""
        self.failure = self.failure or other.failure
        self.reward += other.reward
        for name, value in other.metrics.items():
            self.metrics[name] = self.metrics.get(name, 0.0) + value


def namespace_of(state: State, class_objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the reward functions of one episode may ask for, by name."""
    names: dict[str, Any] = dict(dict.get(state, "input") or {})
    for name, absent in _ALWAYS_THERE:
        if name not in names:
            names[name] = dict.get(state, name, absent)
    completion = dict.get(state, "completion")
    names["completion"] = [] if completion is None else completion
    names["state"] = state
    names.update(class_objects)
    names["task"] = dict.get(state, "task")
    return names


def group_namespace_of(states: list[State], class_objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the reward functions of one group may ask for, by name: lists in the order of `states`."""
    each = [namespace_of(state, {}) for state in states]
    names: dict[str, Any] = {plural: [one[plural[:-1]] for one in each] for plural in _PLURAL}
    names.update(class_objects)
    return names


def score_episode(functions: Iterable[RewardFunction], state: State, class_objects: Mapping[str, Any]) -> Steps[Score]:
    """Call the functions in order on one episode, but for those that need its whole group. One that raises scores 0.0 and is reported."""
    score = Score()
    names: dict[str, Any] | None = None
    for function in functions:
        if function.when == "group":
            continue
        if names is None:
            names = namespace_of(state, class_objects)
        value = value_of(function, names, state)
        if value.__class__ is not float:
            value = yield from number_from(function, value, state)
        score.metrics[function.name] = value
        if function.weight:
            score.reward += function.weight * value
    return score


def _call_on_loop(function: RewardFunction, names: Mapping[str, Any], limit: float | None) -> Any:
    """Return what a function returns on an event loop: an awaitable where it is async, or blocking (and may take `limit` seconds)."""
    if function.is_blocking:
        return on_thread(function.plan, names, limit=limit)
    return in_place(function.name, function.plan, names)


def value_of(function: RewardFunction, names: Mapping[str, Any], state: State) -> Any:
    """Return a function's number, 0.0 if it failed; what has to be awaited is returned as it is (see `number_from`)."""
    try:
        value = function.plan(names) if running_loop() is None else _call_on_loop(function, names, state.time_limit)
        return value if value.__class__ is float or is_awaitable(value) else float(value)
    except Exception as error:
        return zero(function, error, state)


def value_of_turn(function: RewardFunction, class_objects: Mapping[str, Any], state: State, step: TrajectoryStep) -> Any:
    """Return a step function's number for one turn, as `value_of` does for an episode's."""
    names = namespace_of(state, class_objects) if function.asks_for_task else {}
    return value_of(function, {**names, "state": state, "step": step, "completion": step["completion"]}, state)


def number_from(function: RewardFunction, value: Any, state: State) -> Steps[float]:
    """Await what a function returned, where that is needed, and return its number; 0.0 if it failed."""
    try:
        return float((yield within(value, scored=[state])) if is_awaitable(value) else value)
    except Exception as error:
        return zero(function, error, state)


def zero(function: RewardFunction, error: BaseException, state: State) -> float:
    """Return the score of a function that failed, and record it in ``state["metrics_errors"]`` and, the first time loudly, in the log."""
    level = logging.DEBUG if function.has_failed else logging.ERROR
    function.has_failed = True
    logger.log(level, "reward function %s failed and scores 0.0: %r", function.name, error, exc_info=error)
    dict.setdefault(state, "metrics_errors", {})[function.name] = repr(error)
    if function.weight:
        state.reward_failure_cause = state.reward_failure_cause or failure_cause(error, otherwise="environment")
    return 0.0


def score_members(functions: Iterable[RewardFunction], states: list[State], class_objects: Mapping[str, Any]) -> Steps[list[Score]]:
    """Call the functions in order on the episodes of a group: each one for all of them, before the next begins."""
    scores = [Score() for _ in states]
    each: list[dict[str, Any]] | None = None
    for function in functions:
        if function.when == "group":
            values = yield from _group_values(function, states, class_objects)
        else:
            if each is None:
                each = [namespace_of(state, class_objects) for state in states]
            values = _values_of(function, states, each, scores)
            if not all(value.__class__ is float for value in values):
                yield from _await_values(function, values, states, scores)
        for score, value in zip(scores, values, strict=True):
            score.metrics[function.name] = value
            if function.weight:
                score.reward += function.weight * value
    return scores


def member_score(steps: Steps[Score]) -> Steps[Score]:
    """Return the score of one member of a group; what is raised is its failure, and no other member's."""
    try:
        return (yield from steps)
    except BaseException as error:
        score = Score()
        score.fail(error)
        return score


def _values_of(function: RewardFunction, states: list[State], each: list[dict[str, Any]], scores: list[Score]) -> list[Any]:
    """Return a function's number for each member of a group; what has to be awaited is among them as it is (see `_await_values`)."""
    values: list[Any] = []
    for names, state, score in zip(each, states, scores, strict=True):
        try:
            values.append(value_of(function, names, state))
        except BaseException as error:
            score.fail(error)
            values.append(0.0)
    return values


def _await_values(function: RewardFunction, values: list[Any], states: list[State], scores: list[Score]) -> Steps[None]:
    """Put a function's numbers in the place of what has to be awaited for them, at once for all members."""
    waiting = [index for index, value in enumerate(values) if value.__class__ is not float]
    if len(waiting) == 1:
        index = waiting[0]
        try:
            values[index] = yield from number_from(function, values[index], states[index])
        except BaseException as error:
            scores[index].fail(error)
            values[index] = 0.0
    elif waiting:
        awaited = yield Together([within(values[index], scored=[states[index]]) for index in waiting])
        for index, value in zip(waiting, awaited, strict=True):
            values[index] = 0.0
            if isinstance(value, BaseException) and not isinstance(value, Exception):
                scores[index].fail(value)
            else:
                values[index] = _number(function, value, states[index])


def _number(function: RewardFunction, value: Any, state: State) -> float:
    try:
        if isinstance(value, Exception):
            raise value
        return float(value)
    except Exception as error:
        return zero(function, error, state)


def _group_values(function: RewardFunction, states: list[State], class_objects: Mapping[str, Any]) -> Steps[list[float]]:
    try:
        result = _call_on_loop(function, group_namespace_of(states, class_objects), states[0].time_limit)
        if is_awaitable(result):
            result = yield within(result, scored=states)
        values = [float(value) for value in result]
        if len(values) != len(states):
            raise ValueError(f"{function.name} must return one number for each of {len(states)} states, got {len(values)}")
        return values
    except Exception as error:
        for state in states:
            zero(function, error, state)
        return [0.0] * len(states)


def apply_score(state: State, score: Score) -> None:
    """Put a score into a state: reward, metrics, and what each step emitted.

    The reward is the sum, from left to right, of what the steps emit: the functions of each step as it happened, and the
    functions of the episode with the last one.
    """
    emitted = state.emitted.copy() or [0.0]
    emitted[-1] += score.reward
    state.rewards = emitted
    total = 0.0
    for reward in emitted:
        total += reward
    metrics = score.metrics.copy()
    for name, value in state.step_metrics.items():
        metrics[name] = metrics.get(name, 0.0) + value
    write(state, {"reward": total, "metrics": metrics})
    trajectory = dict.get(state, "trajectory", ())
    for step, reward in zip(trajectory, emitted, strict=False):
        step["extras"]["reward"] = reward
    if trajectory and len(emitted) > len(trajectory):  # what came after the last answer is earned by that
        for reward in emitted[len(trajectory) :]:
            trajectory[-1]["extras"]["reward"] += reward


def apply_advantages(states: list[State]) -> None:
    """Set each state's advantage, its reward minus the mean of the group's rewards, and fill the steps that have none."""
    mean = sum(state["reward"] for state in states) / len(states)
    for state in states:
        state["advantage"] = state["reward"] - mean
        for step in state.get("trajectory", ()):
            if step["reward"] is None:
                step["reward"] = state["reward"]
            if step["advantage"] is None:
                step["advantage"] = state["advantage"]
