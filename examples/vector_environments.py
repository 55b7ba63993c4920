"""Several episodes in step: a chat environment in Gymnasium's own vector environments."""

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import vfgym

assert vfgym  # importing it registers the environments

envs = SyncVectorEnv(
    [lambda: gymnasium.make("gymnasium/Blackjack-v1") for _ in range(4)],
    autoreset_mode=AutoresetMode.SAME_STEP,  # the next question comes with the last reward: no answer is wasted
)
observations, infos = envs.reset(seed=[7] * 4)  # a group: four times the same hand
print(len({conversation[-1].content for conversation in observations}), "different hand(s)")

envs.action_space.seed(0)
total = 0.0
for _ in range(50):
    observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    total += rewards.sum()
print("reward of 50 random steps in 4 environments:", total)
envs.close()
