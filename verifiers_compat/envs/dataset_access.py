"""`DatasetAccess`: the documented methods that give an environment's tasks as Hugging Face datasets."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from verifiers_compat.envs.datasets import first_tasks, tasks_dataset, view_of
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger("verifiers_compat")


class DatasetAccess:
    """The tasks of ``self.definition`` as datasets, each made when it is first asked for."""

    definition: ChatEnv

    def build_dataset(self) -> Dataset | None:
        """Return all training tasks as a Dataset, built on first use; None where there are none."""
        return self._build_split("train")

    def build_eval_dataset(self) -> Dataset | None:
        """Return all evaluation tasks as a Dataset, built on first use; None where there are none."""
        return self._build_split("eval")

    def get_dataset(self, n: int = -1, seed: int | None = None) -> Dataset:
        """Return training tasks as a Dataset.

        Args:
            n: How many; all where it is not positive. More than there are gives all.
            seed: Shuffles a view; what is stored keeps its order.

        Raises:
            ConfigurationError: If there are no training tasks.
        """
        return self._take_tasks("train", n, seed)

    def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> Dataset:
        """Return evaluation tasks as a Dataset; training tasks where there are no others (see `get_dataset`)."""
        definition = self.definition
        if not definition.has_tasks("eval"):
            logger.warning("%s has no evaluation tasks: the training tasks are used", type(definition).__name__)
            return self.get_dataset(n, seed)
        return self._take_tasks("eval", n, seed)

    @staticmethod
    def make_dataset(results: Mapping[str, Any]) -> Dataset:
        """Return the outputs of a run as a Dataset."""
        from vfgym.results.dataset import results_dataset

        return results_dataset(results["outputs"])

    @property
    def dataset(self) -> Dataset | None:
        """The training tasks as a Dataset; None while a builder has not been called."""
        return self._build_split("train", calls_builder=False)

    @dataset.setter
    def dataset(self, rows: Any) -> None:
        self._replace_tasks("train", rows)

    @property
    def eval_dataset(self) -> Dataset | None:
        """The evaluation tasks as a Dataset; None while a builder has not been called."""
        return self._build_split("eval", calls_builder=False)

    @eval_dataset.setter
    def eval_dataset(self, rows: Any) -> None:
        self._replace_tasks("eval", rows)

    def _replace_tasks(self, split: str, rows: Any) -> None:
        self.definition.set_tasks(split, rows)
        self._datasets.pop(split, None)

    @functools.cached_property
    def _datasets(self) -> dict[str, Any]:
        return {}

    def _build_split(self, split: str, *, calls_builder: bool = True) -> Dataset | None:
        definition = self.definition
        if not definition.has_tasks(split):
            return None
        tasks = definition.tasks_of(split)
        if split not in self._datasets:
            if not calls_builder and not tasks.is_built:
                return None
            self._datasets[split] = tasks_dataset(tasks, getattr(definition, "map_kwargs", {}))
        return cast("Dataset", self._datasets[split])

    def _take_tasks(self, split: str, n: int, seed: int | None) -> Dataset:
        definition = self.definition
        if not definition.has_tasks(split):
            raise ConfigurationError(f"{type(definition).__name__} has no {split} tasks: give dataset= (or eval_dataset=) to it")
        tasks = definition.tasks_of(split)
        if tasks.is_endless and n > 0:
            return view_of(first_tasks(tasks, n), n, seed)
        return view_of(cast("Dataset", self.build_dataset() if split == "train" else self.build_eval_dataset()), n, seed)
