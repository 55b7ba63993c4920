"""How observations of a PettingZoo environment are shown as they are, and what nobody could know from its prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym

from vfgym.codecs import Codec, text_renderer
from vfgym.messages import Content, join_contents
from vfgym.wrappers.games.images import frame_reader, image_part
from vfgym.wrappers.games.masks import MASK, holds_mask, without_mask
from vfgym.wrappers.gymnasium.grids import channel_renderer, code_keys, text_keys
from vfgym.wrappers.gymnasium.names import declared_channels
from vfgym.wrappers.gymnasium.playability import action_problem, observation_problem
from vfgym.wrappers.gymnasium.rendering import check_readable, screen_text
from vfgym.wrappers.pettingzoo.rules import Rules

_OTHERWISE = "or make the environment with render_mode='ansi' if it draws itself as text"


def make_renderer(game: Any, space: gym.Space[Any], title: str) -> Callable[[Any], Content]:
    """Return a function that shows observations of a space: images as images, bytes of text as text, the rest as numbers.

    Args:
        game: The unwrapped environment, which may name channels of its observations.
        space: The space.
        title: What messages of errors call the game.

    Raises:
        ConfigurationError: If they are more numbers than anybody can read.
    """
    read = frame_reader(space)
    if read is not None:
        return lambda observation: [image_part(read(observation))]
    if isinstance(space, gym.spaces.Dict):
        if text_keys(space):
            screen = screen_text(space, title)
            return lambda observation: screen(game, observation)
        codes = code_keys(space)
        images = [key for key, member in space.spaces.items() if key not in codes and frame_reader(member) is not None]
        if images:
            others = {key: member for key, member in space.spaces.items() if key not in images}
            shown = [make_renderer(game, gym.spaces.Dict(others), title)] if others else []
            shown += [_member(key, make_renderer(game, space.spaces[key], title)) for key in images]
            return lambda observation: join_contents([show(observation) for show in shown])
    channels = channel_renderer(space, declared_channels(game))
    if channels is not None:
        return lambda observation: channels(game, observation)
    check_readable(space, title, _OTHERWISE)
    render = text_renderer(space)
    if isinstance(space, gym.spaces.Dict):  # some members may be shown as images
        return lambda observation: render({key: observation[key] for key in space.spaces})
    return render


def _member(key: str, show: Callable[[Any], Content]) -> Callable[[Any], Content]:
    return lambda observation: show(observation[key])


def find_problems(env: Any, codecs: Mapping[Any, Codec], rules: Rules, *, is_rendered_as_observed: bool) -> tuple[str, ...]:
    """Return what players of an environment cannot know, each as a sentence that says what to give; empty if all is well.

    Args:
        env: The environment.
        codecs: How the actions of each player are written.
        rules: What is known of it.
        is_rendered_as_observed: Whether players see their observations, and nothing that is made for readers.
    """
    problems: dict[str, None] = {}
    if not rules.text:
        problems["nothing is known of its rules: give rules"] = None
    if not is_rendered_as_observed:
        return tuple(problems)
    for player, codec in codecs.items():
        seen, actions = env.observation_space(player), env.action_space(player)
        is_masked = holds_mask(seen) or MASK in (getattr(env, "infos", None) or {}).get(player, {})
        if not rules.actions and not is_masked:
            problems[action_problem(actions, codec)] = None
        if not rules.observations and "bservation" not in rules.text:
            shown = gym.spaces.Dict(without_mask(seen.spaces)) if holds_mask(seen) else seen
            problems[observation_problem(shown)] = None
    return tuple(filter(None, problems))
