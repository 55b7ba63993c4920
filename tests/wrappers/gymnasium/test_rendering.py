"""`showing`: what a game is shown as, and what of it is explained."""

from __future__ import annotations

import copy
import functools
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
from tests.wrappers.gymnasium.toys import Toy, first_content
from vfgym.errors import ConfigurationError
from vfgym.wrappers.games.images import frame_of
from vfgym.wrappers.gymnasium.descriptions import Description
from vfgym.wrappers.gymnasium.grids import ChannelText, ScreenText
from vfgym.wrappers.gymnasium.minigrid import ABOUT_VIEW, minigrid_text
from vfgym.wrappers.gymnasium.rendering import (
    OtherMembers,
    RememberedDrawings,
    RenderedText,
    TextAndImage,
    WrittenText,
    check_readable,
    drawing_text,
    explanation,
    make_renderer,
    may_change_observations,
    observed_frame,
    render_drawing,
    render_image,
)

pytest.importorskip("PIL", reason="needs the extra images")

OTHERWISE = "or do something else"
LAKE = {"is_slippery": False}


def shown(env: Any) -> str:
    content = first_content(env)
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content if part["type"] == "text")


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Text(1000), 0),
        (spaces.Tuple([spaces.Discrete(1000), spaces.Discrete(2)]), 0),
        (spaces.Dict(state=spaces.Discrete(500), hint=spaces.Text(20)), 0),
        (spaces.OneOf([spaces.Box(0, 1, (300,)), spaces.MultiBinary(300)]), 0),
        (spaces.Sequence(spaces.Tuple([spaces.Box(0, 1, (256,)), spaces.Box(0, 1, (256,))])), 0),
        (spaces.Graph(spaces.Box(0, 1, (256,)), spaces.Discrete(600)), 0),
        (spaces.OneOf([spaces.Discrete(2), spaces.MultiBinary(513)]), 513),
        (spaces.Sequence(spaces.Box(0, 1, (600,))), 600),
        (spaces.Graph(spaces.Box(0, 1, (256,)), spaces.Box(0, 1, (257,))), 513),
    ],
    ids=str,
)
def test_observations_that_no_model_can_read_are_refused(space: gym.Space[Any], size: int) -> None:
    """What counts is how much is written, and not how large it may be."""
    if not size:
        check_readable(space, "a game", OTHERWISE)
        return
    with pytest.raises(ConfigurationError, match=rf"^a game has the .* of {size} numbers, which no model can read: .* {OTHERWISE}$"):
        check_readable(space, "a game", OTHERWISE)


SPACES = st.recursive(
    st.one_of(
        st.integers(1, 2000).map(spaces.Discrete),
        st.lists(st.integers(1, 30), max_size=2).map(lambda shape: spaces.Box(0, 1, tuple(shape))),
        st.sampled_from([(512,), (513,), (27, 19)]).map(spaces.MultiBinary),
        st.lists(st.integers(1, 2000), min_size=1, max_size=5).map(spaces.MultiDiscrete),
        st.integers(1, 2000).map(spaces.Text),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(spaces.Tuple), st.dictionaries(st.sampled_from("abc"), inner).map(spaces.Dict)),
    max_leaves=6,
)


