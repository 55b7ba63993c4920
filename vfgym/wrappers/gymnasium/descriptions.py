"""What a model is told about a Gymnasium environment: its rules, and names for its actions and observations.

For Gymnasium's own games that is written by hand (see `curated`). Others are described by their docstrings (see `docstrings`) and by
what they declare (see `names`). What was said with `vfgym.register_description` goes before both.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from vfgym.data import GamePrompt, OtherPrompt, PromptText, gymnasium_prompts
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium import minigrid
from vfgym.wrappers.gymnasium.curated import Settings, curated_prompt, other_prompts_of, write
from vfgym.wrappers.gymnasium.docstrings import numbered_elements, player_sections, without_elements
from vfgym.wrappers.gymnasium.names import declared_action_labels, declared_action_names, declared_labels
from vfgym.wrappers.gymnasium.registered import RegisteredDescription, registered_descriptions
from vfgym.wrappers.gymnasium.unwrapping import documented_game, innermost

MOST_CHARACTERS = 3000
"""The longest rules and explanations that are taken from a docstring; what goes beyond is cut at a paragraph."""


@dataclass(frozen=True)
class Description:
    """What a player is told about an environment; what is not known is empty."""

    rules: str = ""
    """What the game is about, its rewards and how an episode ends, in plain paragraphs."""
    about_actions: str = ""
    """What is to be said about actions besides their names."""
    about_observations: str = ""
    """What is to be said about observations besides their labels, for a player who sees them as numbers."""
    legend: str = ""
    """How to read the environment's ``ansi`` drawing, for a player who sees that."""
    action_names: Any = ()
    """The name of each action of a `Discrete` space, in order; or names as `vfgym.codecs.codec_for` takes them."""
    action_labels: tuple[str, ...] = ()
    """What each number of an action stands for, where actions are vectors (`Box`, `MultiDiscrete`, `MultiBinary`)."""
    observation_labels: tuple[str, ...] = ()
    """What each number of an observation stands for, where observations are vectors or tuples; or each value of a `Discrete`."""
    noop: int | None = None
    """The action of a `Discrete` space that does nothing, where one clearly does."""
    obs_to_text: Callable[[Any], str] | None = None
    """What writes observations, if it was registered."""
    failure_reward: float | None = None
    """What a failed rollout counts with, if it was registered."""
    prompts_version: int | None = None
    """The version of the data that this is from; None where it is not from data."""
    has_registered_rules: bool = False
    """Whether somebody wrote the rules for this, who said in them what has to be known."""


@runtime_checkable
class KnowsRules(Protocol):
    """A wrapper that knows the rules of the game inside of it."""

    @property
    def rules_for_players(self) -> str:
        """What a player is told."""
        ...


def _layers(env: Any) -> Iterator[Any]:
    """Yield a game's wrappers, from the outermost to the game itself."""
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


def describe(env: gym.Env[Any, Any]) -> Description:
    """Return what a player is told about an environment.

    What is said about actions or observations holds for the bare environment's spaces; where a wrapper changed a space, nothing is.

    Raises:
        ConfigurationError: If labels were registered that are not as many as there are numbers.
    """
    curated = _curated(type(innermost(env)))
    described = _declared_description(env) if curated is None else _curated_description(env, curated)
    for prompt in other_prompts_of(type(documented_game(env))):
        described = _with_other(env, described, prompt)
    rules = next((layer.rules_for_players for layer in _layers(env) if isinstance(layer, KnowsRules)), None)
    if rules is not None:
        described = dataclasses.replace(described, rules=rules, prompts_version=None)
    for registered in registered_descriptions(env):
        described = _with_registered(env, described, registered)
    return described


def _with_other(env: gym.Env[Any, Any], described: Description, prompt: OtherPrompt) -> Description:
    settings = Settings(env, {})
    changes: dict[str, Any] = {}
    if rules := write(prompt.get("rules", []), settings):
        changes["rules"] = _paragraphs([*rules, *_step_limit(env.spec)])
    if _has_its_actions(env) and (actions := write(prompt.get("actions", []), settings)):
        changes["about_actions"] = _paragraphs(actions)
    if _has_its_observations(env) and (observations := write(prompt.get("observations", []), settings)):
        changes["about_observations"] = _paragraphs(observations)
    return dataclasses.replace(described, **changes)


def _with_registered(env: gym.Env[Any, Any], described: Description, registered: RegisteredDescription) -> Description:
    changes: dict[str, Any] = {}
    if registered.rules is not None:
        changes |= {"rules": registered.rules, "prompts_version": None, "has_registered_rules": True}
    if registered.legend is not None:
        changes["legend"] = registered.legend
    if registered.failure_reward is not None:
        changes["failure_reward"] = registered.failure_reward
    if registered.action_names is not None and _has_its_actions(env):
        noop = _noop(env.action_space, registered.action_names)
        changes |= {"action_names": registered.action_names, "action_labels": (), "about_actions": "", "noop": noop}
    if _has_its_observations(env):
        if registered.obs_to_text is not None:
            changes["obs_to_text"] = registered.obs_to_text
        if registered.labels is not None:
            size = _size(env.observation_space)
            if len(registered.labels) != size:
                raise ConfigurationError(
                    f"{len(registered.labels)} labels are registered for {type(innermost(env)).__name__}, whose observations"
                    f" ({env.observation_space}) have {'no numbers to label' if size is None else f'{size}'}"
                )
            changes |= {"observation_labels": registered.labels, "about_observations": ""}
    return dataclasses.replace(described, **changes)


