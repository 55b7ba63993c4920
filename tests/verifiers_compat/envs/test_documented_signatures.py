"""The documented signatures of environments with sandboxes, as their documentation writes them: names, order, kinds and defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from verifiers_compat.alias import install, uninstall


def sandbox_env(
    sandbox_name="sandbox-env",
    docker_image="python:3.11-slim",
    start_command="tail -f /dev/null",
    cpu_cores=1,
    memory_gb=2,
    disk_size_gb=5,
    gpu_count=0,
    timeout_minutes=60,
    timeout_per_command_seconds=30,
    environment_vars=None,
    team_id=None,
    advanced_configs=None,
    labels=None,
    **kwargs,
): ...


def openenv_env(
    openenv_project, num_train_examples=100, num_eval_examples=50, seed=0, prompt_renderer=None, max_turns=-1, rubric=None, **kwargs
): ...


def swe_debug_env(
    taskset,
    dataset=None,
    *,
    run_setup=True,
    debug_step="gold_patch",
    run_tests=True,
    debug_command=None,
    debug_script=None,
    debug_script_path=None,
    debug_timeout=None,
    test_timeout=900,
    cpu_cores=None,
    memory_gb=None,
    disk_size_gb=None,
    labels=None,
    timeout_seconds=1800.0,
    output_tail_chars=2000,
    **sandbox_kwargs,
): ...


@pytest.fixture(scope="module")
def vf() -> Iterator[Any]:
    """The package as published environments import it."""
    install()
    import verifiers

    yield verifiers
    uninstall()


@pytest.mark.parametrize(("name", "documented"), [("SandboxEnv", sandbox_env), ("OpenEnvEnv", openenv_env), ("SWEDebugEnv", swe_debug_env)])
def test_what_is_documented_can_be_passed_as_documented(vf: Any, name: str, documented: Callable[..., Any]) -> None:
    """Optional arguments that have a better default here (``openenv_project``, which ``url`` replaces) may be left out, too."""
    ours = inspect.signature(getattr(vf, name)).parameters
    expected = inspect.signature(documented).parameters
    by_place = [key for key, each in expected.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert [key for key, each in ours.items() if each.kind is each.POSITIONAL_OR_KEYWORD][: len(by_place)] == by_place
    for argument, each in expected.items():
        if each.kind is each.VAR_KEYWORD:
            assert any(one.kind is each.kind for one in ours.values())
        elif each.default is not each.empty:
            assert (argument, ours[argument].default) == (argument, each.default)


def test_each_name_is_where_its_documentation_imports_it_from(vf: Any) -> None:
    from verifiers.envs.experimental.cli_agent_env import CliAgentEnv
    from verifiers.envs.experimental.harbor_env import HarborEnv
    from verifiers.envs.experimental.rlm_env import RLMEnv
    from verifiers.envs.experimental.sandbox_mixin import SandboxMixin
    from verifiers.envs.integrations.openenv_env import OpenEnvEnv
    from verifiers.envs.python_env import PythonEnv
    from verifiers.envs.sandbox_env import SandboxEnv

    assert issubclass(PythonEnv, SandboxEnv)
    assert issubclass(HarborEnv, CliAgentEnv)
    assert issubclass(vf.SWEDebugEnv, SandboxMixin)
    assert all(issubclass(each, vf.MultiTurnEnv) for each in (CliAgentEnv, OpenEnvEnv, RLMEnv, SandboxEnv, vf.SWEDebugEnv))
