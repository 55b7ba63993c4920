"""Items of a reasoning-gym dataset: made when they are asked for, by level and index, without side effects on the process."""

from __future__ import annotations

import functools
import importlib
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, overload

from vfgym.data import reasoning_gym_datasets
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.wrappers.reasoning_gym.levels import Share, configurations_by_level
from vfgym.wrappers.reasoning_gym.package import RANDOM_NUMBERS, borrow_random_numbers, reasoning_gym
from vfgym.wrappers.reasoning_gym.scoring import Entry, score, score_later

_MOST_KEPT = 1024
"""Entries that are kept, so that scoring and further rollouts of a task do not make its item again (up to 2 s each)."""


def as_share(given: str | Mapping[str, Any]) -> Share:
    """Return a part of a composite, given as a name or as a dict with ``name`` and optionally ``weight`` and ``config``.

    Raises:
        ConfigurationError: If it is malformed or names no dataset.
    """
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise ConfigurationError(f"a part of a composite must be a dataset's name, or a dict with a 'name', got {given!r}")
    unknown = given.keys() - {"name", "weight", "config"}
    if unknown:
        raise ConfigurationError(
            f"a part of a composite has 'name', 'weight' and 'config', got {', '.join(sorted(map(repr, unknown)))} too"
        )
    share = Share(**given)
    if not isinstance(share.weight, int | float) or not 0 < share.weight < float("inf"):
        raise ConfigurationError(f"the weight of {share.name!r} must be a positive number, got {share.weight!r}")
    _check_name(share.name)
    _check_config(share.name, share.config)
    return share


def _check_name(name: str) -> None:
    known = reasoning_gym_datasets()
    # Those of a newer reasoning-gym and of its users are found in its own register, at the price of the import.
    if name not in known and name not in reasoning_gym().factory.DATASETS:
        raise ConfigurationError(f"reasoning-gym has no dataset {name!r}.{did_you_mean(name, known)}")
    if name == "composite":
        raise ConfigurationError("a composite cannot be a part of a composite: name its parts")


def _check_config(name: str, config: object) -> None:
    if not isinstance(config, Mapping):
        raise ConfigurationError(f"the configuration of {name!r} must be a dict, got {type(config).__name__}")
    for key in ("seed", "size"):
        if key in config:
            raise ConfigurationError(
                f"the configuration of {name!r} must not set {key!r}: it follows from the environment's seed and numbers of examples"
            )


