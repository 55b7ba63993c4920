"""How a Gymnasium game is shown to a model: its observations, or its drawings, as text and as images.

What shows a game is a small object and no closure, so that environments can be pickled.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

import gymnasium as gym

from vfgym.codecs import text_renderer
from vfgym.codecs.observations import TextRenderer, without_colours
from vfgym.errors import ConfigurationError
from vfgym.messages import Content, join_contents
from vfgym.wrappers.games.images import Frame, FrameReader, frame_reader, image_part
from vfgym.wrappers.games.masks import holds_mask, without_mask
from vfgym.wrappers.gymnasium.descriptions import Description, describe
from vfgym.wrappers.gymnasium.grids import ChannelText, ScreenText, channel_renderer, code_keys, screen_keys, text_keys
from vfgym.wrappers.gymnasium.minigrid import ABOUT_VIEW, is_minigrid, is_minigrid_game, minigrid_text, shows_pixels
from vfgym.wrappers.gymnasium.names import declared_channels
from vfgym.wrappers.gymnasium.unwrapping import innermost

Game: TypeAlias = gym.Env[Any, Any]

Observe: TypeAlias = Literal["text", "image", "both"]
"""How a game is shown."""

_MOST_NUMBERS = 512
"""A longer observation is not text that a model can read."""


class ObservationRenderer(Protocol):
    """Shows a game after `reset` or `step`."""

    def __call__(self, game: Game, observation: Any) -> Content:
        """Return what the model sees of the game, which has just given this observation."""
        ...


class RenderedText:
    """Shows observations as labelled numbers."""

    __slots__ = ("hides_mask", "labels", "render", "space")

    def __init__(self, space: gym.Space[Any], labels: Sequence[str], hides_mask: bool = False) -> None:
        """Show observations of `space`, whose elements have these labels if there are as many, with or without an action mask in them."""
        self.space = space
        self.labels = labels
        self.hides_mask = hides_mask
        renderer: Any = _WithoutMask(cast(gym.spaces.Dict, space), labels) if hides_mask else text_renderer(space, labels)
        self.render: TextRenderer = renderer.__call__  # a method is called faster than an object

    def __call__(self, game: Game, observation: Any) -> str:
        """Return the observation as text."""
        return self.render(observation)

    def __reduce__(self) -> tuple[type[RenderedText], tuple[Any, ...]]:
        return RenderedText, (self.space, self.labels, self.hides_mask)


class _WithoutMask:
    """Renders what a Dict observation holds beside its action mask: the only other element alone, or all others by their keys."""

    def __init__(self, space: gym.spaces.Dict, labels: Sequence[str]) -> None:
        others = without_mask(space.spaces)
        self._only = next(iter(others)) if len(others) == 1 else None
        self._render = text_renderer(gym.spaces.Dict(others) if self._only is None else others[self._only], labels)

    def __call__(self, observation: Any) -> str:
        return self._render(without_mask(observation) if self._only is None else observation[self._only])


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


_MINIGRID_TEXT = WrittenText(minigrid_text)


@dataclass(frozen=True)
class OtherMembers:
    """Shows what a Dict observation holds beside images, as labelled numbers."""

    text: RenderedText

    def __call__(self, game: Game, observation: Any) -> str:
        """Return it as text."""
        return self.text.render({key: observation[key] for key in cast(gym.spaces.Dict, self.text.space).spaces})


def render_image(game: Game, observation: Any) -> Content:
    """Return the game's own drawing as an image."""
    return [image_part(cast(Frame, game.render()))]


@dataclass(frozen=True)
class ObservedImages:
    """Shows the images in an observation."""

    members: tuple[tuple[str | None, FrameReader], ...]
    """The keys of a Dict observation that are images, and what makes frames of them; the key None is for the observation itself."""

    def frames(self, observation: Any) -> list[Frame]:
        """Return the images."""
        return [read(observation if key is None else observation[key]) for key, read in self.members]

    def __call__(self, game: Game, observation: Any) -> Content:
        """Return the images as content parts; of several, each under its key."""
        parts = []
        for (key, _), frame in zip(self.members, self.frames(observation), strict=True):
            if len(self.members) > 1:
                parts.append({"type": "text", "text": f"{key}:"})
            parts.append(image_part(frame))
        return parts

    @property
    def explanation(self) -> str:
        """What is to be said of the images; empty where they explain themselves."""
        lines = []
        for key, read in self.members:
            if read.frames > 1:
                image = "The image" if len(self.members) == 1 else f"The image {key!r}"
                lines.append(f"{image} shows {read.frames} frames side by side, the oldest at the left and the newest at the right.")
        return "\n".join(lines)


