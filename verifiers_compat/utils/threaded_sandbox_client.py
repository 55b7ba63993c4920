"""`ThreadedAsyncSandboxClient`: the documented client of sandboxes, for those of this process. Sandboxes are named by their ids."""

from __future__ import annotations

import asyncio
import concurrent.futures
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, spec_of_request
from vfgym.aio.background import background_loop
from vfgym.envs.sandboxed import find_sandbox, give_back_sandbox, open_sandbox
from vfgym.errors import SandboxError
from vfgym.sandboxes import ExecResult, SandboxSpec


class CreateSandboxRequest(BaseModel):
    """What a sandbox is asked for, as the hosted service is asked: see `spec_of_arguments` for what that means here."""

    model_config = ConfigDict(extra="allow")

    name: str = "sandbox-env"
    docker_image: str | None = DEFAULT_IMAGE
    start_command: Any = "tail -f /dev/null"
    cpu_cores: float = 1
    memory_gb: float = 2
    disk_size_gb: float | None = 5
    gpu_count: int = 0
    timeout_minutes: int = 60
    environment_vars: dict[str, str] | None = None
    team_id: str | None = None
    advanced_configs: Any = None
    labels: list[str] = Field(default_factory=list)


class CommandResponse(BaseModel):
    """What came of a command."""

    stdout: str
    stderr: str
    exit_code: int


class BackgroundJobStatus(BaseModel):
    """What is known of a command that was started in the background."""

    job_id: str
    completed: bool
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None


class CommandTimeoutError(RuntimeError):
    """A command took longer than it was given, and was ended."""

    def __init__(self, sandbox_id: str, command: str, timeout: float) -> None:
        """Say which command of which sandbox it was, and what it was given in seconds."""
        super().__init__(f"Command timed out after {timeout:g}s in sandbox {sandbox_id}: {command}")
        self.sandbox_id, self.command, self.timeout = sandbox_id, command, timeout


class SandboxInfo(BaseModel):
    """What is known of a sandbox."""

    id: str
    name: str
    status: str


class ReadFileResponse(BaseModel):
    """What is in a file."""

    content: str
    size: int


