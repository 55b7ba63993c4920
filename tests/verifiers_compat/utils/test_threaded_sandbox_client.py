"""`ThreadedAsyncSandboxClient`: sandboxes of this machine with the methods of the hosted service's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent_programs import needs_sandbox
from verifiers_compat.utils.threaded_sandbox_client import CommandTimeoutError, CreateSandboxRequest, ThreadedAsyncSandboxClient
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import SandboxSpec

pytestmark = needs_sandbox


@pytest.fixture
async def client() -> AsyncIterator[ThreadedAsyncSandboxClient]:
    """A client whose sandboxes have no network."""
    made = ThreadedAsyncSandboxClient(max_workers=1, sandbox=SandboxSpec(network=False, env={"A": "spec"}))
    yield made
    made.teardown()
    await made.aclose()


async def test_a_sandbox_from_its_creation_to_its_end(client: ThreadedAsyncSandboxClient, tmp_path: Path) -> None:
    """Commands, files and commands in the background; each argument arrives, and each answer has all its parts."""
    made = await client.create(CreateSandboxRequest(name="mine", environment_vars={"B": "request"}))
    assert (made.name, made.status, (await client.get(made.id)).status) == ("mine", "RUNNING", "RUNNING")
    await client.wait_for_creation(made.id)
    done = await client.execute_command(made.id, "pwd; echo $A$B$C >&2; exit 3", working_dir="/tmp", env={"C": "own"})
    assert (done.stdout, done.stderr, done.exit_code) == ("/tmp\n", "specrequestown\n", 3)
    await client.upload_bytes(made.id, "/tmp/a", "\u00e4\n".encode() + b"\xff")
    read = await client.read_file(made.id, "/tmp/a")
    assert (read.content, read.size) == ("\u00e4\n\ufffd", 4)
    await client.download_file(made.id, "/tmp/a", str(tmp_path / "here"))
    await client.upload_file(made.id, "/tmp/b", str(tmp_path / "here"))
    job = await client.run_background_job(made.id, "cmp a b && echo $C", working_dir="/tmp", env={"C": "job"})
    assert (job.completed, job.stdout, job.exit_code) == (True, "job\n", 0)
    started = await client.start_background_job(made.id, "pwd; echo $C >&2; exit 4", env={"C": "later"}, working_dir="/tmp")
    assert not started.completed
    while not (job := await client.get_background_job(made.id, started)).completed:
        await client.execute_command(made.id, "true")
    assert (job.job_id, job.stdout, job.stderr, job.exit_code) == (started.job_id, "/tmp\n", "later\n", 4)
    with pytest.raises(CommandTimeoutError, match=r"timed out after 0.01s in sandbox .*: sleep 60") as late:
        await client.execute_command(made.id, "sleep 60", timeout=0.01)
    assert (late.value.sandbox_id, late.value.command, late.value.timeout) == (made.id, "sleep 60", 0.01)
    with pytest.raises(CommandTimeoutError):
        await client.run_background_job(made.id, "sleep 60", timeout=0.01)
    endless = await client.start_background_job(made.id, "sleep 600")
    assert await client.get_background_job(made.id, endless) is endless
    assert await client.delete(made.id) == {"id": made.id}
    while not client._jobs[endless.job_id].done():
        await asyncio.sleep(0)
    with pytest.raises(SandboxError):
        await client.get_background_job(made.id, endless)
    await client.delete(made.id)
    with pytest.raises(SandboxError):
        await client.execute_command(made.id, "true")


async def test_the_backend_is_the_one_that_was_named() -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        await ThreadedAsyncSandboxClient(backend="nowhere").create(CreateSandboxRequest())


async def test_several_are_deleted_at_once(client: ThreadedAsyncSandboxClient) -> None:
    ids = [(await client.create(CreateSandboxRequest())).id for _ in range(2)]
    assert await client.bulk_delete(ids) == {"succeeded": ids, "failed": []}
    assert await client.bulk_delete() == {"succeeded": [], "failed": []}
    for sandbox_id in ids:
        with pytest.raises(SandboxError):
            await client.get(sandbox_id)
