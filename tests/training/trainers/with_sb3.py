"""Trains Stable-Baselines3 on a game, and on the same game through a conversation and back, and prints whether the weights are equal."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3 import DQN, PPO

import vfgym


def train(algorithm: Any, env: Any, **arguments: Any) -> dict[str, Any]:
    model = algorithm("MlpPolicy", env, seed=0, device="cpu", policy_kwargs={"net_arch": [16]}, **arguments)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    weights = model.learn(2000).policy.state_dict()
    assert any(not torch.equal(before[name], weights[name]) for name in weights), "nothing was learned"
    return dict(weights)


def main() -> None:
    torch.set_num_threads(1)
    equal = {}
    for algorithm, arguments in ((PPO, {"n_steps": 500, "batch_size": 125}), (DQN, {"learning_starts": 100})):
        native = train(algorithm, gym.make("CartPole-v1"), **arguments)
        ours = train(algorithm, vfgym.to_gym(vfgym.to_chat("CartPole-v1")), **arguments)
        equal[algorithm.__name__] = native.keys() == ours.keys() and all(torch.equal(native[name], ours[name]) for name in native)
    print(json.dumps(equal))


main()