class ThreadedAsyncSandboxClient:
    """Makes sandboxes of this machine and works in them, with the methods of the hosted service's client.

    It works in the sandboxes of environments, too: ``state["sandbox_id"]`` names one. File operations raise what those of `Sandbox` do,
    such as `FileNotFoundError`; a sandbox that was closed is a `vf.SandboxError`.
    """

    def __init__(
        self,
        max_workers: int = 50,
        max_connections: int = 1000,
        max_keepalive_connections: int = 200,
        *,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        **client_kwargs: Any,
    ) -> None:
        """Make a client.

        Args:
            max_workers: Accepted, as the next two: there are no threads and no connections.
            max_connections: Accepted.
            max_keepalive_connections: Accepted.
            sandbox: What sandboxes are asked for beside what `create` is given.
            backend: What makes them (see `vfgym.sandboxes`); None for what works here.
            **client_kwargs: Accepted.
        """
        self._spec = SandboxSpec() if sandbox is None else sandbox
        self._backend = backend
        self._jobs: dict[str, concurrent.futures.Future[ExecResult]] = {}

    # Sandboxes

    async def create(self, request: Any) -> SandboxInfo:
        """Create a sandbox, which commands can run in at once."""
        sandbox = await open_sandbox(spec_of_request(self._spec, self._backend, request), self._backend)
        return SandboxInfo(id=sandbox.id, name=getattr(request, "name", sandbox.id), status="RUNNING")

    async def get(self, sandbox_id: str) -> SandboxInfo:
        """Return what is known of a sandbox."""
        sandbox = find_sandbox(sandbox_id)
        return SandboxInfo(id=sandbox_id, name=sandbox_id, status="RUNNING" if sandbox.is_alive else "TERMINATED")

    async def wait_for_creation(self, sandbox_id: str, max_attempts: int = 60, **kwargs: Any) -> None:
        """Return at once: a sandbox that was created is ready.

        Raises:
            SandboxError: If it has ended.
        """
        if not find_sandbox(sandbox_id).is_alive:
            raise SandboxError(f"the sandbox {sandbox_id} has ended")

    async def delete(self, sandbox_id: str) -> dict[str, Any]:
        """Close a sandbox; nothing where that was done."""
        await give_back_sandbox(sandbox_id)
        return {"id": sandbox_id}

    async def bulk_delete(self, sandbox_ids: Iterable[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """Close sandboxes."""
        ids = list(sandbox_ids or ())
        await asyncio.gather(*map(give_back_sandbox, ids))
        return {"succeeded": ids, "failed": []}

    # Commands

    async def execute_command(
        self,
        sandbox_id: str,
        command: str,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | None = None,
    ) -> CommandResponse:
        """Run a command, and end what it leaves behind.

        Raises:
            CommandTimeoutError: If it takes longer than `timeout` seconds.
            SandboxError: If the sandbox has ended.
        """
        result = await find_sandbox(sandbox_id).exec(command, timeout=timeout, env=env, working_dir=working_dir)
        if result.timed_out:
            raise CommandTimeoutError(sandbox_id, command, timeout or 0)
        return CommandResponse(stdout=result.stdout, stderr=result.stderr, exit_code=result.exit_code)

    async def run_background_job(
        self,
        sandbox_id: str,
        command: str,
        timeout: float = 900,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        poll_interval: float = 3,
    ) -> BackgroundJobStatus:
        """Run a command to its end, of which there is news at once.

        Raises:
            CommandTimeoutError: If it takes longer than `timeout` seconds.
        """
        done = await self.execute_command(sandbox_id, command, working_dir, env, timeout)
        return BackgroundJobStatus(job_id=secrets.token_hex(8), completed=True, **done.model_dump())

    async def start_background_job(
        self, sandbox_id: str, command: str, working_dir: str | None = None, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> BackgroundJobStatus:
        """Start a command that goes on in the background, at the longest until its sandbox is closed."""
        job_id = secrets.token_hex(8)
        running = find_sandbox(sandbox_id).exec(command, env=env, working_dir=working_dir)
        self._jobs[job_id] = asyncio.run_coroutine_threadsafe(running, background_loop())
        return BackgroundJobStatus(job_id=job_id, completed=False)

    async def get_background_job(self, sandbox_id: str, job: BackgroundJobStatus, timeout: float | None = None) -> BackgroundJobStatus:
        """Return what is known of a command that was started in the background.

        Raises:
            SandboxError: If its sandbox has ended.
        """
        future = self._jobs[job.job_id]
        if not future.done():
            return job
        result = future.result()
        return BackgroundJobStatus(
            job_id=job.job_id, completed=True, exit_code=result.exit_code, stdout=result.stdout, stderr=result.stderr
        )

    # Files

    async def upload_file(self, sandbox_id: str, file_path: str, local_file_path: str, timeout: float | None = None) -> None:
        """Copy a file of this machine into a sandbox."""
        await find_sandbox(sandbox_id).upload(local_file_path, file_path)

    async def upload_bytes(
        self, sandbox_id: str, file_path: str, file_bytes: bytes, filename: str = "", timeout: float | None = None
    ) -> None:
        """Write a file of a sandbox."""
        await find_sandbox(sandbox_id).write_file(file_path, file_bytes)

    async def download_file(self, sandbox_id: str, file_path: str, local_file_path: str, timeout: float | None = None) -> None:
        """Copy a file of a sandbox to this machine."""
        await find_sandbox(sandbox_id).download(file_path, local_file_path)

    async def read_file(self, sandbox_id: str, file_path: str, timeout: float | None = None) -> ReadFileResponse:
        """Return the text of a file of a sandbox."""
        data = await find_sandbox(sandbox_id).read_file(file_path)
        return ReadFileResponse(content=data.decode("utf-8", "replace"), size=len(data))

    # The end

    def teardown(self, wait: bool = True) -> None:
        """Do nothing: there are no threads and no connections to end."""

    async def aclose(self) -> None:
        """Do nothing: see `teardown`."""


__all__ = ["ThreadedAsyncSandboxClient"]
