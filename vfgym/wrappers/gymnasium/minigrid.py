"""MiniGrid's symbolic view of a grid as text: what lies around the agent, from where it stands.

Its observation is a dict of the mission, the direction (a compass) and an image of ``(columns, rows, 3)`` numbers: for each cell that
the agent sees, an object, its colour and its state. The agent looks up from the middle of the bottom row; what stands in its own cell is
what it carries. Nothing here imports `minigrid`, and nothing looks at the game: only at its observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.unwrapping import innermost

_INTRODUCTION = "You are in a grid of cells. Walking into lava ends the episode."

ABOUT_VIEW = "You see the part of the grid that lies in front of you; walls and closed doors may hide what is behind them."
"""What is to be said about observations to a player who sees them as `minigrid_text`; pictures and other wrappers may show all."""

_WHAT_ACTIONS_DO = {
    "turn left": "turn by 90 degrees where you stand.",
    "turn right": "turn by 90 degrees where you stand.",
    "move forward": "go one cell ahead, unless a wall, a closed door, a key, a ball or a box is there.",
    "pick up": "take the key, ball or box that is in the cell ahead. You can carry one thing at a time.",
    "drop": "put what you carry into the cell ahead, if it is empty.",
    "toggle": "open or close the door ahead, or open the box ahead. A locked door opens if you carry the key of its colour.",
    "done": "say that you are done. It changes nothing in the grid.",
}

ACTION_NAMES = tuple(_WHAT_ACTIONS_DO)
"""The actions of MiniGrid, in order."""

_ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")

# minigrid/core/constants.py (minigrid 3.2)
_KINDS = ("unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
_COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
_DOOR_STATES = ("open", "closed", "locked")
_DIRECTIONS = ("east", "south", "west", "north")

_SYMBOLS = dict(zip(_KINDS[:-1], "?.#,DKOBGL", strict=True))  # no view shows the agent itself
_YOU = "@"


Cell: TypeAlias = list[int]
"""Object, colour and state of a cell."""


def is_minigrid_game(env: gym.Env[Any, Any]) -> bool:
    """Say whether an environment is one of MiniGrid's (BabyAI's among them), however it is wrapped."""
    return any((base.__module__, base.__qualname__) == ("minigrid.minigrid_env", "MiniGridEnv") for base in type(innermost(env)).__mro__)


def is_minigrid(env: gym.Env[Any, Any]) -> bool:
    """Say whether the observations of an environment are those that `minigrid_text` reads.

    Wrappers turn them into pictures, vectors, or a view of the whole grid, some of the same shape; a view of another size is read.
    """
    if not is_minigrid_game(env):
        return False
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.ObservationWrapper) and type(env).__qualname__ != "ViewSizeWrapper":
            return False
        env = env.env
    space = env.observation_space
    return isinstance(space, gym.spaces.Dict) and space.spaces.keys() == {"image", "direction", "mission"}


def shows_pixels(env: gym.Env[Any, Any]) -> bool:
    """Say whether a wrapper of MiniGrid's draws the observations of one of its environments, which are symbols of cells otherwise."""
    while isinstance(env, gym.Wrapper):
        if type(env).__qualname__.startswith("RGBImg"):
            return True
        env = env.env
    return False


def action_names(env: gym.Env[Any, Any]) -> tuple[str, ...]:
    """Return the names of the actions of one of MiniGrid's environments; empty if they are not MiniGrid's usual ones.

    Some environments take the first of them only.
    """
    game: Any = innermost(env)
    if tuple(action.name for action in game.actions) != _ACTIONS:
        return ()
    return ACTION_NAMES[: int(game.action_space.n)]


def rules(env: gym.Env[Any, Any]) -> str:
    """Return what holds in all of MiniGrid's environments, whatever the mission, and what the actions of this one do."""
    game = innermost(env)
    lines = [_INTRODUCTION, *(f"- {name}: {_WHAT_ACTIONS_DO[name]}" for name in action_names(env))]
    if getattr(game, "fixed_max_steps", True):  # False where the limit follows from the mission, in BabyAI's levels
        lines.append(f"max_steps is {game.max_steps}: an episode is cut off after that many steps, which step_count counts.")
    return "\n".join(lines)