def _has_its_actions(env: gym.Env[Any, Any]) -> bool:
    return bool(env.action_space == _bare(env).action_space)


def _has_its_observations(env: gym.Env[Any, Any]) -> bool:
    return bool(env.observation_space == _bare(env).observation_space)


def _bare(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    while isinstance(env, gym.Wrapper):
        env = env.env
    return env


# Gymnasium's own games


def _curated(cls: type) -> GamePrompt | None:
    """Return what is written about a class or the class that it refines, unless it says something itself."""
    for base in cls.__mro__:
        prompt = curated_prompt(base)
        if prompt is not None or _is_documented(base):
            return prompt
    return None


def _curated_description(env: gym.Env[Any, Any], curated: GamePrompt) -> Description:
    """Return what is written about one of Gymnasium's games, as it was made."""
    game = innermost(env)
    settings = Settings(env, curated.get("settings", {}))
    sections = [
        ("", write(curated["rules"], settings)),
        ("Rewards:\n", write(curated["rewards"], settings)),
        ("Episode end:\n", [" ".join([*write(curated.get("episode_end", []), settings), *_step_limit(env.spec)])]),
    ]
    has_its_actions, has_its_observations = _has_its_actions(env), _has_its_observations(env)
    is_known_robot = env.spec is None or "xml_file" not in env.spec.kwargs

    def fitting(texts: Sequence[str | PromptText], space: gym.Space[Any], is_the_games: bool) -> tuple[str, ...]:
        return _fitting(tuple(write(texts, settings)), space) if is_the_games and is_known_robot else ()

    names = fitting(curated.get("action_names", []), game.action_space, has_its_actions)
    return Description(
        rules="\n\n".join(title + _paragraphs(texts) for title, texts in sections if any(texts)),
        about_actions=_paragraphs(write(curated.get("actions", []), settings)) if has_its_actions else "",
        about_observations=_paragraphs(
            [
                *(write(curated.get("observations", []), settings) if has_its_observations else ()),
                *write(curated.get("map", []), settings),
            ]
        ),
        legend=_paragraphs(write(curated.get("legend", []), settings)),
        action_names=names,
        action_labels=fitting(curated.get("action_labels", []), game.action_space, has_its_actions),
        observation_labels=fitting(curated.get("observation_labels", []), game.observation_space, has_its_observations),
        noop=names.index(curated["noop"]) if curated.get("noop") in names else None,
        prompts_version=gymnasium_prompts()["version"],
    )


# Other games

_FOR_AUTHORS = (
    "gymnasium.core.",
    "gymnasium.envs.mujoco.mujoco_env.",
    "ale_py.env.",
    "minigrid.minigrid_env.",
    "minigrid.core.",
    "minigrid.envs.babyai.core.",
    "browsergym.",
    "jericho.",
    "scienceworld.",
    "shimmy.",
    "textworld.",
    "textworld_express.",
    "gym.core.",
    "builtins.",
)
"""Modules whose classes document what games are made with, and none of them."""

_ACTIONS = frozenset({"action space", "actions"})
_OBSERVATIONS = frozenset({"observation space", "observations"})


def _declared_description(env: gym.Env[Any, Any]) -> Description:
    """Return what an environment says about itself: in its docstring, and in what it declares."""
    game: Any = innermost(env)
    while "gym_env" in getattr(game, "__dict__", ()):  # one of the abandoned gym, in a wrapper of shimmy's
        game = game.gym_env.unwrapped
    found = {heading.casefold(): (heading, text) for heading, text in player_sections(_docstring(type(documented_game(game)))).items()}
    about_actions = "\n\n".join(text for key, (_, text) in found.items() if key in _ACTIONS)
    about_observations = "\n\n".join(text for key, (_, text) in found.items() if key in _OBSERVATIONS)
    action_names, action_labels = _own_names(env, game, about_actions)
    labels = _own_labels(env, game, about_observations)
    if action_names or action_labels:
        about_actions = "" if minigrid.is_minigrid_game(env) else without_elements(about_actions)
    return Description(
        rules="\n\n".join(filter(None, [_within_limit(_rules(env, game, found)), *_step_limit(env.spec)])),
        about_actions=_within_limit(about_actions) if _has_its_actions(env) else "",
        about_observations=_within_limit(_about_observations(env, game, about_observations, labels)),
        action_names=action_names,
        action_labels=action_labels,
        observation_labels=labels,
        noop=_noop(env.action_space, action_names),
    )


def _docstring(cls: type) -> str:
    """Return the docstring of an environment's class, or that of the class that it refines."""
    return next((base.__doc__ or "" for base in cls.__mro__ if _is_documented(base)), "")


def _is_documented(cls: type) -> bool:
    """Say whether a class has a docstring that is about a game."""
    return bool(hasattr(cls, "step") and cls.__dict__.get("__doc__") and not f"{cls.__module__}.".startswith(_FOR_AUTHORS))


def _rules(env: gym.Env[Any, Any], game: Any, found: dict[str, tuple[str, str]]) -> str:
    if _is_atari(game):
        parts = [_atari_rules(game)]
    else:
        unsaid = _ACTIONS | _OBSERVATIONS | ({"mission space"} if minigrid.is_minigrid_game(env) else set())
        parts = [
            text if key in ("", "description") else f"{heading}:\n{text}" for key, (heading, text) in found.items() if key not in unsaid
        ]
        if minigrid.is_minigrid_game(env):
            parts.append(minigrid.rules(env))
    return "\n\n".join(parts)


def _is_atari(game: Any) -> bool:
    return any((base.__module__, base.__qualname__) == ("ale_py.env", "AtariEnv") for base in type(game).__mro__)


def _atari_rules(game: Any) -> str:
    title = game._game.replace("_", " ").title()
    rules = [f"This is the Atari 2600 game {title}.", "Your rewards are the points that the game's score counts."]
    sticky = game.ale.getFloat("repeat_action_probability")
    if sticky:
        rules.append(f"At each frame, with probability {sticky:g}, your previous action goes on instead of the one you chose.")
    return " ".join(rules)


def _within_limit(text: str) -> str:
    while len(text) > MOST_CHARACTERS:
        text = text.rpartition("\n\n")[0] or text[:MOST_CHARACTERS].rpartition(" ")[0] or text[:MOST_CHARACTERS]
    return text


_ATARI_LABELS = ("joystick radius", "joystick angle (radians)", "fire")
"""What the numbers of an Atari game's continuous actions are (ale-py 0.12)."""


def _own_names(env: gym.Env[Any, Any], game: Any, about_actions: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of actions, or the labels of their numbers: those that are declared, or else listed in the docstring."""
    space = env.action_space
    if not _has_its_actions(env):
        return (), ()
    listed = numbered_elements(about_actions)
    if not isinstance(space, spaces.Discrete):
        candidates = (_ATARI_LABELS if _is_atari(game) else (), listed, declared_action_labels(game))
        return (), next(filter(None, (_fitting(labels, space) for labels in candidates)), ())
    if minigrid.is_minigrid_game(env):
        return minigrid.action_names(env), ()
    return declared_action_names(game, space) or _fitting(listed, space), ()


def _own_labels(env: gym.Env[Any, Any], game: Any, about_observations: str) -> tuple[str, ...]:
    if not _has_its_observations(env):
        return ()
    candidates = (*declared_labels(game), numbered_elements(about_observations))
    return next(filter(None, (_fitting(labels, env.observation_space) for labels in candidates)), ())


def _about_observations(env: gym.Env[Any, Any], game: Any, documented: str, labels: tuple[str, ...]) -> str:
    if not _has_its_observations(env):
        return ""
    text = without_elements(documented) if labels else documented
    columns = [] if labels else [", ".join(names) for names in declared_labels(game) if _are_columns(names, env.observation_space)]
    return "\n\n".join(filter(None, [text, *(f"The numbers of each row are: {names}." for names in columns[:1])]))


def _are_columns(names: tuple[str, ...], space: gym.Space[Any]) -> bool:
    """Say whether all rows of a space, which may hold several lists and tables, are as long as a list of names."""
    members = space.spaces.values() if isinstance(space, spaces.Dict) else [space]
    return all(isinstance(member, spaces.Box) and len(member.shape) in (1, 2) and member.shape[-1] == len(names) for member in members)


_DOES_NOTHING = re.compile(r"no[- _]?op|no[ _]action|idle|(?:do|does)[ _]nothing|(?:do not|don't) move", re.IGNORECASE)


def _noop(space: gym.Space[Any], names: Any) -> int | None:
    """Return the action whose name says that it does nothing."""
    if not isinstance(space, spaces.Discrete) or not isinstance(names, list | tuple):
        return None
    places = [place for place, name in enumerate(names) if _DOES_NOTHING.fullmatch(str(name))]
    return int(space.start) + places[0] if len(places) == 1 else None


# Texts and labels


def _step_limit(spec: EnvSpec | None) -> list[str]:
    limit = spec.max_episode_steps if spec is not None else None
    return [] if limit is None else [f"An episode is cut off after {limit} steps."]


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n\n".join(texts).replace("\n\n- ", "\n- ")


def _size(space: gym.Space[Any]) -> int | None:
    """Return how many labels a space takes; None if it is neither a vector nor a number."""
    if isinstance(space, spaces.Tuple):
        return len(space.spaces)
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary) and len(space.shape) == 1:
        return space.shape[0]
    return None


def _fitting(labels: tuple[str, ...], space: gym.Space[Any]) -> tuple[str, ...]:
    """Return labels if there is one for each number, and all are different."""
    return labels if len({*labels}) == len(labels) == _size(space) else ()
