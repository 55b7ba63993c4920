"""Running episodes as plain data, with which another process goes on: what states of vectors and of `rollout` are made of.

An episode is kept as a snapshot (see `vfgym.envs.going_back`). Where a copy of its game would be a new game, what is kept is how it began
and what was answered, and it is played again. What can't be kept (a live object, a closure, an episode that can neither be copied nor
played again) is an error that names it.

Pickles stand in the data as text. They hold names in place of what an environment shares, and so fit an environment that was made alike.
"""

from __future__ import annotations

import base64
import copy
import importlib.metadata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, cast

import gymnasium as gym
import numpy as np

from vfgym.aio.steps import Steps
from vfgym.envs.chat import ChatEnv
from vfgym.envs.going_back import find_shared, write_value
from vfgym.envs.going_back import read_value as read_pickle
from vfgym.envs.seat import EpisodeSeat, Luck
from vfgym.episode import BaseEpisode
from vfgym.errors import ConfigurationError, EpisodeNotPicklable
from vfgym.messages import Message, Response
from vfgym.runs.replicas import Replica
from vfgym.state import State
from vfgym.wrappers.games.session import GameSessionEnv

_SMALL = (NoneType, bool, int, float, complex, str, bytes, type, tuple)
"""Arguments of wrappers that are written as they are."""


@dataclass(slots=True)
class EpisodeStart:
    """How an episode began, so that it can be played again."""

    seed: int | None
    options: Mapping[str, Any] | None
    luck: Luck | None = None
    """What decided of it before, where it has no seed."""
    game_numbers: np.random.Generator | None = None
    """The random numbers of its game before; None for one that was not open yet."""


@dataclass(slots=True)
class _Kept:
    """One episode, and what a player has beside it."""

    how: Any
    """A `Snapshot`, a `_Played`, or a `Luck` where no episode has begun."""
    wrappers: list[tuple[str, dict[str, Any]]]
    """The names and the attributes of the wrappers around it."""
    beside: Mapping[str, Any]


@dataclass(slots=True)
class _Played:
    """What an episode that is played again is made of."""

    beginning: EpisodeStart
    responses: list[Response]
    versions: list[Any]
    """Which version of the policy gave each of them."""
    is_over: bool
    conversation: list[Message]
    """What it comes to."""


def note_beginning(seat: EpisodeSeat, seed: int | None, options: Mapping[str, Any] | None) -> EpisodeStart | None:
    """Return how the episode that a seat is about to begin does so; None where it need not be known, as snapshots can be taken of it."""
    if seat.definition.can_go_back:
        return None
    session = None if seat.state is None else seat.state.session
    game = getattr(getattr(session, "game", None), "unwrapped", None)
    numbers = getattr(game, "_np_random", None)
    return EpisodeStart(seed, options, seat.copy_luck(), copy.deepcopy(numbers))


# Fitting


def describe_run(kind: str, replica: Replica, **settings: Any) -> dict[str, Any]:
    """Return, as plain data, what a state is of: it fits nothing else."""
    identity = replica.seat.definition.identity
    return {
        "kind": kind,
        "version": importlib.metadata.version("vfgym"),
        "environment": [*identity],
        "wrappers": [type(wrapper).__name__ for wrapper in wrappers_of(replica)],
        **settings,
    }


def check_fits(state: Any, own: Mapping[str, Any], parts: Collection[str]) -> None:
    """Raise if a state is of something else.

    Args:
        state: What `state_dict` returned, perhaps after a way through a file.
        own: What it should be of, as `describe_run` returned it.
        parts: The keys that it has besides.

    Raises:
        ConfigurationError: It says what was expected, and what came.
    """
    given = state.get("of") if isinstance(state, Mapping) else None
    if not isinstance(given, Mapping) or given.get("kind") != own["kind"]:
        kind = repr(given["kind"]) if isinstance(given, Mapping) and "kind" in given else f"{type(state).__name__} {state!r:.60}"
        raise ConfigurationError(f"this state does not fit: expected what state_dict() of a {own['kind']} returned, got {kind}")
    for name, expected in own.items():
        came: Any = given.get(name)
        if came != expected:
            if name == "environment":
                expected, came = map(_name_environment, (expected, came))
                if expected == came:
                    expected, came = f"{expected} with the arguments of this one", f"{came} that was made with other arguments"
            raise ConfigurationError(f"this state does not fit: expected {name} {_in_words(expected)}, got {_in_words(came)}")
    for name in parts:
        if name not in state:
            raise ConfigurationError(f"this state is damaged: it has no {name!r}")


