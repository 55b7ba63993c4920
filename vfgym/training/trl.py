"""Environments for TRL's `GRPOTrainer` (trl 1.16), in one of three ways.

- TRL plays: ``GRPOTrainer(environment_factory=environment_factory(env), reward_funcs=reward_funcs(env), train_dataset=dataset(env))``.
  It calls tools as methods and ends a rollout with the first answer that calls none.
- This library plays, turn by turn: ``GRPOTrainer(rollout_func=rollout_func(env, tokenizer), reward_funcs=reward_funcs(env),
  train_dataset=dataset(env))``. Anything can be played that way.
- One answer each: ``GRPOTrainer(reward_funcs=reward_funcs(env), train_dataset=dataset(env))``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vfgym.agents.base import seat_of
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import run_to_end
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage
from vfgym.results.dataset import rows_dataset
from vfgym.results.samples import Sample, samples
from vfgym.runs.rollout import Group, rollout
from vfgym.training.adapters import Env, fork_env, refuse_short_history, require_trainer, task_rows
from vfgym.training.counting import CountedRewards, reward_after
from vfgym.training.local_policy import LocalPolicy
from vfgym.training.tool_methods import ToolEpisodes, make_class

if TYPE_CHECKING:
    from datasets import Dataset

require_trainer("trl", "trl>=1.16")


def dataset(env: str | Env, *, split: str = "train", num_examples: int | None = None) -> Dataset:
    """Return the tasks as TRL's data set: ``prompt``, and which task it is (``example_id``, ``split``).

    A task begins with its ``example_id`` as seed, so that the rollouts of a group begin alike.

    Args:
        env: A chat environment, or the id of one.
        split: ``"train"`` or ``"eval"``.
        num_examples: Take the first so many; None for all, or for 1,000 of tasks that have no end (the seeds of a game).

    Raises:
        ConfigurationError: If there are no tasks, or an argument does not fit.
    """
    rows = [{"prompt": [*prompt[:-1], {**prompt[-1], "task": task}], **task} for prompt, task in task_rows(env, split, num_examples)]
    return rows_dataset(rows, free=("prompt",))


class _Factory:
    """Makes instances of one class. It can be pickled: TRL's asynchronous trainer sends it to another process."""

    def __init__(self, env: str | Env) -> None:
        self._env = env
        first = fork_env(env)
        refuse_short_history(first, "TRL")
        self._class = make_class(first, "TRL")

    def __call__(self) -> ToolEpisodes:
        return self._class(fork_env(self._env))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Factory, (self._env,)


def environment_factory(env: str | Env) -> Callable[[], ToolEpisodes]:
    """Return what `GRPOTrainer` takes as ``environment_factory``: its instances have a method for each tool, `reset` and `get_reward`.

    Several calls of one answer are played one after the other. The answer that ends a rollout is seen by `reward_funcs` only: give that
    too where it counts.

    Args:
        env: A chat environment with tools (a game that was made with ``as_tool=True``, say), or the id of one.

    Raises:
        ConfigurationError: If it has no tools, or shows a part of its conversation only.
    """
    return _Factory(env)


def reward_funcs(env: str | Env) -> list[Callable[..., list[float | None]]]:
    """Return what `GRPOTrainer` takes as ``reward_funcs``.

    With `rollout_func` the rewards are those of the rollouts. With `environment_factory` the last answer is played, and the environment
    rewards it (so that these are 0). Else completions are played as the one answer to their row of `dataset`.

    A rollout that failed by the doing of its environment, or of what is underneath, is rewarded with None, so that TRL leaves it out of
    its group. (Reward functions of your own must do so too: what only one of them scores is not left out.)

    Args:
        env: A chat environment, or the id of one.
    """
    own = CountedRewards(fork_env(env))

    def reward(
        completions: Sequence[Any], episode_reward: Sequence[float | None] | None = None, environments: Any = None, **columns: Any
    ) -> list[float | None]:
        if episode_reward is not None:
            return list(episode_reward)
        if environments is not None:
            for environment, completion in zip(environments, completions, strict=True):
                environment._read_last_answer(completion)
            return [None if environment.get_reward() is None else 0.0 for environment in environments]
        if "example_id" not in columns:
            raise ConfigurationError("to reward completions, their tasks must be known: train on vfgym.training.trl.dataset(env)")
        tasks = zip(columns["example_id"], columns["split"], strict=True)
        return [_play_one(own, example_id, split, completion) for (example_id, split), completion in zip(tasks, completions, strict=True)]

    return [reward]


