"""`minigrid_text`: what a model is told of MiniGrid's view is what the agent sees, where it is."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vfgym
from tests.wrappers.gymnasium.toys import first_content
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.descriptions import describe
from vfgym.wrappers.gymnasium.minigrid import ACTION_NAMES, action_names, is_minigrid, is_minigrid_game, minigrid_text, shows_pixels

minigrid = pytest.importorskip("minigrid")
gym.register_envs(minigrid)

from minigrid import wrappers  # noqa: E402
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX  # noqa: E402

GAMES = [
    "MiniGrid-DoorKey-6x6-v0",
    "MiniGrid-MultiRoom-N2-S4-v0",
    "BabyAI-PutNextS5N2Carrying-v0",
    "MiniGrid-LavaCrossingS9N2-v0",
    "MiniGrid-KeyCorridorS3R2-v0",
    "MiniGrid-Playground-v0",
    "BabyAI-GoToLocal-v0",
]

SYMBOLS = dict(zip("?.#,DKOBGL", ["unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava"], strict=True))


def objects_in(text: str) -> dict[tuple[int, int], str]:
    found = {}
    for line in re.findall(r"^- (.+)$", text, re.MULTILINE):
        name, places = line.split(": ")
        for place in places.split("; "):
            ahead = re.search(r"(\d+) steps? ahead", place)
            aside = re.search(r"(\d+) (?:steps? )?to the (left|right)", place)
            right = int(aside[1]) * (1 if aside[2] == "right" else -1) if aside else 0
            found[right, int(ahead[1]) if ahead else 0] = name
    return found


def map_in(text: str) -> list[str]:
    return text.rpartition("):\n")[2].splitlines()


def name_of(thing: Any) -> str:
    if thing.type == "lava":
        return "lava"
    if thing.type == "door":
        return f"a {thing.color} door ({'open' if thing.is_open else 'locked' if thing.is_locked else 'closed'})"
    return f"a {thing.color} {({'goal': 'goal square', 'floor': 'floor tile'}).get(thing.type, thing.type)}"


@pytest.mark.parametrize("game_id", GAMES)
def test_what_is_told_stands_in_the_grid_where_it_is_told(game_id: str) -> None:
    """Over random play: each object is the grid's own at that place, and what is carried is what the game says."""
    env = gym.make(game_id, disable_env_checker=True)
    game: Any = env.unwrapped
    env.action_space.seed(0)
    seen = 0
    for seed in range(2):
        env.reset(seed=seed)
        # What the agent carries from the start, the first observation does not show yet (BabyAI's PutNext...Carrying, minigrid 3.2).
        observation = env.step(game.actions.done)[0]
        for _ in range(25):
            text = minigrid_text(observation)
            assert text.startswith(f"Mission: {game.mission}\nYou face {('east', 'south', 'west', 'north')[game.agent_dir]} and carry ")
            assert f"carry {name_of(game.carrying) if game.carrying else 'nothing'}." in text
            for (right, ahead), name in objects_in(text).items():
                x, y = game.agent_pos + right * game.right_vec + ahead * game.dir_vec
                assert name_of(game.grid.get(x, y)) == name
                seen += 1
            in_front = game.grid.get(*game.front_pos)
            if in_front is None:
                assert "Ahead: a" not in text
            elif in_front.type != "floor":
                assert f"Ahead: {'a wall' if in_front.type == 'wall' else name_of(in_front)}." in text
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                break
    assert seen


