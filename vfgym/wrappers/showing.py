"""How a Gymnasium game is shown to a model: its observations, or its drawings, as text and as images.

What shows a game is a small object and no closure, so that environments can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

import gymnasium as gym

from vfgym.codecs import text_renderer
from vfgym.codecs.observations import TextRenderer, without_colours
from vfgym.envs.game import joined
from vfgym.errors import ConfigurationError
from vfgym.messages import Content
from vfgym.wrappers.descriptions import describe
from vfgym.wrappers.images import image_part, is_image_space
from vfgym.wrappers.minigrid import is_minigrid, minigrid_text

Game: TypeAlias = gym.Env[Any, Any]

Observe: TypeAlias = Literal["text", "image", "both"]
"""How a game is shown."""

_MOST_NUMBERS = 512
"""A longer observation is no text that a model can read."""


class Shown(Protocol):
    """Shows a game after `reset` or `step`."""

    def __call__(self, game: Game, observation: Any) -> Content:
        """Return what the model sees of the game, which has just given this observation."""
        ...


class RenderedText:
    """Shows observations as labelled numbers."""

    __slots__ = ("labels", "render", "space")

    def __init__(self, space: gym.Space[Any], labels: Sequence[str]) -> None:
        """Show observations of `space`, whose elements have these labels if there are as many."""
        self.space = space
        self.labels = labels
        renderer: Any = text_renderer(space, labels)
        self.render: TextRenderer = renderer.__call__  # a method is called faster than an object

    def __call__(self, game: Game, observation: Any) -> str:
        """Return the observation as text."""
        return self.render(observation)

    def __reduce__(self) -> tuple[type[RenderedText], tuple[Any, ...]]:
        return RenderedText, (self.space, self.labels)


@dataclass(frozen=True)
class WrittenText:
    """Shows what a function makes of an observation."""

    obs_to_text: Callable[[Any], str]

    def __call__(self, game: Game, observation: Any) -> str:
        """Return the observation as text."""
        text = self.obs_to_text(observation)
        if not isinstance(text, str):
            raise ConfigurationError(f"obs_to_text must return text, got {type(text).__name__}")
        return text


@dataclass(frozen=True)
class Image:
    """Shows an image: the observation where it is one, else the game's drawing."""

    is_observation: bool

    def __call__(self, game: Game, observation: Any) -> Content:
        """Return the image as a content part."""
        frame: Any = observation if self.is_observation else game.render()
        return [image_part(frame)]


@dataclass(frozen=True)
class Both:
    """Shows text and an image."""

    text: Shown
    image: Shown

    def __call__(self, game: Game, observation: Any) -> Content:
        """Return text and image as content parts."""
        return joined([self.text(game, observation), self.image(game, observation)])


def drawn_text(game: Game, observation: Any) -> str:
    """Return the game's own drawing as text."""
    return without_colours(str(game.render()))


def shown_by(game: Game, name: str, observe: Observe | None, obs_to_text: Callable[[Any], str] | None) -> Shown:
    """Return what shows a game.

    Args:
        game: The game, which need not have begun.
        name: What messages of errors call it.
        observe: Text, image or both; None takes an image where the observations are images, else text.
        obs_to_text: A function from an observation to text.

    Raises:
        ConfigurationError: If the game cannot be shown so, or an argument is wrong.
    """
    if observe is not None and observe not in get_args(Observe):
        raise ConfigurationError(f"observe must be one of {', '.join(get_args(Observe))}, or None; got {observe!r}")
    if obs_to_text is not None and not callable(obs_to_text):
        raise ConfigurationError(f"obs_to_text must be a function from an observation to text, got {obs_to_text!r}")
    if observe is None:
        is_drawn = obs_to_text is not None or game.render_mode == "ansi"
        observe = "image" if is_image_space(game.observation_space) and not is_drawn else "text"
    if observe == "text":
        return _text_of(game, name, obs_to_text)
    image = _image_of(game, name)
    return image if observe == "image" else Both(_text_of(game, name, obs_to_text), image)


def _text_of(game: Game, name: str, obs_to_text: Callable[[Any], str] | None) -> Shown:
    if obs_to_text is not None:
        return WrittenText(obs_to_text)
    if game.render_mode == "ansi":
        return drawn_text
    if is_minigrid(game):
        return WrittenText(minigrid_text)
    check_readable(game.observation_space, name, 'or observe="image" if it can be drawn')
    return RenderedText(game.observation_space, describe(game).observation_labels)


def check_readable(space: gym.Space[Any], name: str, otherwise: str) -> None:
    """Check that observations are not more numbers than a model can read.

    Args:
        space: The space of the observations.
        name: What messages of errors call the game.
        otherwise: What the caller can do instead of giving ``obs_to_text``, as the rest of a sentence.

    Raises:
        ConfigurationError: If they are.
    """
    size = gym.spaces.flatdim(space) if space.is_np_flattenable and not isinstance(space, gym.spaces.Discrete) else 0
    if size > _MOST_NUMBERS:
        raise ConfigurationError(
            f"{name} has the observation space {space} of {size} numbers, which no model can read: give obs_to_text, a function from an"
            f" observation to text, {otherwise}"
        )


def _image_of(game: Game, name: str) -> Shown:
    is_observation = is_image_space(game.observation_space)
    if not is_observation and game.render_mode != "rgb_array":
        raise ConfigurationError(
            f"{name} has no images to show: its observations are none, and its render mode is {game.render_mode!r}; make it with"
            " render_mode='rgb_array'"
        )
    return Image(is_observation)
