"""``vfgym play``: a human in the terminal."""

from __future__ import annotations

from typing import Any

from vfgym.agents import HumanAgent
from vfgym.cli.environments import made
from vfgym.envs.face import transcript


def play_in_terminal(env_id: str, env_args: dict[str, Any], seed: int | None) -> None:
    """Play one episode; the end of the input (Ctrl-D) or Ctrl-C ends it early."""
    env, _ = made(env_id, env_args)
    try:
        observation, info = env.reset(seed=seed)
        answer = HumanAgent().for_episode(env)
        episode_return, is_over = 0.0, False
        while not is_over:
            known = len(observation)
            try:
                action = answer(observation, info)
            except (EOFError, KeyboardInterrupt):
                print("\nstopped")
                return
            observation, reward, terminated, truncated, info = env.step(action)
            episode_return += float(reward)
            is_over = terminated or truncated
        print(transcript(observation[known + 1 :]))
        print(f"\nover ({info['stop_condition']}): reward {episode_return:g}")
        for name, value in info["metrics"].items():
            print(f"  {name}: {value:g}")
    finally:
        env.close()
