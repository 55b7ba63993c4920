"""A Gym game played in words: a rule of thumb against a random player, two hundred hands each."""

from typing import Any

import vfgym
from vfgym.agents import RandomAgent


def stick_at_seventeen(observation: list[vfgym.Message], info: dict[str, Any]) -> str:
    """Hit below 17, else stick."""
    own_sum, _dealers_card, _has_usable_ace = info["native_observation"]
    return "Hit" if own_sum < 17 else "Stick"


env = vfgym.to_chat("Blackjack-v1")
observation, info = env.reset(seed=1)
print(observation[-1].content)

for agent in (RandomAgent(), stick_at_seventeen):
    results = vfgym.evaluate(env, agent, num_examples=200, progress=False)
    print(f"{results['metadata']['model']:>20}: {results['metadata']['avg_reward']:+.3f} per hand")
