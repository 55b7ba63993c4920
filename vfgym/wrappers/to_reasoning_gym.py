"""`to_reasoning_gym`: the way back from a chat environment to a dataset of reasoning-gym."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.base import seat_of
from vfgym.envs.chat import check_split
from vfgym.errors import MissingExtra

if TYPE_CHECKING:
    from vfgym.wrappers.reasoning_gym.dataset import EpisodeDataset, ItemDataset, Split


def to_reasoning_gym(env: gym.Env[Any, Any] | str | EnvSpec, split: Split = "train") -> ItemDataset | EpisodeDataset:
    """Return the tasks of a single-turn chat environment as a dataset of reasoning-gym (a ``ProceduralDataset``).

    ``dataset[i]`` is a dict with ``question``, ``answer`` and ``metadata``, and ``dataset.score_answer(text, entry)`` the reward
    of answering with `text`.

    * Of a `ReasoningGymEnv`, the entries are those of the dataset behind it, and any entry of it can be scored.
    * Of any other environment (and of a `ReasoningGymEnv` that another reward function was added to, or other tasks), the question is
      the last message of the prompt, the metadata name the task and have its whole prompt, and the score is that of an episode that
      is played, with all its hooks and reward functions, plain or async.

    Args:
        env: The environment, or its id. Wrappers around it have no part in this.
        split: Which tasks.

    Raises:
        MissingExtra: If reasoning-gym is not installed.
        ConfigurationError: If it is not a chat environment, may have several turns, has a curriculum, or scores whole groups.

    >>> from vfgym import Rubric, SingleTurnEnv
    >>> def right(completion, answer):
    ...     return float(completion[-1].content == answer)
    >>> dataset = to_reasoning_gym(SingleTurnEnv([{"question": "6 * 7?", "answer": "42"}], rubric=Rubric(right)))
    >>> entry = dataset[0]
    >>> entry["question"], dataset.score_answer("42", entry), dataset.score_answer("41", entry)
    ('6 * 7?', 1.0, 0.0)
    """
    if importlib.util.find_spec("reasoning_gym") is None:
        raise MissingExtra("reasoning-gym", "to_reasoning_gym")
    if isinstance(env, str | EnvSpec):
        env = gym.make(env, disable_env_checker=True)
    definition = seat_of(env).definition
    check_split(split)
    from vfgym.wrappers.reasoning_gym.dataset import dataset_of

    return dataset_of(definition, split)
