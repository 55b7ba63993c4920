"""Environments whose author wrote `run_group` or `run_rollout`, and clients that play elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROWS, asking, right, single
from tests.verifiers_compat.models import Model


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


class Authored(vf.SingleTurnEnv):
    """Its author plays groups and rollouts, as a function of the inputs says."""

    def __init__(self, play: Any) -> None:
        super().__init__(dataset=ROWS[:2], rubric=vf.Rubric(right))
        self.play, self.most_at_once, self.at_once = play, 0, 0

    async def run_group(self, group_inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self.at_once += len(group_inputs)
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= len(group_inputs)
        return self.play(group_inputs)

    async def run_rollout(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        return self.play([input])[0]


def rewarded(inputs: Any) -> list[dict[str, Any]]:
    return [{"reward": number / 4, "completion": []} for number in range(len(inputs))]


@pytest.mark.parametrize("independent", [False, True])
async def test_rows_of_an_author_are_numbered_completed_and_resumed(independent: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"rollouts_per_example": 2, "independent_scoring": independent, "results_path": tmp_path}
    outputs = (await Authored(rewarded).evaluate(Model(), "m", **options))["outputs"]
    assert [(row["example_id"], row["rollout"]) for row in outputs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [row["reward"] for row in outputs] == ([0.0] * 4 if independent else [0.0, 0.25, 0.0, 0.25])
    assert all((row["error"], row["metrics"], row["failed"]) == (None, {}, False) for row in outputs)

    def never(inputs: Any) -> Any:
        raise AssertionError("it was played before")

    again = (await Authored(never).evaluate(Model(), "m", **options))["outputs"]
    assert [row["reward"] for row in again] == [row["reward"] for row in outputs]


@pytest.mark.parametrize("most", [1, 2, 4, -1])
async def test_groups_of_an_author_are_counted_by_their_rollouts(most: int) -> None:
    env = Authored(rewarded)
    await env.evaluate(Model(), "m", rollouts_per_example=2, max_concurrent=most)
    assert env.most_at_once == {1: 2, 2: 2}.get(most, 4)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda inputs: [{"reward": 1.0}], "Authored.run_group must return a row"),
        (lambda inputs: rewarded(inputs) * 2, "must return a row"),
        (lambda inputs: [3, 4], "must return a row"),
        (lambda inputs: None, "NoneType"),
        (lambda inputs: [{"ending": "well"}] * 2, "'well' is not a valid Ending"),
        (lambda inputs: 1 / 0, "ZeroDivisionError"),
    ],
)
async def test_what_an_author_does_not_return_is_the_error_of_the_group(made: Any, words: str) -> None:
    def play(inputs: Any) -> Any:
        return made(inputs) if inputs[0]["example_id"] == 1 else rewarded(inputs)

    outputs = (await Authored(play).evaluate(Model(), "m", rollouts_per_example=2))["outputs"]
    assert [row["error"] for row in outputs[:2]] == [None, None]
    assert [words in row["error"]["error_chain_repr"] for row in outputs[2:]] == [True, True]
    assert [(row["example_id"], row["rollout"], row["failed"]) for row in outputs[2:]] == [(1, 0, True), (1, 1, True)]


@pytest.mark.parametrize(
    ("row", "failed"),
    [
        ({}, False),
        ({"error": "it broke"}, True),
        ({"ending": "environment_failed"}, True),
        ({"ending": "terminated", "error": "it broke"}, False),
        ({"stop_condition": "timeout_reached"}, None),
    ],
)
async def test_how_a_row_of_an_author_ended_is_what_it_says(row: dict[str, Any], failed: bool | None) -> None:
    (output, _) = (await Authored(lambda inputs: [{"reward": 1.0, **row}]).evaluate(Model(), "m"))["outputs"]
    assert output["reward"] == 1.0
    assert all(output[name] == value for name, value in row.items())
    assert failed is None or output["failed"] is failed
