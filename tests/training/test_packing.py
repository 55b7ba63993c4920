"""`pack`: samples as padded arrays, token by token."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.training import NoTokens, pack, samples

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install 'vfgym[train]'")

Turn = tuple[list[int], list[int], list[int], Any]
"""What was shown before a turn, what the model wrote, the mask of that, and the version that wrote it."""


def rollout(*turns: Turn, reward: float = 0.0, group: str = "a") -> dict[str, Any]:
    """A rollout of turns each of whose prompts goes on from the turn before; log-probabilities are minus the ids."""
    seen: list[int] = []
    trajectory = []
    for shown, written, mask, version in turns:
        prompt = [*seen, *shown]
        tokens = {
            "prompt_ids": prompt,
            "completion_ids": written,
            "completion_mask": mask,
            "completion_logprobs": [-float(i) for i in written],
        }
        trajectory.append({"prompt": [], "completion": [], "tokens": tokens, "extras": {"reward": 0.0, "policy_version": version}})
        seen = [*prompt, *written]
    return {"example_id": 0, "group": group, "reward": reward, "error": None, "trajectory": trajectory}


LONG = rollout(([1, 2], [3, 4], [1, 1], 5), ([6], [7, 8], [1, 0], 6), reward=1.0)
SHORT = rollout(([1, 2], [9], [1], None), reward=0.0)
OTHER = rollout(([1], [2], [1], 0), reward=3.0, group="b")


def test_each_token_has_its_numbers() -> None:
    batch = pack(samples([LONG, OTHER, SHORT]), pad_id=99)
    assert batch.ids.tolist() == [[1, 2, 3, 4, 6, 7, 8], [1, 2, 99, 99, 99, 99, 99], [1, 2, 9, 99, 99, 99, 99]]
    assert batch.mask.tolist() == [
        [False, False, True, True, False, True, False],
        [False, True, *[False] * 5],
        [False, False, True, *[False] * 4],
    ]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0, 1, 0, 0, 0, 0, 0], [0, 1, 2, 0, 0, 0, 0]]
    assert batch.logprobs.tolist() == [[0, 0, -3, -4, 0, -7, 0], [0, -2, 0, 0, 0, 0, 0], [0, 0, -9, 0, 0, 0, 0]]
    assert batch.advantages.tolist() == [[0, 0, 0.5, 0.5, 0, 0.5, 0], [0.0] * 7, [0, 0, -0.5, 0, 0, 0, 0]]
    assert batch.versions.tolist() == [[-1, -1, 5, 5, -1, 6, -1], [-1, 0, *[-1] * 5], [-1] * 7]
    assert (batch.lengths.tolist(), batch.groups.tolist()) == ([7, 2, 3], [0, 1, 0])
    kinds = {
        name: getattr(batch, name).dtype for name in ("ids", "mask", "positions", "logprobs", "advantages", "versions", "lengths", "groups")
    }
    assert {name for name, kind in kinds.items() if kind == np.int64} == {"ids", "positions", "versions", "lengths", "groups"}
    assert (kinds["mask"], kinds["logprobs"], kinds["advantages"]) == (np.bool_, np.float32, np.float32)


@given(
    st.lists(
        st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=3), st.lists(st.integers(0, 9), max_size=3)), min_size=1, max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_nothing_is_lost_and_nothing_is_added(written: list[list[tuple[list[int], list[int]]]]) -> None:
    rows = [rollout(*((shown, said, [1] * len(said), 1) for shown, said in turns)) for turns in written]
    found = samples(rows)
    batch = pack(found, pad_id=-7)
    for row, sample in enumerate(found):
        length = len(sample.ids)
        assert (batch.lengths[row], batch.ids[row].tolist()) == (length, sample.ids + [-7] * (batch.ids.shape[1] - length))
        assert batch.mask[row, :length].tolist() == list(map(bool, sample.mask))
        assert batch.logprobs[row, :length].tolist() == sample.logprobs
        assert (batch.versions[row] == np.where(batch.mask[row], 1, -1)).all()
        assert not batch.mask[row, length:].any()


def test_without_advantages_there_are_none() -> None:
    assert pack(samples([LONG, SHORT], advantage=None)).advantages is None


def test_what_cannot_be_packed_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no samples to pack"):
        pack([])
    broken = {**LONG, "ending": "infrastructure_failed"}
    with pytest.raises(ConfigurationError, match="no samples to pack"):
        pack(samples([broken]))
    with pytest.raises(ConfigurationError, match="1 of 2 samples have no advantage"):
        pack([*samples([LONG]), *samples([SHORT], advantage=None)])
    for version in ("step-3", 1.5, True, -2):
        with pytest.raises(ConfigurationError, match="versions of the policy as integers from 0, and policy_version was"):
            pack(samples([rollout(([1], [2], [1], version))]))
    for pad_id in (True, None, 1.0):
        with pytest.raises(ConfigurationError, match="pad_id must be a token id"):
            pack(samples([LONG]), pad_id=pad_id)  # type: ignore[arg-type]
    silent = rollout(([1], [2], [1], 0))
    silent["trajectory"][0]["tokens"] = None
    with pytest.raises(NoTokens, match="turn 0 of example 0"):
        pack(samples([LONG, silent]))


def test_torch_is_asked_for_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pack(samples([LONG]))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'vfgym\[train\]'"):
        batch.torch()


@needs_torch
def test_tensors_are_the_same() -> None:
    import torch

    batch = pack(samples([LONG, SHORT]))
    tensors = batch.torch()
    for name in ("ids", "mask", "positions", "logprobs", "advantages", "versions", "lengths", "groups"):
        assert isinstance(getattr(tensors, name), torch.Tensor)
        assert (getattr(tensors, name).numpy() == getattr(batch, name)).all()
    assert pack(samples([LONG], advantage=None)).torch().advantages is None
