"""What a Gymnasium environment says about itself, for a model: its rules, and names for its actions and observations.

Most of it stands in the docstring of the environment's class (see `docstrings`); the rest in the environment, or in
its source. A name or label is given only where there is exactly one for each element of the environment's spaces: a wrong one is
worse than none.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from vfgym.data import GamePrompt, PromptText, gymnasium_prompts
from vfgym.wrappers.gymnasium import minigrid
from vfgym.wrappers.gymnasium.curated import Settings, curated_prompt, write
from vfgym.wrappers.gymnasium.docstrings import HEADINGS_OF_CODE, numbered_lists, prose, sections, tables
from vfgym.wrappers.gymnasium.unwrapping import innermost

MOST_CHARACTERS = 3000
"""The longest rules and explanations; what goes beyond is cut at a paragraph."""


@dataclass(frozen=True)
class Description:
    """What an environment says about itself; what it does not say is empty."""

    rules: str = ""
    """What the game is about, its rewards and how an episode ends, in plain paragraphs."""
    about_actions: str = ""
    """What is to be said about actions besides their names."""
    about_observations: str = ""
    """What is to be said about observations besides their labels, for a player who sees them as numbers."""
    legend: str = ""
    """How to read the environment's ``ansi`` drawing, for a player who sees that."""
    action_names: tuple[str, ...] = ()
    """The name of each action of a `Discrete` space, in order."""
    action_labels: tuple[str, ...] = ()
    """What each number of an action stands for, where actions are vectors (`Box`, `MultiDiscrete`, `MultiBinary`)."""
    observation_names: tuple[str, ...] = ()
    """What each observation of a `Discrete` space stands for, in order."""
    observation_labels: tuple[str, ...] = ()
    """What each number of an observation stands for, where observations are vectors or tuples."""
    noop: int | None = None
    """The action of a `Discrete` space that does nothing, where one clearly does."""
    prompts_version: int | None = None
    """The version of the data that this is from; None where it is not from data."""


def describe(env: gym.Env[Any, Any]) -> Description:
    """Return what an environment says about itself.

    What is said about actions or observations holds for the bare environment's spaces; where a wrapper changed a space, nothing is.
    """
    game, spec = innermost(env), env.spec
    curated = curated_prompt(type(game))
    if curated is not None:
        return _curated_description(env, curated)
    known = _read_docstring_of(_docstring(type(game)))
    has_its_actions, has_its_observations = env.action_space == game.action_space, env.observation_space == game.observation_space
    if not has_its_actions:
        known = dataclasses.replace(known, actions=_UNDOCUMENTED_SPACE)
    if not has_its_observations:
        known = dataclasses.replace(known, observations=_UNDOCUMENTED_SPACE)
    is_documented = not _has_own_model(game)
    known_actions = game.action_space if is_documented and has_its_actions else None
    known_observations = game.observation_space if is_documented and has_its_observations else None
    action_names = _action_names(game, known_actions, known)
    action_labels, remarks = _without_remarks(_labels(known_actions, known.actions, _ACTION_LABELS, game))
    about_actions = known.actions.without_elements if action_names or action_labels else known.actions.text
    observation_names = _names(known_observations, known.observations.lists)
    observation_labels = _labels(known_observations, known.observations, _OBSERVATION_LABELS, game)
    observation_labels = observation_labels or _parts(known_observations, known) or _read_starting_labels(known_observations, known)
    return Description(
        rules=_within_limit(_rules(game, spec, known)),
        about_actions=_within_limit("\n\n".join(text for text in (about_actions, remarks) if text)),
        about_observations=_within_limit(_describe_observations(game, known, is_labelled=bool(observation_names or observation_labels))),
        legend=_LEGENDS.get(_class_of(game), ""),
        action_names=action_names,
        action_labels=action_labels,
        observation_names=observation_names,
        observation_labels=observation_labels,
        noop=_noop(known_actions, action_names),
    )


