"""The rubric: reward functions with weights, which together score an episode."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from vfgym.aio.steps import Steps, eager, run_async, run_handlers
from vfgym.calls import CallPlan, is_awaitable
from vfgym.context import within
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import Kind, discover_decorated, discover_marks, run_cleanups
from vfgym.overrides import check_hooks, hook, is_replaced
from vfgym.parsers import Parser
from vfgym.rubrics.scoring import (
    RewardFunc,
    RewardFunction,
    Score,
    StepScorer,
    apply_advantages,
    apply_score,
    member_score,
    namespace_of,
    score_episode,
    score_members,
)
from vfgym.state import State


class Rubric:
    """Reward functions with weights.

    A function gets the arguments that it names: ``prompt``, ``completion``, ``answer``, ``info``, ``state``, ``task``, the
    other columns of the dataset row, and the rubric's class objects (``parser`` and what `add_class_object` added). One
    with plural names (``completions``, ``answers``, ``states``, ...) scores a whole group and returns a list. Functions are
    plain or async, run in the order they were added, and one that raises scores 0.0 and is reported in
    ``state["metrics_errors"]``. Methods of a subclass that are marked as ``@vfgym.reward(weight=...)`` or ``@vfgym.metric``
    come after the functions that are given.
    """

    _unused_marks: ClassVar[tuple[Kind, ...]] = ("stop", "setup", "update", "advantage")
    """Marks that do nothing on a rubric."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_hooks(cls)
        for kind in cls._unused_marks:
            for marked in discover_marks(cls, kind):
                if marked.name not in vars(cls):  # a mixin's, which may serve environments too
                    continue
                raise ConfigurationError(f"{cls.__name__}.{marked.name} is marked as @{kind}, which does nothing on a {cls.__name__}")

    def __init__(
        self,
        funcs: Sequence[RewardFunc] | RewardFunc | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
    ) -> None:
        """Make a rubric.

        Args:
            funcs: Reward functions; one bare function stands for a list of it.
            weights: A weight for each function (1.0 without). Weight 0 makes a function a metric.
            parser: What functions get as ``parser``.

        Raises:
            ConfigurationError: If there are not as many weights as functions.
        """
        funcs = [funcs] if callable(funcs) else list(funcs or [])
        if weights is not None and (isinstance(weights, str) or not isinstance(weights, Sequence)):
            raise ConfigurationError(f"weights must be a list with one number for each reward function, got {weights!r}")
        weights = list(weights or [1.0] * len(funcs))
        if len(weights) != len(funcs):
            raise ConfigurationError(f"a rubric needs one weight for each reward function: got {len(weights)} for {len(funcs)}")
        self.parser = Parser() if parser is None else parser
        self.class_objects: dict[str, Any] = {"parser": self.parser}
        self._functions: list[RewardFunction] = []
        self._step_functions: list[RewardFunction] = []
        self._cleanups = [CallPlan(handler.method) for handler in discover_decorated(self, "cleanup")]
        for func, weight in zip(funcs, weights, strict=True):
            Rubric.add_reward_func(self, func, weight)
        self._functions += find_marked_functions(self)

    @classmethod
    def of_marked(cls, obj: object) -> Rubric:
        """Return a rubric of the methods of `obj` that are marked as `@reward` or `@metric`."""
        rubric = cls()
        rubric._functions += find_marked_functions(obj)
        return rubric

    def add_reward_func(self, func: RewardFunc, weight: float = 1.0, range: Sequence[float] | None = None) -> None:
        """Add a reward function.

        Args:
            func: The function.
            weight: Factor of its number in the reward.
            range: The lowest and the highest number that it gives, where that is known: (0, 1), say. Intervals of means then cover near
                these ends, and the lowest reward is known that a failed rollout counts with.
        """
        self._functions.append(RewardFunction(func, weight, range=range))

    def add_metric(self, func: RewardFunc, weight: float = 0.0) -> None:
        """Add a function that is measured but, with its default weight, not rewarded."""
        self._functions.append(RewardFunction(func, weight))

    def add_step_reward_func(self, func: RewardFunc, weight: float = 1.0) -> None:
        """Add a function that is called after every turn and whose reward that step emits.

        It may ask for ``step`` (the `TrajectoryStep`) besides what any reward function gets; ``completion`` is the turn's
        message in a list. Its metric is the sum over the turns.
        """
        self._step_functions.append(RewardFunction(func, weight, "step"))

    def add_class_object(self, name: str, obj: Any) -> None:
        """Offer `obj` to reward functions under `name`."""
        self.class_objects[name] = obj

    @property
    def functions(self) -> list[RewardFunction]:
        """The functions that score episodes or groups as they were registered, in order."""
        return self._functions.copy()

    @functools.cached_property
    def logger(self) -> logging.Logger:
        """A log of the rubric's own, for its author."""
        return logging.getLogger(f"{type(self).__module__}.{type(self).__qualname__}")

    @property
    def funcs(self) -> list[Callable[..., Any]]:
        """The functions that score episodes or groups, in order."""
        return [function.plan.func for function in self.functions]

    @property
    def weights(self) -> list[float]:
        """The weights of `funcs`."""
        return [function.weight for function in self.functions]

    # By these names published packages read them.

    def _get_reward_func_names(self) -> list[str]:
        return [function.name for function in self.functions]

    def _get_reward_funcs(self) -> list[Callable[..., Any]]:
        return self.funcs

    def _get_reward_weights(self) -> list[float]:
        return self.weights

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics, in order: those of `funcs`, then those of the step functions."""
        return [function.name for function in (*self._functions, *self._step_functions)]

    @property
    def timing_names(self) -> list[str]:
        """Names of the metrics that measure seconds: only they may differ when the same episode is played again."""
        return []

    @property
    def provides_advantages(self) -> bool:
        """Whether `score_group` sets advantages of its own; else they are the rewards minus the group's mean."""
        return False

    @property
    def has_group_rewards(self) -> bool:
        """Whether some function needs a whole group."""
        for function in self._functions:  # noqa: SIM110 -- asked for every episode, and any() takes three times as long
            if function.when == "group":
                return True
        return False

    @property
    def group_function_names(self) -> list[str]:
        """Names of the functions that need a whole group."""
        return [function.name for function in self._functions if function.when == "group"]

    @hook
    async def score_rollout(self, state: State) -> None:
        """Score one episode that was played: set its reward and metrics.

        Raises:
            ConfigurationError: If a function needs the whole group.
        """
        await run_async(self.score_alone_steps(state))

    @hook
    async def score_group(self, states: list[State]) -> None:
        """Score the episodes of one task together: set rewards, metrics and advantages.

        What ended the scoring of single episodes (see `Score.failure`) is raised when all are scored.
        """
        if not states:
            return
        scores = await run_async(self.group_scoring_steps(states))
        for state, score in zip(states, scores, strict=True):
            apply_score(state, score)
        if not self.provides_advantages:
            apply_advantages(states)
        for score in scores:
            if score.failure is not None:
                raise score.failure

    def score_alone_steps(self, state: State) -> Steps[None]:
        """Score one episode, as steps (see `score_rollout`)."""
        if self.has_group_rewards:
            names = self.group_function_names
            raise ConfigurationError(
                f"{', '.join(names)} scores whole groups, so an episode cannot be scored alone: roll out groups, or name singular"
                " arguments (completion, answer, state, ...)"
            )
        apply_score(state, (yield from self.scoring_steps(state)))

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Return what the functions find of one episode, as steps. Override it to compute several metrics in one pass.

        A group is then scored by it too, one episode after another, before the functions that need the whole group.
        """
        return score_episode(self._functions, state, self.class_objects)

    def group_scoring_steps(self, states: list[State]) -> Steps[list[Score]]:
        """Return what the functions find of each episode of a group, as steps."""
        if type(self).scoring_steps is Rubric.scoring_steps:
            return (yield from score_members(self._functions, states, self.class_objects))
        scores = []
        for state in states:
            scores.append((yield from member_score(self.scoring_steps(state))))
        of_groups = [function for function in self._functions if function.when == "group"]
        for score, further in zip(scores, (yield from score_members(of_groups, states, self.class_objects)), strict=True):
            score.add(further)
        return scores

    def step_scorers(self) -> list[StepScorer]:
        """Return the step functions, each with the objects it may ask for."""
        return [(function, self.class_objects) for function in self._step_functions]

    @hook
    @eager
    def cleanup(self, state: State) -> Steps[None]:
        """Run the rubric's `@cleanup` methods for one scored episode. Can be awaited.

        What those raised that failed is recorded in ``state["cleanup_errors"]``.
        """
        yield from self.cleanup_steps(state)

    def cleanup_steps(self, state: State) -> Steps[None]:
        """Run the `@cleanup` methods, as steps (see `cleanup`)."""
        if self._cleanups:
            names = namespace_of(state, self.class_objects)
            yield from run_cleanups([(handler.name, handler) for handler in self._cleanups], state, names)

    @property
    def has_teardown(self) -> bool:
        """Whether there is a `@teardown` method to run, or a `teardown` of the author's own."""
        return is_replaced(self, "teardown", Rubric.teardown) or bool(discover_decorated(self, "teardown"))

    @hook
    @eager
    def teardown(self) -> Steps[None]:
        """Run the rubric's `@teardown` methods. Can be awaited."""
        yield from run_handlers([(name, method) for name, method, _ in discover_decorated(self, "teardown")])


