"""Rollouts for verl (0.9), as an agent loop: verl's servers answer, and this library plays.

Name the loop in the file that ``actor_rollout_ref.rollout.agent.agent_loop_config_path`` says, with what it plays:

.. code-block:: yaml

    - name: vfgym
      _target_: vfgym.training.verl.ChatAgentLoop
      env: gymnasium/FrozenLake-v1

and train on the rows of `dataset`, each of which names the loop and its task.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from vfgym.clients import SamplingArgs
from vfgym.errors import ConfigurationError, InfraError, OverlongPromptError
from vfgym.results.dataset import rows_dataset
from vfgym.results.samples import Sample, samples
from vfgym.training.adapters import Env, require_trainer, task_rows
from vfgym.training.local_policy import TokenPolicy
from vfgym.training.playing import CountedRollout, play_rollout, read_task
from vfgym.training.sampling import Completion

if TYPE_CHECKING:
    from datasets import Dataset

require_trainer("verl", "verl[verl-core]>=0.9")

from verl.experimental.agent_loop import AgentLoopBase, AgentLoopOutput  # noqa: E402


def dataset(env: str | Env, *, split: str = "train", num_examples: int | None = None, agent_name: str = "vfgym") -> Dataset:
    """Return the tasks as rows of verl's data set; ``dataset(env).to_parquet(path)`` writes what ``data.train_files`` names.

    A row has its ``prompt``, the name of the loop that plays it, and in ``extra_info`` which task it is. The rollouts of one row begin
    alike.

    Args:
        env: A chat environment, or the id of one.
        split: ``"train"`` or ``"eval"``.
        num_examples: Take the first so many; None for all, or for 1,000 of tasks that have no end (the seeds of a game).
        agent_name: The name of the loop in the file of agent loops.

    Raises:
        ConfigurationError: If there are no tasks, or an argument does not fit.
    """
    rows: list[dict[str, Any]] = [
        {
            "prompt": prompt,
            "agent_name": agent_name,
            "data_source": agent_name,
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": place, **task},
        }
        for place, (prompt, task) in enumerate(task_rows(env, split, num_examples))
    ]
    return rows_dataset(rows, free=("prompt",))


class ChatAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays rollouts of a chat environment with verl's servers, and gives verl the very ids that were sampled.

    A rollout that was cut, or failed by the policy's doing, counts with the lower of its return and the ``failure_reward``. One that failed
    by the doing of its environment, or of what is underneath, is raised: verl leaves it out, or plays its row again
    (``sync_refill_failed_groups``).
    """

    def __init__(self, *args: Any, env: str | Env, **kwargs: Any) -> None:
        """Take what is played.

        Args:
            *args: What verl gives its loops.
            env: A chat environment, or the id of one.
            **kwargs: What verl gives its loops.
        """
        super().__init__(*args, **kwargs)
        self._env = env

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        """Play one rollout.

        Args:
            sampling_params: How verl samples. They win over those of the environment, but for ``max_tokens``.
            **kwargs: The row of the data set; ``extra_info`` says which task.

        Returns:
            The output. Where a prompt did not go on from the turn before, they are several, one for each sample.

        Raises:
            vfgym.training.counting.RolloutMissing: If it failed by the doing of its environment, or of what is underneath.
            ConfigurationError: If it is several samples, and verl's trainer takes one (that of ``trainer.use_v1=False``).
        """
        policy = _ServerPolicy(self, sampling_params)
        played = await play_rollout(self._env, policy, "policy", **read_task(_extra_info(kwargs)))
        found = samples([played.state], advantage=None)
        if len(found) > 1 and "session_id" not in kwargs:  # which the trainer of version 1 adds
            raise ConfigurationError(
                f"verl's older trainer takes one sequence of tokens a rollout, and this one is {len(found)}: {found[1].fork}. Train with"
                " trainer.use_v1=True"
            )
        outputs = [self._output(sample, played, policy) for sample in found] or [self._empty_output(played, policy)]
        return outputs if len(outputs) > 1 else outputs[0]

    def _output(self, sample: Sample, played: CountedRollout, policy: _ServerPolicy) -> AgentLoopOutput:
        first = sample.num_prompt_ids
        return AgentLoopOutput(
            prompt_ids=sample.ids[:first],
            response_ids=sample.ids[first:],
            response_mask=sample.mask[first:],
            response_logprobs=sample.logprobs[first:] if policy.gives_logprobs else None,
            **_facts(played, policy, 2 * len(sample.turns)),
        )

    def _empty_output(self, played: CountedRollout, policy: _ServerPolicy) -> AgentLoopOutput:
        """Return the output of a rollout without an answer: it counts in its group, and nothing is learned from it."""
        end = self.tokenizer.eos_token_id
        logprobs = [0.0] if policy.gives_logprobs else None
        return AgentLoopOutput(
            prompt_ids=[end], response_ids=[end], response_mask=[0], response_logprobs=logprobs, **_facts(played, policy, 1)
        )


