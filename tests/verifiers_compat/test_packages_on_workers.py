"""Environments of the rollout API are played by workers as they are here."""

from __future__ import annotations

from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import without_drawn
from tests.verifiers_compat import packages
from vfgym import ClientConfig, ModelAgent
from vfgym.messages import ToolCall, content_text
from vfgym.model_server import ModelServer
from vfgym.model_server.exchange import Answer, ModelRequest


def answer(request: ModelRequest) -> Answer:
    """Call the tool first where there is one; then answer 2, which is right once, or what the tool gave."""
    role = request.messages[-1]["role"]
    if role == "user" and request.tools:
        return {"content": "", "tool_calls": [ToolCall("c1", "double", '{"number": 1}')]}
    return content_text(request.messages[-1]["content"]) if role == "tool" else "2"


@pytest.mark.parametrize(
    ("maker", "args", "columns"),
    [
        ("load_hints", {}, ["guesses", "luck"]),
        pytest.param("load_environment", {"num_tasks": 3}, [], marks=pytest.mark.exhaustive),
        pytest.param("load_own_rollout", {}, ["first"], marks=pytest.mark.exhaustive),
    ],
)
def test_rows_are_those_of_one_process(maker: str, args: dict[str, Any], columns: list[str]) -> None:
    rows = {}
    with ModelServer(models={"m": answer}) as server:
        for executor in ("local", "process"):
            agent = ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key="none"), "m")
            rows[executor] = vfgym.evaluate(
                f"{packages.__name__}:{maker}",
                agent,
                env_args=args,
                rollouts_per_example=2,
                seed=3,
                state_columns=columns,
                executor=executor,
                workers=None if executor == "local" else 2,
                progress=False,
            )["outputs"]
    assert without_drawn(rows["process"]) == without_drawn(rows["local"])
    assert {row["reward"] for row in rows["local"]} == {0.0, 1.0}, "answers were right and wrong"
    assert not any(row["error"] for row in rows["local"])