def _curated_description(env: gym.Env[Any, Any], curated: GamePrompt) -> Description:
    """Return what is written about one of Gymnasium's games, as it was made."""
    game = innermost(env)
    settings = Settings(env, curated.get("settings", {}))
    sections = [
        ("", write(curated["rules"], settings)),
        ("Rewards:\n", write(curated["rewards"], settings)),
        ("Episode end:\n", [" ".join([*write(curated.get("episode_end", []), settings), *_step_limit(env.spec)])]),
    ]
    has_its_actions, has_its_observations = env.action_space == game.action_space, env.observation_space == game.observation_space
    is_known_robot = not _has_own_model(game)
    names = tuple(write(curated.get("action_names", []), settings)) if has_its_actions and is_known_robot else ()
    size = game.action_space.n if isinstance(game.action_space, spaces.Discrete) else None
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
        action_names=names if len(names) == size else (),
        action_labels=_fitting(curated.get("action_labels", []), settings, game.action_space) if has_its_actions and is_known_robot else (),
        observation_labels=(
            _fitting(curated.get("observation_labels", []), settings, game.observation_space)
            if has_its_observations and is_known_robot
            else ()
        ),
        noop=names.index(curated["noop"]) if curated.get("noop") in names else None,
        prompts_version=gymnasium_prompts()["version"],
    )


def _fitting(labels: Sequence[str | PromptText], settings: Settings, space: gym.Space[Any]) -> tuple[str, ...]:
    written = tuple(write(labels, settings))
    return written if len(written) == _size(space) else ()


def _step_limit(spec: EnvSpec | None) -> list[str]:
    limit = spec.max_episode_steps if spec is not None else None
    return [] if limit is None else [f"An episode is cut off after {limit} steps."]


def _paragraphs(texts: Sequence[str]) -> str:
    return "\n\n".join(texts).replace("\n\n- ", "\n- ")


_BASES = {
    ("builtins", "object"),
    ("gym.core", "Env"),
    ("gymnasium.core", "Env"),
    ("gymnasium.envs.mujoco.mujoco_env", "MujocoEnv"),
    ("ale_py.env", "AtariEnv"),
    ("minigrid.minigrid_env", "MiniGridEnv"),
    ("minigrid.core.roomgrid", "RoomGrid"),
    ("minigrid.envs.babyai.core.roomgrid_level", "RoomGridLevel"),
}
"""Classes whose docstrings are for those who write environments, not for those who play one."""

_OLD_MUJOCO = re.compile(r"gymnasium\.envs\.mujoco\.(\w+)_v4")


class _Docstring(NamedTuple):
    """What documents an environment."""

    text: str
    is_of_later_version: bool = False
    """Whether it is that of a later version of the environment."""
    has_known_form: bool = False
    """Whether it is one of Gymnasium's or Minigrid's, of which is known what stands under which heading, and what is not for a player."""


def _docstring(cls: type) -> _Docstring:
    """Return the docstring of an environment's class, or that of the class that it refines."""
    old = _OLD_MUJOCO.fullmatch(cls.__module__)
    if old:
        # Gymnasium documents the fourth versions of its MuJoCo environments with the fifth.
        later = importlib.import_module(f"gymnasium.envs.mujoco.{old[1]}_v5")
        return _Docstring(getattr(later, cls.__name__).__doc__ or "", is_of_later_version=True, has_known_form=True)
    family = gym.Env if issubclass(cls, gym.Env) else object  # a mixin is not what documents an environment
    for base in cls.__mro__:
        if issubclass(base, family) and base.__dict__.get("__doc__") and (base.__module__, base.__qualname__) not in _BASES:
            return _Docstring(base.__doc__ or "", has_known_form=base.__module__.startswith(("gymnasium.envs.", "minigrid.envs.")))
    return _Docstring("")


@dataclass(frozen=True)
class _DocumentedSpace:
    """What a docstring says of a space."""

    text: str
    without_elements: str
    """The text without the lists and tables of elements."""
    lists: tuple[tuple[str, ...], ...]
    tables: tuple[list[list[str]], ...]


_UNDOCUMENTED_SPACE = _DocumentedSpace(text="", without_elements="", lists=(), tables=())


@dataclass(frozen=True)
class _Documented:
    """What stands in a docstring."""

    rules: str
    episode_end: str
    actions: _DocumentedSpace
    observations: _DocumentedSpace
    starting_tables: tuple[list[list[str]], ...]
    parts: tuple[tuple[str, int], ...]
    """The parts that observations are joined from, with their sizes, as the MuJoCo environments list them."""
    settings: frozenset[str]
    """What stands in backquotes, arguments among it."""