@st.composite
def views(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    columns, rows = draw(st.sampled_from([3, 5, 7])), draw(st.integers(2, 7))
    return np.stack([draw(arrays.arrays(np.uint8, (columns, rows), elements=st.integers(0, most))) for most in (9, 5, 2)], axis=-1)


@given(views(), st.integers(0, 3))
@settings(max_examples=40)
def test_nothing_in_view_is_left_out_or_invented(image: np.ndarray[Any, Any], direction: int) -> None:
    """Map and list hold each cell of the view but the agent's own."""
    image[image.shape[0] // 2, -1, 0] = OBJECT_TO_IDX["empty"]
    text = minigrid_text({"mission": "look", "direction": direction, "image": image})
    columns, rows = image.shape[:2]
    drawn, listed = map_in(text), objects_in(text)
    kinds = {code: kind for kind, code in OBJECT_TO_IDX.items()}
    colours = {code: colour for colour, code in COLOR_TO_IDX.items()}
    states = {code: state for state, code in STATE_TO_IDX.items()}
    assert [len(line) for line in drawn] == [columns] * rows
    for column in range(columns):
        for row in range(rows):
            place = (column - columns // 2, rows - 1 - row)
            if place == (0, 0):
                assert drawn[row][column] == "@"
                continue
            kind, colour, state = (int(code) for code in image[column, row])
            assert SYMBOLS[drawn[row][column]] == kinds[kind]
            if kinds[kind] in ("unseen", "empty", "wall"):
                assert place not in listed
            else:
                assert kinds[kind] in listed[place]
                assert kinds[kind] == "lava" or colours[colour] in listed[place]
                assert kinds[kind] != "door" or states[state] in listed[place]


def test_a_player_is_told_to_see_a_part_of_the_grid_where_it_does() -> None:
    game_id, told = "MiniGrid-Empty-5x5-v0", "You see the part of the grid that lies in front of you"
    env = vfgym.to_chat(game_id)
    assert told in first_content(env)
    assert env.step("turn right").observation[-1].content.startswith("Mission: get to the green goal square\nYou face south")
    assert told in first_content(vfgym.to_chat(game_id, observe="both"))[0]["text"]
    pictures = vfgym.to_chat(lambda: wrappers.ImgObsWrapper(wrappers.RGBImgObsWrapper(gym.make(game_id))))
    numbers = vfgym.to_chat(lambda: wrappers.FlatObsWrapper(wrappers.FullyObsWrapper(gym.make(game_id))), obs_to_text=str)
    for whole in (vfgym.to_chat(game_id, observe="image"), pictures, numbers):
        content = first_content(whole)
        prompt = content if isinstance(content, str) else content[0]["text"]
        assert (told in prompt, "You are in a grid of cells." in prompt) == (False, True)


def test_ways_are_told_up_to_what_stops_them() -> None:
    """Free cells are counted; a wall, an object, the dark and the edge of the view are told apart."""
    image = np.full((5, 4, 3), (1, 0, 0), np.uint8)
    image[2, 1] = OBJECT_TO_IDX["key"], COLOR_TO_IDX["yellow"], 0
    image[1, 3] = OBJECT_TO_IDX["wall"], COLOR_TO_IDX["grey"], 0
    text = minigrid_text({"mission": "", "direction": 0, "image": image})
    assert "Ahead: 1 free cell, then a yellow key.\nTo the left: a wall.\nTo the right: 2 free cells, and no more in view." in text
    image[2, 2], image[1, 3] = 0, 0
    text = minigrid_text({"mission": "", "direction": 0, "image": image})
    assert "Ahead: nothing in view.\nTo the left: nothing in view." in text


@pytest.mark.parametrize(
    ("wrapper", "is_read"),
    [
        (lambda env: env, True),
        (lambda env: wrappers.ViewSizeWrapper(env, 5), True),
        (lambda env: gym.wrappers.TimeLimit(env, 10), True),
        (wrappers.ImgObsWrapper, False),
        (wrappers.FullyObsWrapper, False),
        (wrappers.SymbolicObsWrapper, False),
        (wrappers.RGBImgPartialObsWrapper, False),
        (wrappers.FlatObsWrapper, False),
    ],
)
def test_views_are_told_from_pictures_and_from_views_of_all(wrapper: Any, is_read: bool) -> None:
    env = wrapper(gym.make("MiniGrid-FourRooms-v0", disable_env_checker=True))
    assert is_minigrid_game(env)
    assert is_minigrid(env) is is_read
    assert shows_pixels(env) is (wrapper is wrappers.RGBImgPartialObsWrapper)
    if is_read:
        assert minigrid_text(env.reset(seed=0)[0])
    elif wrapper is wrappers.FullyObsWrapper:  # it holds the agent itself, and its cells are not where a view's are
        with pytest.raises(ConfigurationError, match="obs_to_text"):
            minigrid_text(env.reset(seed=0)[0])
    other = gym.make("CartPole-v1")
    assert not is_minigrid_game(other)
    assert not is_minigrid(other)


def test_actions_are_named_in_the_games_own_order() -> None:
    env = gym.make("BabyAI-GoToRedBall-v0", disable_env_checker=True)
    game: Any = env.unwrapped
    assert [action.name for action in game.actions] == ["left", "right", "forward", "pickup", "drop", "toggle", "done"]
    assert describe(env).action_names == ACTION_NAMES
    assert describe(env).noop is None
    three = gym.make("MiniGrid-Dynamic-Obstacles-5x5-v0", disable_env_checker=True)
    assert action_names(three) == describe(three).action_names == ("turn left", "turn right", "move forward")
    assert "pick up" not in describe(three).rules


REGISTERED = [name for name in gym.registry if name.startswith(("MiniGrid-", "BabyAI-"))]


@pytest.mark.parametrize("game_id", [*GAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in REGISTERED)])
@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_rules_are_plain_and_say_what_the_actions_do(game_id: str) -> None:
    try:
        env = gym.make(game_id, disable_env_checker=True)
    except gym.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
    found = describe(env)
    assert len(found.action_names) == env.action_space.n
    assert 300 < len(found.rules) <= 3000
    assert not re.search(r"[$\\|`]|http|\]\(|\bRL\b|learning|[(]see", found.rules)
    assert all(f"- {name}: " in found.rules for name in found.action_names)
    assert minigrid_text(env.reset(seed=0)[0])


def test_the_limit_that_rewards_depend_on_is_told_where_it_is_known() -> None:
    env = gym.make("MiniGrid-Empty-5x5-v0", disable_env_checker=True, max_steps=7)
    assert "1 - 0.9 * (step_count / max_steps)" in describe(env).rules
    assert "max_steps is 7: an episode is cut off after that many steps" in describe(env).rules
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(7)] == [False] * 6 + [True]
    # Of these the limit follows from the mission, which each episode has anew.
    assert "max_steps is" not in describe(gym.make("BabyAI-GoToLocal-v0", disable_env_checker=True)).rules


def view_of(columns: int, rows: int, things: dict[tuple[int, int], tuple[str, str, int]]) -> np.ndarray[Any, Any]:
    """Return a view of free cells with things at places: so many cells to the right, so many ahead."""
    image = np.full((columns, rows, 3), (OBJECT_TO_IDX["empty"], 0, 0), np.uint8)
    for (right, ahead), (kind, colour, state) in things.items():
        image[columns // 2 + right, rows - 1 - ahead] = OBJECT_TO_IDX[kind], COLOR_TO_IDX[colour], state
    return image


def test_a_view_is_told_whole() -> None:
    things = {
        **{(0, 0): ("ball", "purple", 0), (0, 2): ("lava", "red", 0), (-1, 0): ("floor", "blue", 0), (1, 0): ("box", "grey", 0)},
        **{(-2, 0): ("door", "green", 1), (2, 0): ("goal", "green", 0), (-1, 1): ("key", "red", 0), (1, 1): ("key", "red", 0)},
        **{(2, 2): ("door", "yellow", 0), (-2, 2): ("unseen", "red", 0), (2, 1): ("wall", "grey", 0)},
    }
    assert minigrid_text({"mission": "go", "direction": 2, "image": view_of(5, 3, things)}).splitlines() == [
        "Mission: go",
        "You face west and carry a purple ball.",
        "Ahead: 1 free cell, then lava.",
        "To the left: 1 free cell, then a green door (closed).",
        "To the right: a grey box.",
        "In view:",
        "- a blue floor tile: 1 step to the left",
        "- a grey box: 1 step to the right",
        "- a green door (closed): 2 steps to the left",
        "- a red key: 1 step ahead and 1 to the left; 1 step ahead and 1 to the right",
        "- lava: 2 steps ahead",
        "- a green goal square: 2 steps to the right",
        "- a yellow door (open): 2 steps ahead and 2 to the right",
        "Map (up is ahead; @ you, ? unseen, . free, # wall, , floor, D door, K key, B box, G goal, L lava):",
        "?.L.D",
        ".K.K#",
        "D,@BG",
    ]


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        *(
            (("door", colour, state), f"a {colour} door ({said})")
            for colour in COLOR_TO_IDX
            for state, said in enumerate(("open", "closed", "locked"))
        ),
        (("wall", "grey", 0), "a wall"),
        (("lava", "red", 0), "lava"),
        (("goal", "green", 0), "a green goal square"),
        *(((kind, "blue", 0), f"a blue {kind}") for kind in ("key", "ball", "box")),
    ],
)
def test_things_have_names_and_floors_are_walked_over(thing: tuple[str, str, int], name: str) -> None:
    told = minigrid_text({"mission": "", "direction": 1, "image": view_of(3, 4, {(0, 1): ("floor", "red", 0), (0, 2): thing})})
    assert "You face south and carry nothing.\nAhead: 1 free cell, then " + name + "." in told
    far = minigrid_text({"mission": "", "direction": 1, "image": view_of(3, 4, {(0, 3): thing})})
    assert (
        f"Ahead: 2 free cells, then {name}.\nTo the left: 1 free cell, and no more in view.\nTo the right: 1 free cell, and no more" in far
    )
    beside = minigrid_text({"mission": "", "direction": 0, "image": view_of(3, 4, {(1, 0): thing})})
    assert f"Ahead: 3 free cells, and no more in view.\nTo the left: 1 free cell, and no more in view.\nTo the right: {name}." in beside


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        *((np.ones(shape, np.uint8), f"numbers with a middle column, got {shape}") for shape in ((4, 3, 3), (3, 3, 2), (3, 3), (3, 3, 4))),
        *(
            (np.full((3, 3, 3), cell, np.uint8), "objects and colours of minigrid.core.constants")
            for cell in ((10, 0, 0), (1, 6, 0), (11, 0, 0))
        ),
    ],
    ids=range(7),
)
def test_what_is_no_view_is_refused(image: np.ndarray[Any, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        minigrid_text({"mission": "", "direction": 0, "image": image})
    assert problem in str(caught.value)


def test_pictures_are_those_of_any_wrapper_that_draws() -> None:
    env = gym.make("MiniGrid-Empty-5x5-v0", disable_env_checker=True)
    for wrapper in (wrappers.RGBImgObsWrapper, wrappers.RGBImgPartialObsWrapper):
        drawn = wrapper(env)
        assert shows_pixels(drawn)
        assert shows_pixels(wrappers.ImgObsWrapper(drawn))
        assert not is_minigrid(drawn)
    assert not shows_pixels(env)
