"""`render_mode="rgb_array"` of chat environments: a game's own picture or the conversation, for Gymnasium's films and windows."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import RecordVideo, RenderCollection

import vfgym
from tests.wrappers.games.nim import NimEnv
from tests.wrappers.gymnasium.toys import Toy
from vfgym.output.pictures import PAGE_SHAPE
from vfgym.wrappers.games.pictures import draw_game, draws_itself

pytest.importorskip("PIL", reason="needs the extra images")
pytest.importorskip("pygame", reason="needs the extra classic")

FAMILIES = ["gymnasium/CartPole-v1", "textarena/TicTacToe-v0", "pettingzoo/connect_four-v3"]


def make(env_id: str, **options: Any) -> gym.Env[Any, Any]:
    family = env_id.partition("/")[0].replace("-", "_")
    pytest.importorskip(family, reason=f"needs the extra {family}")
    return gym.make(env_id, render_mode="rgb_array", **options)


def play(env: gym.Env[Any, Any], turns: int) -> int:
    env.action_space.seed(3)
    env.reset(seed=0)
    for turn in range(1, turns + 1):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            return turn
    return turns


@pytest.mark.exhaustive
@pytest.mark.parametrize("env_id", [*FAMILIES, "reasoning-gym/leg_counting-v0"])
def test_record_video_films_an_episode_of_every_family(env_id: str, tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    from moviepy import VideoFileClip

    env = make(env_id)
    fps = env.metadata["render_fps"]
    film = RecordVideo(env, str(tmp_path / "films"))
    turns = play(film, 5)
    shape = film.render().shape
    film.close()
    with VideoFileClip(str(tmp_path / "films" / "rl-video-episode-0.mp4")) as clip:
        assert [*clip.size] == [shape[1], shape[0]]
        assert clip.n_frames == turns + 1
        assert clip.fps == fps


@pytest.mark.parametrize("env_id", FAMILIES)
def test_gymnasium_collects_a_frame_of_each_turn(env_id: str) -> None:
    make(env_id).close()
    for env in (gym.make(env_id, render_mode="rgb_array_list"), RenderCollection(make(env_id))):
        turns = play(env, 3)
        frames: Any = env.render()
        env.close()
        assert {(frame.shape, frame.dtype.name) for frame in frames} == {(frames[0].shape, "uint8")}
        assert (len(frames), len({frame.tobytes() for frame in frames}) > 1) == (turns + 1, True)


@pytest.mark.parametrize(
    ("game", "actions"),
    [("CartPole-v1", [0, 1, 0, 1]), ("FrozenLake-v1", [1, 1]), ("Taxi-v4", [0, 2, 4]), ("pettingzoo/tictactoe-v3", [4, 0])],
)
@pytest.mark.parametrize("blocking", [False, True])
async def test_a_game_is_filmed_as_it_draws_itself(game: str, actions: list[int], blocking: bool) -> None:
    """Also one that the model is shown as a drawing in text; one that blocks draws on its thread."""
    if game.startswith("pettingzoo"):
        pettingzoo = pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
        native = pettingzoo.make("aec", "classic/tictactoe_v3", render_mode="rgb_array")
        env: Any = make(game, opponents="self", blocking=blocking).unwrapped
    else:
        env, native = vfgym.to_chat(game, render_mode="rgb_array", blocking=blocking), gym.make(game, render_mode="rgb_array")
    assert env.metadata["render_fps"] == native.metadata["render_fps"]
    await env.areset(seed=5)
    native.reset(seed=5)
    for action in actions:
        assert np.array_equal(env.render(), native.render())
        await env.astep(str(action))
        native.step(action)
    assert np.array_equal(env.render(), native.render())
    await env.aclose()


@pytest.mark.parametrize(
    ("game", "options"),
    [("CartPole-v1", {}), ("FrozenLake-v1", {"observe": "both"}), ("FrozenLake-v1", {}), ("Blackjack-v1", {"obs_to_text": str})],
)
def test_the_model_sees_the_same_whether_or_not_it_is_filmed(game: str, options: dict[str, Any]) -> None:
    conversations = []
    for render_mode in (None, "rgb_array"):
        env = vfgym.to_chat(game, render_mode=render_mode, **options)
        env.reset(seed=2)
        env.action_space.seed(2)
        if render_mode is not None:
            env.render()
        conversations.append(env.step(env.action_space.sample()).observation)
        env.close()
    assert conversations[0] == conversations[1]


def test_a_game_that_cannot_draw_here_is_filmed_as_its_conversation_and_says_why_once(caplog: pytest.LogCaptureFixture) -> None:
    def render() -> Any:
        raise OSError("no display")

    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    other = make("pettingzoo/tictactoe-v3", game_options={"render_mode": None})
    other.reset(seed=0)
    assert other.render().shape == PAGE_SHAPE  # type: ignore[union-attr]
    env = vfgym.to_chat(lambda: Toy("rgb_array", metadata={"render_modes": ["rgb_array"]}, render=render), render_mode="rgb_array")
    env.reset()
    with caplog.at_level(logging.WARNING):
        pages = [env.render()]
        env.step("1")
        pages.append(env.render())
    assert [page.shape for page in pages] == [PAGE_SHAPE] * 2
    assert not np.array_equal(*pages)
    said = "GymnasiumGame shows its conversation instead of the game, which cannot be drawn: OSError('no display')"
    assert caplog.messages == [said]


class Drawing(vfgym.SingleTurnEnv):
    """Draws its own pictures, larger at each turn."""

    def render_picture(self, state: vfgym.State) -> Any:
        return np.full((8 * (1 + len(state["trajectory"])), 8, 3), 255, np.uint8)


def test_an_environment_may_draw_itself_and_all_pictures_have_the_shape_of_the_first() -> None:
    env = Drawing([{"question": "?", "answer": "!"}], render_mode="rgb_array")
    env.reset()
    assert (env.render() == 255).all()
    env.step("!")
    assert env.render().shape == (8, 8, 3)


@pytest.mark.parametrize(
    "make_env",
    [
        lambda: vfgym.SingleTurnEnv([{"question": "1 + 1?", "answer": "2"}], render_mode="rgb_array"),
        lambda: NimEnv(sticks=9, opponents="self", render_mode="rgb_array"),
        lambda: vfgym.EnvGroup([vfgym.SingleTurnEnv([{"question": "1 + 1?"}])], render_mode="rgb_array"),
        lambda: vfgym.SingleTurnEnv([{"question": "1 + 1?"}], render_mode="rgb_array").fork(),
    ],
    ids=["single turn", "self-play", "group", "fork"],
)
def test_any_conversation_is_drawn_as_a_page(make_env: Any) -> None:
    env = make_env()
    blank = env.render()
    assert blank.shape == PAGE_SHAPE
    assert not np.ptp(blank, axis=(0, 1)).any()
    env.reset(seed=0)
    asked = env.render()
    env.step("2")
    pages = [blank, asked, env.render()]
    assert len({page.tobytes() for page in pages}) == 3
    env.close()


class Switching(Toy):
    """Draws text or pixels, whichever its mode says; may fail."""

    metadata = {"render_modes": ["ansi", "rgb_array"]}
    error: Exception | None = None

    def render(self) -> Any:
        if self.error is not None:
            raise self.error
        return np.zeros((2, 3, 3), np.uint8) if self.render_mode == "rgb_array" else "text"


@pytest.mark.parametrize(
    ("game", "draws"),
    [
        (Switching("rgb_array"), True),
        (Switching("ansi"), True),
        (gym.Wrapper(Switching("ansi")), True),
        (Switching("human"), False),
        (Switching(None), False),
        (Switching("ansi", metadata={"render_modes": ["ansi"]}), False),
        (Switching("ansi", metadata={}), False),
        (Switching("ansi", metadata=3), False),
        (object(), False),
    ],
)
def test_a_game_draws_itself_in_a_mode_of_pixels_or_where_it_can_switch_to_one(game: Any, draws: bool) -> None:
    assert draws_itself(game) is draws
    if draws:
        assert draw_game(game).shape == (2, 3, 3)


@pytest.mark.parametrize("wrap", [lambda game: game, gym.Wrapper])
def test_a_game_is_in_its_own_mode_again_after_it_was_drawn_or_failed_to_be(wrap: Any) -> None:
    game = Switching("ansi")
    draw_game(wrap(game))
    assert game.render_mode == "ansi"
    game.error = OSError("no display")
    with pytest.raises(OSError, match="no display"):
        draw_game(wrap(game))
    assert game.render_mode == "ansi"


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux without a display")
@pytest.mark.parametrize(
    ("variables", "library"), [({}, "egl"), ({"MUJOCO_GL": "osmesa"}, "osmesa"), ({"DISPLAY": ":0"}, None), ({"WAYLAND_DISPLAY": ""}, None)]
)
def test_mujoco_draws_off_screen_where_there_is_no_display(
    variables: dict[str, str], library: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.setenv(name, "")  # so that it is as it was afterwards
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    game = Switching("rgb_array")
    draw_game(game)
    assert os.environ.get("MUJOCO_GL") == variables.get("MUJOCO_GL")
    game.mujoco_renderer = object()  # type: ignore[attr-defined]
    draw_game(game)
    assert os.environ.get("MUJOCO_GL") == library