_EPISODE_END = "Episode end"

_TITLES = {
    "": "",
    "description": "",
    "transition dynamics": "Transition dynamics",
    "reward": "Rewards",
    "rewards": "Rewards",
    "episode end": _EPISODE_END,
    "episode termination": _EPISODE_END,
    "episode truncation": _EPISODE_END,
    "termination": _EPISODE_END,
    "truncation": _EPISODE_END,
}
"""The sections that are rules in Gymnasium's own docstrings, and what they are headed with."""

_ACTIONS = frozenset({"action space", "actions"})
_OBSERVATIONS = frozenset({"observation space", "observations"})

_FOR_PROGRAMMERS = HEADINGS_OF_CODE | {
    "changelog",
    "citation",
    "credits",
    "installation",
    "license",
    "observation encoding",
    "registered configurations",
    "vectorized environment",
    "version history",
}
"""The sections that are not rules in other docstrings, in which every other one is."""

_PART = re.compile(r"^- \*([^*]+?) \((\d+) elements?(?: by default)?\):\*", re.MULTILINE)


@functools.lru_cache(maxsize=256)
def _read_docstring_of(docstring: _Docstring) -> _Documented:
    """Read a docstring.

    Rewards and observations changed with the fifth versions of the MuJoCo environments; what they are about, their actions, and
    how an episode ends did not.
    """
    found = sections(inspect.cleandoc(docstring.text))
    is_whole = not docstring.has_known_form
    texts: dict[str, list[str]] = {}
    for heading, body in found.items():
        title = _title(heading, docstring)
        if title is not None and (text := prose(body, whole=is_whole)):
            texts.setdefault(title, []).append(text)
    actions, observations = _join(found, _ACTIONS), _join(found, _OBSERVATIONS)
    episode_end = texts.pop(_EPISODE_END, [])
    return _Documented(
        rules="\n\n".join((f"{title}:\n" if title else "") + "\n\n".join(parts) for title, parts in texts.items()),
        episode_end="\n".join(episode_end),
        actions=_read_space_section(actions, docstring),
        observations=_read_space_section(observations, docstring),
        starting_tables=tuple(tables(_join(found, {"starting state"}))),
        parts=() if docstring.is_of_later_version else tuple((name, int(size)) for name, size in _PART.findall(observations)),
        settings=frozenset(re.findall(r"`(\w+)", docstring.text)),
    )


def _title(heading: str, docstring: _Docstring) -> str | None:
    """Return what a section of the rules is headed with; None for a section that is not part of them."""
    key = heading.casefold()
    if key in _TITLES:
        title = _TITLES[key]
        return None if docstring.is_of_later_version and title == "Rewards" else title
    return None if docstring.has_known_form or key in _ACTIONS | _OBSERVATIONS | _FOR_PROGRAMMERS else heading


def _join(found: Mapping[str, str], headings: Set[str]) -> str:
    return "\n\n".join(body for heading, body in found.items() if heading.casefold() in headings)


def _read_space_section(section: str, docstring: _Docstring) -> _DocumentedSpace:
    is_of_later_version, is_whole = docstring.is_of_later_version, not docstring.has_known_form
    return _DocumentedSpace(
        text="" if is_of_later_version else prose(section, whole=is_whole),
        without_elements="" if is_of_later_version else prose(section, whole=is_whole, without_elements=True),
        lists=tuple(numbered_lists(section)),
        tables=tuple(tables(section)),
    )


def _rules(game: gym.Env[Any, Any], spec: EnvSpec | None, known: _Documented) -> str:
    if _is_atari(game):
        return _atari_rules(game)
    parts = [known.rules, _episode_end(spec, known), _settings(game, spec, known), _UNDOCUMENTED.get(_class_of(game), "")]
    if minigrid.is_minigrid_game(game):
        parts.append(minigrid.rules(game))
    return "\n\n".join(part for part in parts if part)


def _class_of(game: gym.Env[Any, Any]) -> tuple[str, str]:
    return type(game).__module__, type(game).__qualname__


