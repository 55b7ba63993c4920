"""`SandboxMixin`: what environments of a package's own use to make sandboxes and to work in them, with the documented methods."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from verifiers_compat.envs.sandbox_retries import Retries, is_retryable_sandbox_api_error, is_retryable_sandbox_read_error
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import BackgroundJobStatus, CreateSandboxRequest, ThreadedAsyncSandboxClient
from vfgym.calls import maybe_await
from vfgym.envs.sandboxed import find_sandbox
from vfgym.errors import Error, SandboxError
from vfgym.lifecycle import teardown
from vfgym.rubrics import Rubric
from vfgym.sandboxes import SandboxSpec


class SandboxCreationError(SandboxError):
    """A sandbox could not be created."""


class SandboxNotReadyError(SandboxError):
    """A sandbox was created and did not become ready. Here a sandbox that was created is ready."""


class SandboxSetupError(SandboxError):
    """A sandbox was made and could not be prepared."""


@dataclass(frozen=True)
class SandboxTimeouts:
    """Seconds that operations may take, as the hosted service is told; here files are read and written without a network between."""

    read_file: int = 10
    extract: int = 60
    poll: int = 60
    mkdir: int = 10


DEFAULT_TIMEOUTS = SandboxTimeouts()


class SandboxMonitorRubric(Rubric):
    """Measures how sandboxes ended: ``sandbox_oom`` and ``sandbox_timeout``, 1.0 where the state says so."""

    def __init__(self) -> None:
        """Make the rubric."""
        super().__init__()
        self.add_metric(self.sandbox_oom)
        self.add_metric(self.sandbox_timeout)

    def sandbox_oom(self, state: Any) -> float:
        """Say whether the sandbox ended for want of memory: by what its error says."""
        error = state.get("error")
        return float(bool(state.get("sandbox_oom")) or (isinstance(error, SandboxError) and "used up its memory" in str(error)))

    def sandbox_timeout(self, state: Any) -> float:
        """Say whether the sandbox ended because its time was up: never by itself, here it lives as long as its rollout."""
        return float(bool(state.get("sandbox_timeout")))


class SandboxMixin:
    """Methods of environments that make sandboxes: ``class Mine(SandboxMixin, vf.MultiTurnEnv)``, which calls `init_sandbox_client`.

    What `create_sandbox` made is ``state["sandbox"]``, and closed by `delete_sandbox`, or when the environment is torn down.
    ``state["sandbox_client"]`` works in it by its id.
    """

    SANDBOX_MAX_TIMEOUT_MINUTES = 1440
    SANDBOX_SCORING_BUFFER_MINUTES = 60
    sandbox_timeout_minutes: int | None = None
    active_sandboxes: set[str]
    """Ids of the sandboxes that are open."""
    sandbox_client: ThreadedAsyncSandboxClient
    with_retry: Retries
    """Makes of an async function one that is called again where it fails."""

    def init_sandbox_client(
        self,
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
        *,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Prepare the client of sandboxes.

        Args:
            max_retries: How often it is tried to create a sandbox.
            base_delay: Seconds before the second attempt.
            backoff_factor: How much longer each further pause is.
            max_backoff_seconds: The longest pause.
            jitter: Most seconds that a pause is longer by chance.
            sandbox_client_max_workers: Accepted, as the next five: there is no service between.
            sandbox_client_max_connections: Accepted.
            sandbox_client_max_keepalive_connections: Accepted.
            sandbox_wait_for_creation_max_attempts: Accepted.
            sandbox_creations_per_minute: Accepted.
            timeouts: Accepted, and kept as ``timeouts``.
            sandbox: What sandboxes are asked for beside their requests.
            backend: What makes them (see `vfgym.sandboxes`); None for what works here.
            **kwargs: Options of the hosted service's client, which are accepted.
        """
        self.active_sandboxes = set()
        self.timeouts = timeouts
        self.with_retry = Retries(max_retries, base_delay, backoff_factor, max_backoff_seconds, jitter)
        self.sandbox_client = ThreadedAsyncSandboxClient(
            sandbox_client_max_workers,
            sandbox_client_max_connections,
            sandbox_client_max_keepalive_connections,
            sandbox=sandbox,
            backend=backend,
        )

    def compute_sandbox_timeout_minutes(self) -> int:
        """Return for how long the hosted service is to keep a sandbox: an hour more than a rollout may take, and a day at most."""
        if self.sandbox_timeout_minutes is not None:
            return self.sandbox_timeout_minutes
        seconds: float | None = getattr(self, "timeout_seconds", None)
        if seconds is None:
            return self.SANDBOX_MAX_TIMEOUT_MINUTES
        return min(math.ceil(seconds / 60) + self.SANDBOX_SCORING_BUFFER_MINUTES, self.SANDBOX_MAX_TIMEOUT_MINUTES)

    async def post_sandbox_setup(self, state: Any) -> None:
        """Prepare the sandbox of a rollout. Packages write it anew, plain or async."""

    def register_sandbox(self, sandbox_id: str) -> None:
        """Have a sandbox closed when the environment is torn down."""
        self.active_sandboxes.add(sandbox_id)

    def deregister_sandbox(self, sandbox_id: str) -> None:
        """Leave a sandbox alone when the environment is torn down."""
        self.active_sandboxes.discard(sandbox_id)

    async def create_sandbox(self, state: Any, request: Any) -> str:
        """Make the sandbox of a rollout, prepare it, and return its id.

        Raises:
            SandboxCreationError: If it can't be made.
            SandboxSetupError: If `post_sandbox_setup` fails with anything but a `vf.Error`.
        """
        try:
            made = await self.with_retry(self.sandbox_client.create, SandboxError)(request)
        except SandboxError as error:
            raise SandboxCreationError(f"a sandbox could not be created: {error}") from error
        self.register_sandbox(made.id)
        state["sandbox"], state["sandbox_id"], state["sandbox_client"] = find_sandbox(made.id), made.id, self.sandbox_client
        try:
            await maybe_await(self.post_sandbox_setup, state)
        except Error:
            raise
        except Exception as error:
            raise SandboxSetupError(f"the sandbox could not be prepared: {error!r}") from error
        return str(made.id)

    async def delete_sandbox(self, sandbox_id: str) -> None:
        """Close a sandbox; nothing where that was done."""
        await self.bulk_delete_sandboxes([sandbox_id])

    async def bulk_delete_sandboxes(self, global_ids: Iterable[str]) -> None:
        """Close sandboxes by their ids."""
        ids = list(global_ids)
        await self.sandbox_client.bulk_delete(ids)
        self.active_sandboxes.difference_update(ids)

    async def run_background_job(
        self, state: Any, command: str, timeout: float, working_dir: str | None = None, poll_interval: float = 3
    ) -> BackgroundJobStatus:
        """Run a command of a rollout's sandbox to its end.

        Raises:
            CommandTimeoutError: If it takes longer than `timeout` seconds.
        """
        return await self.sandbox_client.run_background_job(state["sandbox_id"], command, timeout, working_dir)

    async def upload_file(self, sandbox_id: str, remote_path: str, local_path: str | os.PathLike[str]) -> None:
        """Copy a file of this machine into a sandbox."""
        await self.sandbox_client.upload_file(sandbox_id, remote_path, os.fspath(local_path))

    async def upload_content(self, sandbox_id: str, content: str, remote_path: str) -> None:
        """Write a file of a sandbox."""
        await self.sandbox_client.upload_bytes(sandbox_id, remote_path, content.encode())

    async def upload_bundle(self, sandbox_id: str, file_map: Mapping[str, str], dest_dir: str) -> None:
        """Write files of a sandbox: their texts by their paths below a folder."""
        for path, content in file_map.items():
            await self.upload_content(sandbox_id, content, os.path.join(dest_dir, path))

    async def read_file(self, sandbox_id: str, remote_path: str, timeout: float | None = None) -> str | None:
        """Return the text of a file of a sandbox; None where there is none."""
        try:
            return (await self.sandbox_client.read_file(sandbox_id, remote_path)).content
        except FileNotFoundError:
            return None

    @teardown
    async def teardown_sandboxes(self) -> None:
        """Close the sandboxes that are still open."""
        if hasattr(self, "sandbox_client"):
            await self.bulk_delete_sandboxes(self.active_sandboxes)


__all__ = [
    "CreateSandboxRequest",
    "SandboxCreationError",
    "SandboxMixin",
    "SandboxMonitorRubric",
    "SandboxNotReadyError",
    "SandboxSetupError",
    "SandboxTimeouts",
    "ThreadedAsyncSandboxClient",
    "is_retryable_sandbox_api_error",
    "is_retryable_sandbox_read_error",
]

__getattr__ = create_getattr(__name__)
