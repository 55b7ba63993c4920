"""What an agent of ten lines finds in ``info``: the game's own observation and the answers that are legal, for each family."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import SyncVectorEnv

import vfgym
from vfgym.agents.loading import load_agent
from vfgym.errors import ConfigurationError

EXAMPLE = Path(__file__).parents[2] / "examples" / "agents" / "pole_balancer.py"


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "Blackjack-v1", "Taxi-v4", "Pendulum-v1"])
def test_gymnasium_tells_what_the_bare_game_observes(env_id: str) -> None:
    env, bare = vfgym.to_chat(env_id), gym.make(env_id)
    _, info = env.reset(seed=3)
    assert data_equivalence(info["native_observation"], bare.reset(seed=3)[0])
    for _ in range(5):
        action = bare.action_space.sample(info["game_info"].get("action_mask"))
        *_, info = env.step(env.unwrapped.codec.encode(action))
        observation, _, terminated, truncated, _ = bare.step(action)
        assert data_equivalence(info["native_observation"], observation)
        assert ("legal_actions" in info) == (isinstance(bare.action_space, gym.spaces.Discrete) and not (terminated or truncated))
        if terminated or truncated:
            break


def test_legal_actions_are_those_of_the_mask_else_all_of_a_small_discrete_space() -> None:
    _, info = vfgym.to_chat("Taxi-v4").reset(seed=0)
    assert len(info["legal_actions"]) == info["game_info"]["action_mask"].sum() < 6
    _, info = vfgym.to_chat("FrozenLake-v1").reset(seed=0)
    assert info["legal_actions"] == ["left", "down", "right", "up"]

    class Many(gym.Env[Any, Any]):
        observation_space = gym.spaces.Discrete(2)

        def __init__(self, count: int) -> None:
            self.action_space = gym.spaces.Discrete(count, start=7)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            return 0, {}

        def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
            return 1, 0.0, False, False, {}

    for count, has_list in ((1000, True), (1001, False)):
        _, info = vfgym.to_chat(lambda count=count: Many(count), rules="Play.").reset(seed=0)
        assert ("legal_actions" in info) == has_list
    assert vfgym.to_chat(lambda: Many(2), rules="Play.").reset(seed=0)[1]["legal_actions"] == ["7", "8"]


def test_what_an_agent_writes_into_its_info_changes_nothing() -> None:
    env = vfgym.to_chat("CartPole-v1")
    _, info = env.reset(seed=0)
    info["native_observation"][:] = 9.0
    info["legal_actions"].clear()
    *_, info = env.step("left")
    assert np.abs(info["native_observation"]).max() < 1
    assert info["legal_actions"] == ["left", "right"]


def test_textarena_tells_the_text_of_the_game() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    seen: list[dict[str, Any]] = []

    def opponent(observation: Any, info: dict[str, Any]) -> str:
        assert info["native_observation"] == observation[-1]["content"]
        seen.append(info)
        return str(info["legal_actions"][0])

    env = vfgym.TextArenaEnv("TicTacToe-v0", opponents=opponent)
    observation, info = env.reset(seed=0)
    for _ in range(2):
        assert info["native_observation"] == observation[-1]["content"]
        observation, *_, info = env.step(info["legal_actions"][0])
    assert [each["player"] for each in seen] == [1, 1]


def test_pettingzoo_tells_what_its_environment_observes() -> None:
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    env = vfgym.PettingZooEnv("classic/connect_four_v3", opponents="self")
    _, info = env.reset(seed=0)
    for _ in range(8):
        table = env.state.session.game
        assert data_equivalence(info["native_observation"], table.env.observe(info["player"]))
        info["native_observation"]["action_mask"][:] = 0
        *_, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert not terminated
    assert not truncated


def test_reasoning_gym_tells_the_question_and_never_the_answer() -> None:
    pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")
    env = vfgym.ReasoningGymEnv("leg_counting")
    observation, info = env.reset(seed=0)
    assert info["native_observation"] == observation[-1]["content"]
    assert "legal_actions" not in info
    assert env.state["answer"] not in info.values()


@pytest.mark.parametrize("env_id", ["gymnasium/CartPole-v1", "gymnasium/Taxi-v4", "vfgym/textarena-TicTacToe-v0", "pettingzoo/chess-v6"])
def test_checkers_and_vectors_take_what_is_in_info(env_id: str) -> None:
    for package in ("textarena", "pettingzoo"):
        if package in env_id:
            pytest.importorskip(package, reason="needs its extra")
    check_env(gym.make(env_id).unwrapped, skip_render_check=True)
    envs = SyncVectorEnv([lambda: gym.make(env_id)] * 2)
    _, infos = envs.reset(seed=[1, 2])
    assert len(infos["native_observation"] if "chess" not in env_id else infos["native_observation"]["observation"]) == 2
    *_, infos = envs.step(tuple(legal[0] for legal in infos["legal_actions"]))
    assert len(infos["legal_actions"]) == 2
    envs.close()


def test_the_example_is_an_agent_by_its_file() -> None:
    balance = load_agent(f"{EXAMPLE}:balance")
    results = vfgym.evaluate("gymnasium/CartPole-v1", balance, num_examples=2, progress=False)
    assert results["metadata"]["avg_reward"] == 500.0
    assert callable(runpy.run_path(str(EXAMPLE))["balance"])


def test_agents_in_files_are_found_or_said_not_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "json.py").write_text("def answer(observation, info): return 'x'\n")
    with pytest.raises(ConfigurationError, match="another module is called 'json' already"):
        load_agent(f"{tmp_path / 'json.py'}:answer")
    with pytest.raises(ConfigurationError, match="there is no file"):
        load_agent("nowhere/agent.py:answer")
    (tmp_path / "agent_of_a_test.py").write_text("def answer(observation, info): return 'x'\n")
    assert load_agent(f"{tmp_path / 'agent_of_a_test.py'}:answer")([], {}) == "x"  # type: ignore[operator]
