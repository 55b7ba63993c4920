"""What a task of Harbor's needs of a sandbox, and how its tests are run there."""

from __future__ import annotations

from collections.abc import Callable

from vfgym import sandboxes
from vfgym.envs.agent_program import read_left_file
from vfgym.envs.dockerfiles import Layout, NeedsBuild, read_layout
from vfgym.envs.harbor_tasks import HarborTask, read_reward
from vfgym.errors import ConfigurationError, InfraError, SandboxError
from vfgym.sandboxes import ExecResult, Sandbox

_REWARD_FILES = ("reward.txt", "reward.json", "rewards.json")
_TEST_SECONDS = 600.0
"""How long tests may take that name no limit."""
_CLEAR = r"find /tests /logs -type d -exec chmod u+rwx {} \; 2> /dev/null; rm -rf /tests /logs/verifier && mkdir -p /logs/verifier"
"""Removes what a program left where tests read and write, write-protected or not. A link to a folder is not followed."""


def layout_of(task: HarborTask, backend: str | None) -> Layout | None:
    """Return what goes where in a sandbox without an image; None where the task gets an image.

    Raises:
        SandboxError: If it needs an image, and no container engine answers.
    """
    has_dockerfile = (task.environment / "Dockerfile").exists()
    needs = f"the image {task.get('environment.docker_image')}" if task.get("environment.docker_image") else None
    if needs is None and not has_dockerfile:
        return Layout()
    engine_problem = _find_engine_problem(backend)
    if engine_problem is None:
        return None
    if needs is None:
        try:
            return read_layout(task.environment)
        except NeedsBuild as error:
            needs = f"a build of its Dockerfile, for {error}"
    raise SandboxError(f"the task {task.name!r} cannot run here: it needs {needs}, and {engine_problem}")


def _find_engine_problem(backend: str | None) -> str | None:
    """Return why no image can be built or run; None where one can."""
    if backend not in (None, "container"):
        return f"backend={backend!r} has no images"
    try:
        sandboxes.find_backend("container")
    except ConfigurationError as error:
        return str(error)
    return None


async def run_tests(sandbox: Sandbox, task: HarborTask, seconds: float | None = None) -> tuple[ExecResult, Callable[[], float]]:
    """Copy the tests of a task into its sandbox, and run them. What was written as a reward before is removed.

    Args:
        sandbox: Where a program worked on the task.
        task: The task.
        seconds: How long its tests may take that name no limit.

    Returns:
        What came of the command, and a function that returns the reward that the tests wrote; it raises an `InfraError` where they wrote
        none, or did not end in time.

    Raises:
        SandboxError: If what was there before cannot be removed.
    """
    cleared = await sandbox.exec(_CLEAR, working_dir="/")
    if cleared.exit_code != 0:
        raise SandboxError(f"the tests of the task {task.name!r} cannot run after its program: {cleared.stderr.strip()[-2000:]}")
    await sandbox.upload(task.folder / "tests", "/tests")
    limit = float(task.get("verifier.timeout_sec", seconds or _TEST_SECONDS))
    result = await sandbox.exec(["bash", "/tests/test.sh"], timeout=limit, env=task.variables("verifier.env"))
    written = await _first_file(sandbox)

    def reward() -> float:
        if result.timed_out:
            raise InfraError(f"the tests of the task {task.name!r} did not end within {limit:g} s")
        if written is None:
            said = (result.stderr.strip() or result.stdout.strip())[-2000:] or "they printed nothing"
            raise InfraError(
                f"the tests of the task {task.name!r} ended with exit code {result.exit_code} and wrote no reward to"
                f" /logs/verifier/{_REWARD_FILES[0]}: {said}"
            )
        return read_reward(*written)

    return result, reward


async def _first_file(sandbox: Sandbox) -> tuple[str, str] | None:
    """Return name and text of the file that the tests wrote their reward to."""
    for name in _REWARD_FILES:
        text = await read_left_file(sandbox, f"/logs/verifier/{name}")
        if text is not None:
            return name, text
    return None