def find_marked_functions(obj: object) -> list[RewardFunction]:
    """Return the methods of a rubric or an environment that are marked as `@reward` or `@metric`, rewards first."""
    kinds: tuple[tuple[Kind, float], ...] = (("reward", 1.0), ("metric", 0.0))
    return [
        RewardFunction(method, own_weight if mark.weight is None else mark.weight, "group" if mark.stage == "group" else None, mark.range)
        for kind, own_weight in kinds
        for _, method, mark in discover_decorated(obj, kind)
    ]


def call_author_scoring(rubric: Rubric, states: list[State], *, as_group: bool) -> Steps[list[Score]] | None:
    """Return the steps that score with an author's own `score_rollout` or `score_group`; None if they are the library's.

    A group (of one, too) is scored by `score_group` where the author wrote it, else one by one. Either may be replaced on the object, too.
    """
    if as_group and is_replaced(rubric, "score_group", Rubric.score_group):
        return _score_on_copies(rubric.score_group, states, states)
    if is_replaced(rubric, "score_rollout", Rubric.score_rollout):
        return _score_one_by_one(rubric, states)
    return None


def clean_up_after(rubric: Rubric, state: State) -> Steps[None]:
    """Have a rubric clean up after one scored episode: by the author's own `cleanup`, where there is one."""
    if is_replaced(rubric, "cleanup", Rubric.cleanup):
        yield from run_cleanups([("cleanup of the rubric", rubric.cleanup)], state, state)
    else:
        yield from rubric.cleanup_steps(state)


def _score_one_by_one(rubric: Rubric, states: list[State]) -> Steps[list[Score]]:
    scores: list[Score] = []
    for state in states:
        scores += yield from _score_on_copies(rubric.score_rollout, state, [state])
    return scores


def _score_on_copies(method: Callable[[Any], Any], argument: Any, states: list[State]) -> Steps[list[Score]]:
    """Call a scoring method and return what it gave, with the states' own results as they were before."""
    kept = [(state.emitted, state.step_metrics, {key: dict.get(state, key) for key in ("reward", "metrics")}) for state in states]
    for state in states:
        state.emitted, state.step_metrics = [], {}
    try:
        result = method(argument)
        if is_awaitable(result):
            yield within(result, scored=states)
        return [Score(float(state["reward"] or 0.0), dict(state["metrics"] or {})) for state in states]
    finally:
        for state, (emitted, step_metrics, results) in zip(states, kept, strict=True):
            state.emitted, state.step_metrics = emitted, step_metrics
            dict.update(state, results)
