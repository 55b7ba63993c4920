"""`SandboxEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers_compat.envs.client_sandboxes import ClientSandboxes
from verifiers_compat.envs.experimental.sandbox_mixin import SandboxCreationError, SandboxNotReadyError
from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, AdvancedConfigs, spec_of_request
from verifiers_compat.envs.stateful_tool_env import StatefulToolEnv
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import CommandTimeoutError, CreateSandboxRequest, ThreadedAsyncSandboxClient
from vfgym.calls import maybe_await
from vfgym.envs import sandbox as vfgym_sandbox
from vfgym.envs.sandbox import SandboxMonitorRubric, SandboxState
from vfgym.overrides import hook
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State


class SandboxEnv(StatefulToolEnv, ClientSandboxes, vfgym_sandbox.SandboxEnv):
    """`vfgym.SandboxEnv` with the rollout API: the tool ``bash`` in sandboxes of this machine, without a hosted service.

    ``state["sandbox_id"]`` names the sandbox of a rollout for `sandbox_client`, and ``state["sandbox_state"]`` has its times.
    `get_sandbox_request` says what it is like, `post_rollout` is called before it is closed.
    """

    def __init__(
        self,
        sandbox_name: str = "sandbox-env",
        docker_image: str = DEFAULT_IMAGE,
        start_command: str = "tail -f /dev/null",
        cpu_cores: int = 1,
        memory_gb: float = 2,
        disk_size_gb: float = 5,
        gpu_count: int = 0,
        timeout_minutes: int = 60,
        timeout_per_command_seconds: float = 30,
        environment_vars: Mapping[str, str] | None = None,
        team_id: str | None = None,
        advanced_configs: Any = None,
        labels: Sequence[str] | None = None,
        max_retries: int = 5,
        base_delay: float = 0.5,
        backoff_factor: float = 2.0,
        max_backoff_seconds: float = 30.0,
        jitter: float = 1e-3,
        stop_errors: Sequence[type[Exception]] | None = None,
        sandbox_client_max_workers: int = 50,
        sandbox_client_max_connections: int = 100,
        sandbox_client_max_keepalive_connections: int = 50,
        *,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        strict_image: bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            sandbox_name: Accepted, as ``timeout_minutes``, ``labels`` and what is said of the client: a sandbox lives as long as its
                rollout.
            docker_image: The image of the sandboxes. The default asks for nothing; another one is run by a container engine, or this
                machine stands for it (``python:*``, ``debian:*``, ``ubuntu:*``, ``node:*``).
            start_command: A command that runs in a sandbox beside all else. Any other than the default needs a container engine.
            cpu_cores: How many CPUs a sandbox may use at once. Only a container engine keeps it, and a warning says so elsewhere.
            memory_gb: Memory of a sandbox.
            disk_size_gb: Size of all its files.
            gpu_count: 0.
            timeout_minutes: Accepted.
            timeout_per_command_seconds: Seconds after which a command is ended.
            environment_vars: Environment variables of commands.
            team_id: Accepted; it changes nothing.
            advanced_configs: Accepted; they change nothing.
            labels: Accepted.
            max_retries: How often it is tried to create a sandbox.
            base_delay: Seconds before the second attempt.
            backoff_factor: How much longer each further pause is.
            max_backoff_seconds: The longest pause.
            jitter: Most seconds that a pause is longer by chance.
            stop_errors: Errors that end a rollout; a `vf.SandboxError` if None.
            sandbox_client_max_workers: Accepted.
            sandbox_client_max_connections: Accepted.
            sandbox_client_max_keepalive_connections: Accepted.
            sandbox: Other limits, and the working directory.
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.
            strict_image: Whether an image is refused where no container engine answers, also one that this machine can stand for.
            **kwargs: Passed to `StatefulToolEnv`.

        Raises:
            ConfigurationError: If something asks for what sandboxes do not offer, or none can be made here.
        """
        self.sandbox_request = CreateSandboxRequest(
            name=sandbox_name,
            docker_image=docker_image,
            start_command=start_command,
            cpu_cores=cpu_cores,
            memory_gb=memory_gb,
            disk_size_gb=disk_size_gb,
            gpu_count=gpu_count,
            timeout_minutes=timeout_minutes,
            environment_vars=None if environment_vars is None else dict(environment_vars),
            team_id=team_id,
            advanced_configs=advanced_configs,
            labels=list(labels or ()),
        )
        self._base_spec = SandboxSpec() if sandbox is None else sandbox
        self.init_sandbox_client(
            max_retries,
            base_delay,
            backoff_factor,
            max_backoff_seconds,
            jitter,
            sandbox_client_max_workers,
            sandbox_client_max_connections,
            sandbox_client_max_keepalive_connections,
            sandbox=self._base_spec,
            backend=backend,
        )
        super().__init__(
            timeout_per_command_seconds=timeout_per_command_seconds,
            stop_errors=stop_errors,
            sandbox=spec_of_request(self._base_spec, backend, self.sandbox_request, strict_image=strict_image),
            backend=backend,
            strict_image=strict_image,
            **kwargs,
        )

    # What packages write anew

    @hook
    def get_sandbox_request(self, state: State) -> Any:
        """Return what the sandbox of a rollout is asked for: a copy of ``sandbox_request``, changed as you like. Plain or async."""
        return self.sandbox_request.model_copy()

    async def post_rollout(self, state: State) -> None:
        """Keep what rewards need of the sandbox, before it is closed."""

    # How they are called

    async def get_sandbox_spec(self, state: State) -> Any:
        """Return what the sandbox of a rollout is like, as `get_sandbox_request` says."""
        request = await maybe_await(self.get_sandbox_request, state)
        return spec_of_request(self._base_spec, self.backend, request, strict_image=self.strict_image)


__all__ = [
    "AdvancedConfigs",
    "CommandTimeoutError",
    "CreateSandboxRequest",
    "SandboxCreationError",
    "SandboxEnv",
    "SandboxMonitorRubric",
    "SandboxNotReadyError",
    "SandboxState",
    "ThreadedAsyncSandboxClient",
]

__getattr__ = create_getattr(__name__)
