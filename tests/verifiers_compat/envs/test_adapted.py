"""`as_environment`: the rollout API for any environment."""

from __future__ import annotations

import pytest
from gymnasium.wrappers import OrderEnforcing, RecordEpisodeStatistics, TimeLimit

import verifiers_compat as vf
import vfgym
from tests.verifiers_compat.environments import ROWS, four, right
from tests.verifiers_compat.models import Model
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient


def test_any_gymnasium_environment_gets_the_api() -> None:
    env = vf.as_environment("FrozenLake-v1")
    results = env.evaluate_sync(ScriptedClient(["right"] * 100), "m", num_examples=3, rollouts_per_example=2)
    again = env.evaluate_sync(ScriptedClient(["right"] * 100), "m", num_examples=3, rollouts_per_example=2)
    assert len(results["outputs"]) == 6
    assert [output["completion"] for output in results["outputs"]] == [output["completion"] for output in again["outputs"]]
    observation, info = env.reset(seed=0)
    assert observation
    assert info["example_id"] == 0


def test_a_chat_environment_of_vfgym_gets_the_api_and_keeps_its_own() -> None:
    inner = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric(right))
    env = vf.as_environment(inner)
    assert env.evaluate_sync(Model(), "m")["metadata"]["avg_reward"] == 0.25
    assert env.rubric is inner.rubric
    assert vf.as_environment(four()).__class__ is vf.SingleTurnEnv
    with pytest.raises(ConfigurationError, match="expected an environment"):
        vf.as_environment(3)


def test_what_is_written_to_an_adapted_environment_is_its_own() -> None:
    inner = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric(right))
    env = vf.as_environment(inner)
    env.rubric = vf.Rubric(lambda state: 7.0)
    env.pass_threshold = 5.0
    metadata = env.evaluate_sync(Model(), "m")["metadata"]
    assert (metadata["avg_reward"], metadata["pass_threshold"], inner.pass_threshold) == (7.0, 5.0, 5.0)


def test_wrappers_that_only_watch_are_passed_by_and_others_are_refused() -> None:
    inner = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric(right))
    watched = OrderEnforcing(RecordEpisodeStatistics(inner))
    assert vf.as_environment(watched).evaluate_sync(Model(), "m")["metadata"]["avg_reward"] == 0.25
    documented = four()
    assert vf.as_environment(OrderEnforcing(documented)) is documented
    with pytest.raises(ConfigurationError, match="rollouts pass by TimeLimit"):
        vf.as_environment(OrderEnforcing(TimeLimit(inner, 3)))


def test_an_adapted_environment_reads_and_writes_its_own_environment() -> None:
    env = vf.as_environment(vfgym.SingleTurnEnv(ROWS, system_prompt="Old."))
    assert env.get_dataset()[0]["prompt"][0]["content"] == "Old."
    env.set_system_prompt("New.")
    assert env.get_dataset()[0]["prompt"][0]["content"] == env.definition.system_prompt == "New."
    env.note = "its own"
    assert (env.note, hasattr(env.definition, "note")) == ("its own", False)
    with pytest.raises(AttributeError, match="_no_such_thing"):
        env._no_such_thing  # noqa: B018
    with pytest.raises(AttributeError):
        env.no_such_thing  # noqa: B018
