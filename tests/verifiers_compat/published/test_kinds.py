"""A package for each kind of environment, in the manner of published ones: evaluated against a model on this machine, and stepped."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.published.models import served
from tests.verifiers_compat.published.packages import KEYS, MORE, PACKAGES, Package

FAILING = {"guess-thing": {0.2}}
"""Rewards of rollouts that end with an error."""
MARKS: dict[str, list[Any]] = {
    "fix-harbor": [needs_sandbox, pytest.mark.exhaustive],  # two sandboxes for each rollout
    "word-tower": [
        pytest.mark.exhaustive,
        pytest.mark.skipif(importlib.util.find_spec("textarena") is None, reason="the extra textarena is not installed"),
    ],
}


PLAYED = [pytest.param(each, id=each.env_id, marks=MARKS.get(each.env_id, [])) for each in (*PACKAGES, *MORE) if each.url_argument is None]
"""Those with a client of their own, which they leave open, are played in processes (`test_packages`)."""


@pytest.mark.parametrize("package", PLAYED)
async def test_a_package_of_each_kind_is_played_and_stepped(package: Package, vf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both give the rewards that verifiers 0.1.14 gives, where it can play the package (see `test_beside_verifiers`)."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(package.folder))
    from tests.verifiers_compat.published.step import step_all

    both: list[list[float]] = []
    for steps in (False, True):  # some models answer by the number of the question, so each run has its own
        env = vf.load_environment(package.env_id, **package.arguments)
        rollouts = 4 if env.requires_group_rollouts else 1
        with served() as server:
            config = vf.ClientConfig(api_base_url=server.openai_url, api_key="none")
            if steps:
                both.append(sorted(await step_all(env, vfgym.ModelAgent(config, package.model))))
            else:
                results = await env.evaluate(config, package.model, num_examples=2, rollouts_per_example=rollouts, max_concurrent=1)
                both.append(sorted(output["reward"] for output in results["outputs"]))
        env.close()
    played, stepped = both
    assert played == pytest.approx(package.rewards[:: len(package.rewards) // (2 * rollouts)], abs=1e-5)
    assert stepped == pytest.approx(played)
    failed = {output["reward"] for output in results["outputs"] if output["error"]}
    assert failed == FAILING.get(package.env_id, set())