def _describe_observations(game: Any, known: _Documented, *, is_labelled: bool) -> str:
    """Return what the docstring says of observations and, of a lake whose map is the same each time, the map, which they leave out."""
    text = known.observations.without_elements if is_labelled else known.observations.text
    kwargs = _constructor_arguments(game)
    if _class_of(game) == _FROZEN_LAKE and (kwargs.get("desc") is not None or kwargs.get("map_name") is not None):
        lake = b"\n".join(map(b"".join, game.desc.tolist())).decode()
        text = f"{text}\n\nThe map ({_TILES}):\n\n{lake}".lstrip()
    return text


_TIME_LIMIT = re.compile(r"\bTruncation\b|length of the episode|episode length|duration of an episode|truncates at \d+", re.IGNORECASE)


def _episode_end(spec: EnvSpec | None, known: _Documented) -> str:
    """Say how an episode ends, with the limit that the environment was made with: docstrings tell the default one."""
    limit = spec.max_episode_steps if spec is not None else None
    if not known.rules or limit is None:
        return f"{_EPISODE_END}:\n{known.episode_end}" if known.episode_end else ""
    kept = [line for line in known.episode_end.splitlines() if line and not _TIME_LIMIT.search(line)]
    return "\n".join([f"{_EPISODE_END}:", *kept, f"An episode is cut off after {limit} steps."])


def _settings(game: gym.Env[Any, Any], spec: EnvSpec | None, known: _Documented) -> str:
    """Return the documented arguments that one of Gymnasium's environments was made with.

    Its rules speak of some of them ("slippery unless disabled"). The arguments of others may be what a player has to find out.
    """
    if spec is None or not type(game).__module__.startswith("gymnasium.envs."):
        return ""
    unused = ("map_name",) if spec.kwargs.get("desc") is not None else ()  # a map of one's own is played instead
    settings = [
        f"{name} = {value}"
        for name, value in spec.kwargs.items()
        if name in known.settings
        and name not in ("render_mode", "xml_file", *unused)
        and isinstance(value, bool | int | float | str | tuple)
    ]
    return f"Settings: {', '.join(settings)}." if settings else ""


def _is_atari(game: gym.Env[Any, Any]) -> bool:
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


def _action_names(game: Any, space: gym.Space[Any] | None, known: _Documented) -> tuple[str, ...]:
    if not isinstance(space, spaces.Discrete):
        return ()
    if minigrid.is_minigrid_game(game):
        return minigrid.action_names(game)
    if hasattr(game, "get_action_meanings"):
        meanings = tuple(game.get_action_meanings())
        return meanings if len(meanings) == space.n else ()
    tabulated = (_second_column(table) for table in known.actions.tables)
    names = _names(space, [*known.actions.lists, *tabulated])
    return _without_common_start(names)


def _names(space: gym.Space[Any] | None, lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the one list of names that has one for each element of a `Discrete` space, and all different."""
    if not isinstance(space, spaces.Discrete):
        return ()
    fitting = [names for names in lists if len(names) == space.n and len({name.casefold() for name in names}) == space.n]
    return fitting[0] if len(fitting) == 1 else ()


def _second_column(table: list[list[str]]) -> tuple[str, ...]:
    """Return what a table calls the elements that it numbers 0, 1, 2, ..."""
    rows = [row for row in table[1:] if row[0].isdecimal() and len(row) > 1]
    return tuple(row[1] for row in rows) if [int(row[0]) for row in rows] == list(range(len(rows))) else ()


def _without_common_start(names: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the words that all names begin with ("Move left", "Move right"), where words remain of each."""
    words = [name.split() for name in names]
    common = next((place for place, at_once in enumerate(zip(*words, strict=False)) if len(set(at_once)) > 1), 0)
    short = tuple(" ".join(each[common:]) for each in words)
    return short if all(name[:1].isalpha() for name in short) else names


_DOES_NOTHING = re.compile(r"no[- _]?op|no action|(?:do|does) nothing|(?:do not|don't) (?:accelerate|move)|apply 0 torque.*", re.IGNORECASE)


def _noop(space: gym.Space[Any] | None, names: tuple[str, ...]) -> int | None:
    if not isinstance(space, spaces.Discrete):
        return None
    places = [place for place, name in enumerate(names) if _DOES_NOTHING.fullmatch(name)]
    return int(space.start) + places[0] if len(places) == 1 else None


def _size(space: gym.Space[Any] | None) -> int | None:
    """Return how many labels a space takes; None if it is not a vector."""
    if isinstance(space, spaces.Tuple):
        return len(space.spaces)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary) and len(space.shape) == 1:
        return int(np.prod(space.shape))
    return None


