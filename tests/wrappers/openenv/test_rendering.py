"""How observations become messages: by the author's own function, or as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.messages import MESSAGE_TYPES, UserMessage
from vfgym.wrappers.openenv.rendering import Renderer, render_as_json

SCHEMA = {"properties": {"add": {"type": "integer"}}, "required": ["add"]}
KNOWN = {"contract": "gym", "action_schema": SCHEMA, "context": "step", "seed": 3}


def rendered(render: Any) -> Any:
    return Renderer(render, "gym", SCHEMA).render({"total": 1}, "step", 3, MESSAGE_TYPES)


def test_a_renderer_is_given_what_it_declares() -> None:
    seen: list[dict[str, Any]] = []

    def note(**given: Any) -> list[dict[str, str]]:
        seen.append(given)
        return [{"role": "user", "content": "?"}]

    def takes_any(observation: Any, **known: Any) -> Any:
        return note(observation=observation, **known)

    def takes_some(observation: Any, seed: int, *, context: str) -> Any:
        return note(observation=observation, seed=seed, context=context)

    for render in (takes_any, takes_some, lambda observation: note(observation=observation)):
        assert rendered(render) == [UserMessage("?")]
    assert seen == [{"observation": {"total": 1}, **given} for given in (KNOWN, {"seed": 3, "context": "step"}, {})]


@pytest.mark.parametrize("wrong", [[], "text", None, {"role": "user", "content": "?"}])
def test_a_renderer_must_return_messages(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"that is not empty \(context .step.\)"):
        rendered(lambda observation: wrong)
    with pytest.raises(ConfigurationError, match="prompt_renderer must be a function"):
        Renderer("text", "gym", {})  # type: ignore[arg-type]


@pytest.mark.parametrize(("context", "contract", "explains"), [("reset", "gym", True), ("step", "gym", False), ("reset", "mcp", False)])
def test_the_action_is_explained_where_an_episode_of_actions_begins(context: Any, contract: Any, explains: bool) -> None:
    [message] = render_as_json({"total": "é"}, context=context, contract=contract, action_schema=SCHEMA)
    assert message["content"].endswith('{"total": "é"}')
    assert ("An action is a JSON object" in message["content"]) == explains == ("Observation: " in message["content"])
