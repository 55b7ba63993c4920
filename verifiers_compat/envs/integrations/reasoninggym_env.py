"""`ReasoningGymEnv` with the rollout API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers_compat.envs.singleturn_env import SingleTurnEnv
from verifiers_compat.loading import create_getattr
from vfgym.wrappers import reasoning_gym

if TYPE_CHECKING:
    from datasets import Dataset


class ReasoningGymEnv(SingleTurnEnv, reasoning_gym.ReasoningGymEnv):
    """`vfgym.wrappers.reasoning_gym.ReasoningGymEnv` with the rollout API.

    With a curriculum, ``get_dataset()`` gives the training tasks of the levels at the moment: ask again when they have risen.
    """

    _levels_of_dataset: dict[str, int] | None = None
    """The levels that the training tasks had when they were last made a Dataset."""

    def _build_split(self, split: str, *, calls_builder: bool = True) -> Dataset | None:
        if split == "train" and self.curriculum is not None and self.curriculum.levels != self._levels_of_dataset:
            self._levels_of_dataset = self.curriculum.levels
            self._datasets.pop(split, None)
        return super()._build_split(split, calls_builder=calls_builder)


__all__ = ["ReasoningGymEnv"]

__getattr__ = create_getattr(__name__)
