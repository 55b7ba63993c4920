"""`images`: frames are content parts and come back bit for bit, and clients take them."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

import gymnasium as gym
import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym.clients.formats import anthropic_messages as anthropic_prompt
from vfgym.clients.formats import openai_chat as chat_format
from vfgym.clients.formats import openai_responses as responses_prompt
from vfgym.errors import ConfigurationError, InvalidMessage, MissingExtra
from vfgym.messages import UserMessage
from vfgym.wrappers.games.images import frame_of, frame_reader, image_part, is_image_space

Image = pytest.importorskip("PIL.Image")

SIZES = st.tuples(st.integers(1, 24), st.integers(1, 24))
SHAPES = st.one_of(SIZES, st.tuples(SIZES, st.sampled_from([1, 3, 4])).map(lambda drawn: (*drawn[0], drawn[1])))
FRAME = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)


@given(arrays.arrays(np.uint8, SHAPES))
@settings(max_examples=40)
def test_frames_come_back_bit_for_bit(frame: np.ndarray[Any, Any]) -> None:
    """Grey, in colours, with opacity; one channel is the same as none."""
    frame = frame[::-1]  # renderers flip without copying
    back = frame_of(image_part(frame))
    assert back.dtype == np.uint8
    np.testing.assert_array_equal(back, frame[:, :, 0] if frame.ndim == 3 and frame.shape[2] == 1 else frame)


@given(arrays.arrays(np.uint8, SHAPES), st.integers(2, 4))
@settings(max_examples=40)
def test_pixels_of_a_larger_image_are_squares(frame: np.ndarray[Any, Any], scale: int) -> None:
    back = frame_of(image_part(frame, scale=scale))
    np.testing.assert_array_equal(back[::scale, ::scale], frame_of(image_part(frame)))
    np.testing.assert_array_equal(back, back[::scale, ::scale].repeat(scale, 0).repeat(scale, 1))


def test_a_part_is_a_png_in_the_openai_format() -> None:
    part = image_part(FRAME, detail="low")
    url = part["image_url"].pop("url")
    assert part == {"type": "image_url", "image_url": {"detail": "low"}}
    prefix, _, data = url.partition(",")
    assert prefix == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        assert (image.format, image.size, image.mode) == ("PNG", (30, 20), "RGB")
    assert image_part(FRAME)["image_url"].keys() == {"url"}
    details = ("auto", "low", "high")
    assert [image_part(FRAME, detail=detail)["image_url"]["detail"] for detail in details] == [*details]


@pytest.mark.parametrize("frame", [FRAME.astype(np.float32), FRAME.tolist(), FRAME[:, :, :2], FRAME[0, 0], FRAME[:0], None])
def test_what_is_no_frame_is_refused(frame: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected a frame"):
        image_part(frame)


@pytest.mark.parametrize(("options", "name"), [({"detail": "best"}, "detail"), ({"scale": 0}, "scale"), ({"scale": 1.5}, "scale")])
def test_options_out_of_range_are_refused(options: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=name):
        image_part(FRAME, **options)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"vfgym\[images\]"):
        image_part(FRAME)


def png(mode: str) -> str:
    data = io.BytesIO()
    Image.new(mode, (2, 2)).save(data, format="PNG")
    return base64.b64encode(data.getvalue()).decode()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "a picture"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,***"}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png('P')}"}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png('RGB')[:60]}"}},
    ],
)
def test_what_holds_no_frame_is_no_part(part: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage, match="expected"):
        frame_of(part)


@pytest.mark.parametrize(
    ("high", "dtype", "images", "others"),
    [
        (255, np.uint8, [(210, 160, 3), (210, 160), (84, 84, 1), (96, 96, 4), (16, 16, 3), (8, 84, 84), (2, 84, 84, 3)], []),
        (255, np.uint8, [], [(16, 15, 3), (15, 16, 3), (9, 84, 84), (2, 2, 84, 84, 3), (4, 15, 84), (7, 7, 3), (128,)]),
        (1, np.float32, [(96, 96, 3), (4, 84, 84), (23, 23)], [(22, 22), (16, 32)]),
        (1, np.float64, [(16, 16, 1)], []),
        (255, np.float32, [], [(96, 96, 3)]),
        (1, np.int64, [], [(96, 96, 3)]),
    ],
)
def test_image_spaces(high: float, dtype: Any, images: list[Any], others: list[Any]) -> None:
    assert [shape for shape in images if not is_image_space(gym.spaces.Box(0, high, shape, dtype))] == []
    assert [shape for shape in others if is_image_space(gym.spaces.Box(0, high, shape, dtype))] == []
    assert not is_image_space(gym.spaces.Box(-1, 1, (96, 96, 3), np.float32))
    assert not is_image_space(gym.spaces.Discrete(4))


def test_clients_take_frames_in_messages_of_users() -> None:
    """Each provider's own format has the same bytes."""
    part = image_part(FRAME, detail="high")
    url = part["image_url"]["url"]
    message = UserMessage([{"type": "text", "text": "Your move."}, part])
    assert frame_of(message.content[1]).tolist() == FRAME.tolist()
    assert chat_format.native_message(message)["content"][1] == part
    turns, _ = anthropic_prompt.native_prompt([message])
    image = {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
    assert turns[0]["content"][1] == {"type": "image", "source": image}
    items = responses_prompt.native_prompt([message])
    assert items[0]["content"][1] == {"type": "input_image", "image_url": url, "detail": "high"}


def test_fractions_are_scaled_and_what_lies_outside_is_cut() -> None:
    reader = frame_reader(gym.spaces.Box(0, 1, (16, 16, 3), np.float32))
    assert reader is not None
    image = np.zeros((16, 16, 3), np.float32)
    image[0, :5, 0] = 0.0, 0.5, 1.0, 2.0, np.nan
    frame = reader(image)
    assert (frame.dtype, frame.shape, frame[0, :5, 0].tolist()) == (np.uint8, (16, 16, 3), [0, 128, 255, 255, 0])
    assert np.array_equal(frame_of(image_part(frame)), frame)


@pytest.mark.parametrize("shape", [(3, 16, 20), (2, 16, 20, 3), (1, 16, 20, 1)])
def test_stacked_frames_stand_side_by_side_in_their_order(shape: tuple[int, ...]) -> None:
    space = gym.spaces.Box(0, 255, shape, np.uint8)
    space.seed(1)
    reader, stack = frame_reader(space), space.sample()
    assert reader is not None
    frame = reader(stack)
    assert frame.shape == (16, shape[0] * 24 - 4, *shape[3:])
    for number, each in enumerate(stack):
        assert np.array_equal(frame[:, number * 24 : number * 24 + 20], each)
    assert (frame[:, 20:24] == 255).all()
    image_part(frame)
