"""The documented signatures of environments with sandboxes, as their documentation writes them: names, order, kinds and defaults."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
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


def cli_agent_env(
    run_command,
    interception_port=None,
    interception_url=None,
    max_turns=-1,
    poll_interval=5.0,
    docker_image="python:3.11-slim",
    start_command="tail -f /dev/null",
    cpu_cores=1,
    memory_gb=2,
    disk_size_gb=5,
    gpu_count=0,
    environment_vars=None,
    team_id=None,
    advanced_configs=None,
    labels=None,
    max_retries=5,
    base_delay=0.5,
    backoff_factor=2.0,
    max_backoff_seconds=30.0,
    jitter=1e-3,
    sandbox_client_max_workers=50,
    sandbox_client_max_connections=1000,
    sandbox_client_max_keepalive_connections=200,
    sandbox_wait_for_creation_max_attempts=120,
    sandbox_creations_per_minute=128,
    timeouts=...,
    keep_sandbox_for_scoring=False,
    **kwargs,
): ...


def harbor_env(
    run_command,
    dataset_path,
    tasks=None,
    agent_workdir="/app",
    docker_image="python:3.11-slim",
    mcp_launch_commands=None,
    mcp_healthcheck=None,
    **kwargs,
): ...


def rlm_env(
    max_turns=50,
    tools=None,
    root_tools=None,
    sub_tools=None,
    sub_llm_max_turns=5,
    sub_max_completion_tokens=None,
    root_max_completion_tokens=None,
    sub_model=None,
    sub_prompt_verbosity="light",
    root_prompt_verbosity="light",
    enable_sub_llms=True,
    enable_summarization=False,
    min_turns_in_context=3,
    max_turns_in_context=None,
    max_output_length=8192,
    max_sub_llm_parallelism=5,
    system_prompt=None,
    repl_language="bash",
    pip_install_packages="",
    include_sub_llm_in_trajectory=False,
    context_warning_threshold=0.8,
    max_startup_wait_seconds=120,
    code_execution_timeout=120,
    abort_on_code_timeout=False,
    retain_filesystem_after_rollout=False,
    sandbox_docker_image="python:3.11-slim",
    sandbox_cpu_cores=1,
    sandbox_memory_gb=2,
    sandbox_disk_size_gb=5,
    sandbox_gpu_count=0,
    sandbox_timeout_minutes=60,
    sandbox_environment_vars=None,
    sandbox_labels=None,
    sandbox_client_max_workers=50,
    sandbox_client_max_connections=100,
    sandbox_client_max_keepalive_connections=50,
    sandbox_transfer_max_retries=3,
    **kwargs,
): ...


def python_env(pip_install_packages="numpy sympy scipy", max_startup_wait_seconds=30, **kwargs): ...


def gym_env(
    env_cls,
    env_kwargs=None,
    action_parser=None,
    obs_to_text=None,
    num_train_episodes=1000,
    num_eval_episodes=20,
    max_episode_steps=None,
    seed=0,
    system_prompt=None,
    few_shot=None,
    parser=None,
    rubric=None,
    message_type="chat",
): ...


def multi_turn_env(max_turns=-1, timeout_seconds=None, **kwargs): ...


def tool_env(tools=None, max_turns=10, error_formatter=..., stop_errors=None, **kwargs): ...


def mcp_env(mcp_servers=..., max_turns=10, error_formatter=..., **kwargs): ...


def env_group(envs, env_names=None, map_kwargs=..., **kwargs): ...


def composable_env(taskset, harness, *, install_env=None, **kwargs): ...


def task_set(dataset, name="", filter_fn=None): ...


DOCUMENTED = {
    "SandboxEnv": sandbox_env,
    "PythonEnv": python_env,
    "OpenEnvEnv": openenv_env,
    "SWEDebugEnv": swe_debug_env,
    "CliAgentEnv": cli_agent_env,
    "HarborEnv": harbor_env,
    "RLMEnv": rlm_env,
    "GymEnv": gym_env,
    "MultiTurnEnv": multi_turn_env,
    "ToolEnv": tool_env,
    "StatefulToolEnv": tool_env,
    "MCPEnv": mcp_env,
    "EnvGroup": env_group,
    "envs.experimental.composable.ComposableEnv": composable_env,
    "envs.experimental.composable.TaskSet": task_set,
    "envs.experimental.composable.SandboxTaskSet": task_set,
}
"""Each documented class. A default that is ``...`` is an object of its own: there must be one."""


@pytest.fixture(scope="module")
def vf() -> Iterator[Any]:
    """The package as published environments import it."""
    install()
    import verifiers

    yield verifiers
    uninstall()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_is_documented_can_be_passed_as_documented(vf: Any, name: str) -> None:
    """Each documented parameter stands in the signature by its name, in its place, with its default.

    Required arguments that have a better default here (``openenv_project``, which ``url`` replaces) may be left out, too.
    """
    module, _, cls = name.rpartition(".")
    found = getattr(importlib.import_module(f"verifiers.{module}") if module else vf, cls)
    ours, expected = inspect.signature(found).parameters, inspect.signature(DOCUMENTED[name]).parameters
    by_place = [key for key, each in expected.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert [key for key, each in ours.items() if each.kind is each.POSITIONAL_OR_KEYWORD][: len(by_place)] == by_place
    for argument, each in expected.items():
        if each.kind is each.VAR_KEYWORD:
            assert any(one.kind is each.kind for one in ours.values())
        elif each.default is ...:
            assert ours[argument].default is not each.empty
        elif each.default is not each.empty:
            assert (argument, ours[argument].default) == (argument, each.default)
    if name == "HarborEnv":
        assert ours["dataset_path"].default is inspect.Parameter.empty


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