def _extra_info(row: Mapping[str, Any]) -> Mapping[str, Any]:
    extra_info = row.get("extra_info")
    return extra_info if isinstance(extra_info, Mapping) else {}


def _facts(played: CountedRollout, policy: _ServerPolicy, num_turns: int) -> dict[str, Any]:
    # verl reads reward_extra_info of the last output of several, and copies it to the others.
    extra = {**policy.extra_fields, "turn_scores": [], "tool_rewards": [], "reward_extra_info": {}}
    return {
        "reward_score": played.reward,
        "num_turns": num_turns,
        "metrics": {"generate_sequences": policy.seconds, "num_preempted": policy.num_preempted},
        "extra_fields": extra,
    }


class _ServerPolicy(TokenPolicy):
    """verl's servers as a client, for one rollout."""

    def __init__(self, loop: Any, sampling_params: Mapping[str, Any]) -> None:
        super().__init__(loop.tokenizer, loop.tokenizer.all_special_ids, template_arguments=loop.apply_chat_template_kwargs)
        self._servers = loop.server_manager
        self._sampling_params = dict(sampling_params)
        self._prompt_length = int(loop.rollout_config.prompt_length)
        self._response_length = int(loop.rollout_config.response_length)
        self._request_id = uuid4().hex  # of the whole rollout, so that one server answers it, from its cache
        self._sequences: list[tuple[list[int], int]] = []
        """What was asked and answered so far, the last first, with the length of the first prompt of each sequence."""
        self.gives_logprobs = False
        self.seconds = 0.0
        self.num_preempted = -1
        self.extra_fields: dict[str, Any] = {}

    async def sample(self, ids: list[int], sampling_args: SamplingArgs) -> Completion:
        first = next((first for known, first in self._sequences if ids[: len(known)] == known), len(ids))
        room = self._response_length - (len(ids) - first)
        if first > self._prompt_length or room < 1:
            limit = f"prompt_length={self._prompt_length}" if first > self._prompt_length else f"response_length={self._response_length}"
            raise OverlongPromptError(f"the prompt of this turn has {len(ids)} tokens, {first} of them the first prompt: more than {limit}")
        asked = sampling_args.get("max_completion_tokens") or sampling_args.get("max_tokens") or room
        parameters = {**self._sampling_params, "max_tokens": min(room, int(asked))}
        began = time.monotonic()
        output = await self._servers.generate(request_id=self._request_id, prompt_ids=ids, sampling_params=parameters)
        self.seconds += time.monotonic() - began
        if output.stop_reason in ("aborted", "abort"):
            raise InfraError("verl's server was stopped while it answered")
        self._note(output)
        written = list(output.token_ids)[:room]
        self.gives_logprobs = output.log_probs is not None
        logprobs = [0.0] * len(written) if output.log_probs is None else [float(each) for each in output.log_probs[: len(written)]]
        self._sequences.insert(0, ([*ids, *written], first))
        return Completion(written, logprobs, has_ended=bool(written) and written[-1] in self.ends)

    def _note(self, output: Any) -> None:
        """Keep what the server says besides: of the versions of the weights, the oldest and the newest."""
        oldest = self.extra_fields.get("min_global_steps")
        self.extra_fields.update(output.extra_fields)
        if oldest is not None:
            self.extra_fields["min_global_steps"] = oldest
        if output.num_preempted is not None:
            self.num_preempted = max(self.num_preempted, 0) + output.num_preempted
