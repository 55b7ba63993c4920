"""`to_chat`: a Gymnasium game as a chat environment, played in words."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.envs.game import GameEnv, Turn
from vfgym.errors import ConfigurationError, UnknownArgument, did_you_mean
from vfgym.messages import Message, UserMessage, content_text
from vfgym.spaces import ChoiceSampler, Sampler
from vfgym.state import State
from vfgym.wrappers.codec import ActionNotFound, DiscreteCodec
from vfgym.wrappers.descriptions import describe
from vfgym.wrappers.observations import observation_text, without_colours

Game = gym.Env[Any, Any]

_MOST_NUMBERS = 64
"""A longer observation is no text that a model can read."""

_FAST_GAMES = ("gymnasium.envs.toy_text", "gymnasium.envs.classic_control")
"""Packages whose games are known not to block."""


@dataclass(frozen=True)
class MakeGame:
    """Makes a registered game. An object and no closure, so that the environment can be pickled."""

    spec: EnvSpec

    def __call__(self) -> Game:
        """Make one more."""
        # The checker looks at every observation of the first steps, and a chat environment is checked itself.
        return gym.make(self.spec, disable_env_checker=True)


class GymnasiumGame(GameEnv):
    """A Gymnasium environment with discrete actions as a chat environment. Made by `to_chat`."""

    def __init__(
        self,
        make_game: Callable[[], Game],
        *,
        name: str,
        obs_to_text: Callable[[Any], str] | None = None,
        action_names: Sequence[str] | None = None,
        rules: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Describe a game (see `to_chat` for the arguments)."""
        game = make_game()
        space = game.action_space
        if not isinstance(space, gym.spaces.Discrete):
            game.close()
            raise ConfigurationError(f"to_chat plays games with discrete actions, and {name} has the action space {space}")
        description = describe(game)
        names = description.action_names if action_names is None else action_names
        self.codec = DiscreteCodec(space, names if len(names) == space.n or action_names is not None else None)
        self._labels = description.observation_labels
        self._rules = description.rules if rules is None else rules
        self._obs_to_text = obs_to_text
        self._is_drawn = game.render_mode == "ansi"
        if obs_to_text is None and not self._is_drawn:
            _check_readable(game.observation_space, name)
        self._make_game = make_game
        self._name = name
        entry_point = game.spec.entry_point if game.spec is not None else None
        kwargs.setdefault("blocking", not (isinstance(entry_point, str) and entry_point.startswith(_FAST_GAMES)))
        game.close()
        super().__init__(**kwargs)

    def open_game(self) -> Game:
        """Make one more of the game."""
        return self._make_game()

    def begin_game(self, game: Game, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[Message]:
        """Reset the game and return rules, actions, answer format and the first observation, as one message."""
        observation, info = game.reset(seed=seed, options=None if options is None else dict(options))
        state["game_info"] = info
        answer = "Answer with one action, by name or number, in <action> tags, like this: "
        parts = [
            f"You are playing {self._name}.",
            self._rules,
            f"Actions: {self.codec.listing()}.",
            f"{answer}<action>{self.codec.names[0]}</action>",
            self._text(game, observation),
        ]
        return [UserMessage("\n\n".join(part for part in parts if part))]

    def make_move(self, game: Game, message: Message, state: State) -> Turn:
        """Make the move that a message names; one that names none is told so and changes nothing."""
        try:
            action = self.codec.decode(content_text(message["content"]))
        except ActionNotFound as error:
            return Turn([UserMessage(str(error))], is_valid=False)
        observation, reward, terminated, truncated, info = game.step(action)
        state["game_info"] = info
        text = self._text(game, observation)
        if terminated or truncated:
            text = f"{text}\n\nThe game is over."
        return Turn([UserMessage(text)], float(reward), bool(terminated), bool(truncated), info)

    def _text(self, game: Game, observation: Any) -> str:
        if self._obs_to_text is not None:
            return self._obs_to_text(observation)
        if self._is_drawn:
            return without_colours(str(game.render()))
        return observation_text(observation, self._labels)

    def step_info(self, state: State) -> dict[str, Any]:
        """Tell the game's own info, and the legal actions where it masks them."""
        info = state["game_info"]
        told: dict[str, Any] = {"game_info": copy.deepcopy(info) if info else {}}
        mask = info.get("action_mask")
        if mask is not None:
            told["legal_actions"] = [name for name, legal in zip(self.codec.names, mask, strict=True) if legal]
        return told

    def action_sampler(self) -> Sampler:
        """Sample the names of the actions."""
        return ChoiceSampler(tuple(self.codec.names))


def to_chat(env: str | EnvSpec | Game | Callable[[], Game], **options: Any) -> GymnasiumGame:
    """Return a Gymnasium game as a chat environment.

    The model is shown the game's rules and its observations as text (the game's ``ansi`` rendering where it has one, labelled
    numbers otherwise) and answers with the name or number of an action. A seed is given to the game as it is; the game's
    own rewards are emitted as they come, and its termination and truncation are the episode's.

    >>> env = to_chat("FrozenLake-v1", is_slippery=False)
    >>> conversation, info = env.reset(seed=0)
    >>> conversation, reward, terminated, truncated, info = env.step("Move right")

    Args:
        env: A registered id, a spec, a function that makes a game, or a game with a spec, of which more are made.
        **options: ``obs_to_text`` (a function from an observation to text), ``action_names``, ``rules`` (text),
            ``max_turns``, ``max_invalid_moves``, ``blocking``, ``system_prompt``, ``rubric``, ``render_mode`` and the rest of
            what `vfgym.envs.game.GameEnv` takes. With an id, anything else goes to the game.

    Raises:
        ConfigurationError: If the game cannot be played in words: its actions are not discrete, its observations are no
            text, no small set of numbers, and have no rendering, or more of it cannot be made.
    """
    if isinstance(env, gym.Env):
        if env.spec is None:
            raise ConfigurationError(f"more of {env} cannot be made, since it has no spec: give to_chat a function that makes it")
        env = env.spec
    if isinstance(env, str):
        env = gym.spec(env)
        known = {*GymnasiumGame.argument_names(), *GymnasiumGame._refused_arguments}
        game_options = {name: options.pop(name) for name in [*options] if name not in known}
        env = copy.deepcopy(env)
        env.kwargs.update(game_options)
        _check_arguments(env, game_options)
    if isinstance(env, EnvSpec):
        spec = env
        if options.get("obs_to_text") is None and spec.kwargs.get("render_mode") is None and "ansi" in _render_modes(spec):
            spec = copy.deepcopy(spec)
            spec.kwargs["render_mode"] = "ansi"
        options.setdefault("env_id", spec.id)
        return GymnasiumGame(MakeGame(spec), name=spec.id, **options)
    if not callable(env):
        raise ConfigurationError(f"to_chat takes an id, a spec, a game or a function that makes one, got {type(env).__name__}")
    return GymnasiumGame(env, name=getattr(env, "__name__", "a game"), **options)


def make_chat(game: str, **options: Any) -> GymnasiumGame:
    """Return a registered game as a chat environment: the entry point of the ``gymnasium/`` ids."""
    return to_chat(game, **options)


def _render_modes(spec: EnvSpec) -> Sequence[str]:
    creator = gym.envs.registration.load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    return cast(Sequence[str], getattr(creator, "metadata", {}).get("render_modes", ()))


def _check_arguments(spec: EnvSpec, game_options: Mapping[str, Any]) -> None:
    """Raise if the game's constructor has no such argument."""
    creator = gym.envs.registration.load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    if creator is None:
        return
    parameters = inspect.signature(creator).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = [*GymnasiumGame.argument_names(), *parameters]
    for name in game_options:
        if name not in parameters:
            raise UnknownArgument(
                f"neither to_chat nor {spec.id} has an argument {name!r}.{did_you_mean(name, known)} The game takes"
                f" {', '.join(parameters) or 'none'}."
            )


def _check_readable(space: gym.Space[Any], name: str) -> None:
    numbers = gym.spaces.flatdim(space) if space.is_np_flattenable else 0
    size = len(space.spaces) if isinstance(space, gym.spaces.Tuple) else numbers
    if isinstance(space, gym.spaces.Discrete | gym.spaces.Text) or 0 < size <= _MOST_NUMBERS:
        return
    raise ConfigurationError(
        f"{name} has the observation space {space}, which is no text and no small set of numbers: give obs_to_text, a function"
        " from an observation to text"
    )
