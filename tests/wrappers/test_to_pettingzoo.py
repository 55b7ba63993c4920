"""`to_pettingzoo`: which environment conversations become, and what it keeps of the chat environment."""

from __future__ import annotations

import importlib.util
from typing import Any

import gymnasium as gym
import pytest

import vfgym
from vfgym.errors import ConfigurationError, MissingExtra

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")

from vfgym.wrappers.pettingzoo import PettingZooGame
from vfgym.wrappers.pettingzoo.aec import ChatAEC, SoloAEC

GAME = "classic/tictactoe_v3"


@pytest.mark.parametrize(
    ("make", "kind", "agents"),
    [
        (lambda: "pettingzoo/tictactoe-v3", ChatAEC, 2),
        (lambda: gym.spec("pettingzoo/tictactoe-v3"), ChatAEC, 2),
        (lambda: gym.wrappers.TimeLimit(vfgym.PettingZooEnv(GAME), 3), ChatAEC, 2),
        (lambda: vfgym.PettingZooEnv(GAME).fork(), ChatAEC, 2),
        (lambda: lambda: PettingZooGame(GAME), ChatAEC, 2),
        (lambda: "gymnasium/CartPole-v1", SoloAEC, 1),
        (lambda: gym.wrappers.TimeLimit(vfgym.to_chat("CartPole-v1"), 3), SoloAEC, 1),
    ],
)
def test_games_for_several_have_an_agent_for_each_player(make: Any, kind: type, agents: int) -> None:
    env = vfgym.to_pettingzoo(make())
    env.reset(seed=0)
    assert type(env) is kind
    assert env.agents == [f"player_{number}" for number in range(agents)]


def test_limits_prompt_and_name_are_those_of_the_environment() -> None:
    env = vfgym.PettingZooEnv(GAME, system_prompt="Win.", max_turns=1, tell_legal_actions=False)
    aec: Any = vfgym.to_pettingzoo(env, render_mode="ansi")
    aec.reset(seed=0)
    conversation, *_, info = aec.last()
    assert (conversation[0].content, "legal_actions" in info) == ("Win.", False)
    assert (aec.render_mode, aec.metadata["name"]) == ("ansi", env.env_id)
    for move in ("0", "1"):
        assert not aec.truncations.get(aec.agent_selection)
        aec.step(move)
    assert set(aec.truncations.values()) == {True}, "no agent sends more than one message"
    assert vfgym.to_pettingzoo(env, name="mine").metadata["name"] == "mine"


def test_what_is_not_a_conversation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"takes a chat environment, the id of one, or a function .*; got int"):
        vfgym.to_pettingzoo(3)  # type: ignore[arg-type]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"to_pettingzoo needs .*vfgym\[pettingzoo\]"):
        vfgym.to_pettingzoo("gymnasium/CartPole-v1")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"system_prompt": "Win.", "max_turns": 3, "max_invalid_moves": 2, "tell_legal_actions": False, "opponents": "self"},
        {"env_id": "mine-v0", "max_invalid_moves": 1},
    ],
    ids=str,
)
def test_all_that_holds_for_a_seat_holds_for_each_agent(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr("vfgym.wrappers.pettingzoo.aec.ChatAEC", lambda *args, **kwargs: made.append((args, kwargs)))
    env = vfgym.PettingZooEnv(GAME, **options)
    vfgym.to_pettingzoo(env, render_mode="human")
    vfgym.to_pettingzoo(env.open_table, render_mode="ansi", name="")
    of_seat = {
        "system_prompt": options.get("system_prompt"),
        "max_turns": options.get("max_turns", -1),
        "shares_turns": options.get("opponents") == "self",
        "max_invalid_moves": options.get("max_invalid_moves", env.max_invalid_moves),
        "tell_legal_actions": options.get("tell_legal_actions", True),
        "form": env if env.has_form else None,
    }
    (first, kwargs), second = made
    assert first == (env.open_table,)
    assert kwargs == {**of_seat, "render_mode": "human", "name": options.get("env_id", "pettingzoo/tictactoe-v3")}
    assert second == ((env.open_table,), {"render_mode": "ansi", "name": ""})
