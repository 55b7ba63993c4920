"""How programs reach the model of their rollout, as functions of its state."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from verifiers_compat.v1.utils.endpoint_utils import (
    assistant_completion_from_messages,
    client_from_state,
    endpoint_api_key,
    endpoint_config_from_state,
    normalize_endpoint_api,
)
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient


async def test_a_program_asks_its_model_through_a_client_of_the_sdk() -> None:
    async def program(task: Any, state: Any) -> dict[str, Any]:
        config = endpoint_config_from_state(state)
        assert endpoint_api_key(state) == config["api_key"]
        answer = await client_from_state(state, "chat").chat.completions.create(model=config["model"], messages=state["prompt"])
        return {"said": answer.choices[0].message.content}

    harness = vf.Harness(program=program, client=ScriptedClient(["four"]), model="m")
    assert (await harness.run({"prompt": "2 + 2?"}))["said"] == "four"


def test_names_of_apis_stand_for_one() -> None:
    names = ("chat", "openai_chat_completions", "openai_responses", "anthropic_messages")
    assert [normalize_endpoint_api(name) for name in names] == ["chat_completions", "chat_completions", "responses", "messages"]
    with pytest.raises(ConfigurationError, match="renderer"):
        normalize_endpoint_api("renderer")


def test_a_completion_is_what_follows_the_prompt() -> None:
    prompt = [{"role": "user", "content": "a"}]
    assert assistant_completion_from_messages(prompt, [*prompt, {"role": "assistant", "content": "b"}]) == [
        {"role": "assistant", "content": "b"}
    ]
