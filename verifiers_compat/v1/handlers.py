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
from vfgym.aio.threads import on_thread
from vfgym.calls import CallPlan, ends_run, maybe_await
from vfgym.errors import ConfigurationError
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

SIGNALS = frozenset({"metric", "reward", "advantage"})
"""The kinds that measure."""

_STAGED = frozenset({"update", "cleanup", "metric", "reward"})
_ROLLOUT_NAMES = frozenset({"task", "state"})
_GROUP_NAMES = frozenset({"tasks", "states"})


def required_names(plan: CallPlan) -> set[str]:
    """Return the arguments without which a function cannot be called."""
    parameters = inspect.signature(plan.func).parameters.values()
    return {p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


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

    @property
    def sort_key(self) -> tuple[int, str, str, str]:
        """Where it stands among others: higher priority first, then by name."""
        return -self.priority, self.name, self.kind, self.stage

    def with_changes(self, config: CallableConfig | ScoringConfig) -> Handler:
        """Return it with what a configuration changes about its priority, stage and weight."""
        mark = Mark(self.kind, self.priority, self.stage, self.weight if self.kind == "reward" else None)
        return make_handler(self.name, mark._replace(**_changes(config)), self.plan, self.bindings)

    def check_arguments(self) -> None:
        """Raise if the function asks for something that it cannot have.

        Raises:
            ConfigurationError: The text says what it can have.
        """
        if self.kind == "teardown":
            expected: frozenset[str] = frozenset()
        else:
            expected = _GROUP_NAMES if self.stage == "group" else _ROLLOUT_NAMES
        bound = self.bindings.bound_arguments(self.name) if self.stage == "rollout" else frozenset()
        if self.bindings.sandbox is not None and self.stage == "rollout" and self.kind != "teardown":
            expected |= {"sandbox"}
        if missing := required_names(self.plan) - expected - bound:
            known = ", ".join(sorted(expected | bound)) or "nothing"
            raise ConfigurationError(f"the {self.stage} {self.kind} {self.name} asks for {', '.join(sorted(missing))}; it can have {known}")

    def check_stage(self) -> None:
        """Raise if the function asks for what functions of the other stage get.

        Raises:
            ConfigurationError: The text says what this one can have.
        """
        of_group = self.stage == "group"
        own, others = (_GROUP_NAMES, _ROLLOUT_NAMES) if of_group else (_ROLLOUT_NAMES, _GROUP_NAMES)
        if wrong := required_names(self.plan) & others:
            whom = "a whole group" if of_group else "one rollout"
            raise ConfigurationError(
                f"the {self.stage} {self.kind} {self.name} sees {whom}: it asks for {', '.join(sorted(wrong))}, and can have"
                f" {' and '.join(sorted(own, reverse=True))}"
            )

    async def call(self, names: Mapping[str, Any]) -> Any:
        """Call the function with those of `names` that it asks for, and with what is bound to it."""
        if self.bindings.bound_arguments(self.name):
            names = {**names, **await self.bindings.values(self.name, names["task"], names["state"])}
        if self.bindings.sandbox is not None and "sandbox" in self.plan.names and "state" in names:
            names = {**names, "sandbox": await self.bindings.sandbox_for(names["state"])}
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
    found = [make_handler(name, mark, CallPlan(method), bindings) for name, method, mark in marked]
    for list_name, given in lists.items():
        found += [make_listed(item, list_name, bindings) for item in given]
    return found


def make_listed(item: Any, list_name: str, bindings: Bindings) -> Handler:
    """Return one item of a list of functions as a handler.

    Args:
        item: A function, a ``"module:object"`` reference, or a mapping ``{"fn": ..., "priority": ..., "stage": ..., "weight": ...}``.
        list_name: The argument that it was given as (see `LISTS`).
        bindings: What its owner binds to its functions.

    Raises:
        ConfigurationError: If it cannot be a handler of that kind.
    """
    kind = LISTS[list_name]
    fields = item if isinstance(item, CallableConfig | Mapping) else {"fn": item}
    config = CallableConfig.from_config(fields)
    func = resolve_function(config.fn, f"an item of {list_name}")
    try:
        plan = CallPlan(func)
    except TypeError as error:
        raise ConfigurationError(f"an item of {list_name} must be a function: {error}") from None
    marks = getattr(func, _MARKS, ())
    mark = next((mark for mark in marks if mark.kind == kind), None)
    if marks and mark is None:
        raise ConfigurationError(f"{plan.name} is marked as a {marks[0].kind}, so it cannot be an item of {list_name}")
    own_stage: Stage = "group" if mark is None and frozenset(plan.names) == _GROUP_NAMES else "rollout"
    return make_handler(plan.name, (mark or Mark(kind, stage=own_stage))._replace(**_changes(config)), plan, bindings)


def _changes(config: CallableConfig | ScoringConfig) -> dict[str, Any]:
    """Return what a configuration says about a handler, by the names that its mark has for it."""
    return {name: value for name in ("priority", "stage", "weight") if (value := getattr(config, name)) is not None}


def make_handler(name: str, mark: Mark, plan: CallPlan, bindings: Bindings) -> Handler:
    """Return a function as a handler.

    Raises:
        ConfigurationError: If a handler of its kind has no weight, or does not see whole groups.
    """
    kind, weight = mark.kind, mark.weight
    stage: Stage = "group" if kind == "advantage" else mark.stage
    if weight is not None and kind != "reward":
        raise ConfigurationError(f"{name} is a {kind}, which has no weight: only rewards count")
    if stage == "group" and kind not in _STAGED | {"advantage"}:
        raise ConfigurationError(f"{name} is a {kind} handler, which runs for each rollout: stage='group' is not for it")
    return Handler(name, kind, stage, mark.priority, 1.0 if weight is None else float(weight), plan, bindings)


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
