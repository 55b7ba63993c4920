"""An environment as GEPA asks for it: examples are played with a candidate, in order, and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import asking
from tests.verifiers_compat.gepa.planted import WRITTEN, doubles, player, serve
from tests.verifiers_compat.gepa.test_settings import FINE
from verifiers_compat.gepa.environment_adapter import COMPONENT, EnvironmentAdapter, NothingAnswered
from verifiers_compat.gepa.examples import Example
from verifiers_compat.gepa.result import OptimizedPrompt
from verifiers_compat.gepa.run_directory import RunDirectory
from verifiers_compat.gepa.settings import GepaSettings
from vfgym.messages import content_text
from vfgym.model_server import ModelRequest, ModelServer, RequestRefused, scripted


def adapter(server: ModelServer, env: Any = None, directory: RunDirectory | None = None, **settings: Any) -> EnvironmentAdapter:
    """Return the planted task's environment as GEPA asks for it."""
    given = GepaSettings(**{**FINE, "model": "player", **settings})
    return EnvironmentAdapter(env or doubles(), asking(server.openai_url), given, directory, OptimizedPrompt())


def test_rollouts_are_in_the_order_of_the_examples() -> None:
    """Also where one comes twice; what the reflecting model is shown are these."""
    batch = [Example("train", place) for place in (3, 0, 3)]
    with serve() as server:
        made = adapter(server, state_columns=["example_id"], sampling_args={"temperature": 0.5}, max_concurrent=1)
        played = made.evaluate(batch, {COMPONENT: WRITTEN})
        assert {request.body["temperature"] for request in server.requests} == {0.5}
    assert played.scores == [1.0] * 3
    assert [row["completion"][-1]["content"] for row in played.outputs] == [f"<answer>{number}</answer>" for number in (6, 0, 6)]
    assert {row["prompt"][0]["content"] for row in played.outputs} == {WRITTEN}
    records = made.make_reflective_dataset({COMPONENT: WRITTEN}, played, [COMPONENT])
    assert [record["Inputs"] for record in records[COMPONENT]] == ["3, doubled?", "0, doubled?", "3, doubled?"]
    assert [record["example_id"] for record in records[COMPONENT]] == ["3", "0", "3"]


@pytest.mark.parametrize(("failure_reward", "score"), [(None, 0.0), (-1.0, -1.0), (0.5, 0.0)])
def test_a_rollout_that_failed_counts_with_what_is_declared(failure_reward: float | None, score: float) -> None:
    """At most: what it was rewarded with all the same may be less. A reward that is no number counts as 0."""

    def fails(request: ModelRequest) -> str:
        if content_text(request.messages[-1]["content"]).startswith("1"):
            raise RequestRefused(400, "no such number")
        return player(request)

    def lost(completion: vf.Messages) -> float:
        return float("nan") if completion and "0" in completion[-1]["content"] else 0.0

    given = {} if failure_reward is None else {"failure_reward": failure_reward}
    with serve(player=fails) as server:
        made = adapter(server, doubles(rubric=vf.Rubric(lost), **given))
        assert made.evaluate([Example("train", place) for place in (0, 1)], {COMPONENT: ""}).scores == [0.0, score]
    assert made.result.failed_calls == 1


def test_an_evaluation_without_answers_is_forgotten(tmp_path: Path) -> None:
    batch = [Example("train", 0)]
    with serve(player=scripted([])) as server, RunDirectory(tmp_path, {}) as directory:
        with pytest.raises(NothingAnswered, match=r"answered in none of 1 rollouts: .*400"):
            adapter(server, directory=directory).evaluate(batch, {COMPONENT: WRITTEN})
        assert list((tmp_path / "evaluations").iterdir()) == []
    with serve() as server, RunDirectory(tmp_path, {}) as directory:
        for _ in range(2):
            assert adapter(server, directory=directory).evaluate(batch, {COMPONENT: WRITTEN}).scores == [1.0]
    assert len(list((tmp_path / "evaluations").iterdir())) == 2
