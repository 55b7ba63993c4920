"""Infos of several environments are batched as Gymnasium batches them."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym.vector.infos import batch_infos

values = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9), st.text(max_size=2), st.just([]), st.just(np.float32(2)))


inner = st.dictionaries(st.sampled_from("xy"), values, max_size=2)


infos = st.fixed_dictionaries({}, optional={"a": values, "b": values, "final_obs": values, "c": inner})


@settings(max_examples=60)
@given(st.lists(infos, min_size=1, max_size=4))
def test_infos_are_batched_as_gymnasium_does(several: list[dict[str, Any]]) -> None:
    """Keys, masks, types, and what becomes of values of several types; where Gymnasium itself fails, nothing is asked."""
    envs: VectorEnv[Any, Any] = VectorEnv()
    envs.num_envs = len(several)
    expected: dict[str, Any] = {}
    try:
        for index, info in enumerate(several):
            expected = envs._add_info(expected, info, index)
    except (TypeError, ValueError):
        return
    batched = batch_infos(several)
    assert (repr(batched), batched.keys()) == (repr({key: expected[key] for key in batched}), expected.keys())
