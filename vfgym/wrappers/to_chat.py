"""`to_chat`: a game as a chat environment."""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from vfgym.agents.loading import import_named
from vfgym.envs.seat import EpisodeSeat
from vfgym.envs.signatures import shows_arguments_of
from vfgym.errors import ConfigurationError, UnknownArgument, did_you_mean
from vfgym.foreign import is_pettingzoo
from vfgym.wrappers.foreign_ids import register_package_of
from vfgym.wrappers.games.session import close_or_log
from vfgym.wrappers.gymnasium.game import GymnasiumGame, IsPettingZoo, MakeGame
from vfgym.wrappers.gymnasium.rendering import Game, may_change_observations
from vfgym.wrappers.pettingzoo.env import PettingZooEnv

_PETTINGZOO_ID = re.compile(r"\w+/\w+_v\d+")
"""``classic/chess_v6``; ids of Gymnasium have ``-v``."""


@shows_arguments_of(GymnasiumGame, rest="game_options")
def to_chat(env: str | EnvSpec | Game | Callable[[], Any], **options: Any) -> GymnasiumGame | PettingZooEnv:
    """Return a Gymnasium or PettingZoo game as a chat environment.

    The model is told the rules, the actions and the form of an answer: what is written by hand about Gymnasium's own games, what others
    say in their docstrings, and what was said with `vfgym.register_description`. Where that leaves many numbers without names or labels,
    there is a warning. The model is shown the observations: as text (the game's ``ansi`` drawing where it has one, labelled numbers
    otherwise) or as images. It answers with an action in words, or by calling a tool. A seed is given to the game as it is; the game's
    own rewards are emitted as they come, its termination and truncation are the episode's, its info is ``info["game_info"]``.
    `vfgym.to_gym` turns it back.

    A drawing shows the game, whatever its wrappers make of the observations. So text is the drawing only where they leave them as they
    are: where none is a `gymnasium.ObservationWrapper` or has another observation space. A wrapper with a `reset` or `step` of its own
    could change them too, and the observation is shown; a game that was made with ``render_mode="ansi"`` is drawn inside such a one.

    >>> env = to_chat("FrozenLake-v1", is_slippery=False)
    >>> conversation, info = env.reset(seed=0)
    >>> conversation, reward, terminated, truncated, info = env.step("Move right")

    Args:
        env: A registered id (or ``module:id``, for one that is registered as its module is imported), a spec, a function that makes a
            game, or a game with a spec, of which more are made. A PettingZoo game is given by its id (``"classic/chess_v6"``) or a
            function that makes it, and becomes a `PettingZooEnv`, which documents its options; those below are for Gymnasium games.
            What a function makes may have the interface of the older Gym too.
        **options: With an id, what is not listed here goes to the game.

            * ``observe``: ``"text"``, ``"image"`` (the observation where it is an image or holds some, else the game's ``rgb_array``
              drawing) or ``"both"``; by itself, observations that are images are shown as such, and those that hold images (a `Dict`)
              as both. Images are arrays of uint8 or of fractions from 0 to 1; stacked ones are shown side by side. ``obs_to_text``: a
              function from an observation to text.
            * ``show``: what is told of each move below the observation, of ``("reward", "legal", "step")``: what it earned, which actions
              are legal now (where the game has an ``action_mask`` in its info or in a `Dict` observation), and which move of how many
              it was. None tells the legal actions, and in Gymnasium's toy_text games the reward; ``()`` tells nothing.
            * ``as_tool``: True offers the actions as a tool ``act`` too.
            * ``max_actions_per_turn``: actions (1) that one answer may hold: in text each in ``<action>`` tags of its own, in a tool call
              as a list. They are played in order until the episode ends, and their rewards are summed.
            * ``rules``: text instead of what is known of the game. ``prompt``: text instead of all that is said before the first
              observation.
            * ``action_names``: one for each action of a `Discrete` space; for others a structure that mirrors the space
              (`vfgym.codecs.codec_for`).
            * ``on_invalid``: what an answer that names no action leads to: ``"feedback"`` says what was wrong and lets the model try
              again, ``max_invalid_moves`` (10) times in a row; ``"terminate"`` ends the episode; ``"noop"`` plays the action that does
              nothing (``noop_action``, where the game does not say which) and ``"random"`` any action. ``invalid_reward`` (0.0) is
              what each such answer is rewarded with.
            * ``history``: moves that the model is shown again: None for all of them. ``images``: pictures that it is shown, the newest
              ones. ``max_prompt_tokens``: most tokens of a prompt, in which the oldest moves are left out; four characters are a token
              unless ``count_tokens``, a function, counts those of a text, and a picture is 1,000.
            * ``max_turns``, ``blocking``, ``system_prompt``, ``rubric``, ``render_mode`` (the chat environment's) and the rest of what
              `vfgym.GameEnv` takes.

    Raises:
        ConfigurationError: If the game cannot be shown so (its observations are not a small set of numbers, say, and it has no drawing),
            an option does not fit it, or more of it cannot be made.
    """
    if isinstance(env, gym.Env):
        if env.spec is None:
            raise ConfigurationError(f"more of {env} cannot be made, since it has no spec: give to_chat a function that makes it")
        env = env.spec
    if isinstance(env, str) and _PETTINGZOO_ID.fullmatch(env):
        return _warned_of(PettingZooEnv(env, **options))
    if isinstance(env, str):
        env = copy.deepcopy(gym.spec(import_id(env)))
        known = {*GymnasiumGame.argument_names(), *GymnasiumGame._refused_arguments}
        game_options = {name: options.pop(name) for name in [*options] if name not in known}
        env.kwargs.update(game_options)
        _check_arguments(env, game_options)
    if isinstance(env, EnvSpec):
        _check_wrappers(env)
        spec = _with_render_mode(env, options)
        return _warned_of(GymnasiumGame(MakeGame(spec), **{"env_id": spec.id, "name": spec.id, **options}))
    if not callable(env):
        raise ConfigurationError(_refusal_text(env))
    try:
        chat = GymnasiumGame(env, **options)
    except IsPettingZoo:  # what a function makes is known when it has made one
        return _warned_of(PettingZooEnv(env, **options))
    return _warned_of(chat)