def _play_one(env: Env, example_id: int, split: str, completion: Any) -> float | None:
    """Return what one answer to a task counts with; None for a rollout that says nothing of it."""
    answer = completion if isinstance(completion, str) else completion[-1]["content"]
    try:
        env.reset(seed=example_id, options={"example_id": example_id, "split": split})
        _, reward, terminated, truncated, _ = env.step(AssistantMessage(answer or ""))
    except ConfigurationError:
        raise
    except Exception as error:
        return reward_after(error, 0.0, seat_of(env))
    if not (terminated or truncated):
        raise ConfigurationError(
            f"{type(seat_of(env).definition).__name__} goes on after one answer: train with environment_factory, where it has tools, or"
            " with rollout_func"
        )
    return float(reward)


def rollout_func(env: str | Env, tokenizer: Any) -> Callable[[list[Any], Any], dict[str, list[Any]]]:
    """Return what `GRPOTrainer` takes as ``rollout_func``: rollouts that this library plays with the trainer's model.

    The trainer's temperature, ``top_p`` and ``top_k`` hold, and ``max_completion_length`` for each answer. Token ids are those that were
    sampled, and what the environment put between them has an ``env_mask`` of 0. A rollout that is not one sequence (the chat template
    dropped thoughts, or there was no answer) counts in its group, and nothing is learned from its tokens. vLLM is not used.

    Args:
        env: A chat environment, or the id of one.
        tokenizer: That of the model, with a chat template.

    Raises:
        ConfigurationError: If the environment shows a part of its conversation only; while training, if no rollout is one sequence.
    """
    own = fork_env(env)
    refuse_short_history(own, "TRL")

    def play(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        if trainer.use_vllm:
            raise ConfigurationError("rollout_func samples from the trainer's model in this process: set use_vllm=False")
        policy = LocalPolicy(trainer.accelerator.unwrap_model(trainer.model), tokenizer, max_batch=len(prompts))
        sampling = {"temperature": trainer.temperature, "top_p": trainer.top_p, "top_k": trainer.top_k or 0}
        agent = ModelAgent(policy, "policy", {**sampling, "max_tokens": trainer.max_completion_length})
        groups = run_to_end(_play_groups(own, agent, [_task_of(prompt) for prompt in prompts], int(trainer.state.global_step)))
        rows = [_row_of(*rollout, tokenizer.eos_token_id) for group in groups for rollout in _rollouts_of(group)]
        if not any(map(any, (row["env_mask"] for row in rows))):
            raise ConfigurationError(f"TRL trains on one sequence of tokens a rollout, and none of {len(rows)} is one: {_why_not(groups)}")
        return {name: [row[name] for row in rows] for name in rows[0]}

    return play


def _task_of(prompt: Any) -> tuple[int, Any]:
    task = prompt[-1].get("task") if isinstance(prompt, list) else None
    if not isinstance(task, Mapping):
        raise ConfigurationError("rollout_func plays the prompts of vfgym.training.trl.dataset(env), which say which task they are of")
    return task["example_id"], task["split"]


async def _play_groups(env: Env, agent: ModelAgent, tasks: Sequence[tuple[int, Any]], seed: int) -> list[Group]:
    """Play each task; those of one task that follow each other are a group."""

    async def play(example_id: int, split: Any, size: int) -> Group:
        groups = rollout(env, agent, split=split, example_ids=[example_id], group_size=size, seed=seed, max_concurrent=size)
        async with contextlib.aclosing(groups):
            return await anext(groups)

    try:
        return await asyncio.gather(*(play(*task, len(list(same))) for task, same in itertools.groupby(tasks)))
    finally:
        await agent.close()


def _rollouts_of(group: Group) -> list[tuple[list[Sample], float | None]]:
    """Return the samples of each rollout, and what it counts with; None for one that TRL leaves out of its group."""
    found: list[list[Sample]] = [[] for _ in group.states]
    for sample in samples(group.states, advantage=None):
        found[sample.rollout].append(sample)
    return list(zip(found, group.rewards, strict=True))


def _why_not(groups: Sequence[Group]) -> str:
    forks = [sample.fork for group in groups for sample in samples(group.states, advantage=None) if sample.fork is not None]
    errors = [str(error) for group in groups for error in group.errors if error is not None]
    return [*forks, *errors, "no answer has tokens"][0]


def _row_of(found: Sequence[Sample], reward: float | None, end: int) -> dict[str, Any]:
    """Return what TRL is given of a rollout. One that is not one sequence counts in its group, but nothing is learned from it."""
    if len(found) != 1:
        return {"prompt_ids": [end], "completion_ids": [end], "logprobs": [0.0], "env_mask": [0], "episode_reward": reward}
    sample, first = found[0], found[0].num_prompt_ids
    return {
        "prompt_ids": sample.ids[:first],
        "completion_ids": sample.ids[first:],
        "logprobs": sample.logprobs[first:],
        "env_mask": sample.mask[first:],
        "episode_reward": reward,
    }
