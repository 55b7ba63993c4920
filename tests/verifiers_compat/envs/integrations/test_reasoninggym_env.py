"""`ReasoningGymEnv`: reasoning-gym's own words, and rows that are numbered."""

from __future__ import annotations

import importlib.util

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.models import roles


@pytest.mark.skipif(importlib.util.find_spec("reasoning_gym") is None, reason="the extra reasoning-gym is not installed")
async def test_reasoning_gym_asks_in_its_own_words_and_numbers_its_rows() -> None:
    from reasoning_gym.utils import SYSTEM_PROMPTS

    env = vf.ReasoningGymEnv("leg_counting", num_train_examples=2, num_eval_examples=2)
    assert env.get_dataset()[0]["prompt"][0] == {"role": "system", "content": SYSTEM_PROMPTS["default"]}
    assert (env.get_dataset()["answer"][:], env.get_eval_dataset()["answer"][:]) == (["0", "1"], ["2", "3"])
    assert env.get_eval_dataset()["example_id"][:] == [0, 1]
    env.reset(options={"split": "eval"})
    assert env.step(env.oracle(env.state)).reward == 1.0
    for given, is_same in (({}, True), ({"seed": 0}, True), ({"seed": 1}, False)):
        other = vf.ReasoningGymEnv("leg_counting", num_train_examples=2, num_eval_examples=0, **given)
        assert (other.get_dataset()["prompt"][:] == env.get_dataset()["prompt"][:]) is is_same
    silent = vf.ReasoningGymEnv("leg_counting", num_train_examples=1, num_eval_examples=0, system_prompt=None)
    assert roles(silent.get_dataset()[0]["prompt"]) == ["user"]