@dataclass(frozen=True)
class TextAndImage:
    """Shows text and an image."""

    text: ObservationRenderer
    image: ObservationRenderer

    def __call__(self, game: Game, observation: Any) -> Content:
        """Return text and image as content parts."""
        return join_contents([self.text(game, observation), self.image(game, observation)])


def render_drawing(game: Game, observation: Any) -> str:
    """Return the game's own drawing as text."""
    return drawing_text(game.render())


class RememberedDrawings:
    """Shows games of Gymnasium's toy_text that share a table of transitions: each position is drawn once.

    Their drawing as text follows from where they are (``s``) and from the action before it (``lastaction``). To draw a FrozenLake takes
    25 µs, twice what its move takes. A game with a table of its own is drawn each time.
    """

    _MOST_CHARACTERS = 1_000_000

    def __init__(self, transitions: Mapping[Any, Any]) -> None:
        """Take the table that the games share."""
        self._transitions = transitions
        self._drawn: dict[tuple[Any, Any], str] = {}
        self._characters = 0

    def __call__(self, game: Game, observation: Any) -> str:
        """Return the game's own drawing as text."""
        bare: Any = game.unwrapped
        if bare.P is not self._transitions:
            return render_drawing(game, observation)
        position = bare.s, bare.lastaction
        text = self._drawn.get(position)
        if text is None:
            text = render_drawing(game, observation)
            self._characters += len(text)
            if self._characters <= self._MOST_CHARACTERS:
                self._drawn[position] = text
        return text


def drawing_text(drawing: Any) -> str:
    """Return what `render` gave with ``render_mode="ansi"`` as plain text.

    Args:
        drawing: Text or an `io.StringIO`, as `gymnasium.Env.render` has it.

    Raises:
        ConfigurationError: If it is neither.
    """
    text = drawing.getvalue() if isinstance(drawing, io.StringIO) else drawing
    if not isinstance(text, str):
        raise ConfigurationError(
            f'render() of a game with render_mode="ansi" must return text, or an io.StringIO with it; got {type(drawing).__name__}'
        )
    return without_colours(text)


def make_renderer(
    game: Game, name: str, observe: Observe | None, obs_to_text: Callable[[Any], str] | None, *, hides_mask: bool = False
) -> ObservationRenderer:
    """Return what shows a game.

    Args:
        game: The game. One that draws text begins an episode, since only then it can be asked for a drawing.
        name: What messages of errors call it.
        observe: Text, image or both; None takes an image where the observations are images, else text.
        obs_to_text: A function from an observation to text.
        hides_mask: Whether labelled numbers do not show an action mask in the observation, since it is told below them.

    Raises:
        ConfigurationError: If the game cannot be shown so, or an argument is wrong.
    """
    if observe == "image" and obs_to_text is not None:
        raise ConfigurationError('obs_to_text makes text, of which observe="image" shows none: give observe="text" or observe="both"')
    if observe is not None and observe not in get_args(Observe):
        raise ConfigurationError(f"observe must be one of {', '.join(get_args(Observe))}, or None; got {observe!r}")
    if obs_to_text is not None and not callable(obs_to_text):
        raise ConfigurationError(f"obs_to_text must be a function from an observation to text, got {obs_to_text!r}")
    is_screen = bool(text_keys(game.observation_space))  # the terminal of NetHack tells more than its drawing, which is the map alone
    shows_drawing = obs_to_text is None and not is_screen and _shows_drawing(game)
    images, space = _observed_images(game), game.observation_space
    if observe is None:
        is_text = images is None or obs_to_text is not None or shows_drawing
        observe = "text" if is_text else "both" if isinstance(space, gym.spaces.Dict) else "image"
    if observe == "image":
        return images or _drawn_image(game, name)
    text: ObservationRenderer | None
    if obs_to_text is not None:
        text = WrittenText(obs_to_text)
    elif shows_drawing:
        text = render_drawing
    elif observe == "both" and images is not None and isinstance(space, gym.spaces.Dict):
        text = _other_members(space, images, name, hides_mask)
        if text is None:
            return images
    else:
        text = _observation_text(game, name, hides_mask)
    return text if observe == "text" else TextAndImage(text, images or _drawn_image(game, name))


