"""`CliAgentEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.client_sandboxes import ClientSandboxes
from verifiers_compat.envs.experimental.sandbox_mixin import (
    DEFAULT_TIMEOUTS,
    SandboxMixin,
    SandboxMonitorRubric,
    SandboxTimeouts,
)
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, AdvancedConfigs, spec_of_arguments
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import BackgroundJobStatus, CreateSandboxRequest
from vfgym.calls import maybe_await
from vfgym.envs import cli_agent
from vfgym.envs.cli_agent import CliAgentMonitorRubric
from vfgym.errors import AgentError, ConfigurationError
from vfgym.interception import PROGRAM_VARIABLES
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State


class CliAgentEnv(MultiTurnEnv, ClientSandboxes, cli_agent.CliAgentEnv):
    """`vfgym.envs.cli_agent.CliAgentEnv` with the rollout API: a program in a sandbox of this machine, each of whose requests is a turn.

    The hooks `get_docker_image` and `get_sandbox_resources` say what the sandbox of a rollout is like, and the methods of `SandboxMixin`
    work in it: ``state["sandbox_id"]`` names it. Arguments of the hosted service become attributes and change nothing.
    """

    PROTECTED_ENV_VARS: ClassVar[frozenset[str]] = PROGRAM_VARIABLES
    agent_completed = awaitable_stop(cli_agent.CliAgentEnv.agent_completed)

    def __init__(
        self,
        run_command: str,
        interception_port: int | None = None,
        interception_url: str | None = None,
        max_turns: int = -1,
        poll_interval: float = 5.0,
        docker_image: str = DEFAULT_IMAGE,
        start_command: str = "tail -f /dev/null",
        cpu_cores: int = 1,
        memory_gb: float = 2,
        disk_size_gb: float = 5,
        gpu_count: int = 0,
        environment_vars: Mapping[str, str] | None = None,
        team_id: str | None = None,
        advanced_configs: Any = None,
        labels: Sequence[str] | None = None,
        max_retries: int = 5,
        base_delay: float = 0.5,
        backoff_factor: float = 2.0,
        max_backoff_seconds: float = 30.0,
        jitter: float = 1e-3,
        sandbox_client_max_workers: int = 50,
        sandbox_client_max_connections: int = 1000,
        sandbox_client_max_keepalive_connections: int = 200,
        sandbox_wait_for_creation_max_attempts: int = 120,
        sandbox_creations_per_minute: float | None = 128,
        timeouts: SandboxTimeouts = DEFAULT_TIMEOUTS,
        keep_sandbox_for_scoring: bool = False,
        *,
        readable_paths: Sequence[str] = (),
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        strict_image: bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            run_command: The line that a shell of the sandbox runs.
            interception_port: Accepted; a free port is taken.
            interception_url: None: programs reach their model without a tunnel.
            max_turns: Most answers of the model in one rollout; unlimited where it is not positive.
            poll_interval: Accepted; requests are noticed at once.
            docker_image: The image of the sandbox. The default asks for nothing; another one is run by a container engine, or this machine
                stands for it (``python:*``, ``debian:*``, ``ubuntu:*``, ``node:*``).
            start_command: A command that runs in the sandbox beside the program. Any other than the default needs a container engine.
            cpu_cores: How many CPUs the sandbox may use at once. Only a container engine keeps it, and a warning says so elsewhere.
            memory_gb: Memory of the sandbox.
            disk_size_gb: Size of all its files.
            gpu_count: 0.
            environment_vars: Environment variables of the program.
            team_id: Accepted; it changes nothing, like the next two.
            advanced_configs: Accepted.
            labels: Accepted.
            max_retries: How often it is tried to create a sandbox.
            base_delay: Seconds before the second attempt.
            backoff_factor: How much longer each further pause is.
            max_backoff_seconds: The longest pause.
            jitter: Most seconds that a pause is longer by chance.
            sandbox_client_max_workers: Accepted, as the next five.
            sandbox_client_max_connections: Accepted.
            sandbox_client_max_keepalive_connections: Accepted.
            sandbox_wait_for_creation_max_attempts: Accepted.
            sandbox_creations_per_minute: Accepted.
            timeouts: Accepted.
            keep_sandbox_for_scoring: Whether reward functions find the sandbox, too.
            readable_paths: Files and folders of this machine that the program may read, at the same places.
            sandbox: Other limits, and the working directory (``/app``).
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.
            strict_image: Whether an image is refused where no container engine answers, also one that this machine can stand for.
            **kwargs: Passed to `MultiTurnEnv`.

        Raises:
            ConfigurationError: If something asks for the hosted service, or for what sandboxes do not offer.
        """
        if interception_url is not None:
            raise ConfigurationError("interception_url must be None: programs reach their model on this machine, without a tunnel")
        self._resources = {"cpu_cores": cpu_cores, "memory_gb": memory_gb, "disk_size_gb": disk_size_gb, "gpu_count": gpu_count}
        base = SandboxSpec(working_dir="/app") if sandbox is None else sandbox
        asked = {"docker_image": docker_image, "start_command": start_command, **self._resources}
        spec = spec_of_arguments(base, backend, strict_image=strict_image, **asked)
        spec = dataclasses.replace(spec, image=base.image)  # which get_docker_image says for each rollout
        self.docker_image, self.start_command = docker_image, start_command
        self.cpu_cores, self.memory_gb, self.disk_size_gb, self.gpu_count = cpu_cores, memory_gb, disk_size_gb, gpu_count
        self.team_id, self.advanced_configs, self.labels = team_id, advanced_configs, list(labels or ())
        self.interception_port, self.interception_url, self.poll_interval = interception_port, interception_url, poll_interval
        self.init_sandbox_client(
            max_retries,
            base_delay,
            backoff_factor,
            max_backoff_seconds,
            jitter,
            sandbox_client_max_workers,
            sandbox_client_max_connections,
            sandbox_client_max_keepalive_connections,
            sandbox_wait_for_creation_max_attempts,
            sandbox_creations_per_minute,
            timeouts,
            sandbox=spec,
            backend=backend,
        )
        super().__init__(
            run_command=run_command,
            max_turns=max_turns,
            environment_vars=environment_vars,
            readable_paths=readable_paths,
            sandbox=spec,
            backend=backend,
            keep_sandbox_for_scoring=keep_sandbox_for_scoring,
            strict_image=strict_image,
            **kwargs,
        )
        self.add_rubric(SandboxMonitorRubric())

    async def get_docker_image(self, state: State) -> str:
        """Return the image of a rollout's sandbox."""
        return self.docker_image

    def get_sandbox_resources(self, state: State) -> dict[str, Any]:
        """Return what the sandbox of a rollout is given beside its image: ``memory_gb``, ``disk_size_gb``, ... Plain or async."""
        return dict(self._resources)

    async def build_env_vars(self, state: State) -> dict[str, str]:
        """Return the environment variables of the program, with those that lead it to its model."""
        addresses = {"OPENAI_BASE_URL": state["interception_base_url"], "OPENAI_MODEL": state["model"] or "model"}
        return {**await maybe_await(super().build_env_vars, state), **addresses}

    async def get_sandbox_spec(self, state: State) -> SandboxSpec:
        """Return what the sandbox of a rollout is like, as the two hooks above say where they were written anew."""
        spec: SandboxSpec = await maybe_await(super().get_sandbox_spec, state)
        resources = await maybe_await(self.get_sandbox_resources, state)
        given = {name: value for name, value in resources.items() if value != self._resources.get(name)}
        image = await maybe_await(self.get_docker_image, state)
        if image != spec.image:
            given["docker_image"] = image
            if image != self.docker_image:
                spec = dataclasses.replace(spec, image=None, dockerfile=None)
        return spec_of_arguments(spec, self.backend, strict_image=self.strict_image, **given)


__all__ = [
    "AdvancedConfigs",
    "AgentError",
    "BackgroundJobStatus",
    "CliAgentEnv",
    "CliAgentMonitorRubric",
    "CreateSandboxRequest",
    "SandboxMixin",
    "SandboxMonitorRubric",
    "SandboxTimeouts",
]

__getattr__ = create_getattr(__name__)
