"""`ReasoningGymEnv` with the rollout API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar

from verifiers_compat.envs.singleturn_env import SingleTurnEnv
from verifiers_compat.loading import create_getattr
from vfgym.parsers import Parser
from vfgym.wrappers import reasoning_gym
from vfgym.wrappers.reasoning_gym.curriculum import CurriculumConfig
from vfgym.wrappers.reasoning_gym.env import Dataset as ItemDataset
from vfgym.wrappers.reasoning_gym.env import DatasetName
from vfgym.wrappers.reasoning_gym.items import ItemRows
from vfgym.wrappers.reasoning_gym.package import reasoning_gym as imported_package

if TYPE_CHECKING:
    from datasets import Dataset


class NumberedRows(ItemRows):
    """Items as rows that are numbered from 0, as any dataset's are (with a curriculum, ids name levels).

    Their ``answer`` is the number of the item, as text: evaluation goes on where training ends.
    """

    @property
    def example_ids(self) -> Sequence[int]:
        """The ids of the rows, in order."""
        return self.item_ids if self._items.has_levels else range(len(self))

    def __getitem__(self, position: int) -> dict[str, Any]:
        """Return a row."""
        return {**super().__getitem__(position), "example_id": self.example_ids[position]}

    def row(self, example_id: int) -> dict[str, Any]:
        """Return the row of an item."""
        row = super().row(example_id)
        return {**row, "answer": str(row["info"]["index"])}


class ReasoningGymEnv(SingleTurnEnv, reasoning_gym.ReasoningGymEnv):
    """`vfgym.wrappers.reasoning_gym.ReasoningGymEnv` with the rollout API.

    The ``answer`` of a row is its number; what is right only reasoning-gym's scorers say. With a curriculum, ``get_dataset()`` gives the
    training tasks of the levels at the moment: ask again when they have risen.
    """

    _rows_type: ClassVar[type[ItemRows]] = NumberedRows

    def __init__(
        self,
        gym: DatasetName | ItemDataset,
        num_train_examples: int = 1000,
        num_eval_examples: int = 100,
        system_prompt: str | EllipsisType | None = ...,
        parser: Parser | None = None,
        seed: int = 0,
        dataset_config: Mapping[str, Any] | None = None,
        curriculum: CurriculumConfig | Mapping[str, Any] | bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment (see `vfgym.wrappers.reasoning_gym.ReasoningGymEnv`).

        Args:
            gym: A dataset's name, a list that makes a composite, or a dataset of reasoning-gym.
            num_train_examples: Number of training tasks.
            num_eval_examples: Number of evaluation tasks; where it is 0, evaluation uses the training tasks.
            system_prompt: Put before every question; reasoning-gym's own default without it, none where it is None.
            parser: Reads the answer; ``XMLParser(["answer"])`` without one.
            seed: Seed of the items.
            dataset_config: Configuration of the dataset.
            curriculum: Whether, and how, training tasks get harder.
            **kwargs: Passed to `vfgym.SingleTurnEnv`.
        """
        super().__init__(
            gym=gym,
            num_train_examples=num_train_examples,
            num_eval_examples=num_eval_examples,
            system_prompt=imported_package().utils.SYSTEM_PROMPTS["default"] if system_prompt is ... else system_prompt,
            parser=parser,
            seed=seed,
            dataset_config=dataset_config,
            curriculum=curriculum,
            **kwargs,
        )

    _levels_of_dataset: dict[str, int] | None = None
    """The levels that the training tasks had when they were last made a Dataset."""

    def _build_split(self, split: str, *, calls_builder: bool = True) -> Dataset | None:
        if split == "train" and self.curriculum is not None and self.curriculum.levels != self._levels_of_dataset:
            self._levels_of_dataset = self.curriculum.levels
            self._datasets.pop(split, None)
        return super()._build_split(split, calls_builder=calls_builder)


__all__ = ["ReasoningGymEnv"]

__getattr__ = create_getattr(__name__)
