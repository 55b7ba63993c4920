"""`showing`: what a game is shown as, and what of it is explained."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from hypothesis import given, settings
from hypothesis import strategies as st

import vfgym
from vfgym.errors import ConfigurationError
from vfgym.wrappers.games.images import frame_of
from vfgym.wrappers.gymnasium.rendering import RememberedDrawings, check_readable, drawing_text, may_change_observations

pytest.importorskip("PIL", reason="needs the extra images")

OTHERWISE = "or do something else"


def shown(env: Any, seed: int = 0) -> str:
    """Return all text of the first observation."""
    content = env.reset(seed=seed)[0][-1].content
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content if part["type"] == "text")


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(1000),
        spaces.Discrete(100_000),
        spaces.MultiDiscrete([600, 600]),
        spaces.Tuple([spaces.Discrete(1000), spaces.Discrete(2)]),
        spaces.Dict(state=spaces.Discrete(500), hint=spaces.Text(20)),
        spaces.OneOf([spaces.Box(0, 1, (300,)), spaces.MultiBinary(300)]),
        spaces.Sequence(spaces.Tuple([spaces.Box(0, 1, (256,)), spaces.Box(0, 1, (256,))])),
        spaces.Graph(spaces.Box(0, 1, (256,)), spaces.Discrete(600)),
        spaces.Box(0, 1, (512,)),
    ],
    ids=str,
)
def test_what_counts_is_how_much_is_written_and_not_how_large_it_may_be(space: gym.Space[Any]) -> None:
    check_readable(space, "a game", OTHERWISE)


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Box(0, 1, (27, 19)), 513),
        (spaces.MultiDiscrete([2] * 600), 600),
        (spaces.Tuple([spaces.Box(0, 1, (512,)), spaces.Discrete(2)]), 513),
        (spaces.Dict(first=spaces.MultiBinary(300), second=spaces.Dict(third=spaces.MultiBinary((300, 2)))), 900),
        (spaces.OneOf([spaces.Discrete(2), spaces.MultiBinary(513)]), 513),
        (spaces.Sequence(spaces.Box(0, 1, (600,))), 600),
        (spaces.Graph(spaces.Box(0, 1, (256,)), spaces.Box(0, 1, (257,))), 513),
    ],
    ids=str,
)
def test_observations_that_no_model_can_read_are_refused(space: gym.Space[Any], size: int) -> None:
    with pytest.raises(ConfigurationError, match=f"of {size} numbers, which no model can read: .* {OTHERWISE}"):
        check_readable(space, "a game", OTHERWISE)


SHAPES = st.lists(st.integers(1, 30), max_size=2).map(tuple)


SPACES = st.recursive(
    st.one_of(
        st.integers(1, 2000).map(spaces.Discrete),
        st.builds(lambda shape: spaces.Box(0, 1, shape), SHAPES),
        st.integers(1, 600).map(spaces.MultiBinary),
        st.lists(st.integers(1, 2000), min_size=1, max_size=5).map(spaces.MultiDiscrete),
        st.integers(1, 2000).map(spaces.Text),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(spaces.Tuple), st.dictionaries(st.sampled_from("abc"), inner).map(spaces.Dict)),
    max_leaves=6,
)


def leaves(value: Any) -> int:
    """Count the numbers and texts in an observation."""
    if isinstance(value, np.ndarray):
        return value.size
    members = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else None
    return 1 if members is None else sum(map(leaves, members))


@given(SPACES)
@settings(max_examples=40)
def test_the_size_of_a_space_of_one_form_is_that_of_its_elements(space: gym.Space[Any]) -> None:
    size = leaves(space.sample())
    if size > 512:
        with pytest.raises(ConfigurationError, match=f"of {size} numbers"):
            check_readable(space, "a game", OTHERWISE)
    else:
        check_readable(space, "a game", OTHERWISE)


@pytest.mark.parametrize("game_id", ["Taxi-v4", "FrozenLake-v1", "CliffWalking-v1", "Blackjack-v1", "CartPole-v1"])
def test_numbers_beside_an_image_are_explained_as_numbers_alone_are(game_id: str) -> None:
    """A game that is drawn as an image has no drawing of text, even if it could make one."""
    pytest.importorskip("pygame")
    pytest.importorskip("PIL")
    both = vfgym.to_chat(game_id, observe="both")
    assert shown(both) == shown(vfgym.to_chat(lambda: gym.make(game_id)))
    both.close()


def test_drawings_are_explained_where_they_are_shown_and_numbers_where_they_are() -> None:
    drawn, numbers = vfgym.to_chat("Taxi-v4"), vfgym.to_chat(lambda: gym.make("Taxi-v4"))
    written = vfgym.to_chat("Taxi-v4", obs_to_text=str, rules=None)
    legend, encoding = "magenta the destination", "* 4 + destination"
    assert legend in shown(drawn)
    assert legend not in shown(numbers)
    assert encoding in shown(numbers)
    assert encoding not in shown(drawn)
    assert legend not in shown(written)
    assert encoding not in shown(written)
    assert legend not in shown(vfgym.to_chat("Taxi-v4", rules="Drive."))


def test_what_wrappers_changed_is_not_explained_as_it_was() -> None:
    rescaled = shown(vfgym.to_chat(wrappers.RescaleAction(gym.make("Pendulum-v1"), np.float32(-1), np.float32(1))))
    assert "Actions: a list of 1 number from -1 to 1.\n\nAnswer with" in rescaled
    assert "angular velocity (radians/s): " in rescaled
    discrete = shown(vfgym.to_chat(wrappers.DiscretizeAction(gym.make("Pendulum-v1"), 3)))
    assert "Actions: 0, 1, 2.\n\nAnswer with" in discrete
    with pytest.warns(UserWarning, match="45 numbers of an observation have no labels"):
        flat = shown(vfgym.to_chat(wrappers.FlattenObservation(gym.make("Blackjack-v1"))))
    assert "The usable ace is 1" not in flat
    assert "The usable ace is 1" in shown(vfgym.to_chat("Blackjack-v1"))
    lake = shown(vfgym.to_chat(wrappers.FlattenObservation(gym.make("FrozenLake-v1"))))
    assert "row * 4" not in lake
    assert "HFFG\n\n" in lake  # the map is the game's, whatever is observed


class Drawn(gym.Env[Any, Any]):
    """Draws itself as what it is given."""

    metadata = {"render_modes": ["ansi"]}
    observation_space = spaces.Discrete(7, start=3)
    action_space = spaces.Discrete(2)

    def __init__(self, drawing: Any, render_mode: str | None = None) -> None:
        self.drawing = drawing
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return 3, {}

    def step(self, action: Any) -> Any:
        return 4, 0.0, False, False, {}

    def render(self) -> Any:
        return self.drawing


@pytest.mark.parametrize("drawing", ["#\x1b[41m@\x1b[0m", io.StringIO("#\x1b[41m@\x1b[0m")], ids=["str", "StringIO"])
def test_a_drawing_is_text_or_in_a_file_of_text(drawing: Any) -> None:
    """Both are in the documentation of `gymnasium.Env.render`, and a file can be shown again."""
    env = vfgym.to_chat(lambda: Drawn(drawing, "ansi"))
    assert shown(env).endswith("\n\n#[@]")
    assert env.step("1").observation[-1].content == "#[@]"


@pytest.mark.parametrize("drawing", [["#@"], np.zeros((20, 20, 3), np.uint8)], ids=["a list", "an image"])
def test_what_is_no_text_is_named(drawing: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"must return text, or an io.StringIO with it; got {type(drawing).__name__}"):
        vfgym.to_chat(lambda: Drawn(drawing, "ansi")).reset()


LAKE = {"is_slippery": False}


class Shaped(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """A wrapper whose `step` could do anything."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return (observation, float(reward) - 1, *rest)


