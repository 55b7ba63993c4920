"""An environment is known by what it was loaded as, and by what was changed on it since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat import packages
from verifiers_compat.envs.loaded import loaded_as
from vfgym.errors import ConfigurationError

ROWS = [{"question": "other", "answer": "1"}]


def nothing(completion: Any) -> float:
    return 0.0


def load(env_id: str = packages.__name__, **env_args: Any) -> Any:
    return vf.load_environment(env_id, **env_args)


def check(env: Any) -> None:
    loaded = loaded_as(env)
    assert loaded is not None
    loaded.check_unchanged(env)


def test_an_environment_says_by_what_it_was_loaded() -> None:
    for env_id, env_args in (("reasoning-gym/leg_counting-v0", {}), (packages.__name__, {"num_tasks": 2})):
        loaded = loaded_as(load(env_id, **env_args))
        assert loaded is not None
        assert (loaded.env_id, loaded.env_args, loaded.attributes) == (env_id, env_args, {})
    assert loaded_as(packages.load_environment()) is None


def test_what_set_kwargs_sets_belongs_to_it_the_last_value_of_each() -> None:
    env = load()
    env.set_kwargs(max_turns=5, timeout_seconds=9.0)
    env.set_kwargs(max_turns=0, score_rollouts=False)
    env.set_kwargs(own=[1])
    loaded = loaded_as(env)
    assert loaded is not None
    assert loaded.attributes == {"max_turns": 0, "timeout_seconds": 9.0, "score_rollouts": False, "own": [1]}
    check(env)


@pytest.mark.parametrize("env_id", [packages.__name__, "reasoning-gym/leg_counting-v0"])
def test_playing_an_environment_changes_nothing(env_id: str) -> None:
    env = load(env_id)
    list(env.get_eval_dataset(n=1))
    assert env.definition.tasks_of("eval").input(0)
    _ = env.rubric, env.action_space, env.observation_space
    env.set_concurrency(7)
    check(env)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda env: setattr(env, "max_turns", 9), "max_turns"),
        (lambda env: setattr(env, "max_turns", True), "max_turns"),
        (lambda env: setattr(env, "own", 1), "own"),
        (lambda env: delattr(env.definition, "max_turns"), "max_turns"),
        (lambda env: env.add_rubric(vf.Rubric(nothing)), "rubric"),
        (lambda env: env.rubric.rubrics[0].add_reward_func(nothing), r"rubric \(Rubric 1, functions\)"),
        (lambda env: env.add_tool(len), "tool_defs"),
        (lambda env: env.remove_tool(packages.double), "tool_defs"),
        (lambda env: env.sampling_args.update(temperature=0.0), "sampling_args"),
        (lambda env: env.definition.set_tasks("train", ROWS), "dataset"),
        (lambda env: env.definition.set_tasks("eval", ROWS), "dataset"),
        (lambda env: env.set_system_prompt("Be brief."), "system_prompt"),
    ],
)
def test_whatever_else_is_changed_is_refused_by_name(change: Callable[[Any], object], name: str) -> None:
    env = load()
    env.max_turns = 3
    check(env)  # the same value again
    env.set_kwargs(max_turns=1)
    change(env)
    with pytest.raises(ConfigurationError, match=f"environment '{packages.__name__}' again .*, and its {name} was changed since: set attr"):
        check(env)


def test_what_is_changed_on_an_adapted_environment_is_refused_too() -> None:
    env = load("reasoning-gym/leg_counting-v0")
    env.set_kwargs(system_prompt="Be brief.")
    check(env)
    env.max_turns = 4
    with pytest.raises(ConfigurationError, match="its max_turns was changed"):
        check(env)
