"""What an agent of ten lines finds in ``info``: the game's own observation and the answers that are legal, for each family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import SyncVectorEnv

import vfgym
from vfgym.agents.loading import load_agent
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Blackjack-v1", "Taxi-v4"])
def test_gymnasium_tells_what_the_bare_game_observes(env_id: str) -> None:
    env, bare = vfgym.to_chat(env_id), gym.make(env_id)
    _, info = env.reset(seed=3)
    assert data_equivalence(info["native_observation"], bare.reset(seed=3)[0])
    for _ in range(5):
        if env_id == "CartPole-v1":  # what an agent writes into its info changes nothing
            info["native_observation"][:] = 9.0
            info["legal_actions"].clear()
        action = bare.action_space.sample(info["game_info"].get("action_mask"))
        _, _, terminated, _, info = env.step(env.unwrapped.codec.encode(action))
        assert data_equivalence(info["native_observation"], bare.step(action)[0])
        assert bool(info.get("legal_actions")) == (not terminated)
        if terminated:
            break


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
        assert data_equivalence(info["native_observation"], env.state.session.game.env.observe(info["player"]))
        info["native_observation"]["action_mask"][:] = 0
        outcome = env.step(info["legal_actions"][0])
        info = outcome.info
    assert outcome[2:4] == (False, False)


def test_reasoning_gym_tells_the_question_and_never_the_answer() -> None:
    pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")
    env = vfgym.ReasoningGymEnv("leg_counting")
    observation, info = env.reset(seed=0)
    assert (info["native_observation"], "legal_actions" in info) == (observation[-1]["content"], False)
    assert env.state["answer"] not in info.values()


@pytest.mark.parametrize("env_id", ["gymnasium/CartPole-v1", "gymnasium/Taxi-v4", "vfgym/textarena-TicTacToe-v0", "pettingzoo/chess-v6"])
def test_vectors_take_what_is_in_info(env_id: str) -> None:
    for package in ("textarena", "pettingzoo"):
        if package in env_id:
            pytest.importorskip(package, reason="needs its extra")
    envs = SyncVectorEnv([lambda: gym.make(env_id)] * 2)
    _, infos = envs.reset(seed=[1, 2])
    assert len(infos["native_observation"] if "chess" not in env_id else infos["native_observation"]["observation"]) == 2
    *_, infos = envs.step(tuple(legal[0] for legal in infos["legal_actions"]))
    assert len(infos["legal_actions"]) == 2
    envs.close()


def test_an_agent_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = Path(__file__).parents[2] / "examples" / "agents" / "pole_balancer.py"
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    results = vfgym.evaluate("gymnasium/CartPole-v1", load_agent(f"{example}:balance"), num_examples=2, progress=False)
    assert results["metadata"]["avg_reward"] == 500.0
    (tmp_path / "json.py").write_text("def answer(observation, info): return 'x'\n")
    with pytest.raises(ConfigurationError, match="another module is called 'json' already"):
        load_agent(f"{tmp_path / 'json.py'}:answer")
    with pytest.raises(ConfigurationError, match="there is no file"):
        load_agent("nowhere/agent.py:answer")