def leaves(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    members = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else None
    return 1 if members is None else sum(map(leaves, members))


@given(SPACES)
@settings(max_examples=40)
def test_the_size_of_a_space_of_one_form_is_that_of_its_elements(space: gym.Space[Any]) -> None:
    size = leaves(space.sample())
    test_observations_that_no_model_can_read_are_refused(space, size if size > 512 else 0)


@pytest.mark.parametrize("game_id", ["Taxi-v4", "FrozenLake-v1", "CliffWalking-v1", "Blackjack-v1", "CartPole-v1"])
def test_numbers_beside_an_image_are_explained_as_numbers_alone_are(game_id: str) -> None:
    """A game that is drawn as an image has no drawing of text, even if it could make one."""
    pytest.importorskip("pygame")
    both = vfgym.to_chat(game_id, observe="both")
    assert shown(both) == shown(vfgym.to_chat(lambda: gym.make(game_id)))
    both.close()


@pytest.mark.parametrize(
    ("game", "options", "explains_drawing", "explains_numbers"),
    [
        ("Taxi-v4", {}, True, False),
        (lambda: gym.make("Taxi-v4"), {}, False, True),
        ("Taxi-v4", {"obs_to_text": str}, False, False),
        ("Taxi-v4", {"rules": "Drive."}, False, False),
    ],
)
def test_drawings_are_explained_where_they_are_shown_and_numbers_where_they_are(
    game: Any, options: dict[str, Any], explains_drawing: bool, explains_numbers: bool
) -> None:
    told = shown(vfgym.to_chat(game, **options))
    assert ("magenta the destination" in told, "* 4 + destination" in told) == (explains_drawing, explains_numbers)


def test_what_wrappers_changed_is_not_explained_as_it_was() -> None:
    rescaled = shown(vfgym.to_chat(wrappers.RescaleAction(gym.make("Pendulum-v1"), np.float32(-1), np.float32(1))))
    assert "Actions: a list of 1 number from -1 to 1.\n\nAnswer with" in rescaled
    assert "angular velocity (radians/s): " in rescaled
    with pytest.warns(UserWarning, match="45 numbers of an observation have no labels"):
        flat = shown(vfgym.to_chat(wrappers.FlattenObservation(gym.make("Blackjack-v1"))))
    assert ["The usable ace is 1" in told for told in (flat, shown(vfgym.to_chat("Blackjack-v1")))] == [False, True]
    lake = shown(vfgym.to_chat(wrappers.FlattenObservation(gym.make("FrozenLake-v1"))))
    assert "row * 4" not in lake
    assert "HFFG\n\n" in lake  # the map is the game's, whatever is observed


@pytest.mark.parametrize("drawing", ["#\x1b[41m@\x1b[0m", io.StringIO("#\x1b[41m@\x1b[0m")], ids=["str", "StringIO"])
def test_a_drawing_is_text_or_in_a_file_of_text(drawing: Any) -> None:
    """Both are in the documentation of `gymnasium.Env.render`, and a file can be shown again."""
    env = vfgym.to_chat(lambda: Toy("ansi", metadata={"render_modes": ["ansi"]}, render=lambda: drawing))
    assert shown(env).endswith("\n\n#[@]")
    assert env.step("1").observation[-1].content == "#[@]"


@pytest.mark.parametrize("drawing", [["#@"], np.zeros((20, 20, 3), np.uint8)], ids=["a list", "an image"])
def test_what_is_no_text_is_named(drawing: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"must return text, or an io.StringIO with it; got {type(drawing).__name__}"):
        vfgym.to_chat(lambda: Toy("ansi", metadata={"render_modes": ["ansi"]}, render=lambda: drawing)).reset()


def printed() -> None:
    print("#@")


class Unable(Toy):
    """Cannot begin when it is made."""

    def reset(self, **options: Any) -> Any:
        raise RuntimeError("not yet")


@pytest.mark.parametrize(
    ("kind", "render", "is_drawn"),
    [(Toy, lambda: None, False), (Toy, printed, False), (Toy, lambda: "", True), (Unable, lambda: None, True)],
)
def test_a_game_that_returns_no_drawing_is_shown_as_numbers(
    kind: type[Toy], render: Any, is_drawn: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it prints instead is not printed; one that cannot begin yet may draw later."""
    assert (make_renderer(kind("ansi", render=render), "a game", None, None) is render_drawing) == is_drawn
    assert capsys.readouterr().out == ""


class Named(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """A wrapper that changes nothing."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)


class Shaped(Named):
    """A wrapper whose `step` could do anything."""

    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return (observation, float(reward) - 1, *rest)


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


def test_gymnasiums_wrappers_are_told_apart() -> None:
    """One that may not change observations hands them on as they are, whatever they are."""
    classes = [cls for cls in vars(wrappers).values() if isinstance(cls, type) and issubclass(cls, gym.Wrapper)]
    changing = {cls.__name__ for cls in classes if may_change_observations(cls)}
    assert {cls.__name__ for cls in classes if issubclass(cls, gym.ObservationWrapper)} <= changing
    assert changing >= {"FrameStackObservation", "MaxAndSkipObservation", "AtariPreprocessing", "DelayObservation"}
    assert not changing & {"TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "Autoreset", "ClipAction"}
    assert (may_change_observations(Shaped), may_change_observations(Named)) == (True, False)
    lakes = [Shaped(gym.make("FrozenLake-v1", render_mode=mode, **LAKE)) for mode in (None, "ansi")]  # the second is made to be drawn
    assert [shown(vfgym.to_chat(lake)).rpartition("\n")[2] for lake in lakes] == ["0", "HFFG"]


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Taxi-v4", "CliffWalking-v1"])
def test_a_position_that_was_drawn_once_is_shown_as_the_game_draws_it(env_id: str) -> None:
    env: Any = vfgym.to_chat(env_id, max_turns=-1)
    game: Any = gym.make(env_id, render_mode="ansi")
    rng = np.random.default_rng(0)
    for seed in (0, 1, 0):  # the third time all of it is remembered
        observation, _ = env.reset(seed=seed)
        game.reset(seed=seed)
        for _ in range(20):
            assert drawing_text(game.render()) in observation[-1].content
            action = int(rng.integers(game.action_space.n))
            observation, _, terminated, _, _ = env.step(env.codec.encode(action))
            assert terminated == game.step(action)[2]
            if terminated:
                break


@pytest.mark.parametrize("maps", [["SFFG", "SFHG"], ["SFFG", "FSFG"]])
def test_games_of_different_maps_show_their_own(maps: list[str]) -> None:
    """Other holes are other transitions; another start is not, but the game begins elsewhere."""
    order = [maps[0], maps[0], maps[1], maps[0], maps[1]]
    made = iter(order)
    env: Any = vfgym.to_chat(lambda: gym.make("FrozenLake-v1", desc=[next(made)], is_slippery=False, render_mode="ansi"))
    boards = [first_content(seat).splitlines()[-1] for seat in [env, env.fork(), env.fork(), env.fork()]]
    assert [board.replace("[", "").replace("]", "") for board in boards] == order[1:]


def test_random_maps_of_an_id_are_shown_as_they_are() -> None:
    env: Any = vfgym.to_chat("FrozenLake-v1", map_name=None)
    boards = set()
    for seat in [env, env.fork(), env.fork()]:
        board = "\n".join(first_content(seat).splitlines()[-8:])
        assert board == drawing_text(seat.state.session.game.render()).strip()
        boards.add(board)
    assert len(boards) == 3


def test_no_more_drawings_are_remembered_than_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RememberedDrawings, "_MOST_CHARACTERS", 60)
    game: Any = gym.make("FrozenLake-v1", render_mode="ansi", is_slippery=False)
    shows = RememberedDrawings(game.unwrapped.P)
    game.reset(seed=0)
    for action in (1, 1, 3, 3) * 2:
        game.step(action)
        assert shows(game, None) == drawing_text(game.render())
    assert 0 < sum(map(len, shows._drawn.values())) <= 60


# Images

CAMERA, SPEED = spaces.Box(0, 255, (20, 24, 3), np.uint8), spaces.Discrete(9)
FRACTIONS = spaces.Box(0.0, 1.0, (20, 24, 3), np.float32)
BOTH = spaces.Dict(camera=CAMERA, speed=SPEED)
LINE = spaces.Box(0, 255, (80,), np.uint8)


class Seeing(Toy):
    """Observes elements of a space, drawn at random."""

    observation_space = BOTH

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.observation_space = copy.deepcopy(self.observation_space)
        self.observation_space.seed(seed)
        return super().reset(seed=seed)

    def seen(self) -> Any:
        return self.observation_space.sample()


def play(space: gym.Space[Any], **options: Any) -> tuple[list[Any], Any]:
    env = vfgym.to_chat(lambda: Seeing(observation_space=space), **options)
    env.reset(seed=3)
    content = env.step("1").observation[-1].content
    native = Seeing(observation_space=space)
    native.reset(seed=3)
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [part["text"] if part["type"] == "text" else frame_of(part) for part in parts], native.step(1)[0]


@pytest.mark.parametrize(
    ("space", "options", "expected"),
    [
        (spaces.Dict(camera=CAMERA, speed=SPEED, goal=spaces.Text(3, charset="ab")), {}, ["goal: {goal}\nspeed: {speed}", "camera"]),
        (spaces.Dict(left=CAMERA, right=FRACTIONS, speed=SPEED), {}, ["speed: {speed}", "left:", "left", "right:", "right"]),
        (BOTH, {}, ["speed: {speed}", "camera"]),
        (BOTH, {"observe": "both"}, ["speed: {speed}", "camera"]),
        (BOTH, {"observe": "image"}, ["camera"]),
        (BOTH, {"obs_to_text": lambda seen: "speed"}, ["speed"]),
        (BOTH, {"obs_to_text": lambda seen: "fast", "observe": "both"}, ["fast", "camera"]),
        (spaces.Dict(camera=CAMERA), {}, ["camera"]),
        (CAMERA, {}, ["all"]),
        (FRACTIONS, {}, ["all"]),
        (spaces.Dict(camera=CAMERA, action_mask=spaces.MultiBinary(3)), {}, ["camera", "Legal actions: ..."]),
        (spaces.Dict(camera=CAMERA, action_mask=spaces.MultiBinary(3)), {"show": ()}, ["action_mask: [...", "camera"]),
        (spaces.Dict(camera=CAMERA, lidar=spaces.Box(0, 9, (1000,))), {"observe": "image"}, ["camera"]),
    ],
)
def test_an_image_is_shown_as_an_image_and_what_stands_beside_it_as_text(space: Any, options: dict[str, Any], expected: list[str]) -> None:
    parts, observation = play(space, **options)
    seen = observation if isinstance(observation, dict) else {"all": observation}
    for part, name in zip(parts, expected, strict=True):
        if isinstance(part, str):
            assert part.startswith(name.removesuffix("...")) if name.endswith("...") else part == name.format(**seen)
        else:
            np.testing.assert_array_equal(part, seen[name] if seen[name].dtype == np.uint8 else np.rint(seen[name] * 255))


@pytest.mark.parametrize(
    ("space", "options", "problem"),
    [
        (spaces.Dict(camera=CAMERA, lidar=spaces.Box(0, 9, (1000,))), {}, r'1000 numbers.*observe="image" if its images are enough'),
        (spaces.Dict(camera=CAMERA, message=LINE, lidar=spaces.Box(0, 9, (513,))), {}, "513 numbers.* for all that it observes$"),
        (spaces.Dict(message=LINE, lidar=spaces.Box(0, 9, (513,))), {}, "513 numbers.* for all that it observes$"),
        (spaces.Box(0, 9, (513,)), {}, '513 numbers.* or observe="image" if it can be drawn$'),
        (spaces.Dict(camera=CAMERA), {"observe": "text"}, "which no model can read"),
        (BOTH, {"observe": "image", "obs_to_text": str}, 'give observe="text" or observe="both"'),
    ],
)
def test_numbers_beside_an_image_must_be_readable(space: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        play(space, **options)


FRAMES = spaces.Box(0, 255, (2, 20, 24, 3), np.uint8)


@pytest.mark.parametrize(
    ("members", "explained"),
    [
        ({"a": CAMERA, "b": CAMERA}, ""),
        ({"a": CAMERA, "b": FRAMES}, "The image 'b' shows 2 frames"),
        ({"a": FRAMES, "b": FRAMES}, "The image 'a' shows 2 frames|The image 'b' shows 2 frames"),
    ],
)
def test_each_image_of_several_frames_is_explained(members: Any, explained: str) -> None:
    images = make_renderer(Seeing(observation_space=spaces.Dict(members)), "a game", "image", None)
    rest = " side by side, the oldest at the left and the newest at the right."
    assert explanation(images, Description()) == "\n".join(f"{each}{rest}" for each in explained.split("|") if each)


@pytest.mark.parametrize(
    ("observe", "obs_to_text", "problem"),
    [
        ("picture", None, "observe must be one of text, image, both, or None; got 'picture'$"),
        ("", None, "observe must be one of text, image, both, or None; got ''$"),
        (None, "", "obs_to_text must be a function from an observation to text, got ''$"),
        *[(observe, None, "a game has no images to show: .* and its render mode is None.") for observe in ("image", "both")],
    ],
)
def test_arguments_that_show_nothing_are_refused(observe: Any, obs_to_text: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{problem}"):
        make_renderer(Toy(), "a game", observe, obs_to_text)


def test_a_function_that_returns_no_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^obs_to_text must return text, got int$"):
        make_renderer(Toy(), "a game", None, lambda seen: 0)(Toy(), 0)


MASKED = {"b": spaces.Box(0, 9, (2,), np.int8), "action_mask": spaces.MultiBinary(2)}


@pytest.mark.parametrize(
    ("others", "labels", "hides_mask", "text"),
    [
        ({}, ("x", "y"), True, "x: 3\ny: 4"),
        ({"c": spaces.Discrete(5)}, (), True, "b: [3, 4]\nc: 2"),
        ({}, (), False, "action_mask: [0, 1]\nb: [3, 4]"),
    ],
)
def test_numbers_are_shown_with_and_without_their_mask_and_by_a_pickled_renderer(
    others: Any, labels: Any, hides_mask: bool, text: str
) -> None:
    renderer = RenderedText(spaces.Dict(MASKED | others), labels, hides_mask)
    seen = {"b": np.array([3, 4], np.int8), "action_mask": np.array([0, 1], np.int8), **({"c": 2} if others else {})}
    for each in (renderer, pickle.loads(pickle.dumps(renderer))):
        assert each(Toy(), seen) == text


NUMBERS = RenderedText(SPEED, ())
ABOUT = Description(about_observations="numbers", legend="drawing", obs_to_text=len)
LEGEND = ChannelText(("wall",), True).legend


@pytest.mark.parametrize(
    ("renderer", "expected"),
    [
        (render_drawing, "drawing"),
        (WrittenText(len), "drawing"),
        (WrittenText(str), ""),
        (WrittenText(minigrid_text), ABOUT_VIEW),
        (NUMBERS, "numbers"),
        (OtherMembers(NUMBERS), "numbers"),
        (ScreenText(("message",)), ""),
        (ScreenText(("message",), OtherMembers(NUMBERS)), "numbers"),
        (ChannelText(("wall",), True), f"{LEGEND}\n\nnumbers"),
        (render_image, ""),
        (TextAndImage(NUMBERS, render_image), "numbers"),
        (TextAndImage(WrittenText(str), render_image), ""),
    ],
)
def test_what_is_explained_is_what_is_shown(renderer: Any, expected: str) -> None:
    assert explanation(renderer, ABOUT) == expected


def test_the_frame_of_an_observation_is_its_first_image() -> None:
    seen = {"left": np.full((20, 24, 3), 1, np.uint8), "right": np.full((20, 24, 3), 2, np.uint8), "speed": 0}
    space = spaces.Dict(left=CAMERA, right=CAMERA, speed=SPEED)
    for observe in (None, "image"):
        frame: Any = observed_frame(make_renderer(Seeing(observation_space=space), "", observe, None), seen)
        assert frame[0, 0, 0] == 1
    assert observed_frame(make_renderer(Toy(), "", None, None), 0) is None


def test_stacked_frames_are_shown_side_by_side_and_explained() -> None:
    env = vfgym.to_chat(lambda: wrappers.FrameStackObservation(Seeing(observation_space=CAMERA), 3))
    text, image = first_content(env)
    assert "The image shows 3 frames side by side, the oldest at the left and the newest at the right." in text["text"]
    assert frame_of(image).shape == (20, 3 * 24 + 2 * 4, 3)
    newest, _, last = (frame_of(env.step("1").observation[-1].content[-1]) for _ in range(3))
    assert np.array_equal(newest[:, -24:], last[:, :24])


@pytest.mark.parametrize("space", [CAMERA, BOTH], ids=["image", "dict"])
def test_a_game_without_a_drawing_is_filmed_as_it_is_observed(space: gym.Space[Any]) -> None:
    env: Any = vfgym.to_chat(functools.partial(Seeing, observation_space=space), render_mode="rgb_array")
    assert first_content(pickle.loads(pickle.dumps(env))) == first_content(env)
    assert np.array_equal(frame_of(first_content(env)[-1]), env.render())


def test_minigrids_symbols_are_no_image_but_its_pictures_are() -> None:
    minigrid = pytest.importorskip("minigrid.wrappers", reason="needs the extra minigrid")
    with pytest.raises(ConfigurationError, match="which no model can read"):
        vfgym.to_chat(lambda: minigrid.FullyObsWrapper(gym.make("MiniGrid-FourRooms-v0")))
    env = vfgym.to_chat(lambda: minigrid.RGBImgPartialObsWrapper(gym.make("MiniGrid-Empty-5x5-v0")))
    *_, text, image = first_content(env)
    assert "mission: get to the green goal square" in text["text"]
    assert frame_of(image).shape == (56, 56, 3)
