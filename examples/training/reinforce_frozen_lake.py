"""REINFORCE with a table: learns to cross a slippery lake from what the environment says. Takes seconds.

It is on-policy (``max_staleness=0``): every rollout that it learns from was played with the very table that it changes.
"""

import asyncio
from collections import defaultdict

import numpy as np
from curves import read_arguments, shuffle_rewards, write_curve

import vfgym
from vfgym.training import samples

ACTIONS = ["left", "down", "right", "up"]
UPDATES, GROUPS, GROUP_SIZE, RATE = 30, 12, 6, 0.35


class TablePolicy:
    """A preference for each action in each place."""

    policy_version = 0  # is kept with each turn, so that it is known how old a rollout is

    def __init__(self):
        self.preferences = defaultdict(lambda: np.zeros(len(ACTIONS)))

    def probabilities(self, place):
        """Return the probability of each action."""
        weights = np.exp(self.preferences[place] - self.preferences[place].max())
        return weights / weights.sum()

    def for_episode(self, env):
        """Return what answers in one episode, with random numbers of its own."""
        rng = env.unwrapped.np_random.spawn(1)[0]

        def answer(observation, info):
            return f"<action>{rng.choice(ACTIONS, p=self.probabilities(place_of(observation)))}</action>"

        return answer

    def update(self, states):
        """Make actions likelier of rollouts that earned more than their group, and those of the others less likely."""
        gradients = defaultdict(lambda: np.zeros(len(ACTIONS)))
        for sample in samples(states):
            [turn] = sample.turns
            step = states[sample.rollout]["trajectory"][turn]
            place, action = place_of(step["prompt"]), step["completion"][0]["content"].split(">")[1].split("<")[0]
            gradients[place] += sample.advantage * (np.eye(len(ACTIONS))[ACTIONS.index(action)] - self.probabilities(place))
        for place, gradient in gradients.items():
            self.preferences[place] += RATE * gradient
        self.policy_version += 1


def place_of(messages):
    """Return the row and the column in the newest observation: where the brackets are in the drawing of the lake."""
    rows = [line for line in messages[-1]["content"].splitlines() if line and set(line) <= set("SFHG[]")]
    return next((row, line.index("[")) for row, line in enumerate(rows) if "[" in line)


def held_out(env, policy):
    """Return the mean reward of fresh episodes."""
    results = vfgym.evaluate(env, policy, num_examples=200, split="eval", seed=1_000_003, progress=False)
    return results["metadata"]["avg_reward"]


async def train(env, policy, arguments):
    """Return the mean reward of each update's episodes."""
    rng = np.random.default_rng(arguments.seed)
    means, states, rewards, number = [], [], [], 0
    async for group in vfgym.rollout(env, policy, group_size=GROUP_SIZE, seed=arguments.seed, max_concurrent=1, max_staleness=0):
        rewards += [reward for reward in group.rewards if reward is not None]  # None is what infrastructure broke
        if arguments.shuffle_rewards:
            shuffle_rewards(group, rng)
        states += group.states
        number += 1
        if number == GROUPS:
            policy.update(states)
            means.append(float(np.mean(rewards)))
            states, rewards, number = [], [], 0
            if len(means) == UPDATES:
                return means


if __name__ == "__main__":
    arguments = read_arguments(__doc__.splitlines()[0])
    env, policy = vfgym.to_chat("FrozenLake-v1", success_rate=0.8, history=0), TablePolicy()
    before = held_out(env, policy)
    means = asyncio.run(train(env, policy, arguments))
    write_curve(arguments, means, {"before": before, "after": held_out(env, policy)})
