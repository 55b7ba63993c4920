"""Going back in an episode: what a player knows is copied, and another seat goes on with the copy.

What is the player's own is copied: the episode with its state, the game, the stream of tasks, the random numbers. What all players of an
environment share (`ChatEnv.shared_parts`: its tasks, tools and rubric, whatever else stands on ``self``) is not, nor is what cannot
change: messages, and what the model answered. So a copy costs the same whatever the tasks are.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vfgym.aio.steps import Steps
from vfgym.copying import Memo, deep_copy, new_memo
from vfgym.episode import BaseEpisode
from vfgym.episode.sessions import Sessions
from vfgym.errors import ConfigurationError, EpisodeBusy, EpisodeNotPicklable, ResetNeeded
from vfgym.reseeding import SeededNumbers, reseed
from vfgym.state import State
from vfgym.tasks import TaskStream, as_integer

if TYPE_CHECKING:
    from vfgym.envs.chat import ChatEnv


@dataclass(slots=True)
class Belongings:
    """What a player knows and nobody else."""

    episode: BaseEpisode
    sessions: Sessions
    """The games that were opened for it."""
    streams: dict[str, TaskStream]
    """The order in which it meets the tasks of each split."""
    numbers: SeededNumbers
    action_numbers: np.random.Generator | None
    """The random numbers of its action space; None where none were drawn yet."""


class Snapshot:
    """A moment of an episode, which `EpisodeSeat.restore` goes back to, any number of times.

    It fits the environment that it was taken of, another one of the same id, and one of the same class that was made with equal
    arguments. It can be pickled if what the episode's state holds can; a pickle has no API keys in it.
    """

    def __init__(self, definition: ChatEnv, belongings: Belongings) -> None:
        """Take the belongings of a player of `definition`, which nobody else holds, as `copy_belongings` returned them."""
        self.identity = definition.identity
        """Which environment it is of."""
        self.turns = len(belongings.episode.state.get("trajectory") or ())
        """How many answers the model had given."""
        self._belongings: Belongings | None = belongings
        self._shared = shared_by(definition, belongings)
        self._taken = time.monotonic()
        self._pickled = b""

    def open(self, definition: ChatEnv) -> Belongings:
        """Return a copy of what the player knew, for a player of an environment.

        Raises:
            ConfigurationError: If it is of another environment.
        """
        difference = definition.identity.difference(self.identity)
        if difference:
            raise ConfigurationError(f"this snapshot does not fit: {difference}")
        kept = self._kept_now()
        if kept is None:
            return read_value(self._pickled, lambda name: find_shared(definition, name))  # type: ignore[no-any-return]
        memo = new_memo()
        own = self._shared[""] is definition
        for name, part in self._shared.items():
            memo[id(part)] = part if own else find_shared(definition, name)
        return deep_copy(kept, memo)

    def _kept_now(self) -> Belongings | None:
        """Return what is kept in memory, with the time limits that it had when it was taken."""
        kept, now = self._belongings, time.monotonic()
        if kept is not None:
            kept.episode.put_off(now - self._taken)
            self._taken = now
        return kept

    def __getstate__(self) -> dict[str, Any]:
        kept = self._kept_now()
        pickled = self._pickled if kept is None else _pickle(kept, self._shared)
        return {"identity": self.identity, "turns": self.turns, "_pickled": pickled, "_belongings": None}

    def __repr__(self) -> str:
        name = self.identity.env_id or self.identity.cls.rpartition(".")[2]
        return f"<Snapshot of {name} after {self.turns} {'turn' if self.turns == 1 else 'turns'}>"


def copy_belongings(definition: ChatEnv, belongings: Belongings, seed: Any = None) -> Steps[Belongings]:
    """Return a copy of what a player of an environment knows.

    Nobody can go on with it before `ChatEnv.open_resources` has opened what the episode has outside of this process.

    Args:
        definition: The environment.
        belongings: What the player knows.
        seed: Lets every generator of the copy begin anew; None keeps their numbers.

    Raises:
        ConfigurationError: If the seed is not an integer from 0.
        ResetNeeded: If the episode was broken off.
        EpisodeBusy: If a step of it is running.
        EpisodeNotPicklable: If something in it cannot be copied; the text names the item of the state.
    """
    number = as_integer(seed)
    if seed is not None and (number is None or number < 0):
        raise ConfigurationError(f"the seed of a branch must be an integer from 0, or None to go on with the same numbers; got {seed!r}")
    episode = belongings.episode
    if episode.is_broken:
        raise ResetNeeded("the episode was broken off, by an exception or by close(): call reset() first")
    if episode.is_busy:
        raise EpisodeBusy("a step of this episode is still running: go back before or after it")
    episode.is_busy = True
    try:
        resources: Mapping[int, Any] = yield episode.definition.copy_resources(episode.state)
    finally:
        episode.is_busy = False
    shared = shared_by(definition, belongings)
    copied: Belongings = _naming_culprits(lambda value: deep_copy(value, _memo_of(shared, resources, episode.state)), belongings)
    if number is not None:
        reseed(copied, number, {id(part) for part in shared.values()})
    return copied


def shared_by(definition: ChatEnv, belongings: Belongings) -> dict[str, Any]:
    """Return by names what a player shares with all others: what a copy has no copy of."""
    streams = {f"tasks.{split}": stream.tasks for split, stream in belongings.streams.items()}
    return {**definition.shared_parts(), **streams}


def find_shared(definition: ChatEnv, name: str) -> Any:
    """Return what an environment has of a name of `shared_by`.

    Raises:
        ConfigurationError: If it has nothing of this name.
    """
    kind, _, split = name.partition(".")
    if kind == "tasks":
        return definition.tasks_of(split)
    parts = definition.shared_parts()
    if name not in parts:
        raise ConfigurationError(f"this snapshot does not fit: {type(definition).__name__} has no {name}")
    return parts[name]


def _memo_of(shared: Mapping[str, Any], resources: Mapping[int, Any], state: State) -> Memo:
    memo = new_memo(shared.values())
    memo.update(resources)
    for step in state.get("trajectory") or ():  # what the model answered is not written to, and token data may be long
        for key in ("response", "tokens"):
            memo[id(step[key])] = step[key]
    return memo


def _naming_culprits(duplicate: Callable[[Any], Any], belongings: Belongings) -> Any:
    """Return a duplicate of what a player knows, or say which part of it has none."""
    try:
        return duplicate(belongings)
    except EpisodeNotPicklable:
        raise
    except Exception as error:
        raise EpisodeNotPicklable(_culprit(duplicate, belongings.episode.state, error)) from error


def _culprit(duplicate: Callable[[Any], Any], state: State, error: Exception) -> str:
    session = state.session
    parts = {f"state[{key!r}]": value for key, value in state.items()}
    parts |= {"its game": getattr(session, "game", session), "what its game changes": state.game_state}
    for name, value in parts.items():
        try:
            duplicate(value)
        except Exception as own:
            return f"the episode cannot be copied: {name} is a {type(value).__name__}, which cannot be ({own})"
    return f"the episode cannot be copied: {error}"


# Pickles


class _Pickler(pickle.Pickler):
    """Writes what is shared by its name alone."""

    def __init__(self, file: io.BytesIO, shared: Mapping[str, Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = {id(part): name for name, part in shared.items()}

    def persistent_id(self, value: Any) -> str | None:
        return self._names.get(id(value))


class _Unpickler(pickle.Unpickler):
    """Asks for what is shared by its name."""

    def __init__(self, file: io.BytesIO, find: Callable[[str], Any]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, name: str) -> Any:
        return self._find(name)


def write_value(value: Any, shared: Mapping[str, Any]) -> bytes:
    """Return a pickle of a value, in which what is shared stands by its name."""
    file = io.BytesIO()
    _Pickler(file, shared).dump(value)
    return file.getvalue()


def read_value(data: bytes, find: Callable[[str], Any]) -> Any:
    """Return a value that `write_value` wrote, with what `find` returns for the names of what is shared."""
    return _Unpickler(io.BytesIO(data), find).load()


def _pickle(belongings: Belongings, shared: Mapping[str, Any]) -> bytes:
    return _naming_culprits(lambda value: write_value(value, shared), belongings)  # type: ignore[no-any-return]
