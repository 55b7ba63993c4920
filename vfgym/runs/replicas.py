"""Environments for workers: many seats at one definition, each inside the same wrappers."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.base import seat_of
from vfgym.agents.loading import import_named
from vfgym.calls import ends_run
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.wrappers.to_chat import import_id

logger = logging.getLogger(__name__)

EnvLike: TypeAlias = str | EnvSpec | gym.Env[Any, Any] | Callable[..., gym.Env[Any, Any]]
"""A registered id, a spec, a chat environment (with wrappers around it or not), or a function that makes one, or its name."""

_PLAIN_CONSTRUCTORS = {cls.__init__ for cls in (gym.Wrapper, gym.ObservationWrapper, gym.ActionWrapper, gym.RewardWrapper)}


class Replica(NamedTuple):
    """One worker's environment."""

    env: gym.Env[Any, Any]
    """The outermost wrapper."""
    seat: EpisodeSeat
    """The chat environment inside."""


class Replicas:
    """Makes the environments of a run's workers, and closes what was made.

    An environment is replicated by rebuilding its wrappers around forks of it; its own episode is left alone. A function is
    called once for each worker.
    """

    def __init__(self) -> None:
        """Hold none yet."""
        self.why_one: str | None = None
        """Why there can be one replica only; None where there can be any number."""
        self._made: dict[int, gym.Env[Any, Any]] = {}
        """What was made, by its `id`."""
        self._ready: list[gym.Env[Any, Any]] = []
        self._taken: list[EpisodeSeat] = []

    def open(self, source: EnvLike, env_args: dict[str, Any]) -> ChatEnv:
        """Get ready to replicate `source`, and return its definition (of a function: that of the first environment).

        Args:
            source: What is to be played.
            env_args: Arguments for an id, a spec or a function.

        Raises:
            ConfigurationError: If `source` is not a chat environment, there is none of that id, or it is an environment and
                there are arguments to make one.
        """
        if isinstance(source, gym.Env):
            if env_args:
                raise ConfigurationError(
                    f"env_args ({', '.join(env_args)}) are for making an environment, and {source} is made already: give an id, a spec"
                    " or a function instead, or make it with these arguments"
                )
            return self._replicate(source)
        if isinstance(source, str):
            source = maker_named(source) or source
        if isinstance(source, str | EnvSpec):
            return self._replicate(self._keep(make_env(source, env_args)))
        if not callable(source):
            raise ConfigurationError(
                "what is played must be an id, a spec, an environment, or a function that makes one (without arguments, or with env_args);"
                f" got {type(source).__name__}"
            )
        self._make = functools.partial(source, **env_args)
        self._ready.append(self._keep(self._make()))
        return seat_of(self._ready[0]).definition

    def _replicate(self, env: gym.Env[Any, Any]) -> ChatEnv:
        definition = seat_of(env).definition
        self.why_one = why_not_replicable(env)
        if self.why_one is None:
            self._make = functools.partial(replicate, env)
        else:
            self._ready.append(env)
        return definition

    def limit_workers(self, count: int) -> int:
        """Return how many of `count` workers (-1 for any number) can have an environment: one, after a warning, where there can be one."""
        if self.why_one is None:
            return count
        logger.warning(
            "episodes are played one at a time: %s; give a function that makes the environment to play more at once", self.why_one
        )
        return 1

    def take(self, *, defers_scoring: bool) -> Replica:
        """Return an environment that no other worker has.

        Args:
            defers_scoring: Whether its episodes are scored by somebody else (see `EpisodeSeat.defers_scoring`).

        Raises:
            ConfigurationError: If it cannot be made, or there can be one only.
        """
        if not self._ready and self.why_one is not None:
            raise ConfigurationError(f"there can be one of this environment only: {self.why_one}; give a function that makes it")
        env = self._ready.pop() if self._ready else self._keep(self._make())
        seat = seat_of(env)
        seat.defers_scoring = defers_scoring
        self._taken.append(seat)
        return Replica(env, seat)

    def _keep(self, made: object) -> gym.Env[Any, Any]:
        """Note an environment that is to be closed."""
        env = as_env(made)
        if id(env) in self._made:
            raise ConfigurationError(
                "the function that makes the environment returned the same one twice: it must make a new one each time"
            )
        self._made[id(env)] = env
        return env

    def close(self) -> None:
        """Close what was made, the newest first. One that fails to close is logged and does not keep the others open."""
        for seat in self._taken:
            seat.defers_scoring, seat.throws_away = False, None
        while self._made:
            _, env = self._made.popitem()
            try:
                env.close()
            except BaseException as error:
                if ends_run(error):
                    raise
                logger.exception("closing %s failed", env)