def _name_environment(identity: Any) -> Any:
    return identity[0] or identity[1] if isinstance(identity, list) and len(identity) == 3 else identity


def _in_words(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


# Values


def wrappers_of(replica: Replica) -> list[gym.Wrapper[Any, Any, Any, Any]]:
    """Return the wrappers around a chat environment, the outermost first."""
    found = []
    env = replica.env
    while isinstance(env, gym.Wrapper):
        found.append(env)
        env = env.env
    return found


def _names(replica: Replica, agent: Any) -> dict[str, Any]:
    """Return by names what another process has itself."""
    seat = replica.seat
    names: dict[str, Any] = {"agent": agent, "seat": seat, "action space": seat.action_space, "observation space": seat.observation_space}
    for number, wrapper in enumerate(wrappers_of(replica)):
        names[f"wrapper {number}"] = wrapper
        arguments = getattr(wrapper, "_saved_kwargs", {})
        names |= {f"wrapper {number}.{name}": value for name, value in arguments.items() if not isinstance(value, _SMALL)}
    for split in ("train", "eval"):
        if seat.definition.has_tasks(split):
            names[f"tasks.{split}"] = seat.definition.tasks_of(split)
    names |= {f"tasks.{split}": stream.tasks for split, stream in seat._streams.items()}
    return {**names, **seat.definition.shared_parts()}


def keep_value(value: Any, what: str, replica: Replica, agent: Any = None) -> str:
    """Return a value as text.

    Args:
        value: What is kept.
        what: What it is, for the error's text.
        replica: A player's environment: whatever is its own or shared by it is written by name.
        agent: Who answers, written by name too.

    Raises:
        EpisodeNotPicklable: If a part of it cannot be kept; the text says which, and why.
    """
    names = _names(replica, agent)
    try:
        data = write_value(value, names)
    except EpisodeNotPicklable as error:
        raise EpisodeNotPicklable(f"{what} cannot be kept: {error}") from error
    except Exception as error:
        part, reason = _culprit(value, names, error)
        raise EpisodeNotPicklable(f"{what} cannot be kept: {part}{reason}") from error
    return base64.b64encode(data).decode()


def _culprit(value: Any, names: Mapping[str, Any], error: Exception) -> tuple[str, Exception]:
    """Return the path of the innermost part of a value that cannot be pickled, with what it is, and why not."""
    path = ""
    while True:
        for name, part in _parts_of(value):
            try:
                write_value(part, names)
            except Exception as own:
                path, value, error = f"{path}{name}", part, own
                break
        else:
            break
    kind = "closure" if getattr(value, "__closure__", None) else type(value).__name__
    return f"{path.lstrip('.') or 'it'} is a {kind}: ", error


def _parts_of(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, _Kept):
        around = [(f"the wrapper {name}, whose attribute ", _Named(attributes)) for name, attributes in value.wrappers]
        return [("its episode", value.how), *around, *value.beside.items()]
    if isinstance(value, _Named):
        return list(value.items())
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, type) or callable(value):
        return [(f".{name}", item) for name, item in getattr(value, "__dict__", {}).items()] if not isinstance(value, type) else []
    slots = {name: getattr(value, name) for cls in type(value).__mro__ for name in _slots(cls) if hasattr(value, name)}
    return [(f".{name}", item) for name, item in {**slots, **getattr(value, "__dict__", {})}.items()]


