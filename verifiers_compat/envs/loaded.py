"""What an environment was loaded as, by which another process can load it again; and what was changed on it since."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from vfgym.errors import ConfigurationError

_MAY_CHANGE = frozenset(
    {"env_id", "env_args", "hooks", "action_space", "observation_space", "spec", "render_mode", "logger", "concurrency"}
)
"""Attributes that say nothing of how rollouts go, or that are made when they are first asked for."""


_LOADED: weakref.WeakKeyDictionary[Any, Loaded] = weakref.WeakKeyDictionary()


def note_loaded(env: Any, env_id: str, env_args: Mapping[str, Any]) -> None:
    """Note by what id and arguments an environment was loaded just now."""
    _LOADED[env] = Loaded(env, env_id, env_args)


def loaded_as(env: Any) -> Loaded | None:
    """Return what an environment was loaded as; None where somebody made it otherwise."""
    return _LOADED.get(env)


class Loaded:
    """By what id and arguments an environment was loaded, and which attributes `set_kwargs` has set since."""

    def __init__(self, env: Any, env_id: str, env_args: Mapping[str, Any]) -> None:
        """Note how the environment is now."""
        self.env_id, self.env_args = env_id, dict(env_args)
        self.attributes: dict[str, Any] = {}
        self._facts = _read_facts(env)

    @contextlib.contextmanager
    def setting(self, env: Any, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Note that what is changed inside a ``with`` is changed by setting attributes, which another process can do as well."""
        before = _read_facts(env)
        yield
        for name, value in _read_facts(env).items():
            if name not in before or not _is_same(value, before[name]):
                self._facts[name] = value
        self.attributes.update(attributes)

    def check_unchanged(self, env: Any) -> None:
        """Refuse an environment that another process would not load as it is now.

        Raises:
            ConfigurationError: If an attribute, a task list or the rubric was changed otherwise than by `set_kwargs`.
        """
        now = _read_facts(env)
        for name in {**self._facts, **now}:
            if name not in now or name not in self._facts or not _is_same(now[name], self._facts[name]):
                raise ConfigurationError(
                    f"workers load the environment {self.env_id!r} again in other processes, so it must be as load_environment made it,"
                    f" and its {name} was changed since: set attributes with set_kwargs, let load_environment do the rest, or leave out"
                    " executor"
                )


def _read_facts(env: Any) -> dict[str, Any]:
    """Return what an environment and its rubric consist of, by names that a reader of an error knows."""
    definition = env.definition
    own = {} if env is definition else vars(env)
    facts = {name: value for name, value in (*own.items(), *vars(definition).items()) if name[0] != "_" and name not in _MAY_CHANGE}
    facts["dataset"] = {split: tasks for split, tasks in definition._tasks.items() if definition.has_tasks(split)}
    waiting = [definition.rubric]
    for number, rubric in enumerate(waiting):
        waiting += getattr(rubric, "rubrics", ())
        facts |= {f"rubric ({type(rubric).__name__} {number}, {name.lstrip('_')})": value for name, value in vars(rubric).items()}
    return {name: _as_it_is(value) for name, value in facts.items()}


def _as_it_is(value: Any) -> Any:
    """Return a value whose members stay what they are when it is changed."""
    return list(value) if isinstance(value, list) else dict(value) if isinstance(value, dict) else value


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(value, other[name]) for name, value in one.items())
    return one is other or (type(one) is type(other) and isinstance(one, str | int | float) and one == other)
