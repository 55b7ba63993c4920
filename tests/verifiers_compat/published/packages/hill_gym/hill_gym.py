"""A small game of its own, played through its Gymnasium interface: climb a hill by steps of one or two."""

import verifiers as vf
from verifiers.envs.experimental.gym_env import GymEnv


class Hill:
    """The top is at a height that the seed decides; every step costs, and reaching the top pays."""

    def __init__(self, lowest: int = 3):
        self.lowest = lowest
        self.top = self.height = 0

    def reset(self, seed=None, **kwargs):
        self.top, self.height = self.lowest + (seed or 0) % 3, 0
        return {"height": self.height, "top": self.top}, {}

    def step(self, action):
        self.height += action
        is_up = self.height >= self.top
        reward = (1.0 if self.height == self.top else -1.0) if is_up else -0.1
        return {"height": self.height, "top": self.top}, reward, is_up, False, {"height": self.height}


def parse_action(text: str) -> int:
    steps = int(text.strip().split()[-1])
    if steps not in (1, 2):
        raise ValueError(f"one or two steps, not {steps}")
    return steps


class HillEnv(GymEnv):
    def obs_to_text(self, obs) -> str:
        return f"You are at {obs['height']}, and the top is at {obs['top']}."


def load_environment(num_train_episodes: int = 4, num_eval_episodes: int = 3, lowest: int = 3) -> vf.Environment:
    return HillEnv(
        env_cls=Hill,
        env_kwargs={"lowest": lowest},
        action_parser=parse_action,
        num_train_episodes=num_train_episodes,
        num_eval_episodes=num_eval_episodes,
        max_episode_steps=10,
        system_prompt="Say how many steps you climb: 1 or 2.",
    )
