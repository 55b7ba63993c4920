"""What notebooks and prompts show of environments, messages and results: short, escaped, and without secrets."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.view.runs import HOSTILE, PIXEL, play_run, row, write_run
from vfgym.messages import AssistantMessage, ToolCall, UserMessage
from vfgym.output.redaction import Secret
from vfgym.results import load_results


def html_of(shown: Any) -> str:
    return str(shown._repr_html_())


def test_nothing_that_a_model_wrote_becomes_html(tmp_path: Path) -> None:
    Secret("a-key-of-this-process")
    message = AssistantMessage(f"{HOSTILE} a-key-of-this-process", tool_calls=[ToolCall("c1", HOSTILE, "{}")])
    run = load_results(write_run(tmp_path / "run", [row(stop_condition=HOSTILE)], env_id=HOSTILE, model=HOSTILE))
    env = vfgym.SingleTurnEnv(dataset=[{"question": "q"}], system_prompt=HOSTILE)
    for shown in (message, run, env):
        assert "<img" not in html_of(shown)
        assert "</script>" not in html_of(shown)
        assert "&lt;img" in html_of(shown)
        assert "a-key-of" not in html_of(shown)


@pytest.mark.parametrize(("url", "is_drawn"), [(PIXEL, True), ("https://example.org/one.png", False)])
def test_pictures_of_messages_are_drawn_and_nothing_is_loaded(url: str, is_drawn: bool) -> None:
    shown = html_of(UserMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]))
    assert ("<img" in shown) is is_drawn
    assert "look" in shown


def test_an_environment_says_what_it_is() -> None:
    env = vfgym.to_chat("FrozenLake-v1")
    assert "FrozenLake" in html_of(env)
    assert "game_reward" in html_of(env)


def test_results_are_the_dict_that_they_were(tmp_path: Path) -> None:
    outputs = play_run()
    plain = dict(outputs)
    assert (outputs, json.dumps(outputs, default=str)) == (plain, json.dumps(plain, default=str))
    assert pickle.loads(pickle.dumps(outputs)) == plain
    assert isinstance(outputs, dict)
