"""`SandboxEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, spec_of_request
from verifiers_compat.envs.sandbox_retries import Retries
from verifiers_compat.envs.stateful_tool_env import StatefulToolEnv
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import CommandTimeoutError, CreateSandboxRequest, ThreadedAsyncSandboxClient
from vfgym.calls import maybe_await
from vfgym.envs import sandbox as vfgym_sandbox
from vfgym.envs.sandbox import SandboxMonitorRubric, SandboxState
from vfgym.errors import SandboxError
from vfgym.lifecycle import teardown, update
from vfgym.overrides import hook
from vfgym.sandboxes import Sandbox, SandboxSpec
from vfgym.state import State


class SandboxCreationError(SandboxError):
    """A sandbox could not be created."""


class SandboxNotReadyError(SandboxError):
    """A sandbox was created and did not become ready. Here a sandbox that was created is ready."""


class SandboxEnv(StatefulToolEnv, vfgym_sandbox.SandboxEnv):
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
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            sandbox_name: Accepted, as ``timeout_minutes``, ``labels`` and what is said of the client: a sandbox lives as long as its
                rollout.
            docker_image: The image of the sandboxes. Any other value than the default of this and of ``start_command``, ``cpu_cores``,
                ``team_id`` and ``advanced_configs`` needs the backend ``container``.
            start_command: A command that runs in a sandbox beside all else.
            cpu_cores: How many CPUs a sandbox may use at once, where it is not the default.
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
            **kwargs: Passed to `StatefulToolEnv`.

        Raises:
            ConfigurationError: If something asks for what sandboxes do not offer, or none can be made here.
        """
        self.with_retry = Retries(max_retries, base_delay, backoff_factor, max_backoff_seconds, jitter)
        """Makes of an async function one that is called again where it fails."""
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
        self.active_sandboxes: set[str] = set()
        """Ids of the sandboxes of rollouts that play."""
        self.sandbox_client = ThreadedAsyncSandboxClient(
            sandbox_client_max_workers,
            sandbox_client_max_connections,
            sandbox_client_max_keepalive_connections,
            sandbox=self._base_spec,
            backend=backend,
        )
        super().__init__(
            timeout_per_command_seconds=timeout_per_command_seconds,
            stop_errors=stop_errors,
            sandbox=spec_of_request(self._base_spec, backend, self.sandbox_request),
            backend=backend,
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
        return spec_of_request(self._base_spec, self.backend, await maybe_await(self.get_sandbox_request, state))

    async def open_sandbox(self, spec: SandboxSpec) -> Sandbox:
        """Return a new sandbox, which is tried as often as ``max_retries`` says.

        Raises:
            SandboxCreationError: If none can be created.
        """
        try:
            sandbox = await self.with_retry(super().open_sandbox, SandboxError)(spec)
        except SandboxError as error:
            raise SandboxCreationError(f"a sandbox could not be created: {error}") from error
        self.active_sandboxes.add(sandbox.id)
        return sandbox

    @update
    async def destroy_sandbox(self, state: State) -> None:
        """Call `post_rollout`, then close the sandbox."""
        await super().destroy_sandbox(state)
        self.active_sandboxes.discard(state.get("sandbox_id", ""))

    async def bulk_delete_sandboxes(self, global_ids: Iterable[str]) -> None:
        """Close sandboxes by their ids."""
        ids = list(global_ids)
        await self.sandbox_client.bulk_delete(ids)
        self.active_sandboxes.difference_update(ids)

    @teardown
    async def teardown_sandboxes(self) -> None:
        """Close the sandboxes that are still open."""
        await self.bulk_delete_sandboxes(self.active_sandboxes)


__all__ = [
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
