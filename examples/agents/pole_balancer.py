"""An agent in ten lines: it reads the numbers of the game from ``info``, and answers with one of the legal actions.

vfgym eval gymnasium/CartPole-v1 --agent random --agent examples/agents/pole_balancer.py:balance
"""

from typing import Any

import vfgym


def balance(observation: list[vfgym.Message], info: dict[str, Any]) -> str:
    """Push the cart to where the pole falls."""
    _position, _velocity, angle, angular_velocity = info["native_observation"]
    left, right = info["legal_actions"]
    return right if angle + 0.5 * angular_velocity > 0 else left


if __name__ == "__main__":
    for agent in ("random", balance):
        results = vfgym.evaluate("gymnasium/CartPole-v1", agent, num_examples=20, progress=False)
        print(f"{results['metadata']['model']:>10}: {results['metadata']['avg_reward']:.1f} of 500")
