"""Token samples for trainers in columns, as the rollout API has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from vfgym.results.credit import group_of, trajectory_of
from vfgym.results.samples import Tokens, group_rewards, join_tokens, samples


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


def processed_outputs(rows: Sequence[Mapping[str, Any]], *, interleaved: bool = False) -> ProcessedOutputs:
    """Return the token samples of rollouts.

    Args:
        rows: Rows with a ``trajectory`` (``state_columns=["trajectory"]``), or states.
        interleaved: Make the samples of `vfgym.training.samples`, rewarded with what their rollouts earned: one of a whole rollout where
            each prompt extends the turn before, with the environment's tokens masked. Else each step is one, and rewarded as the
            author rewarded that step, or as its rollout where the author did not.

    Rows that infrastructure or their environment broke are left out. A rollout that failed by the policy's doing, or was cut, counts with
    what failing earns (see `vfgym.training.samples`).

    Raises:
        ConfigurationError: If a row has no trajectory, or a step has no token data.
    """
    found = list(_joined(rows) if interleaved else _each_step(rows))
    return {
        "prompt_ids": [tokens.ids[: tokens.num_prompt] for tokens, _ in found],
        "prompt_mask": [[0] * tokens.num_prompt for tokens, _ in found],
        "completion_ids": [tokens.ids[tokens.num_prompt :] for tokens, _ in found],
        "completion_mask": [tokens.mask[tokens.num_prompt :] for tokens, _ in found],
        "completion_logprobs": [tokens.logprobs[tokens.num_prompt :] for tokens, _ in found],
        "rewards": [reward for _, reward in found],
        "is_truncated": [tokens.is_truncated for tokens, _ in found],
    }


def _joined(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Tokens, float]]:
    for sample in samples(rows, advantage=None):
        yield sample.tokens, sample.reward


def _each_step(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Tokens, float]]:
    for row, of_rollout in zip(rows, _counted_rewards(rows), strict=True):
        trajectory = trajectory_of(row)
        if of_rollout is None:
            continue
        for turn, step in enumerate(trajectory):
            own = step.get("reward")
            yield join_tokens(row.get("example_id"), trajectory, [turn]), of_rollout if own is None else float(own)


def _counted_rewards(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return what each row counts with in its group; None where it is left out."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        groups[group_of(row)].append(number)
    counted: list[float | None] = [None] * len(rows)
    for numbers in groups.values():
        for number, reward in zip(numbers, group_rewards([rows[number] for number in numbers]), strict=True):
            counted[number] = reward
    return counted
