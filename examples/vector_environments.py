"""Many episodes at once: a vector of chat environments, whoever is ready first, and groups that play one task."""

import asyncio

import gymnasium

import vfgym
from vfgym.vector import ChatVectorEnv

# Every registered id, as in any standard RL loop.
envs = gymnasium.make_vec("gymnasium/Blackjack-v1", num_envs=4)
observations, infos = envs.reset(seed=[7] * 4)
print(len({conversation[-1].content for conversation in observations}), "different hand(s)")
envs.action_space.seed(0)
total = 0.0
for _ in range(50):
    observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    total += rewards.sum()
print("reward of 50 random steps in 4 environments:", total)
envs.close()

# Groups: four environments are dealt the same hand, and compared when all have ended.
envs = gymnasium.make_vec("gymnasium/Blackjack-v1", num_envs=4, group_size=4)
observations, infos = envs.reset(seed=7)
while "group_reward" not in infos:
    observations, rewards, terminations, truncations, infos = envs.step(["stick", "hit", "stick", "hit"])
print("rewards", infos["group_reward"], "advantages", infos["group_advantage"])
envs.close()


# Whoever is ready first: tools take their time, and nobody waits for the slowest.
async def roll(seconds: float) -> str:
    """Roll a die.

    Args:
        seconds: How long it rolls.
    """
    await asyncio.sleep(seconds)
    return "4"


envs = ChatVectorEnv(vfgym.ToolEnv(tools=[roll], dataset=[{"question": "What will it be?"}]), num_envs=3)
observations, infos = envs.reset(seed=0)
rolls = [vfgym.ToolCall("1", "roll", f'{{"seconds": {seconds}}}') for seconds in (0.3, 0.01, 0.1)]
envs.send([vfgym.AssistantMessage(tool_calls=[call]) for call in rolls], ids=[0, 1, 2])
for _ in range(3):
    observations, rewards, terminations, truncations, infos = envs.recv()
    print("ready:", infos["env_id"])
envs.close()