AnyGame = TypeVar("AnyGame", GymnasiumGame, PettingZooEnv)


def _warned_of(chat: AnyGame) -> AnyGame:
    """Return a chat environment, after a warning if nobody could play it from its prompt."""
    if chat.prompt_problems:
        warnings.warn(
            f"a model that plays {chat.env_id or 'this game'} is told too little: {'; '.join(chat.prompt_problems)}", stacklevel=3
        )
    return chat


def import_id(source: str) -> str:
    """Return the id in ``module:id``, once the module that registers it is imported; any other id as it is.

    An id that begins with the name of a package that an extra installs is registered by that package.

    Raises:
        ConfigurationError: If there is no such module.
        MissingExtra: If that package is not installed.
    """
    module, _, env_id = source.rpartition(":")
    if module:
        import_named(module, f"environment {source!r}")
    else:
        register_package_of(env_id)
    return env_id


def _check_wrappers(spec: EnvSpec) -> None:
    """Raise if the game has a wrapper that nobody can put around another one."""
    for wrapper in spec.additional_wrappers:
        if wrapper.kwargs is None:
            raise ConfigurationError(
                f"more of {spec.id} cannot be made, since its wrapper {wrapper.name} does not say how it was made (it would inherit"
                " gymnasium.utils.RecordConstructorArgs): give to_chat a function that makes the game"
            )


def _refusal_text(env: object) -> str:
    """Return why something is not a game, and what to give instead."""
    came = type(env).__name__
    if not is_pettingzoo(env):
        return f"to_chat takes an id, a spec, a game or a function that makes one, got {came}"
    return f"{came} is an environment of PettingZoo, of which to_chat has to make more: give it its id, or a function that makes it"


def _with_render_mode(spec: EnvSpec, options: Mapping[str, Any]) -> EnvSpec:
    """Return the spec of a game that draws what the options show: images where they are asked for, else text where it can.

    One that is not drawn for the model is made to draw pictures where the chat environment is to render them.
    """
    if spec.kwargs.get("render_mode") is not None:
        return spec
    wants_text = options.get("observe") in (None, "text")
    modes = ["ansi"] if wants_text and options.get("obs_to_text") is None and not _may_be_changed(spec) else []
    if not wants_text or options.get("render_mode") == "rgb_array":
        modes.append("rgb_array")
    for mode in modes:
        if _can_draw(spec, mode):
            spec = copy.deepcopy(spec)
            spec.kwargs["render_mode"] = mode
            break
    return spec


def _may_be_changed(spec: EnvSpec) -> bool:
    """Say whether a wrapper of a game may show a player something else than the game does."""
    return any(may_change_observations(cast(Any, load_env_creator(wrapper.entry_point))) for wrapper in spec.additional_wrappers)


def _can_draw(spec: EnvSpec, mode: str) -> bool:
    """Say whether a game can be made with a render mode."""
    parameters = _parameters(spec)
    if parameters is not None and "render_mode" not in parameters:
        return False
    metadata = getattr(_creator(spec), "metadata", None)
    if not isinstance(metadata, Mapping):  # a function does not say what it makes, nor does the class of a wrapper
        game = MakeGame(spec)()
        metadata = game.metadata
        close_or_log(game)
    return mode in (metadata.get("render_modes") or ())


_ARGUMENTS_OF_MAKE = {"max_episode_steps": " Give max_turns, or a spec with other max_episode_steps."}
"""Arguments of `gymnasium.make`, and what to_chat has instead."""


def make_chat(game: str, **options: Any) -> GymnasiumGame | PettingZooEnv:
    """Return a registered game as a chat environment: the entry point of the ``gymnasium/`` ids."""
    return to_chat(game, **options)


make_chat.metadata = EpisodeSeat.metadata  # type: ignore[attr-defined]  # where gymnasium.make looks for render modes ("rgb_array_list")


def _creator(spec: EnvSpec) -> Any:
    """Return the class or function that makes a game."""
    return load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point


def _parameters(spec: EnvSpec) -> list[str] | None:
    """Return the names of what the creator of a game takes; None if it takes anything."""
    creator = _creator(spec)
    if creator is None:
        return None
    parameters = inspect.signature(creator).parameters
    return None if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()) else [*parameters]


def _check_arguments(spec: EnvSpec, game_options: Mapping[str, Any]) -> None:
    """Raise if the game's constructor has no such argument."""
    parameters = _parameters(spec)
    if parameters is None:
        return
    for name in game_options:
        if name not in parameters:
            hint = _ARGUMENTS_OF_MAKE.get(name) or did_you_mean(name, [*GymnasiumGame.argument_names(), *parameters])
            raise UnknownArgument(
                f"neither to_chat nor {spec.id} has an argument {name!r}.{hint} The game takes {', '.join(parameters) or 'none'}."
            )
