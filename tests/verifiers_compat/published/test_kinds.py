"""A package for each kind of environment, in the manner of published ones: evaluated against a model on this machine, and stepped."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.published.models import served
from tests.verifiers_compat.published.packages import MORE, Package

FAILING = {"guess-thing": {0.2}}
"""Rewards of rollouts that end with an error."""
MARKS: dict[str, list[Any]] = {
    "fix-harbor": [needs_sandbox, pytest.mark.exhaustive],  # two sandboxes for each rollout
    "word-tower": [
        pytest.mark.exhaustive,
        pytest.mark.skipif(importlib.util.find_spec("textarena") is None, reason="the extra textarena is not installed"),
    ],
}


@pytest.mark.parametrize("package", [pytest.param(each, id=each.env_id, marks=MARKS.get(each.env_id, [])) for each in MORE])
async def test_a_package_of_each_kind_is_played_and_stepped(package: Package, vf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both give the rewards that verifiers 0.1.14 gives, where it can play the package (see `test_beside_verifiers`)."""
    monkeypatch.syspath_prepend(str(package.folder))
    from tests.verifiers_compat.published.step import step_all

    env = vf.load_environment(package.env_id, **package.arguments)
    with served() as server:
        config = vf.ClientConfig(api_base_url=server.openai_url, api_key="none")
        results = await env.evaluate(config, package.model, num_examples=2, max_concurrent=1)
        stepped = await step_all(env, vfgym.ModelAgent(config, package.model))
    rewards = [output["reward"] for output in results["outputs"]]
    assert sorted(rewards) == pytest.approx(package.rewards[::2], abs=1e-5)
    assert stepped == pytest.approx(rewards)
    failed = {output["reward"] for output in results["outputs"] if output["error"]}
    assert failed == FAILING.get(package.env_id, set())
    env.close()
