"""Items of a reasoning-gym dataset: made when they are asked for, by their index, without side effects on the process."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vfgym.data import reasoning_gym_datasets
from vfgym.envs.reasoning_gym.scoring import Entry, score
from vfgym.errors import ConfigurationError, did_you_mean

_MOST_KEPT = 1024
"""Entries that are kept, so that scoring and further rollouts of a task do not make its item again (up to 2 s each)."""

_RANDOM_NUMBERS = threading.RLock()
"""Held while the process-wide random generators are borrowed."""


@dataclass(frozen=True)
class Share:
    """A dataset, and its share in a composite."""

    name: str
    weight: float = 1.0
    config: Mapping[str, Any] = field(default_factory=dict)


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
    if name not in known and name not in _reasoning_gym().factory.DATASETS:
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
    """The items of one dataset, or of a composite of several."""

    def __init__(self, shares: Sequence[Share], *, size: int, seed: int, is_composite: bool) -> None:
        """Describe a dataset; it is made with the first item.

        Args:
            shares: The dataset, or the parts of a composite.
            size: Number of items. The items of acre depend on it, some others end there.
            seed: Seed of all items.
            is_composite: Whether items are drawn from the parts by their weights.
        """
        self.shares = tuple(shares)
        self.size = size
        self.seed = seed
        self.is_composite = is_composite
        self._kept: dict[int, Entry] = {}

    @functools.cached_property
    def dataset(self) -> Any:
        """The dataset, as reasoning-gym makes it.

        Raises:
            ConfigurationError: If reasoning-gym refuses the configuration.
        """
        with _RANDOM_NUMBERS, _borrowed_random_numbers(self.seed):
            package = _reasoning_gym()
            name, config = self.shares[0].name, dict(self.shares[0].config)
            if self.is_composite:
                make_spec = importlib.import_module("reasoning_gym.composite").DatasetSpec
                name, config = "composite", {"datasets": [make_spec(share.name, share.weight, dict(share.config)) for share in self.shares]}
            try:
                return package.create_dataset(name, size=self.size, seed=self.seed, **config)
            except (AssertionError, TypeError, ValueError) as error:
                raise ConfigurationError(f"reasoning-gym refuses the configuration of {name!r}: {error}") from error

    def entry(self, index: int) -> Entry:
        """Return an item as reasoning-gym made it. It is kept, and must not be changed."""
        entry = self._kept.get(index)
        if entry is None:
            # Not while another thread makes one: generators keep state in the process and in the dataset.
            with _RANDOM_NUMBERS:
                dataset = self.dataset
                with _borrowed_random_numbers(self.seed + index):
                    entry = dataset[index]
            while len(self._kept) >= _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[index] = entry
        return entry

    def source(self, entry: Entry) -> str:
        """Return the name of the dataset that an entry is from."""
        return str(entry["metadata"]["source_dataset"]) if self.is_composite else self.shares[0].name

    def score(self, answer: str | None, index: int) -> float:
        """Return the score of an answer to an item, from 0.0 to 1.0."""
        entry = self.entry(index)
        return score(self.dataset, self.source(entry), answer, entry)


class ItemRows:
    """A range of items as the rows of a dataset, each made when it is asked for."""

    def __init__(self, items: Items, indices: range) -> None:
        """Offer the items with these indices."""
        self._items = items
        self.example_ids = indices
        """The ids of the rows, in order: the indices of their items."""

    def __len__(self) -> int:
        return len(self.example_ids)

    def __getitem__(self, position: int) -> dict[str, Any]:
        index = self.example_ids[position]
        entry = self._items.entry(index)
        answer = entry["answer"]
        return {
            "question": entry["question"],
            "answer": None if answer is None else str(answer),
            "info": {"source_dataset": self._items.source(entry), "index": index},
            "example_id": index,
        }


@contextlib.contextmanager
def _borrowed_random_numbers(seed: int) -> Iterator[None]:
    """Seed the global generators of Python and NumPy for a while, and then put them back as they were.

    In reasoning-gym 0.1.25 list_functions draws from Python's, pool_matrix seeds NumPy's, and the import draws as well.
    """
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@functools.cache
def _reasoning_gym() -> Any:
    """Import reasoning-gym, without what some of its modules should not do in somebody else's process.

    Four scorers ``eval`` the answer; literals are all that they can use. Three generators print.
    """
    with _RANDOM_NUMBERS, _borrowed_random_numbers(0):
        package = importlib.import_module("reasoning_gym")
        # A module looks up a name among its globals before the builtins.
        for name in ("algorithmic.binary_matrix", "algorithmic.spiral_matrix", "algorithmic.string_insertion", "games.n_queens"):
            vars(importlib.import_module(f"reasoning_gym.{name}"))["eval"] = ast.literal_eval
        for name in ("code.codeio", "code.contrib.bfit.Compiler.Optimizer", "cognition.rectangle_count"):
            vars(importlib.import_module(f"reasoning_gym.{name}"))["print"] = _say_nothing
    return package


def _say_nothing(*values: object, **options: object) -> None:
    """Stand in for ``print``."""