class _Named(dict[str, Any]):
    """Attributes, which are told by their names alone."""


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def read_value(text: Any, replica: Replica, agent: Any = None) -> Any:
    """Return a value that `keep_value` wrote, for a player of an environment that was made alike.

    Raises:
        ConfigurationError: If the text is damaged, or of another environment.
    """
    names, definition = _names(replica, agent), replica.seat.definition
    find: Callable[[str], Any] = lambda name: names[name] if name in names else find_shared(definition, name)  # noqa: E731
    try:
        return read_pickle(base64.b64decode(text, validate=True), find)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever a class raises that is not as it was
        raise ConfigurationError(f"this state cannot be read: {error!r}") from error


# Episodes


def keep_episode(
    what: str, replica: Replica, beside: Mapping[str, Any], beginning: EpisodeStart | None = None, agent: Any = None
) -> Steps[dict[str, Any]]:
    """Return the episode of a player as plain data.

    Args:
        what: What it is, for the error's text.
        replica: The player's environment.
        beside: What the player knows besides, by its name in errors; it is kept too.
        beginning: How the episode began, where it may have to be played again.
        agent: Who answers.

    Raises:
        EpisodeNotPicklable: If a part of it cannot be kept; the text says which, and why.
    """
    seat, episode = replica.seat, replica.seat.episode
    how: Any
    if episode is None:
        how = seat.copy_luck()
    elif beginning is None or cast(ChatEnv, episode.definition).can_go_back:
        try:
            how = yield from seat.snapshot_steps()
        except EpisodeNotPicklable as error:
            raise EpisodeNotPicklable(f"{what} cannot be kept: {error}") from error
    else:
        how = _how_to_play_again(what, episode, beginning)
    wrappers = [(type(wrapper).__name__, _own_attributes(wrapper)) for wrapper in wrappers_of(replica)]
    names = {"Snapshot": "snapshot", "_Played": "played again", "Luck": "not begun"}
    data = keep_value(_Kept(how, wrappers, beside), what, replica, agent)
    return {"how": names[type(how).__name__], "turns": _num_turns(episode), "data": data}


def _num_turns(episode: BaseEpisode | None) -> int:
    return 0 if episode is None else len(episode.state.get("trajectory") or ())


def _how_to_play_again(what: str, episode: BaseEpisode, beginning: EpisodeStart) -> _Played:
    if not isinstance(episode.definition, GameSessionEnv):
        name = type(episode.definition).__name__
        raise EpisodeNotPicklable(
            f"{what} cannot be kept: an episode of {name} can neither be copied (can_go_back is False) nor, as it is not a game of this"
            " process, played again from its seed"
        )
    if beginning.seed is None and beginning.game_numbers is None and "example_id" not in (beginning.options or {}):
        raise EpisodeNotPicklable(
            f"{what} cannot be kept: the copy of its game would be a new one, and it cannot be played again, as it began without a seed:"
            " reset(seed=...) first"
        )
    state = episode.state
    responses = [step["response"] for step in state["trajectory"]]
    versions = [step["extras"].get("policy_version") for step in state["trajectory"]]
    return _Played(beginning, responses, versions, episode.is_over, episode.conversation())


def _own_attributes(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in vars(wrapper).items() if name not in ("env", "_saved_kwargs", "_cached_spec")}


@dataclass(slots=True)
class OpenedEpisode:
    """An episode that is ready to go on, beside the one that its player still has."""

    replica: Replica
    seat: EpisodeSeat
    """Where it is until somebody takes it."""
    wrappers: list[tuple[str, dict[str, Any]]]
    beside: Mapping[str, Any]
    """What the player knew besides."""

    def give_up(self) -> Steps[None]:
        """Clean up what nobody goes on with."""
        yield from self.seat._close()

    def take(self) -> Steps[None]:
        """Let the player go on with it."""
        yield from self.replica.seat.take_over(self.seat)
        for wrapper, (_, attributes) in zip(wrappers_of(self.replica), self.wrappers, strict=True):
            vars(wrapper).update(attributes)