def minigrid_text(observation: Mapping[str, Any]) -> str:
    r"""Return an observation of MiniGrid as text: the mission, and what the agent sees from where it stands.

    >>> image = np.ones((3, 3, 3), np.uint8)
    >>> image[0, :, 0], image[1, 0] = 2, (4, 0, 2)
    >>> print(minigrid_text({"mission": "open the red door", "direction": 3, "image": image}))
    Mission: open the red door
    You face north and carry nothing.
    Ahead: 1 free cell, then a red door (locked).
    To the left: a wall.
    To the right: 1 free cell, and no more in view.
    In view:
    - a red door (locked): 2 steps ahead
    Map (up is ahead; @ you, . free, # wall, D door):
    #D.
    #..
    #@.

    Args:
        observation: A dict of ``mission`` (text), ``direction`` (0 to 3) and ``image`` (uint8, columns by rows by 3).

    Raises:
        ConfigurationError: If the image is none of MiniGrid's partial views.
    """
    image = np.asarray(observation["image"])
    _check(image)
    columns, rows = image.shape[:2]
    middle, bottom = columns // 2, rows - 1
    codes: list[list[Cell]] = image.tolist()
    cells = {(column - middle, bottom - row): codes[column][row] for column in range(columns) for row in range(rows)}
    carried = cells.pop((0, 0))
    lines = [
        f"Mission: {observation['mission']}",
        f"You face {_DIRECTIONS[int(observation['direction'])]} and carry {'nothing' if _kind(carried) == 'empty' else _name(carried)}.",
        f"Ahead: {_way([cells[0, ahead] for ahead in range(1, rows)])}.",
        f"To the left: {_way([cells[-aside, 0] for aside in range(1, middle + 1)])}.",
        f"To the right: {_way([cells[aside, 0] for aside in range(1, columns - middle)])}.",
        *_objects(cells),
        *_map(cells, columns, rows),
    ]
    return "\n".join(lines)


def _check(image: np.ndarray[Any, Any]) -> None:
    if image.ndim != 3 or image.shape[2] != 3 or image.shape[0] % 2 == 0:
        raise ConfigurationError(
            f"expected MiniGrid's view, an image of (columns, rows, 3) numbers with a middle column, got {image.shape}"
        )
    if image[..., 0].max() >= _KINDS.index("agent") or image[..., 1].max() >= len(_COLOURS):
        raise ConfigurationError(
            "expected MiniGrid's partial view, whose cells hold the objects and colours of minigrid.core.constants and not the agent"
            " itself, got others: give to_chat obs_to_text, a function from an observation to text"
        )


def _kind(cell: Cell) -> str:
    return _KINDS[cell[0]]


def _name(cell: Cell) -> str:
    kind, colour = _kind(cell), _COLOURS[cell[1]]
    if kind == "wall":
        return "a wall"
    if kind == "lava":
        return "lava"
    if kind == "door":
        return f"a {colour} door ({_DOOR_STATES[cell[2]]})"
    return f"a {colour} {({'goal': 'goal square', 'floor': 'floor tile'}).get(kind, kind)}"


def _way(cells: Sequence[Cell]) -> str:
    """Say how far the way through some cells is free, and what is behind."""
    free = next((steps for steps, cell in enumerate(cells) if _kind(cell) not in ("empty", "floor")), len(cells))
    seen = free < len(cells) and _kind(cells[free]) != "unseen"
    if not free:
        return _name(cells[0]) if seen else "nothing in view"
    way = f"{free} free cell{'s' if free > 1 else ''}"
    return f"{way}, then {_name(cells[free])}" if seen else f"{way}, and no more in view"


def _objects(cells: Mapping[tuple[int, int], Cell]) -> list[str]:
    """Return what is to be seen besides walls, the nearest first; what looks the same in one line."""
    places: dict[str, list[str]] = {}
    for place in sorted(cells, key=lambda place: (abs(place[0]) + abs(place[1]), place)):
        if _kind(cells[place]) not in ("unseen", "empty", "wall"):
            places.setdefault(_name(cells[place]), []).append(_position(*place))
    return ["In view:", *(f"- {name}: {'; '.join(positions)}" for name, positions in places.items())] if places else []


def _position(aside: int, ahead: int) -> str:
    side = f"{abs(aside)} {{}}to the {'left' if aside < 0 else 'right'}"
    if not ahead:
        return side.format("step " if abs(aside) == 1 else "steps ")
    forward = f"{ahead} step{'s' if ahead > 1 else ''} ahead"
    return f"{forward} and {side.format('')}" if aside else forward


def _map(cells: Mapping[tuple[int, int], Cell], columns: int, rows: int) -> list[str]:
    kinds = {_kind(cell) for cell in cells.values()}
    legend = [f"{symbol} {'free' if kind == 'empty' else kind}" for kind, symbol in _SYMBOLS.items() if kind in kinds]
    left = -(columns // 2)
    lines = [
        "".join(_YOU if (aside, ahead) == (0, 0) else _SYMBOLS[_kind(cells[aside, ahead])] for aside in range(left, left + columns))
        for ahead in reversed(range(rows))
    ]
    return [f"Map (up is ahead; {', '.join([f'{_YOU} you', *legend])}):", *lines]