def _has_own_model(game: Any) -> bool:
    """Say whether a MuJoCo environment was given another robot than the documented one."""
    return "xml_file" in _constructor_arguments(game)


def _constructor_arguments(game: Any) -> Mapping[str, Any]:
    """Return the arguments with which a registered game was made. One of the older Gym may have no spec at all."""
    return getattr(getattr(game, "spec", None), "kwargs", {})


_HIDDEN_POSITION = re.compile(r"[xy]-coordinate\b")


def _labels(
    space: gym.Space[Any] | None,
    known: _DocumentedSpace,
    from_source: dict[tuple[str, str], tuple[str, ...]],
    game: gym.Env[Any, Any],
) -> tuple[str, ...]:
    """Return the one set of labels that has one for each element of a vector."""
    size = _size(space)
    if size is None:
        return ()
    fitting = [
        labels for labels in (*known.lists, *(labels for table in known.tables for labels in _read_table(table))) if len(labels) == size
    ]
    if len(fitting) == 1:
        return fitting[0]
    given = from_source.get(_class_of(game), ())
    return given if len(given) == size else ()


_REMARK = re.compile(r"((?:\([^()]*\)|[^,(])+),\s*(.+)")
"""A label and what is said of it after its first comma, one in parentheses apart."""


def _without_remarks(labels: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return labels up to their first commas, by which an answer can name them, and what stood behind; as they are if two become one."""
    found = [_REMARK.fullmatch(label) for label in labels]
    names = tuple(label if remark is None else remark[1] for label, remark in zip(labels, found, strict=True))
    if len({*names}) < len(labels):
        return labels, ""
    return names, "\n".join(f"{remark[1]}: {remark[2]}" for remark in found if remark is not None)


def _read_table(table: list[list[str]]) -> Iterator[tuple[str, ...]]:
    """Return the labels of a table's numbered rows; and these after the rows marked as excluded, where those are positions.

    The MuJoCo environments leave the position of the body out of observations, unless told not to: then it comes first.
    """
    labels = _second_column(table)
    repeated = {label for label in labels if labels.count(label) > 1}
    if repeated:
        # Walker2d calls the joints of both legs the same; their names in the model differ.
        column = next((place for place, title in enumerate(table[0]) if title.startswith("Name")), len(table[0]))
        names = {row[0]: row[column] for row in table[1:] if len(row) > column}
        if not all(str(place) in names for place in range(len(labels))):
            return
        labels = tuple(f"{label} ({names[str(place)]})" if label in repeated else label for place, label in enumerate(labels))
    yield labels
    excluded = tuple(row[1] for row in table[1:] if row[0] == "excluded")
    if excluded and all(_HIDDEN_POSITION.match(label) for label in excluded):
        yield excluded + labels


def _parts(space: gym.Space[Any] | None, known: _Documented) -> tuple[str, ...]:
    """Return labels for a vector whose first parts are tabulated, and whose other parts are documented with their sizes only."""
    size = _size(space)
    if size is None or size != sum(part_size for _, part_size in known.parts):
        return ()
    for table in known.observations.tables:
        for labels in _read_table(table):
            labelled = [*labels]
            rest = list(known.parts)
            covered = 0
            while rest and covered < len(labels):
                covered += rest.pop(0)[1]
            if labels and covered == len(labels):
                labelled += [f"{name}[{place}]" for name, part_size in rest for place in range(part_size)]
                return tuple(labelled)
    return ()


def _read_starting_labels(space: gym.Space[Any] | None, known: _Documented) -> tuple[str, ...]:
    """Return the observations that are listed in a table of starting values, as Blackjack has it."""
    for table in known.starting_tables:
        if table[0][0] == "Observation" and len(table) - 1 == _size(space):
            return tuple(row[0] for row in table[1:])
    return ()


_FROZEN_LAKE = ("gymnasium.envs.toy_text.frozen_lake", "FrozenLakeEnv")
_TILES = "S is the start, F is frozen, H is a hole, G is the goal"

_UNDOCUMENTED = {
    _FROZEN_LAKE: "Locations are [row, column], counted from 0 from the top left.",
    ("gymnasium.envs.toy_text.cliffwalking", "CliffWalkingEnv"): "Locations are [row, column], counted from 0 from the top left.",
    ("gymnasium.envs.toy_text.taxi", "TaxiEnv"): "In the map, R, G, Y and B are the designated locations. The taxi can drive through"
    " a colon, and not through a bar. Rows and columns are counted from 0 from the top left: Red is in row 0 and column 0, Green in row 0"
    " and column 4, Yellow in row 4 and column 0, Blue in row 4 and column 3.",
    ("gymnasium.envs.classic_control.pendulum", "PendulumEnv"): "The x-axis points up: the pendulum is upright where x is 1 and y is 0, and"
    " hangs down where x is -1. A positive torque makes the angular velocity grow; so does gravity where y is above 0.",
    ("gymnasium.envs.classic_control.acrobot", "AcrobotEnv"): "A positive torque makes the angular velocity of theta2 grow and that of"
    " theta1 fall.",
    ("gymnasium.envs.box2d.lunar_lander", "LunarLander"): "x grows to the right and y upwards. The angle grows counter-clockwise: above 0"
    " the lander leans to the left. The main engine pushes it where its top points. The left orientation engine pushes it to the left and"
    " turns it counter-clockwise, the right one does the opposite. Leg 1 is the right leg.",
}
"""What a player has to know and docstrings leave out, read from sources and simulations (Gymnasium 1.4)."""

_LEGENDS = {
    _FROZEN_LAKE: f"In the drawing, you are where the brackets are. {_TILES}.",
    ("gymnasium.envs.toy_text.cliffwalking", "CliffWalkingEnv"): "In the drawing, x is you, o is free, C is the cliff and T is the goal.",
    ("gymnasium.envs.toy_text.taxi", "TaxiEnv"): "In the drawing, a square in brackets has colours, which do not mean the locations of the"
    " same name: yellow is the empty taxi, green the taxi with the passenger on board (an underscore stands for its empty square), blue the"
    " waiting passenger, magenta the destination. So [R:blue,yellow] is the taxi in the Red location, where the passenger waits.",
}
"""How to read drawings, which is said nowhere but in the sources (Gymnasium 1.4). Colours are written as `without_colours` does."""

_ACTION_LABELS = {
    ("gymnasium.envs.classic_control.continuous_mountain_car", "Continuous_MountainCarEnv"): ("force on the car",),
    ("gymnasium.envs.box2d.lunar_lander", "LunarLander"): (
        "main engine throttle (off below 0)",
        "side engine throttle (left below -0.5, right above 0.5, else off)",
    ),
    ("gymnasium.envs.box2d.bipedal_walker", "BipedalWalker"): tuple(
        f"{joint} of leg {leg}: motor speed and torque" for leg in (1, 2) for joint in ("hip", "knee")
    ),
    ("ale_py.env", "AtariEnv"): ("joystick radius", "joystick angle (radians)", "fire"),
}
"""Of environments whose docstrings do not list what their actions consist of, read from their sources (Gymnasium 1.4, ale-py 0.12)."""

_OBSERVATION_LABELS = {
    ("gymnasium.envs.box2d.lunar_lander", "LunarLander"): (
        *("x", "y", "x velocity", "y velocity", "angle", "angular velocity"),
        *("leg 1 touches the ground", "leg 2 touches the ground"),
    ),
    ("gymnasium.envs.box2d.bipedal_walker", "BipedalWalker"): (
        *("hull angle", "hull angular velocity", "horizontal speed", "vertical speed"),
        *("hip angle of leg 1", "hip speed of leg 1", "knee angle of leg 1", "knee speed of leg 1", "leg 1 touches the ground"),
        *("hip angle of leg 2", "hip speed of leg 2", "knee angle of leg 2", "knee speed of leg 2", "leg 2 touches the ground"),
        *(f"lidar {ray} of 10" for ray in range(1, 11)),
    ),
}
"""The same for observations."""