def read_episode(kept: Any, replica: Replica, agent: Any = None) -> _Kept:
    """Return what `keep_episode` has written, for a player of an environment that was made alike.

    Raises:
        ConfigurationError: If it is damaged, or of another environment.
    """
    read = read_value(kept.get("data") if isinstance(kept, Mapping) else None, replica, agent)
    if not isinstance(read, _Kept):
        raise ConfigurationError(f"this state cannot be read: expected an episode, got a {type(read).__name__}")
    return read


def open_episode(kept: Any, replica: Replica, agent: Any = None) -> Steps[OpenedEpisode]:
    """Return an episode that was kept, ready to go on.

    Raises:
        ConfigurationError: If it is damaged, of another environment, or came to something else as it was played again.
    """
    read = read_episode(kept, replica, agent)
    seat = replica.seat.fork()
    seat.defers_scoring = replica.seat.defers_scoring
    try:
        if isinstance(read.how, Luck):
            seat.set_luck(read.how)
        elif isinstance(read.how, _Played):
            yield from _play_again(seat, read.how)
        else:
            yield from seat.restore_steps(read.how)
    except BaseException:
        yield from seat._close()
        raise
    return OpenedEpisode(replica, seat, read.wrappers, read.beside)


def _play_again(seat: EpisodeSeat, played: _Played) -> Steps[None]:
    beginning = played.beginning
    if beginning.game_numbers is not None and beginning.seed is None:
        yield from seat.reset_steps(0, None)  # opens the game
        cast(State, seat.state).session.game.unwrapped.np_random = beginning.game_numbers
    if beginning.luck is not None:
        seat.set_luck(beginning.luck)
    yield from seat.reset_steps(beginning.seed, beginning.options)
    for response in played.responses:
        if seat.episode is None or seat.episode.is_over:
            break
        yield from seat.step_steps(response)
    episode = seat.episode
    for step, version in zip(cast(State, seat.state)["trajectory"], played.versions, strict=False):
        if version is not None:
            step["extras"]["policy_version"] = version
    if played.is_over and episode is not None and not episode.is_over:
        yield from seat.truncate_steps()
    if episode is None or episode.conversation() != played.conversation:
        raise ConfigurationError(
            f"this state cannot be continued: an episode of {type(seat.definition).__name__} came to something else as it was played again"
            f" from its seed, with the same {len(played.responses)} answers: its game draws random numbers that its seed does not decide"
        )


# Spaces and environments


def space_numbers(space: gym.Space[Any]) -> list[np.random.Generator | None]:
    """Return the random numbers of a space and of those in it; None where it has drawn none yet."""
    inner = getattr(space, "spaces", ())
    return [space._np_random, *(numbers for each in _values(inner) for numbers in space_numbers(each))]


def set_space_numbers(space: gym.Space[Any], numbers: list[np.random.Generator | None]) -> None:
    """Let a space, and those in it, go on with random numbers of `space_numbers`."""
    _set_numbers(space, iter(numbers))


def _set_numbers(space: gym.Space[Any], numbers: Any) -> None:
    space._np_random = next(numbers)
    for each in _values(getattr(space, "spaces", ())):
        _set_numbers(each, numbers)


def _values(spaces: Any) -> list[gym.Space[Any]]:
    return list(spaces.values() if isinstance(spaces, Mapping) else spaces)


def load_definitions(definitions: list[ChatEnv], states: Any) -> None:
    """Let environments go on with what they had learned from their episodes. Where one refuses, all stand as they were.

    Raises:
        ConfigurationError: If there are not as many, or one of them refuses.
    """
    if not isinstance(states, list) or len(states) != len(definitions):
        raise ConfigurationError(f"this state does not fit: expected {len(definitions)} environments, got {states!r:.60}")
    before = [copy.deepcopy(definition.state_dict()) for definition in definitions]
    try:
        for definition, state in zip(definitions, states, strict=True):
            definition.load_state_dict(state)
    except BaseException:
        for definition, state in zip(definitions, before, strict=True):
            definition.load_state_dict(state)
        raise
