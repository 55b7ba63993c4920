"""A Gym game played in words: a rule of thumb against a random player, two hundred hands each."""

import re

import vfgym
from vfgym.agents import RandomAgent


def stick_at_seventeen(observation: list[vfgym.Message], info: dict[str, object]) -> str:
    """Hit below 17, else stick."""
    found = re.search(r"Player current sum: (\d+)", observation[-1].content)
    return "Hit" if found and int(found[1]) < 17 else "Stick"


env = vfgym.to_chat("Blackjack-v1")
observation, info = env.reset(seed=1)
print(observation[-1].content)

for agent in (RandomAgent(), stick_at_seventeen):
    results = vfgym.evaluate(env, agent, num_examples=200, progress=False)
    print(f"{results['metadata']['model']:>20}: {results['metadata']['avg_reward']:+.3f} per hand")
