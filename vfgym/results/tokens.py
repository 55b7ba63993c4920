"""Token samples for trainers, from rollouts whose trajectories carry token ids."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from vfgym.errors import ConfigurationError

logger = logging.getLogger(__name__)


class ProcessedOutputs(TypedDict):
    """Token samples: the lists have one entry for each."""

    prompt_ids: list[list[int]]
    prompt_mask: list[list[int]]
    completion_ids: list[list[int]]
    completion_mask: list[list[int]]
    """1 for what the model wrote, 0 for what the environment put between."""
    completion_logprobs: list[list[float]]
    """Log-probabilities in nats; 0.0 for what the environment put between."""
    rewards: list[float]
    is_truncated: list[bool]


@dataclass
class _Sample:
    """One training sample."""

    prompt_ids: list[int]
    prompt_mask: list[int]
    reward: float
    completion_ids: list[int] = field(default_factory=list)
    completion_mask: list[int] = field(default_factory=list)
    completion_logprobs: list[float] = field(default_factory=list)
    is_truncated: bool = False

    def add(self, step: Mapping[str, Any], between: Sequence[int], reward: float) -> None:
        """Add what the environment put between, and a turn's completion."""
        tokens = step["tokens"]
        self.completion_ids += [*between, *tokens["completion_ids"]]
        self.completion_mask += [*[0] * len(between), *tokens["completion_mask"]]
        self.completion_logprobs += [*[0.0] * len(between), *tokens["completion_logprobs"]]
        self.is_truncated = self.is_truncated or bool(step.get("is_truncated") or tokens.get("is_truncated"))
        self.reward = reward


def processed_outputs(rows: Sequence[Mapping[str, Any]], *, interleaved: bool = False) -> ProcessedOutputs:
    """Return the token samples of rollouts.

    A sample's reward is that of its (last) step where the author gave it one, else the rollout's. Steps without token data are
    left out, and reported in the log.

    Args:
        rows: Rows with a ``trajectory`` (``state_columns=["trajectory"]``), or states.
        interleaved: Make one sample of a whole rollout, with the environment's tokens masked, rather than one of each step.
            Where a step's prompt does not begin with the tokens so far (the history was rewritten, or tokenised anew), a new
            sample begins.

    Raises:
        ConfigurationError: If a row has no trajectory, or no step of any row has token data.
    """
    num_steps = num_without = 0
    samples: list[_Sample] = []
    for row in rows:
        trajectory = row.get("trajectory")
        if not isinstance(trajectory, list):
            raise ConfigurationError(
                f"example {row.get('example_id')} has no trajectory, and tokens stand there: keep it with state_columns=['trajectory']"
            )
        steps = [step for step in trajectory if step.get("tokens") is not None]
        num_steps += len(trajectory)
        num_without += len(trajectory) - len(steps)
        samples += _samples(steps, float(row.get("reward") or 0.0), interleaved)
    if num_steps and num_without == num_steps:
        raise ConfigurationError("no step has token data: the client has to ask its server for token ids and log-probabilities")
    if num_without:
        logger.warning("%d of %d steps have no token data, and are left out of the samples", num_without, num_steps)
    return {
        "prompt_ids": [sample.prompt_ids for sample in samples],
        "prompt_mask": [sample.prompt_mask for sample in samples],
        "completion_ids": [sample.completion_ids for sample in samples],
        "completion_mask": [sample.completion_mask for sample in samples],
        "completion_logprobs": [sample.completion_logprobs for sample in samples],
        "rewards": [sample.reward for sample in samples],
        "is_truncated": [sample.is_truncated for sample in samples],
    }


def _samples(steps: Sequence[Mapping[str, Any]], rollout_reward: float, interleaved: bool) -> Iterator[_Sample]:
    sample: _Sample | None = None
    known: list[int] = []
    """The tokens of the sample so far."""
    for step in steps:
        tokens = step["tokens"]
        own_reward = step.get("reward")
        reward = rollout_reward if own_reward is None else float(own_reward)
        ids = tokens["prompt_ids"]
        goes_on = interleaved and sample is not None and ids[: len(known)] == known
        if sample is None or not goes_on:
            if sample is not None:
                yield sample
            sample, known = _Sample(list(ids), list(tokens["prompt_mask"]), reward), list(ids)
        between = ids[len(known) :]
        sample.add(step, between, reward)
        known += [*between, *tokens["completion_ids"]]
    if sample is not None:
        yield sample
