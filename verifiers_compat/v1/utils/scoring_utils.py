"""Signals: the metrics, rewards and advantages of rollouts, as lists to add to, and what scores a rollout or a group with them.

A harness scores with these functions. They can be used by themselves, on any mapping that stands for a state::

    signals = build_signals(rewards=[exact_match])
    await score_rollout(signals, task, state)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.config import ScoringConfig
from verifiers_compat.v1.handlers import SIGNALS, Handler, collect_handlers, make_listed
from vfgym.errors import ConfigurationError, did_you_mean

Signals: TypeAlias = MutableSequence[Handler]
Arguments: TypeAlias = Callable[[Callable[..., Any], Any, Any], Awaitable[Mapping[str, Any]]]
"""An async function of a signal's function, the task and the state that returns further arguments by name."""


class WrongResult(ConfigurationError, TypeError):
    """A signal returned something that is neither a number nor a list of numbers."""


def build_signals(
    owner: object | None = None,
    scoring: Mapping[str, ScoringConfig | Mapping[str, Any]] | None = None,
    metrics: Iterable[Any] | None = None,
    rewards: Iterable[Any] | None = None,
    advantages: Iterable[Any] | None = None,
) -> list[Handler]:
    """Return signals in the order in which they run: those with higher priority first, then by name.

    Args:
        owner: An object with marked methods (``@vf.reward``, ...).
        scoring: What changes about signals, by their names (see `ScoringConfig`).
        metrics: Functions that measure.
        rewards: Functions whose results add up to the reward.
        advantages: Functions that compute a group's advantages.

    Raises:
        ConfigurationError: If a function cannot be such a signal, or asks for what signals of its stage are not given; if two have one
            name, or `scoring` names none of them.
    """
    lists = {"metrics": metrics or (), "rewards": rewards or (), "advantages": advantages or ()}
    found = collect_handlers(owner, lists, Bindings(owner))
    signals = collect_signals(apply_scoring([signal for signal in found if signal.kind in SIGNALS], scoring or {}))
    for signal in signals:
        signal.check_stage()
    return signals


def collect_signals(*signal_lists: Iterable[Handler]) -> list[Handler]:
    """Return the signals of several lists as one, in the order in which they run.

    Raises:
        ConfigurationError: If two have the same name.
    """
    signals = [signal for each in signal_lists for signal in each]
    _refuse_same_names(signals)
    return sorted(signals, key=lambda signal: signal.sort_key)


def add_metric(signals: Signals, fn: Callable[..., Any]) -> None:
    """Add a function that measures."""
    _add(signals, fn, "metrics")


def add_reward(signals: Signals, fn: Callable[..., Any]) -> None:
    """Add a reward function."""
    _add(signals, fn, "rewards")


def add_advantage(signals: Signals, fn: Callable[..., Any]) -> None:
    """Add a function that computes a group's advantages."""
    _add(signals, fn, "advantages")


def _add(signals: Signals, fn: Any, list_name: str) -> None:
    signal = make_listed(fn, list_name, Bindings(None))
    signal.check_stage()
    _refuse_same_names([*signals, signal])
    signals.append(signal)


def _refuse_same_names(signals: Iterable[Handler]) -> None:
    names: set[str] = set()
    for signal in signals:
        if signal.name in names:
            raise ConfigurationError(f"two signals are called {signal.name!r}: rename one, since metrics are kept by name")
        names.add(signal.name)


def apply_scoring(signals: Sequence[Handler], scoring: Mapping[str, ScoringConfig | Mapping[str, Any]]) -> list[Handler]:
    """Return the signals with what `scoring` changes about them, those left out that it skips.

    Raises:
        ConfigurationError: If it names a signal that there is not, or gives a weight to one that is no reward.
    """
    names = [signal.name for signal in signals]
    if unknown := scoring.keys() - names:
        name = min(unknown)
        raise ConfigurationError(
            f"scoring names {name!r}, and there is no such signal; there are: {', '.join(names) or 'none'}.{did_you_mean(name, names)}"
        )
    changes = {name: ScoringConfig.from_config(change) for name, change in scoring.items()}
    kept = [signal for signal in signals if signal.name not in changes or not changes[signal.name].skip]
    return [signal.with_changes(changes[signal.name]) if signal.name in changes else signal for signal in kept]


async def score_rollout(
    signals: Iterable[Handler], task: Any, state: MutableMapping[str, Any], resolve_kwargs: Arguments | None = None
) -> MutableMapping[str, Any]:
    """Measure one rollout: set its metrics and add up its reward. What a signal raises goes through.

    Args:
        signals: Those that see whole groups are left to `score_group`.
        task: The task.
        state: The state, which is changed.
        resolve_kwargs: What gives signals more than ``task`` and ``state``.

    Returns:
        The state.
    """
    for signal in collect_signals(signal for signal in signals if signal.stage == "rollout"):
        more = {} if resolve_kwargs is None else await resolve_kwargs(signal.plan.func, task, state)
        _count(signal, state, await signal.call({"task": task, "state": state, **more}))
    return state


async def score_group(
    signals: Iterable[Handler], tasks: Sequence[Any], states: Sequence[MutableMapping[str, Any]]
) -> list[MutableMapping[str, Any]]:
    """Measure the rollouts of one group together. What a signal raises goes through.

    Args:
        signals: Those that measure single rollouts are left to `score_rollout`.
        tasks: The tasks.
        states: Their states, which are changed.

    Returns:
        The states.
    """
    of_group = collect_signals(signal for signal in signals if signal.stage == "group")
    for signal in of_group:
        if signal.kind != "advantage":
            for state, value in zip(states, await _group_values(signal, tasks, states), strict=True):
                _count(signal, state, value)
    advantages = [signal for signal in of_group if signal.kind == "advantage"]
    for signal in advantages:  # last, because they are made of the rewards
        for state, value in zip(states, await _group_values(signal, tasks, states), strict=True):
            state["advantage"] = _number(signal, value)
    if advantages:
        for state in states:
            for step in state.get("trajectory") or ():
                if step.get("advantage") is None:
                    step["advantage"] = state["advantage"]
    return list(states)


async def _group_values(signal: Handler, tasks: Sequence[Any], states: Sequence[Any]) -> Sequence[Any]:
    values = await signal.call({"tasks": list(tasks), "states": list(states)})
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise WrongResult(f"{signal.name} must return a list with one number for each of {len(states)} states, got {type(values).__name__}")
    if len(values) != len(states):
        raise ConfigurationError(f"{signal.name} must return one number for each of {len(states)} states, got {len(values)}")
    return values


def _count(signal: Handler, state: MutableMapping[str, Any], value: Any) -> None:
    number = _number(signal, value)
    state.setdefault("metrics", {})[signal.name] = number
    if signal.kind == "reward":
        state["reward"] = state.get("reward", 0.0) + signal.weight * number


def _number(signal: Handler, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise WrongResult(f"{signal.name} must return a number, got {type(value).__name__}: {value!r:.100}") from None
