"""Environments whose author wrote `run_group` or `run_rollout`, and clients that play elsewhere."""

from __future__ import annotations

from typing import Any

from tests.verifiers_compat.environments import asking, single


class Elsewhere:
    """Plays rollouts elsewhere: it notes what it was given, and returns rows."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, ...]] = []

    async def run_group(self, *given: Any) -> list[dict[str, Any]]:
        self.given.append(given)
        return [{"example_id": row["example_id"], "reward": 0.5} for row in given[0]]

    async def run_rollout(self, *given: Any) -> dict[str, Any]:
        self.given.append(given)
        return {"example_id": given[0]["example_id"], "reward": 0.25}


async def test_an_env_client_plays_the_rollouts_with_the_configuration_that_was_given() -> None:
    env, elsewhere = single(), Elsewhere()
    env.env_client = elsewhere
    config = asking("http://localhost:1/v1")
    grouped = await env.evaluate(config, "m", {"temperature": 0.5}, rollouts_per_example=2, max_retries=3, state_columns=["x"])
    assert [output["reward"] for output in grouped["outputs"]] == [0.5, 0.5]
    inputs, *others = elsewhere.given[0]
    assert [row["prompt"][0]["content"] for row in inputs] == ["1 + 1?"] * 2
    assert others[:2] + others[3:] == [config, "m", 3, ["x"]]
    assert others[2]["temperature"] == 0.5
    alone = await env.evaluate(config, "m", independent_scoring=True)
    assert [output["reward"] for output in alone["outputs"]] == [0.25]
    env.env_client = None
    row = env.get_dataset()[0]
    assert (await env.run_rollout(row, config, "m", env_client=elsewhere))["reward"] == 0.25
    assert [output["reward"] for output in await env.run_group([row], config, "m", env_client=elsewhere)] == [0.5]
