"""Checks and plays chat environments in torchrl, and prints what was rewarded."""

from __future__ import annotations

import json
import warnings
from typing import Any

from tensordict.nn import TensorDictModule
from torchrl.envs import GymEnv, GymWrapper, check_env_specs

from tests.training.trainers import environments
from vfgym.training.torchrl import register


class Scripted:
    """A policy that plays a script, whatever it sees, and notes how long the conversation was."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = iter(answers)
        self.seen: list[int] = []

    def __call__(self, observation: list[Any]) -> str:
        self.seen.append(len(observation))
        return next(self.answers)


def play(env: Any, answers: list[str]) -> dict[str, Any]:
    """Play one episode in torchrl's own loop."""
    policy = Scripted(answers)
    played = env.rollout(100, TensorDictModule(policy, in_keys=["observation"], out_keys=["action"]))
    return {"rewards": played["next", "reward"].flatten().tolist(), "done": bool(played["next", "done"][-1]), "seen": policy.seen}


def main() -> None:
    warnings.simplefilter("ignore")
    register()
    register()
    lake = GymWrapper(environments.make_lake())
    check_env_specs(lake, seed=0)
    by_id = GymEnv("gymnasium/FrozenLake-v1")
    check_env_specs(by_id, seed=0)
    texts = [[f"<action>{move}</action>" for move in moves] for moves in (environments.ACROSS, environments.INTO_A_HOLE)]
    print(json.dumps([play(lake, answers) for answers in texts]))


main()
