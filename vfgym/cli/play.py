"""``vfgym play``: a human in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vfgym.agents import HumanAgent
from vfgym.cli.environments import made
from vfgym.envs.face import transcript
from vfgym.messages import Message


def play_in_terminal(env_id: str, env_args: dict[str, Any], seed: int | None) -> None:
    """Play one episode; the end of the input (Ctrl-D) or Ctrl-C ends it early."""
    env, _ = made(env_id, env_args)
    try:
        first, info = env.reset(seed=seed)
        told = first
        answer = HumanAgent().for_episode(env)
        print(f"{env_id}: type an answer in one line. Ctrl-D stops.\n")
        episode_return, is_over = 0.0, False
        while not is_over:
            try:
                action = answer(told, info)
            except (EOFError, KeyboardInterrupt):
                print("\nstopped")
                return
            observation, reward, terminated, truncated, info = env.step(action)
            shown, told = told, _without_typed(observation, first)
            episode_return += float(reward)
            is_over = terminated or truncated
        print(transcript(told[len(shown) :] if told[: len(shown)] == shown else told[-1:]))
        print(f"\nover ({info['stop_condition']}): reward {episode_return:g}")
        if "rewards" in info:
            print("  " + ", ".join(f"{player}: {reward:g}" for player, reward in info["rewards"].items()))
        for name, value in info["metrics"].items():
            print(f"  {name}: {value:g}")
    finally:
        env.close()


def _without_typed(observation: Sequence[Message], first: Sequence[Message]) -> list[Message]:
    """Leave out what the human typed, which stands in the terminal already."""
    if observation[: len(first)] != first:  # it is not all that was said: another player's conversation, or the last moves alone
        return [*observation]
    return [*first, *(message for message in observation[len(first) :] if message["role"] != "assistant")]