def _observed_images(game: Game) -> ObservedImages | None:
    """Return what shows the images in a game's observations; None if there are none."""
    space = game.observation_space
    if not isinstance(space, gym.spaces.Dict):
        read = frame_reader(space)
        return None if read is None else ObservedImages(((None, read),))
    if is_minigrid_game(game) and not shows_pixels(game):
        return None
    no_images = {*text_keys(space), *code_keys(space)}
    members = ((key, frame_reader(member)) for key, member in space.spaces.items() if key not in no_images)
    images = tuple((key, read) for key, read in members if read is not None)
    return ObservedImages(images) if images else None


def _other_members(space: gym.spaces.Dict, images: ObservedImages, name: str, hides_mask: bool) -> OtherMembers | ScreenText | None:
    """Return what shows the members of a Dict observation that are not images; None if there are no others."""
    keys = {key for key, _ in images.members}
    others = {key: member for key, member in space.spaces.items() if key not in keys}
    if hides_mask and holds_mask(space):
        others = without_mask(others)
    if not others:
        return None
    rest = gym.spaces.Dict(others)
    if text_keys(rest):
        return screen_text(rest, name)
    check_readable(rest, name, 'or observe="image" if its images are enough')
    return OtherMembers(RenderedText(rest, ()))


def _observation_text(game: Game, name: str, hides_mask: bool) -> ObservationRenderer:
    if is_minigrid(game):
        return _MINIGRID_TEXT
    space = game.observation_space
    hides_mask = hides_mask and holds_mask(space)
    if text_keys(space):
        return screen_text(cast(gym.spaces.Dict, space), name)
    channels = channel_renderer(space, declared_channels(innermost(game)))
    if channels is not None:
        return channels
    written: Any = gym.spaces.Dict(without_mask(space.spaces)) if hides_mask else space  # type: ignore[attr-defined]
    check_readable(written, name, 'or observe="image" if it can be drawn')
    return RenderedText(space, describe(game).observation_labels, hides_mask)


def screen_text(space: gym.spaces.Dict, name: str) -> ScreenText:
    """Return what shows observations that hold bytes of text (see `grids.text_keys`).

    Raises:
        ConfigurationError: If what they hold beside is more numbers than anybody can read.
    """
    keys, rest = screen_keys(space)
    if rest is None:
        return ScreenText(keys)
    check_readable(rest, name, "for all that it observes")
    return ScreenText(keys, OtherMembers(RenderedText(rest, ())))


def explanation(renderer: ObservationRenderer, described: Description) -> str:
    """Return what a game's description says of the text that shows it; empty where that explains itself, or is none."""
    if isinstance(renderer, TextAndImage):
        parts = [explanation(renderer.text, described), explanation(renderer.image, described)]
        return "\n\n".join(part for part in parts if part)
    if isinstance(renderer, ScreenText):
        return described.about_observations if renderer.rest is not None else ""
    if isinstance(renderer, RenderedText | OtherMembers):
        return described.about_observations
    if isinstance(renderer, ChannelText):
        return "\n\n".join(filter(None, [renderer.legend, described.about_observations]))
    if isinstance(renderer, ObservedImages):
        return renderer.explanation
    if renderer == _MINIGRID_TEXT:
        return ABOUT_VIEW
    is_registered = isinstance(renderer, WrittenText) and renderer.obs_to_text is described.obs_to_text
    return described.legend if renderer is render_drawing or is_registered else ""


