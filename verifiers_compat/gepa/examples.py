"""Which tasks of an environment are for training (what the reflecting model sees) and which for validation (what candidates compare by)."""

from __future__ import annotations

from typing import Any, NamedTuple

from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError


class Example(NamedTuple):
    """A task of an environment, by its place."""

    split: str
    place: int

    def task_of(self, definition: ChatEnv) -> dict[str, Any]:
        """Return the task itself."""
        return definition.tasks_of(self.split).input(self.place)


def choose_examples(definition: ChatEnv, num_train: int, num_val: int) -> tuple[list[Example], list[Example]]:
    """Return the training and the validation examples.

    They are the first tasks of each split. Where there is one split only, its first tasks are for training and those after them for
    validation; where these are too few, all are shared out in the same proportion. A single task is for both.

    Raises:
        ConfigurationError: If there are no tasks.
    """
    if definition.has_tasks("train") and definition.has_tasks("eval"):
        counts = [min(wanted, len(definition.tasks_of(split))) for split, wanted in (("train", num_train), ("eval", num_val))]
        train, val = (_first(split, count) for split, count in zip(("train", "eval"), counts, strict=True))
    else:
        total = len(definition.tasks_of("train"))
        if total < num_train + num_val:
            num_val = max(1, round(total * num_val / (num_train + num_val)))
            num_train = max(1, total - num_val)
        both = _first("train", min(total, num_train + num_val))
        train, val = both[:num_train], both[-num_val:]
    if not train or not val:
        raise ConfigurationError("a prompt is improved on examples, and the environment has no tasks for training or for validation")
    return train, val


def _first(split: str, count: int) -> list[Example]:
    return [Example(split, place) for place in range(count)]
