"""Handlers and signals: the functions that tasksets, harnesses and toolsets bring to a rollout, in their order.

Handlers act (setup, update, stop, cleanup, teardown), signals measure (metric, reward, advantage). Each is a marked method of
its owner, a function in one of its lists, or a reference in its configuration.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.config import CallableConfig, ScoringConfig, resolve_function
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from vfgym.aio.threads import on_thread
from vfgym.calls import CallPlan, ends_run, maybe_await
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.lifecycle import _MARKS, Kind, Mark, Stage, discover_decorated, is_blocking

logger = logging.getLogger(__name__)

LISTS: Mapping[str, Kind] = {
    "stops": "stop",
    "setups": "setup",
    "updates": "update",
    "metrics": "metric",
    "rewards": "reward",
    "advantages": "advantage",
    "cleanups": "cleanup",
    "teardowns": "teardown",
}
"""The constructor arguments that take handlers, and the kind that each takes."""

_SIGNALS = frozenset({"metric", "reward", "advantage"})
_STAGED = frozenset({"update", "cleanup", "metric", "reward"})
_ROLLOUT_NAMES = frozenset({"task", "state"})
_GROUP_NAMES = frozenset({"tasks", "states"})


def required_names(plan: CallPlan) -> set[str]:
    """Return the arguments without which a function cannot be called."""
    parameters = inspect.signature(plan.func).parameters.values()
    return {p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


class WrongResult(ConfigurationError, TypeError):
    """A signal returned something that is neither a number nor a list of numbers."""


@dataclass(frozen=True)
class Handler:
    """A function together with when it runs."""

    name: str
    kind: Kind
    stage: Stage
    priority: int
    weight: float
    plan: CallPlan
    bindings: Bindings
    """What it is given besides the task and the state."""

    async def call(self, names: Mapping[str, Any]) -> Any:
        """Call the function with those of `names` that it asks for, and with what is bound to it."""
        if self.bindings.bound_arguments(self.name):
            names = {**names, **await self.bindings.values(self.name, names["task"], names["state"])}
        if is_blocking(self.plan.func):
            return await on_thread(self.plan, names)
        return await maybe_await(self.plan, names)


def collect_handlers(owner: object, lists: Mapping[str, Iterable[Any]], bindings: Bindings) -> list[Handler]:
    """Return the handlers of one owner: its marked methods, then those of its lists.

    Args:
        owner: A taskset, harness or toolset.
        lists: Functions by the name of the argument that they were given as (see `LISTS`).
        bindings: What the owner binds to its functions.

    Raises:
        ConfigurationError: If a function cannot be a handler of its kind.
    """
    marked = [each for kind in LISTS.values() for each in discover_decorated(owner, kind)]
    found = [_check(name, mark, CallPlan(method), bindings) for name, method, mark in marked]
    for list_name, given in lists.items():
        found += [_make_listed(item, LISTS[list_name], list_name, bindings) for item in given]
    return found


def _make_listed(item: Any, kind: Kind, list_name: str, bindings: Bindings) -> Handler:
    fields = item if isinstance(item, CallableConfig | Mapping) else {"fn": item}
    config = CallableConfig.from_config(fields)
    func = resolve_function(config.fn, f"an item of {list_name}")
    try:
        plan = CallPlan(func)
    except TypeError as error:
        raise ConfigurationError(f"an item of {list_name} must be a function: {error}") from None
    mark = next((mark for mark in getattr(func, _MARKS, ()) if mark.kind == kind), None)
    own_stage: Stage = "group" if mark is None and frozenset(plan.names) == _GROUP_NAMES else "rollout"
    return _check(plan.name, (mark or Mark(kind, stage=own_stage))._replace(**_changes(config)), plan, bindings)


def _changes(config: CallableConfig | ScoringConfig) -> dict[str, Any]:
    """Return what a configuration says about a handler, by the names that its mark has for it."""
    return {name: value for name in ("priority", "stage", "weight") if (value := getattr(config, name)) is not None}


def _check(name: str, mark: Mark, plan: CallPlan, bindings: Bindings) -> Handler:
    kind, weight = mark.kind, mark.weight
    stage: Stage = "group" if kind == "advantage" else mark.stage
    if weight is not None and kind != "reward":
        raise ConfigurationError(f"{name} is a {kind}, which has no weight: only rewards count")
    if stage == "group" and kind not in _STAGED | {"advantage"}:
        raise ConfigurationError(f"{name} is a {kind} handler, which runs for each rollout: stage='group' is not for it")
    if kind == "teardown":
        expected: frozenset[str] = frozenset()
    else:
        expected = _GROUP_NAMES if stage == "group" else _ROLLOUT_NAMES
    bound = bindings.bound_arguments(name) if stage == "rollout" else frozenset()
    if missing := required_names(plan) - expected - bound:
        known = ", ".join(sorted(expected | bound)) or "nothing"
        raise ConfigurationError(f"the {stage} {kind} {name} asks for {', '.join(sorted(missing))}; it can have {known}")
    return Handler(name, kind, stage, mark.priority, 1.0 if weight is None else float(weight), plan, bindings)


class Handlers:
    """The handlers of everything that takes part in a rollout."""

    def __init__(self, handlers: Iterable[Handler], scoring: Mapping[str, ScoringConfig] | None = None) -> None:
        """Sort the handlers; the same function given twice counts once.

        Args:
            handlers: From all owners.
            scoring: What the run changes about signals, by name.

        Raises:
            ConfigurationError: If two signals have the same name, or `scoring` names none.
        """
        unique: dict[tuple[Any, Kind], Handler] = {}
        for handler in handlers:
            unique.setdefault((handler.plan.func, handler.kind), handler)
        self._all = sorted(
            self._apply_scoring(list(unique.values()), scoring or {}),
            key=lambda handler: (-handler.priority, handler.name, handler.kind, handler.stage),
        )

    @staticmethod
    def _apply_scoring(handlers: list[Handler], scoring: Mapping[str, ScoringConfig]) -> list[Handler]:
        signals: set[str] = set()
        for handler in handlers:
            if handler.kind in _SIGNALS:
                if handler.name in signals:
                    raise ConfigurationError(f"two signals are called {handler.name!r}: rename one, since metrics are kept by name")
                signals.add(handler.name)
        if unknown := scoring.keys() - signals:
            name = min(unknown)
            raise ConfigurationError(f"scoring names {name!r}, and there is no such signal.{did_you_mean(name, signals)}")
        rescored = []
        for handler in handlers:
            change = scoring.get(handler.name) if handler.kind in _SIGNALS else None
            if change is None:
                rescored.append(handler)
            elif not change.skip:
                mark = Mark(handler.kind, handler.priority, handler.stage, handler.weight if handler.kind == "reward" else None)
                rescored.append(_check(handler.name, mark._replace(**_changes(change)), handler.plan, handler.bindings))
        return rescored

    def of(self, kind: Kind, stage: Stage = "rollout") -> list[Handler]:
        """Return the handlers of a kind, in the order in which they run."""
        return [handler for handler in self._all if handler.kind == kind and handler.stage == stage]

    def signals(self, stage: Stage) -> list[Handler]:
        """Return the metrics and rewards (for groups, advantages too), in the order in which they run."""
        return [handler for handler in self._all if handler.kind in _SIGNALS and handler.stage == stage]

    @property
    def has_group_stage(self) -> bool:
        """Whether something has to see whole groups."""
        return any(handler.stage == "group" for handler in self._all)

    @property
    def signal_names(self) -> list[str]:
        """The names of the metrics, in the order in which they are measured."""
        return [handler.name for stage in ("rollout", "group") for handler in self.signals(stage) if handler.kind != "advantage"]

    @property
    def provides_advantages(self) -> bool:
        """Whether advantages are computed at all."""
        return bool(self.of("advantage", "group"))


async def score_rollout(handlers: Iterable[Handler], task: Task, state: State) -> None:
    """Measure one rollout: set its metrics and add up its reward. What a signal raises goes through."""
    for handler in handlers:
        _count(handler, state, await handler.call({"task": task, "state": state}))


async def score_group(handlers: Iterable[Handler], tasks: Sequence[Task], states: Sequence[State]) -> None:
    """Measure the rollouts of one group together. What a signal raises goes through."""
    advantages = []
    for handler in handlers:
        if handler.kind == "advantage":
            advantages.append(handler)
            continue
        values = await _group_values(handler, tasks, states)
        for state, value in zip(states, values, strict=True):
            _count(handler, state, value)
    for handler in advantages:  # last, because they are made of the rewards
        values = await _group_values(handler, tasks, states)
        for state, value in zip(states, values, strict=True):
            state["advantage"] = _number(handler, value)
    if advantages:
        for state in states:
            for step in state["trajectory"]:
                if step["advantage"] is None:
                    step["advantage"] = state["advantage"]


async def _group_values(handler: Handler, tasks: Sequence[Task], states: Sequence[State]) -> Sequence[Any]:
    values = await handler.call({"tasks": list(tasks), "states": list(states)})
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise WrongResult(
            f"{handler.name} must return a list with one number for each of {len(states)} states, got {type(values).__name__}"
        )
    if len(values) != len(states):
        raise ConfigurationError(f"{handler.name} must return one number for each of {len(states)} states, got {len(values)}")
    return values


def _count(handler: Handler, state: State, value: Any) -> None:
    number = _number(handler, value)
    state["metrics"][handler.name] = number
    if handler.kind == "reward":
        state["reward"] += handler.weight * number


def _number(handler: Handler, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise WrongResult(f"{handler.name} must return a number, got {type(value).__name__}: {value!r:.100}") from None


async def run_all(handlers: Iterable[Handler], names: Mapping[str, Any], states: Sequence[State] = ()) -> None:
    """Run cleanup handlers. One that fails is logged and recorded, and keeps none of the others from running.

    What ends the run (see `vfgym.calls.ends_run`) is raised when all have run.
    """
    interruption: BaseException | None = None
    for handler in handlers:
        try:
            await handler.call(names)
        except BaseException as error:
            if ends_run(error):
                interruption = error
                continue
            logger.exception("handler %s failed", handler.name)
            for state in states:
                state.setdefault("cleanup_errors", {})[handler.name] = repr(error)
    if interruption is not None:
        raise interruption