def maker_named(source: str) -> Callable[..., gym.Env[Any, Any]] | None:
    """Return the function that ``module:function`` names, which makes an environment; None where that is an id.

    Raises:
        ConfigurationError: If there is no such module.
    """
    module, _, name = source.rpartition(":")
    if not module:
        return None
    found: Any = import_named(module, f"environment {source!r}")
    if name in gym.registry:
        return None
    for attribute in name.split("."):
        found = getattr(found, attribute, None)
    return cast("Callable[..., gym.Env[Any, Any]]", found) if callable(found) else None


def make_env(source: str | EnvSpec, env_args: dict[str, Any]) -> gym.Env[Any, Any]:
    """Make a registered environment.

    Args:
        source: A spec, an id, or ``module:id``, for an id that is registered as its module is imported; the module may lie in
            the current directory.
        env_args: Arguments for its constructor.

    Raises:
        ConfigurationError: If there is none of that id, or it does not take these arguments.
    """
    if isinstance(source, str):
        source = import_id(source)
    try:
        return gym.make(source, **env_args)
    except gym.error.UnregisteredEnv as error:
        hint = did_you_mean(str(source), gym.registry) if "Did you mean" not in str(error) else ""
        raise ConfigurationError(f"{error}{hint}") from error
    except TypeError as error:
        own = error.__cause__  # Gymnasium raises a TypeError of the constructor again, with a longer text
        if not isinstance(own, TypeError):
            raise
        if own.__traceback__ is not None and own.__traceback__.tb_next is None:  # none of the constructor's code ran
            raise ConfigurationError(f"the environment cannot be made with these arguments: {own}") from own
        raise own from None


def as_env(made: object) -> gym.Env[Any, Any]:
    """Return what a function has made, if it is an environment.

    Raises:
        ConfigurationError: If it is not.
    """
    if not isinstance(made, gym.Env):
        raise ConfigurationError(f"the function that makes the environment returned {type(made).__name__}, no gymnasium.Env")
    return made


def why_not_replicable(env: gym.Env[Any, Any]) -> str | None:
    """Return which of the wrappers around a chat environment cannot be rebuilt, in words; None if all can."""
    while isinstance(env, gym.Wrapper):
        arguments = _constructor_arguments(env)
        name = type(env).__name__
        if arguments is None:
            return f"the wrapper {name} does not record its arguments (gymnasium.utils.RecordConstructorArgs)"
        try:
            inspect.signature(type(env)).bind(env.env, **arguments)
        except TypeError as error:
            return f"the wrapper {name} recorded arguments that are not its own ({error})"
        env = env.env
    return None


def replicate(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return a fork of a chat environment inside wrappers like those around it."""
    if not isinstance(env, gym.Wrapper):
        return seat_of(env).fork()
    return type(env)(replicate(env.env), **(_constructor_arguments(env) or {}))


def _constructor_arguments(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> dict[str, Any] | None:
    if isinstance(wrapper, gym.utils.RecordConstructorArgs):
        return {name: value for name, value in wrapper._saved_kwargs.items() if name != "env"}
    return {} if type(wrapper).__init__ in _PLAIN_CONSTRUCTORS else None
