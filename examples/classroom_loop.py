"""A standard reinforcement learning loop around a chat environment, with stock Gymnasium wrappers."""

import gymnasium
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit, TransformReward

import vfgym

assert vfgym  # importing it registers the environments

env = gymnasium.make("gymnasium/FrozenLake-v1")
env = TransformReward(RecordEpisodeStatistics(TimeLimit(env, max_episode_steps=30)), lambda reward: 10 * reward)
env.action_space.seed(0)

returns = []
for episode in range(20):
    observation, info = env.reset(seed=episode)
    episode_over = False
    while not episode_over:
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        episode_over = terminated or truncated
    returns.append(info["episode"]["r"])

print("the last thing the environment said:", observation[-1].content, sep="\n")
print(f"mean return of a random player over {len(returns)} episodes: {sum(returns) / len(returns):.2f}")
env.close()
