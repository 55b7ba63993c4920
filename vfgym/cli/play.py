"""``vfgym play``: a human in the terminal."""

from __future__ import annotations

from typing import Any, cast

from vfgym.agents import HumanAgent
from vfgym.cli.environments import make_environment
from vfgym.episode import BaseEpisode
from vfgym.output.terminal import echo


def play_in_terminal(env_id: str, env_args: dict[str, Any], seed: int | None) -> None:
    """Play one episode; the end of the input (Ctrl-D) or Ctrl-C ends it early."""
    env, seat = make_environment(env_id, env_args)
    try:
        observation, info = env.reset(seed=seed)
        answer = HumanAgent().for_episode(env)
        echo(f"{env_id}: type an answer in one line. Ctrl-D stops.\n")
        episode_return, is_over = 0.0, seat.state is not None and seat.state["is_completed"]
        while not is_over:
            try:
                action = answer(observation, info)
            except (EOFError, KeyboardInterrupt):
                echo("\nstopped")
                return
            observation, reward, terminated, truncated, info = env.step(action)
            episode_return += float(reward)
            is_over = terminated or truncated
        answer.show_end(observation, cast(BaseEpisode, seat.episode).info(), episode_return)
    finally:
        env.close()