class Named(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """A wrapper that changes nothing."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)


def test_a_delayed_observation_is_shown_with_its_delay() -> None:
    env = vfgym.to_chat(wrappers.DelayObservation(gym.make("FrozenLake-v1", **LAKE), 2), show=())
    assert shown(env).endswith("\n\n0")
    assert [env.step("down").observation[-1].content for _ in range(3)] == ["0", "0", "4\n\nThe game is over."]


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda env: env,
        lambda env: wrappers.TimeLimit(env, 5),
        lambda env: wrappers.RecordEpisodeStatistics(env),
        lambda env: wrappers.ClipReward(wrappers.NormalizeReward(env), -1, 1),
        lambda env: wrappers.StickyAction(env, 0.1),
        lambda env: wrappers.RepeatAction(env, 2),
        Named,
    ],
    ids=["bare", "limit", "statistics", "reward", "action", "repeat", "named"],
)
def test_wrappers_that_leave_observations_as_they_are_keep_the_drawing(wrapped: Any) -> None:
    assert shown(vfgym.to_chat(wrapped(gym.make("FrozenLake-v1", **LAKE)))).endswith("\n\n[S]FFF\nFHFH\nFFFH\nHFFG")


@pytest.mark.parametrize(
    ("wrapped", "ending"),
    [
        (lambda env: wrappers.FlattenObservation(env), ", 0, 0]"),
        (lambda env: wrappers.FrameStackObservation(env, 2), "[0, 0]"),
        (lambda env: wrappers.TransformObservation(env, lambda seen: seen + 1, None), "\n\n1"),
        (lambda env: wrappers.TimeLimit(wrappers.DelayObservation(env, 1), 5), "\n\n0"),
    ],
    ids=["flat", "stacked", "transformed", "delayed"],
)
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_wrappers_that_change_observations_are_not_bypassed(wrapped: Any, ending: str, render_mode: str | None) -> None:
    def make() -> Any:
        return wrapped(gym.make("FrozenLake-v1", render_mode=render_mode, **LAKE))

    for env in (vfgym.to_chat(make()), vfgym.to_chat(make)):
        text = shown(env)
        assert text.endswith(ending)
        assert "In the drawing" not in text


def test_a_wrapper_that_could_change_observations_keeps_the_drawing_of_a_game_that_was_made_for_it() -> None:
    assert shown(vfgym.to_chat(Shaped(gym.make("FrozenLake-v1", **LAKE)))).endswith("\n\n0")
    assert shown(vfgym.to_chat(Shaped(gym.make("FrozenLake-v1", render_mode="ansi", **LAKE)))).endswith("HFFG")


def test_gymnasiums_wrappers_are_told_apart() -> None:
    """One that may not change observations hands them on as they are, whatever they are."""
    classes = [cls for cls in vars(wrappers).values() if isinstance(cls, type) and issubclass(cls, gym.Wrapper)]
    changing = {cls.__name__ for cls in classes if may_change_observations(cls)}
    assert {cls.__name__ for cls in classes if issubclass(cls, gym.ObservationWrapper)} <= changing
    assert changing >= {"FrameStackObservation", "MaxAndSkipObservation", "AtariPreprocessing", "DelayObservation"}
    assert not changing & {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "Autoreset", "ClipAction"}
    assert may_change_observations(Shaped)
    assert not may_change_observations(Named)


def test_text_of_ones_own_is_not_ignored_where_only_images_are_shown() -> None:
    with pytest.raises(ConfigurationError, match='give observe="text" or observe="both"'):
        vfgym.to_chat("CartPole-v1", observe="image", obs_to_text=str)
    both = vfgym.to_chat("CartPole-v1", observe="both", obs_to_text=lambda seen: f"{len(seen)} numbers")
    assert shown(both).endswith("\n\n4 numbers")
    both.close()


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_a_position_that_was_drawn_once_is_shown_as_the_game_draws_it(env_id: str) -> None:
    env: Any = vfgym.to_chat(env_id, max_turns=-1)
    game = gym.make(env_id, render_mode="ansi")
    rng = np.random.default_rng(0)
    for seed in (0, 1, 0):  # the third time all of it is remembered
        observation, _ = env.reset(seed=seed)
        game.reset(seed=seed)
        for _ in range(20):
            drawn: Any = game.render()
            assert drawing_text(drawn) in observation[-1].content
            action = int(rng.integers(game.action_space.n))  # type: ignore[attr-defined]
            over = game.step(action)[2]
            observation, _, terminated, _, _ = env.step(env.codec.encode(action))
            assert terminated == over
            if over:
                break


@pytest.mark.parametrize("maps", [["SFFG", "SFHG"], ["SFFG", "FSFG"]])
def test_games_of_different_maps_show_their_own(maps: list[str]) -> None:
    """Other holes are other transitions; another start is not, but the game begins elsewhere."""
    order = [maps[0], maps[0], maps[1], maps[0], maps[1]]
    made = iter(order)
    env: Any = vfgym.to_chat(lambda: gym.make("FrozenLake-v1", desc=[next(made)], is_slippery=False, render_mode="ansi"))
    boards = []
    for seat in [env, env.fork(), env.fork(), env.fork()]:
        observation, _ = seat.reset(seed=0)
        boards.append(observation[-1].content.splitlines()[-1].replace("[", "").replace("]", ""))
    assert boards == order[1:]


def test_random_maps_of_an_id_are_shown_as_they_are() -> None:
    env: Any = vfgym.to_chat("FrozenLake-v1", map_name=None)
    boards = set()
    for seat in [env, env.fork(), env.fork()]:
        observation, _ = seat.reset(seed=0)
        board = "\n".join(observation[-1].content.splitlines()[-8:])
        assert board == drawing_text(seat.state.session.game.render()).strip()
        boards.add(board)
    assert len(boards) == 3


def test_no_more_drawings_are_remembered_than_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RememberedDrawings, "_MOST_CHARACTERS", 60)
    game = gym.make("FrozenLake-v1", render_mode="ansi", is_slippery=False)
    shows = RememberedDrawings(game.unwrapped.P)  # type: ignore[attr-defined]
    game.reset(seed=0)
    for _ in range(2):
        for action in (1, 1, 3, 3):
            game.step(action)
            drawn: Any = game.render()
            assert shows(game, None) == drawing_text(drawn)
    assert 0 < sum(map(len, shows._drawn.values())) <= 60


CAMERA = spaces.Box(0, 255, (20, 24, 3), np.uint8)


FRACTIONS = spaces.Box(0.0, 1.0, (20, 24, 3), np.float32)


class Seeing(gym.Env[Any, Any]):
    """Observes elements of a space, drawn at random."""

    action_space = spaces.Discrete(2)
    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, space: gym.Space[Any]) -> None:
        self.observation_space = space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, False, {}


def play(space: gym.Space[Any], **options: Any) -> tuple[list[Any], Any]:
    """Return the content of the second message of a game, as parts, and what was observed then."""
    env = vfgym.to_chat(lambda: Seeing(copy.deepcopy(space)), **options)
    env.reset(seed=3)
    content = env.step("1").observation[-1].content
    native = Seeing(copy.deepcopy(space))
    native.reset(seed=3)
    return [{"type": "text", "text": content}] if isinstance(content, str) else [*content], native.step(1)[0]


def kinds(parts: list[Any]) -> list[str]:
    """Return the texts of parts, and "image" for images."""
    return [part["text"] if part["type"] == "text" else "image" for part in parts]


def test_an_image_and_numbers_are_shown_as_an_image_and_text() -> None:
    space = spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9), goal=spaces.Text(3, charset="ab"))
    (text, image), observation = play(space)
    assert text["text"] == f"goal: {observation['goal']}\nspeed: {observation['speed']}"
    assert np.array_equal(frame_of(image), observation["camera"])


def test_of_several_images_each_stands_under_its_key() -> None:
    parts, observation = play(spaces.Dict(left=CAMERA, right=FRACTIONS, speed=spaces.Discrete(9)))
    assert kinds(parts) == [f"speed: {observation['speed']}", "left:", "image", "right:", "image"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, ["speed", "image"]),
        ({"observe": "both"}, ["speed", "image"]),
        ({"observe": "image"}, ["image"]),
        ({"obs_to_text": lambda seen: "speed"}, ["speed"]),
        ({"obs_to_text": lambda seen: "speed", "observe": "both"}, ["speed", "image"]),
    ],
)
def test_what_is_shown_can_be_chosen(options: dict[str, Any], shown: list[str]) -> None:
    parts, _ = play(spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9)), **options)
    assert [kind.partition(":")[0] for kind in kinds(parts)] == shown


def test_images_alone_have_no_text() -> None:
    assert kinds(play(spaces.Dict(camera=CAMERA))[0]) == ["image"]
    assert kinds(play(CAMERA)[0]) == ["image"]


def test_a_mask_is_told_as_a_list_and_not_beside_the_image() -> None:
    parts, _ = play(spaces.Dict(camera=CAMERA, action_mask=spaces.MultiBinary(2)))
    assert not any("action_mask" in kind for kind in kinds(parts))
    assert kinds(parts)[0] == "image"


def test_numbers_beside_an_image_must_be_readable() -> None:
    space = spaces.Dict(camera=CAMERA, lidar=spaces.Box(0, 9, (1000,)))
    with pytest.raises(ConfigurationError, match=r'1000 numbers, which no model can read: .*observe="image" if its images are enough'):
        play(space)
    assert kinds(play(space, observe="image")[0]) == ["image"]
    with pytest.raises(ConfigurationError, match="which no model can read"):
        play(spaces.Dict(camera=CAMERA), observe="text")


def test_fractions_are_shown_as_an_image() -> None:
    (image,), observation = play(FRACTIONS)
    assert np.array_equal(frame_of(image), np.rint(observation * 255))


def test_stacked_frames_are_shown_side_by_side_and_explained() -> None:
    env = vfgym.to_chat(lambda: wrappers.FrameStackObservation(Seeing(CAMERA), 3))
    *texts, image = env.reset(seed=0)[0][-1].content
    assert "The image shows 3 frames side by side, the oldest at the left and the newest at the right." in kinds(texts)[0]
    assert frame_of(image).shape == (20, 3 * 24 + 2 * 4, 3)
    newest = frame_of(env.step("1").observation[-1].content[-1])[:, -24:]
    oldest = frame_of([env.step("1") for _ in range(2)][-1].observation[-1].content[-1])[:, :24]
    assert np.array_equal(newest, oldest)


@pytest.mark.parametrize("space", [CAMERA, spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9))], ids=["image", "dict"])
def test_a_game_without_a_drawing_is_filmed_as_it_is_observed(space: gym.Space[Any]) -> None:
    env = vfgym.to_chat(lambda: Seeing(space), render_mode="rgb_array")
    *_, image = env.reset(seed=0)[0][-1].content
    assert np.array_equal(env.render(), frame_of(image))


def test_it_can_be_pickled() -> None:
    env = vfgym.to_chat(Camera)
    again = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=1)[0] == env.reset(seed=1)[0]


class Camera(Seeing):
    """Observes an image and a number."""

    def __init__(self) -> None:
        super().__init__(spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9)))


def test_minigrids_symbols_are_no_image_but_its_pictures_are() -> None:
    minigrid = pytest.importorskip("minigrid.wrappers", reason="needs the extra minigrid")
    with pytest.raises(ConfigurationError, match="which no model can read"):
        vfgym.to_chat(lambda: minigrid.FullyObsWrapper(gym.make("MiniGrid-FourRooms-v0")))
    env = vfgym.to_chat(lambda: minigrid.RGBImgPartialObsWrapper(gym.make("MiniGrid-Empty-5x5-v0")))
    *texts, image = env.reset(seed=0)[0][-1].content
    assert "mission: get to the green goal square" in kinds(texts)[-1]
    assert frame_of(image).shape == (56, 56, 3)