def observed_frame(renderer: ObservationRenderer, observation: Any) -> Frame | None:
    """Return the image that shows an observation, the first of several; None where it is not shown as one."""
    image = renderer.image if isinstance(renderer, TextAndImage) else renderer
    return image.frames(observation)[0] if isinstance(image, ObservedImages) else None


def check_readable(space: gym.Space[Any], name: str, otherwise: str) -> None:
    """Check that observations are not more numbers than a model can read.

    Args:
        space: The space of the observations.
        name: What messages of errors call the game.
        otherwise: What the caller can do instead of giving ``obs_to_text``, as the rest of a sentence.

    Raises:
        ConfigurationError: If they are.
    """
    size = _count_elements(space)
    if size > _MOST_NUMBERS:
        raise ConfigurationError(
            f"{name} has the observation space {space} of {size} numbers, which no model can read: give obs_to_text, a function from an"
            f" observation to text, {otherwise}"
        )


def _count_elements(space: gym.Space[Any]) -> int:
    """Return how many numbers or texts are written for an element of a space; what may have any length counts as of length 1."""
    match space:
        case gym.spaces.Box() | gym.spaces.MultiBinary() | gym.spaces.MultiDiscrete():
            return math.prod(space.shape)
        case gym.spaces.Dict():
            return sum(map(_count_elements, space.spaces.values()))
        case gym.spaces.Tuple():
            return sum(map(_count_elements, space.spaces))
        case gym.spaces.OneOf():
            return max(map(_count_elements, space.spaces))
        case gym.spaces.Sequence():
            return _count_elements(space.feature_space)
        case gym.spaces.Graph():
            return _count_elements(space.node_space) + (0 if space.edge_space is None else _count_elements(space.edge_space))
    return 1


# Which wrappers leave observations as they are

_HANDING_ON = (
    gym.Wrapper,
    gym.ActionWrapper,
    gym.RewardWrapper,
    gym.wrappers.Autoreset,
    gym.wrappers.HumanRendering,
    gym.wrappers.NormalizeReward,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.PassiveEnvChecker,
    gym.wrappers.RecordEpisodeStatistics,
    gym.wrappers.RecordVideo,
    gym.wrappers.RenderCollection,
    gym.wrappers.RepeatAction,
    gym.wrappers.StickyAction,
    gym.wrappers.TimeLimit,
)
"""Gymnasium's wrappers whose own `reset` or `step` returns the observation of the environment inside (Gymnasium 1.4)."""

_METHODS_HANDING_ON = {method for wrapper in _HANDING_ON for method in (wrapper.reset, wrapper.step)}


def may_change_observations(wrapper: type[gym.Wrapper[Any, Any, Any, Any]]) -> bool:
    """Say whether a class of wrappers may change observations.

    One that inherits its `reset` and `step` from those of Gymnasium that do not (`RewardWrapper`, `TimeLimit`, ...) does not either; what
    others do in theirs cannot be known.
    """
    return not {wrapper.reset, wrapper.step} <= _METHODS_HANDING_ON


def _shows_drawing(game: Game) -> bool:
    """Say whether the text that shows a game is its drawing: where it was made for that, and no wrapper shows the player something else."""
    if game.render_mode != "ansi":
        return False
    drawn = game
    while isinstance(game, gym.Wrapper):
        if isinstance(game, gym.ObservationWrapper) or game.observation_space != game.env.observation_space:
            return False
        game = game.env
    return _draws_text(drawn)


def _draws_text(game: Game) -> bool:
    """Say whether a game that was made to draw text returns it: some print it, and return None."""
    try:
        game.reset()
        with contextlib.redirect_stdout(io.StringIO()):
            return game.render() is not None
    except Exception:  # of a game that cannot begin so (without certain options, say): an episode will tell
        return True


def _drawn_image(game: Game, name: str) -> ObservationRenderer:
    """Return what shows a game as the image that it draws, if it draws one."""
    if game.render_mode != "rgb_array":
        raise ConfigurationError(
            f"{name} has no images to show: its observations are none, and its render mode is {game.render_mode!r}. If it can draw itself,"
            " make it so: to_chat(gymnasium.make(..., render_mode='rgb_array'), ...), or give a function that does"
        )
    return render_image
