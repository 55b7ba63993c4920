"""Step through a package's environment as a Gymnasium environment, a model giving the actions, and print what each episode earned.

usage: python -m verifiers_compat step.py REQUEST, where REQUEST is JSON: {"env_id", "arguments", "model", "url"}
"""

import asyncio
import json
import sys

import gymnasium
import verifiers as vf

import vfgym


def main():
    """Play the first two tasks, one move at a time."""
    request = json.loads(sys.argv[1])
    env = vf.load_environment(request["env_id"], **request["arguments"])
    assert isinstance(env, gymnasium.Env)
    agent = vfgym.ModelAgent(vf.ClientConfig(api_base_url=request["url"], api_key_var="SOME_KEY"), request["model"])
    print(json.dumps(asyncio.run(step_all(env, agent))))


async def step_all(env, agent):
    """Return what the episodes of the first two tasks earned; environments that score groups are played in groups of four."""
    if env.requires_group_rollouts:
        results = await vfgym.aevaluate(env, agent, num_examples=2, rollouts_per_example=4, max_concurrent=1, progress=False)
        return [row["reward"] for row in results["outputs"]]
    return [await step(env, agent, example_id) for example_id in range(2)]


async def step(env, agent, example_id):
    """Step through one episode, and return the sum of its rewards."""
    observation, info = await env.areset(options={"example_id": example_id, "split": "eval"})
    answer = agent.for_episode(env)
    total = 0.0
    while True:
        observation, reward, terminated, truncated, info = await env.astep(await answer(observation, info))
        total += reward
        if terminated or truncated:
            return total


if __name__ == "__main__":
    main()
