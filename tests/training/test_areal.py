"""AReaL's workflow, which asks at the URL that it is told (`pytest -m peers` plays through AReaL's own proxy)."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from vfgym.errors import ConfigurationError
from vfgym.training.areal import ChatWorkflow


def test_arael_is_told_where_its_model_is() -> None:
    with pytest.raises(ConfigurationError, match="where its model is with base_url="):
        asyncio.run(ChatWorkflow("gymnasium/FrozenLake-v1").run({"example_id": 0}))
    with pytest.raises(ConfigurationError, match="chat environment"):
        ChatWorkflow("CartPole-v1")
    with pytest.raises(ConfigurationError, match=r"as example_id .* \['question'\]"):
        asyncio.run(ChatWorkflow("gymnasium/FrozenLake-v1").run({"question": "?"}, base_url="http://127.0.0.1:1/v1"))


def test_arael_sends_a_workflow_to_another_process() -> None:
    assert isinstance(pickle.loads(pickle.dumps(ChatWorkflow("gymnasium/FrozenLake-v1", temperature=1.0))), ChatWorkflow)
