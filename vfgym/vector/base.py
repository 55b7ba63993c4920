"""What Gymnasium asks of a vector environment besides episodes: its spaces, and the attributes of its environments."""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from vfgym.aio.background import may_wait, on_background_loop, wait
from vfgym.aio.bridge import bridge, in_bridge
from vfgym.errors import ConfigurationError
from vfgym.vector.members import VectorMember
from vfgym.vector.units import Units

T = TypeVar("T")


_MANY = 1024
"""From so many environments on, collections of garbage are put off while all of them take a step."""


@contextlib.contextmanager
def few_collections(count: int) -> Iterator[None]:
    """Put off collections of garbage while so many environments are reset or take a step, if they are many.

    Nearly all that a step makes stays, and every full collection looks at all games there are: of 8,192 FrozenLakes that were made, reset
    and stepped 10 times, it took 6 of 17.5 s of CPU. What a step leaves to be collected is collected after it.
    """
    if count < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class InProcessVectorEnv(VectorEnv[Any, Any, np.ndarray]):
    """A vector of environments in one process.

    What touches them is called on the background event loop; in the calling thread where `_plays_here`, and nothing happens on the loop.
    """

    _members: list[VectorMember]
    _units: Units
    _plays_here: bool
    """Whether the environments may be played in the calling thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        """Held while something is done in the calling thread, and to say that something begins or ends on the loop."""
        self._calls_on_loop = 0

    @property
    def envs(self) -> list[gym.Env[Any, Any]]:
        """The environments."""
        return [member.env for member in self._members]

    @property
    def single_observation_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """The observation space of the first environment."""
        return self._members[0].env.observation_space

    @property
    def single_action_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """The action space of the first environment."""
        return self._members[0].env.action_space

    @functools.cached_property
    def observation_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """The observations of all environments."""
        return _batched([env.observation_space for env in self.envs])

    @functools.cached_property
    def action_space(self) -> gym.Space[Any]:  # type: ignore[override]
        """The actions of all environments."""
        return _batched([env.action_space for env in self.envs])

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random numbers of each environment."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each environment."""
        return self.get_attr("np_random_seed")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return an attribute of each environment, or what it returns if it is a method."""
        return self._here_or_on_loop(self._call, self._call_on_loop, name, args, kwargs)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        values = (env.get_wrapper_attr(name) for env in self.envs)
        return tuple(value(*args, **kwargs) if callable(value) else value for value in values)

    async def _call_on_loop(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return await bridge(self._call, name, args, kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: to one value, or to its own of a list or tuple."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ConfigurationError(f"values must be one for each environment: expected {self.num_envs}, got {len(values)}")
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    def render(self) -> tuple[Any, ...]:
        """Return what each environment renders."""
        return self.call("render")

    def _here_or_on_loop(self, here: Callable[..., T], on_loop: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Do something in the calling thread where that may be, else on the loop: to hop there and back takes 100 µs and more."""
        if self._plays_here and may_wait() and not in_bridge():
            with self._lock:
                if not self._calls_on_loop and self._units.is_idle:
                    return here(*args)
        return self._on_loop(on_loop, *args)

    def _on_loop(self, func: Callable[..., Awaitable[T]], *args: Any) -> T:
        with self._lock:
            self._calls_on_loop += 1
        try:
            return wait(on_background_loop(func, *args))
        finally:
            with self._lock:
                self._calls_on_loop -= 1


def _batched(spaces: Sequence[gym.Space[Any]]) -> gym.Space[Any]:
    if all(space == spaces[0] for space in spaces):
        return batch_space(spaces[0], len(spaces))
    return batch_differing_spaces(spaces)
