"""What a seat prints: conversations as text, and what is new in them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.environments import Talk
from vfgym.envs.seat import new_since, transcript
from vfgym.messages import AssistantMessage, UserMessage
from vfgym.wrappers.games.images import image_part

MESSAGES = st.lists(st.sampled_from("abc").map(UserMessage), max_size=6)


@given(MESSAGES, MESSAGES)
def test_what_continues_a_conversation_is_new(seen: list[Any], more: list[Any]) -> None:
    assert new_since(seen, [*seen, *more]) == (more or seen)


@given(MESSAGES, MESSAGES)
def test_of_a_conversation_that_does_not_continue_what_was_seen_all_is_new(seen: list[Any], observation: list[Any]) -> None:
    assume(observation[: len(seen)] != seen)
    assert new_since(seen, observation) == observation


def test_what_is_new_is_a_list_of_its_own() -> None:
    observation = [UserMessage("a")]
    new_since([UserMessage("b")], observation).clear()
    assert len(observation) == 1


@pytest.mark.parametrize("shape", [(40, 96), (96, 40, 3), (1, 300, 4)])
def test_an_image_is_told_by_its_size(shape: tuple[int, ...]) -> None:
    pytest.importorskip("PIL")
    message = UserMessage([{"type": "text", "text": "Look:"}, image_part(np.zeros(shape, np.uint8))])
    assert transcript([message, AssistantMessage("I see.")]) == f"[user] Look:\n\n[image {shape[1]}x{shape[0]}]\n[assistant] I see."


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQSkZJRg=="}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,no base64, surely, and long"}}, "[image]"),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(bytes(99)).decode()}"}}, "[image]"),
        ({"type": "image_url", "image_url": {}}, "[image]"),
        ({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}, "[input_audio]"),
        ({"type": "text", "text": ""}, ""),
    ],
    ids=str,
)
def test_what_is_no_png_here_is_told_by_its_kind(part: dict[str, Any], text: str) -> None:
    assert transcript([UserMessage([part, {"type": "text", "text": "!"}])]) == f"[user] {text}\n\n!"


def test_an_end_from_outside_prints_nothing_again(capsys: pytest.CaptureFixture[str]) -> None:
    env = Talk(dataset=[{"question": "Who are you?"}], render_mode="human")
    env.reset(seed=0)
    env.step("Ada.")
    printed = capsys.readouterr().out
    assert printed == "[user] Who are you?\n[assistant] Ada.\n[user] go on\n"
    env.truncate()
    assert capsys.readouterr().out == ""
