"""Rollouts for AReaL (1.0), whose proxy records what is asked: ``workflow=ChatWorkflow(env)``, with the rows of `dataset`.

AReaL takes any object with ``async run(data, base_url=, api_key=, ...) -> float``, so nothing of it is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vfgym.clients import SamplingArgs
from vfgym.clients.config import NO_KEY
from vfgym.errors import ConfigurationError
from vfgym.results.dataset import rows_dataset
from vfgym.training.adapters import Env, fork_env, task_rows
from vfgym.training.playing import play_episode, read_task

if TYPE_CHECKING:
    from datasets import Dataset


def dataset(env: str | Env, *, split: str = "train", num_examples: int | None = None) -> Dataset:
    """Return the tasks as rows for AReaL: ``messages``, and which task it is (``example_id``, ``split``).

    Args:
        env: A chat environment, or the id of one.
        split: ``"train"`` or ``"eval"``.
        num_examples: Take the first so many; None for all, or for 1,000 of tasks that have no end (the seeds of a game).

    Raises:
        ConfigurationError: If there are no tasks, or an argument does not fit.
    """
    return rows_dataset([{"messages": prompt, **task} for prompt, task in task_rows(env, split, num_examples)], free=("messages",))


class ChatWorkflow:
    """Plays rollouts of a chat environment by asking AReaL's proxy. It can be pickled where its environment can; an id always can."""

    def __init__(self, env: str | Env, *, model: str = "default", **sampling_args: Any) -> None:
        """Take what is played.

        Args:
            env: A chat environment, or the id of one.
            model: Name of the model, which AReaL's proxy does not look at.
            **sampling_args: Generation parameters, over those of the environment (``temperature=1.0``, ``max_completion_tokens=512``).

        Raises:
            ConfigurationError: If it cannot be played one rollout at a time.
        """
        fork_env(env).close()
        self._env, self._model = env, model
        self._sampling_args: SamplingArgs = sampling_args

    async def run(self, data: Mapping[str, Any], **extra_kwargs: Any) -> float:
        """Play one rollout, and return what it counts with.

        Args:
            data: A row of `dataset`. Its ``seed``, where it has one, is that of its rollouts.
            **extra_kwargs: What AReaL says of its proxy: ``base_url`` and ``api_key``. Where it runs agents in processes of their own,
                these are the environment variables ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY``.

        Raises:
            vfgym.training.counting.RolloutMissing: If it failed by the doing of its environment, or of what is underneath. AReaL rejects
                the trajectory.
            ConfigurationError: If there is no URL, or the row does not say its task.
        """
        base_url = extra_kwargs.get("base_url") or os.environ.get("OPENAI_BASE_URL")
        if not base_url:
            raise ConfigurationError("AReaL says where its model is with base_url=, or OPENAI_BASE_URL, and here is neither")
        return await play_episode(
            self._env,
            base_url,
            model=self._model,
            api_key=extra_kwargs.get("api_key") or os.environ.get("OPENAI_API_KEY") or NO_KEY,
            sampling_args=self._sampling_args,
            **read_task(data),
        )
