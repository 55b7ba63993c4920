"""Chat environments as datasets of reasoning-gym. This module imports reasoning-gym, so it is imported where it is needed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vfgym.envs.chat import ChatEnv
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.errors import ConfigurationError
from vfgym.messages import plain
from vfgym.parsers.parser import message_text
from vfgym.wrappers.reasoning_gym.env import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.items import ItemRows
from vfgym.wrappers.reasoning_gym.package import reasoning_gym
from vfgym.wrappers.reasoning_gym.scoring import Entry

Split: TypeAlias = Literal["train", "eval"]

_ProceduralDataset: Any = reasoning_gym().dataset.ProceduralDataset


@dataclass(frozen=True)
class ChatDatasetConfig:
    """What a dataset was made of."""

    env_id: str
    split: Split
    seed: int
    size: int


class ItemDataset(_ProceduralDataset):  # type: ignore[misc]  # reasoning-gym has no types
    """The items of a `ReasoningGymEnv`, as the dataset behind it makes them, with scores as the environment gives them."""

    def __init__(self, env: ReasoningGymEnv, split: Split) -> None:
        rows = env.tasks_of(split).rows
        if not isinstance(rows, ItemRows):
            raise ConfigurationError(
                f"the {split} tasks of {type(env).__name__} were replaced by {type(rows).__name__}, which are not items"
            )
        self._env = env
        self._item_ids = rows.item_ids
        size, seed = len(rows), env.items.seed
        super().__init__(ChatDatasetConfig(env.env_id, split, seed, size), seed=seed, size=size)

    @property
    def category(self) -> str:
        """The category of the dataset behind the environment."""
        return str(self._env.items.dataset().category)

    def __getitem__(self, index: int) -> Entry:
        """Return an item, as one's own.

        Raises:
            IndexError: If there are not as many.
        """
        return copy.deepcopy(self._env.items.entry(self._item_ids[index]))

    def score_answer(self, answer: str | None, entry: Entry) -> float:
        """Return what the environment gives for an answer to an entry, in tags or not."""
        return self._env.items.score_entry(None if answer is None else self._env.answer_in(answer), entry)


class EpisodeDataset(_ProceduralDataset):  # type: ignore[misc]  # reasoning-gym has no types
    """The tasks of a chat environment with a single turn. An answer is scored by playing the episode in which it is given."""

    def __init__(self, env: ChatEnv, split: Split) -> None:
        self._env = env
        self._split = split
        self._tasks = env.tasks_of(split)
        self._name = env.env_id or type(env).__name__
        super().__init__(ChatDatasetConfig(self._name, split, 0, len(self._tasks)), seed=0, size=len(self._tasks))

    @property
    def category(self) -> str:
        """``"other"``."""
        return "other"

    def __getitem__(self, index: int) -> Entry:
        """Return a task as an entry.

        Its metadata names the task (``example_id``), and has the whole ``prompt`` and the other columns of the task's row.

        Raises:
            IndexError: If there are not as many.
            ConfigurationError: If the last message of its prompt is not the user's.
        """
        if not -self.size <= index < self.size:
            raise IndexError(f"there are {self.size} entries, and no entry {index}")
        index %= self.size
        task = self._tasks.input(index)
        prompt = task.pop("prompt")
        if not prompt or prompt[-1]["role"] != "user":
            raise ConfigurationError(f"task {index} of {self._name} asks nothing: its prompt must end with a user's message")
        task.pop("question", None)
        answer = task.pop("answer", None)
        metadata = {"source_dataset": self._name, "source_index": index, "prompt": plain(prompt), **task}
        return {"question": message_text(prompt[-1]), "answer": None if answer is None else str(answer), "metadata": metadata}

    def score_answer(self, answer: str | None, entry: Entry) -> float:
        """Return the reward of the episode of an entry's task in which the model says `answer`.

        Raises:
            ConfigurationError: If the entry is not from this dataset.
        """
        metadata = entry.get("metadata", {})
        if "example_id" not in metadata:
            raise ConfigurationError(f"an entry of {self._name} must name its task in metadata['example_id']; got {entry!r:.200}")
        seat = self._env.fork()
        try:
            seat.reset(options={"example_id": metadata["example_id"], "split": self._split})
            return seat.step("" if answer is None else answer).reward
        finally:
            seat.close()


def dataset_of(env: ChatEnv, split: Split) -> ItemDataset | EpisodeDataset:
    """Return the tasks of an environment as a dataset (see `vfgym.to_reasoning_gym`)."""
    if isinstance(env, ReasoningGymEnv) and env.curriculum is not None:
        raise ConfigurationError(
            f"{type(env).__name__} has a curriculum, and a dataset has one level: make it without, with dataset_config"
        )
    if not isinstance(env, MultiTurnEnv) or env.max_turns != 1 or type(env).rollout is not MultiTurnEnv.rollout:
        raise ConfigurationError(
            f"{type(env).__name__} may have several turns, and a dataset of reasoning-gym has questions with one answer each:"
            " convert a SingleTurnEnv"
        )
    if env.requires_group_rollouts:
        raise ConfigurationError(f"the rubric of {type(env).__name__} scores whole groups, and a dataset of reasoning-gym single answers")
    if isinstance(env, ReasoningGymEnv) and _is_scored_by_its_dataset(env):
        return ItemDataset(env, split)
    return EpisodeDataset(env, split)


def _is_scored_by_its_dataset(env: ReasoningGymEnv) -> bool:
    """Say whether nothing counts but the score of the dataset."""
    rewards: list[Any] = [function.plan.func for function in env.rubric.functions if function.weight]
    is_own = type(env).check_answer_reward_func is ReasoningGymEnv.check_answer_reward_func
    return is_own and rewards == [env.check_answer_reward_func] and not env.rubric.step_scorers()
