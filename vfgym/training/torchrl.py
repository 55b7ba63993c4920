"""Chat environments for torchrl (0.14): `register` lets its `GymEnv` and `GymWrapper` take observations and actions of messages."""

from __future__ import annotations

from typing import Any

from vfgym.spaces import ChatSpace, MessageSpace
from vfgym.training.adapters import require_trainer

require_trainer("torchrl", "torchrl>=0.14")


def register() -> None:
    """Let torchrl's `GymEnv` and `GymWrapper` take chat environments. A second call does nothing new.

    Observations (lists of messages) and actions (text, or messages) are not tensors. As a random action torchrl plays one example: give
    a policy of your own.
    """
    from torchrl.data import NonTensor
    from torchrl.envs.libs import gym

    def as_data(space: Any, *, device: Any = None, **_: Any) -> Any:
        return NonTensor((), device=device, example_data=space.sample())

    for kind in (ChatSpace, MessageSpace):
        gym.register_gym_spec_conversion(kind)(as_data)
    # GymEnv makes an id with frameskip=1, and without it where the error says so in Python's words; this library has words of its own.
    gym.ACCEPTED_TYPE_ERRORS["frame_skip"] = "argument 'frameskip'"
