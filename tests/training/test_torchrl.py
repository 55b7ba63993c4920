"""`register`, with what torchrl has for it stood in for (`pytest -m peers` plays in torchrl's own loop)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.training.trainers.stand_ins import install
from vfgym.spaces import ChatSpace, MessageSpace


def test_spaces_of_messages_become_data_that_is_not_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[type, Callable[..., Any]] = {}
    errors = {"frame_skip": "unexpected keyword argument 'frameskip'"}
    gym = {"register_gym_spec_conversion": lambda kind: lambda convert: known.setdefault(kind, convert), "ACCEPTED_TYPE_ERRORS": errors}
    modules: dict[str, Any] = {
        "torchrl": {},
        "torchrl__data": {"NonTensor": lambda shape, **given: (shape, given)},
        "torchrl__envs": {},
        "torchrl__envs__libs": {},
        "torchrl__envs__libs__gym": gym,
    }
    adapter = install(monkeypatch, "torchrl", **modules)
    adapter.register()
    adapter.register()
    assert known.keys() == {ChatSpace, MessageSpace}
    shape, given = known[MessageSpace](MessageSpace(seed=0), device="cpu", categorical=True)
    assert (shape, given["device"], given["example_data"] in MessageSpace()) == ((), "cpu", True)
    assert errors["frame_skip"] in "TypeError: argument 'frameskip'"
