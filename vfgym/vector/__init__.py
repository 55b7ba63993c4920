"""Vector environments: many chat environments that play at once, in one process.

`ChatVectorEnv` is a `gymnasium.vector.VectorEnv` of chat environments, and what `gymnasium.make_vec` gives for the ids of this library:

>>> import gymnasium
>>> import vfgym
>>> envs = gymnasium.make_vec("gymnasium/FrozenLake-v1", num_envs=3)
>>> observations, infos = envs.reset(seed=0)
>>> observations, rewards, terminations, truncations, infos = envs.step(["down", "right", "down"])
>>> envs.close()

An environment that is ready need not wait for the others:

>>> from vfgym.vector import ChatVectorEnv
>>> env = vfgym.SingleTurnEnv([{"question": f"{i} + {i}?", "answer": str(i + i)} for i in range(9)])
>>> envs = ChatVectorEnv(env, num_envs=4)
>>> observations, infos = envs.reset(seed=0)
>>> envs.send(["4", "2"], ids=[1, 3])
>>> observations, rewards, terminations, truncations, infos = envs.recv(min_ready=2)
>>> infos["env_id"].tolist()
[1, 3]
>>> envs.close()
"""

from vfgym.vector.env import ChatVectorEnv

__all__ = ["ChatVectorEnv"]
