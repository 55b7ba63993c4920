"""A curriculum: learns to cross a lake from its end, where crossing it from its start alone teaches nothing. Takes about a minute.

Hardly anybody who walks at random crosses the great lake, and who never gets a reward has nothing to learn from. So episodes begin near
the goal first, and further away from it as soon as most of them succeed (a reverse curriculum: Florensa et al., 2017).

It is on-policy: each update has rollouts of its own, which are played to their end before the policy changes.
"""

import asyncio

import numpy as np
from curves import read_arguments, shuffle_rewards, write_curve
from gymnasium.envs.toy_text.frozen_lake import MAPS
from reinforce_frozen_lake import TablePolicy

import vfgym

LAKE = MAPS["8x8"]
UPDATES, GROUPS, GROUP_SIZE = 24, 12, 6
STRIDE, THRESHOLD = 2, 0.6


def distances(lake):
    """Return for each place from which the goal can be reached how many steps that takes."""
    found = {(row, line.index("G")): 0 for row, line in enumerate(lake) if "G" in line}
    for (row, column), distance in (queue := list(found.items())):
        for place in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            is_ice = 0 <= place[0] < len(lake) and 0 <= place[1] < len(lake[0]) and lake[place[0]][place[1]] != "H"
            if is_ice and place not in found:
                found[place] = distance + 1
                queue.append((place, distance + 1))
    return found


def make_lake(starts):
    """Return the lake as an environment whose episodes begin in one of some places."""
    drawing = [
        "".join("S" if (row, column) in starts else "F" if cell == "S" else cell for column, cell in enumerate(line))
        for row, line in enumerate(LAKE)
    ]
    return vfgym.to_chat("FrozenLake-v1", desc=drawing, success_rate=0.9, history=0)


def make_levels():
    """Return the lake from easy to hard: further and further from the goal, and at last from the start."""
    away = distances(LAKE)
    near = [{place for place in away if away[place] == distance} for distance in range(STRIDE, away[0, 0], STRIDE)]
    return [make_lake(starts) for starts in (*near, {(0, 0)})]


def mean_reward(env, policy, num_examples, seed):
    """Return the mean reward of fresh episodes."""
    results = vfgym.evaluate(env, policy, num_examples=num_examples, split="eval", seed=seed, progress=False)
    return results["metadata"]["avg_reward"]


async def play(env, policy, update, seed):
    """Return the groups of an update."""
    tasks = range(update * GROUPS, (update + 1) * GROUPS)
    groups = vfgym.rollout(env, policy, example_ids=tasks, group_size=GROUP_SIZE, seed=seed, max_concurrent=1)
    return [group async for group in groups]


def learn(levels, arguments):
    """Learn on these levels, one after the other. Return the mean reward on the last one, before, after, and after each update."""
    rng = np.random.default_rng(arguments.seed)
    policy, level, means = TablePolicy(), 0, []
    before = mean_reward(levels[-1], policy, 200, 1_000_003)
    for update in range(UPDATES):
        groups = asyncio.run(play(levels[level], policy, update, arguments.seed))
        reward = np.mean([reward for group in groups for reward in group.rewards if reward is not None])
        if arguments.shuffle_rewards:
            for group in groups:
                shuffle_rewards(group, rng)
        policy.update([state for group in groups for state in group.states])
        if reward >= THRESHOLD and level < len(levels) - 1:
            level += 1
        means.append(mean_reward(levels[-1], policy, 30, arguments.seed))
    return means, {"before": before, "after": mean_reward(levels[-1], policy, 200, 1_000_003)}


if __name__ == "__main__":
    arguments = read_arguments(__doc__.splitlines()[0])
    levels = make_levels()
    train, held_out = learn(levels, arguments)
    train_without, held_out_without = learn(levels[-1:], arguments)
    write_curve(arguments, train, held_out, without={"train": train_without, "held_out": held_out_without})
