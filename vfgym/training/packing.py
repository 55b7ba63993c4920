"""`pack`: samples as padded arrays, one row for each, as a training step takes them.

>>> import asyncio
>>> import vfgym
>>> from vfgym.training import pack, samples
>>> env = vfgym.SingleTurnEnv([{"question": "Heads or tails?"}], rubric=vfgym.Rubric(lambda completion: float(len(completion[-1].content))))
>>> class Typist:
...     policy_version = 7
...     words = iter(["heads", "no"])
...
...     def __call__(self, observation, info):
...         prompt, said = [104, 116], [ord(letter) for letter in next(self.words)]
...         tokens = vfgym.ResponseTokens(prompt, [0, 0], said, [1] * len(said), [-0.5] * len(said))
...         return vfgym.Response("r", 0, "m", None, vfgym.ResponseMessage("".join(map(chr, said)), tokens=tokens))
>>> async def play():
...     return [group async for group in vfgym.rollout(env, Typist(), example_ids=[0], group_size=2)]
>>> [group] = asyncio.run(play())
>>> batch = pack(samples(group.states), pad_id=-1)
>>> batch.ids.tolist()
[[104, 116, 104, 101, 97, 100, 115], [104, 116, 110, 111, -1, -1, -1]]
>>> batch.advantages.tolist()
[[0.0, 0.0, 1.5, 1.5, 1.5, 1.5, 1.5], [0.0, 0.0, -1.5, -1.5, 0.0, 0.0, 0.0]]
>>> batch.versions.tolist()[1], batch.lengths.tolist()
([-1, -1, 7, 7, -1, -1, -1], [7, 4])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.results.samples import Sample

NO_VERSION = -1
"""Stands in `Batch.versions` where no version of the policy is known: in what the model did not write, and in padding."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Samples as arrays: NumPy's, or tensors (see `Batch.torch`). Those of tokens are (samples, longest sample), padded at the end."""

    ids: Any
    """Token ids (int64); the padding id behind each sample."""
    mask: Any
    """Whether the model wrote a token (bool): these are trained on."""
    positions: Any
    """Place of each token in its sample, from 0 (int64); 0 in padding."""
    logprobs: Any
    """Log-probability of each token (nats, float32) when it was sampled; 0.0 where the mask is False."""
    advantages: Any
    """Advantage of each token's sample (float32); 0.0 where the mask is False. None where the samples have no advantages."""
    versions: Any
    """``policy_version`` that wrote each token (int64); -1 where there is none, or the mask is False."""
    lengths: Any
    """How many tokens each sample has (int64); attention is where ``arange(longest) < lengths[:, None]``."""
    groups: Any
    """Number of each sample's group (int64), from 0, in the order in which they come."""

    def torch(self) -> Batch:
        """Return the same as tensors of torch.

        Raises:
            MissingExtra: If torch is not installed.
        """
        try:
            import torch
        except ImportError as error:
            raise MissingExtra("train", "Batch.torch()") from error
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return Batch(**{name: None if array is None else torch.from_numpy(array) for name, array in arrays.items()})


def pack(samples: Iterable[Sample], *, pad_id: int = 0) -> Batch:
    """Return samples as padded arrays, in their order.

    Args:
        samples: Samples with tokens (see `vfgym.training.samples`).
        pad_id: Token id that is put behind samples that are shorter than the longest one.

    Raises:
        ConfigurationError: If there are no samples, some have an advantage and others do not, or a version is no integer from 0.
        NoTokens: If one has no tokens; the text names its turn.
    """
    found = list(samples)
    if not found:
        raise ConfigurationError(
            "there are no samples to pack: no rollout had a turn, or infrastructure broke them all (see vfgym.training.Samples.dropped)"
        )
    if isinstance(pad_id, bool) or not isinstance(pad_id, int | np.integer):
        raise ConfigurationError(f"pad_id must be a token id, an integer; got {pad_id!r}")
    lengths = np.array([len(sample.ids) for sample in found], np.int64)
    shape = len(found), int(lengths.max())
    ids, positions, versions = np.full(shape, pad_id, np.int64), np.zeros(shape, np.int64), np.full(shape, NO_VERSION, np.int64)
    mask, logprobs = np.zeros(shape, np.bool_), np.zeros(shape, np.float32)
    for row, (sample, length) in enumerate(zip(found, lengths, strict=True)):
        ids[row, :length] = sample.ids
        mask[row, :length] = sample.mask
        positions[row, :length] = np.arange(length)
        logprobs[row, :length] = sample.logprobs
        for (start, stop), version in zip(sample.tokens.spans, _versions_of(sample), strict=True):
            versions[row, start:stop] = version
    versions[~mask] = NO_VERSION
    return Batch(ids, mask, positions, logprobs, _advantages_of(found, mask), versions, lengths, _number_groups(found))


def _versions_of(sample: Sample) -> list[int]:
    for version in sample.policy_versions:
        if version is not None and (isinstance(version, bool) or not isinstance(version, int | np.integer) or version < 0):
            raise ConfigurationError(f"a batch has versions of the policy as integers from 0, and policy_version was {version!r}")
    return [NO_VERSION if version is None else int(version) for version in sample.policy_versions]


def _advantages_of(samples: Sequence[Sample], mask: Any) -> Any:
    known = [sample.advantage for sample in samples if sample.advantage is not None]
    if not known:
        return None
    if len(known) < len(samples):
        raise ConfigurationError(
            f"{len(samples) - len(known)} of {len(samples)} samples have no advantage: pack those of one call of samples"
        )
    return np.where(mask, np.array(known, np.float32)[:, None], np.float32(0.0))


def _number_groups(samples: Sequence[Sample]) -> Any:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(sample.group, len(numbers)) for sample in samples], np.int64)