class Items:
    """The items of one dataset, or of a composite of several, at each level of difficulty.

    The ``example_id`` of an item is ``level * size + index``. Where there is no curriculum, all items are of level 0.
    """

    def __init__(self, shares: Sequence[Share], *, size: int, seed: int, is_composite: bool, has_levels: bool = False) -> None:
        """Describe a dataset; it is made with the first item.

        Args:
            shares: The dataset, or the parts of a composite.
            size: Number of items at each level. The items of acre depend on it, some others end there.
            seed: Seed of all items.
            is_composite: Whether items are drawn from the parts by their weights.
            has_levels: Whether there are items of each level of reasoning-gym's curricula.
        """
        self.shares = tuple(shares)
        self.size = size
        self.seed = seed
        self.is_composite = is_composite
        self.has_levels = has_levels
        self._datasets: dict[int, Any] = {}
        self._kept: dict[int, Entry] = {}

    @classmethod
    def of(cls, dataset: Any, size: int) -> Self:
        """Return the first items of a dataset that is there."""
        factory, composite = reasoning_gym().factory, importlib.import_module("reasoning_gym.composite")
        registered = (name for name, (dataset_type, _) in factory.DATASETS.items() if type(dataset) is dataset_type)
        share = Share(next(registered, type(dataset).__name__))
        items = cls([share], size=size, seed=dataset.seed, is_composite=isinstance(dataset, composite.CompositeDataset))
        items._datasets[0] = dataset
        return items

    @functools.cached_property
    def configurations(self) -> dict[str, dict[int, Mapping[str, Any]]]:
        """The configuration of each dataset at each of its levels, from easy to hard.

        Raises:
            ConfigurationError: If there is no curriculum that can be used.
        """
        if not self.has_levels:
            return {share.name: {0: share.config} for share in self.shares}
        return {share.name: dict(configurations_by_level(share)) for share in self.shares}

    def dataset(self, level: int = 0) -> Any:
        """Return the dataset of a level, as reasoning-gym makes it.

        In a composite, a part that has no such level is of the one below.

        Raises:
            ConfigurationError: If reasoning-gym refuses the configuration.
        """
        dataset = self._datasets.get(level)
        if dataset is None:
            with RANDOM_NUMBERS, borrow_random_numbers(self.seed):
                dataset = self._datasets[level] = self._make(level)
        return dataset

    def _make(self, level: int) -> Any:
        package = reasoning_gym()
        configs = [_at_level(self.configurations[share.name], level) for share in self.shares]
        name, config = self.shares[0].name, configs[0]
        if self.is_composite:
            make_spec = importlib.import_module("reasoning_gym.composite").DatasetSpec
            specs = [make_spec(share.name, share.weight, config) for share, config in zip(self.shares, configs, strict=True)]
            name, config = "composite", {"datasets": specs}
        try:
            return package.create_dataset(name, size=self.size, seed=self.seed, **config)
        except (AssertionError, TypeError, ValueError) as error:
            raise ConfigurationError(f"reasoning-gym refuses the configuration of {name!r}: {error}") from error

    def entry(self, example_id: int) -> Entry:
        """Return an item as reasoning-gym made it. It is kept, and must not be changed."""
        entry = self._kept.get(example_id)
        if entry is None:
            level, index = divmod(example_id, self.size)
            # Not while another thread makes one: generators keep state in the process and in the dataset.
            with RANDOM_NUMBERS:
                dataset = self.dataset(level)
                with borrow_random_numbers(self.seed + index):
                    entry = dataset[index]
            while len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[example_id] = entry
        return entry

    def source(self, entry: Entry) -> str:
        """Return the name of the dataset that an entry is from."""
        return str(entry["metadata"]["source_dataset"]) if self.is_composite else self.shares[0].name

    def source_of(self, index: int) -> str:
        """Return the name of the dataset that the items with this index are from, at every level.

        In a composite it is drawn as reasoning-gym draws it, so that the item need not be made.
        """
        if not self.is_composite:
            return self.shares[0].name
        (share,) = random.Random(self.seed + index).choices(self.shares, weights=[share.weight for share in self.shares])
        return share.name

    def score_later(self, answer: str | None, example_id: int) -> float | Awaitable[float]:
        """Return the score of an answer to an item, from 0.0 to 1.0; to be awaited, where a worker process finds it out."""
        entry = self.entry(example_id)
        return score_later(self.dataset(example_id // self.size), self.source(entry), answer, entry)

    def score_entry(self, answer: str | None, entry: Entry) -> float:
        """Return the score of an answer to an entry, from 0.0 to 1.0, where there is no curriculum."""
        return score(self.dataset(), self.source(entry), answer, entry)


def _at_level(configurations: Mapping[int, Mapping[str, Any]], level: int) -> dict[str, Any]:
    """Return the configuration of the hardest level that is not above this one; else of the easiest."""
    levels = list(configurations)
    return dict(configurations[max((each for each in levels if each <= level), default=levels[0])])


class ItemIds(Sequence[int]):
    """The ids of items with certain indices, each of the level that it has at the moment."""

    def __init__(self, items: Items, indices: range, level_of: Callable[[int], int]) -> None:
        """Give the ids of `indices`, where `level_of` says what the level of an index is."""
        self._items = items
        self._indices = indices
        self._level_of = level_of

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, position: int) -> int: ...
    @overload
    def __getitem__(self, position: slice) -> ItemIds: ...
    def __getitem__(self, position: int | slice) -> int | ItemIds:
        if isinstance(position, slice):
            return ItemIds(self._items, self._indices[position], self._level_of)
        index = self._indices[position]
        return self._level_of(index) * self._items.size + index

    def __contains__(self, example_id: object) -> bool:
        try:
            return isinstance(example_id, int) and self.index(example_id) >= 0
        except ValueError:
            return False

    def index(self, example_id: int) -> int:  # type: ignore[override]  # nobody looks in a part of them
        """Return the position of an id, without making all of them.

        Raises:
            ValueError: If it is the id of no item at the moment.
        """
        position = self._indices.index(example_id % self._items.size)
        if self[position] != example_id:
            raise ValueError(f"{example_id} is not among the ids")
        return position


class ItemRows:
    """Items as the rows of a dataset, each made when it is asked for."""

    def __init__(self, items: Items, item_ids: Sequence[int]) -> None:
        self._items = items
        self.item_ids = item_ids
        """The ids of the items, in order."""

    @property
    def example_ids(self) -> Sequence[int]:
        """The ids of the rows, in order: those of the items."""
        return self.item_ids

    def __len__(self) -> int:
        return len(self.item_ids)

    def __getitem__(self, position: int) -> dict[str, Any]:
        return self.row(self.item_ids[position])

    def row(self, example_id: int) -> dict[str, Any]:
        """Return the row of an item."""
        items = self._items
        level, index = divmod(example_id, items.size)
        entry = items.entry(example_id)
        answer = entry["answer"]
        info = {"source_dataset": items.source(entry), "index": index}
        if items.has_levels:
            info["level"] = level
        return {
            "question": entry["question"],
            "answer": None if answer is None else str(answer),
            "info": info,
            "example_id": example_id,
        }
