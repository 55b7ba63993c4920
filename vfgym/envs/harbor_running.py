"""What a task of Harbor's needs of a sandbox, and how its tests are run there."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping

from vfgym import sandboxes
from vfgym.envs.agent_program import read_left_file
from vfgym.envs.dockerfiles import Layout, NeedsBuild, read_layout, read_working_dir
from vfgym.envs.harbor_tasks import HarborTask, read_reward
from vfgym.envs.sandboxed import fresh_sandbox
from vfgym.errors import ConfigurationError, InfraError, SandboxError
from vfgym.sandboxes import ExecResult, Sandbox, SandboxSpec
from vfgym.sandboxes.stand_ins import with_stand_in

_REWARD_FILES = ("reward.txt", "reward.json", "rewards.json")
_TEST_SECONDS = 600.0
"""How long tests may take that name no limit."""
_LOGS = ("/logs/agent", "/logs/artifacts")
"""What Harbor collects of every task, beside its working folder."""


def layout_of(task: HarborTask, backend: str | None, *, strict_image: bool = False) -> Layout | None:
    """Return what goes where in a sandbox without an image; None where the task gets an image.

    Args:
        task: The task.
        backend: What makes its sandboxes; None for what works here.
        strict_image: Whether this machine is not to stand for an image.

    Raises:
        SandboxError: If it needs an image, and no container engine answers.
    """
    image, has_dockerfile = task.get("environment.docker_image"), (task.environment / "Dockerfile").exists()
    if not image and not has_dockerfile:
        return Layout()
    engine_problem = _find_engine_problem(backend)
    if engine_problem is None:
        return None
    is_stood_for = not image or with_stand_in(SandboxSpec(image=image), "bwrap").image is None
    if strict_image or not is_stood_for:
        needs = f"the image {image}" if image else "an image"
    else:
        try:
            return read_layout(task.environment) if has_dockerfile else Layout()
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


async def lay_out(sandbox: Sandbox, layout: Layout | None) -> None:
    """Make the folders that programs and tests write to, and copy in what a Dockerfile would, where there is no image."""
    await sandbox.exec(["mkdir", "-p", "/logs/agent", "/logs/verifier", "/logs/artifacts"])
    for local, inside in () if layout is None else layout.copies:
        await sandbox.upload(local, inside)


def results_of(task: HarborTask, working_dir: str, more: Iterable[str] = ()) -> list[str]:
    """Return the declared results of a task: what its tests see of its program, in the places where that left it.

    They are the working folder, that of the Dockerfile, what the task names as ``artifacts``, what Harbor collects of every task, and
    what the environment names. One that lies in another is not named again.

    Raises:
        ConfigurationError: If one is not the absolute path of a file or folder below ``/``.
    """
    places = [working_dir, *_LOGS, *more]
    if (task.environment / "Dockerfile").exists():
        places.append(read_working_dir(task.environment))
    for named in task.get("artifacts", []):
        places.append(named.get("source", "") if isinstance(named, Mapping) else named)
    found = []
    for place in places:
        if not isinstance(place, str) or not place.startswith("/"):
            raise ConfigurationError(f"a result of the task {task.name!r} must be an absolute path, got {place!r}")
        if posixpath.normpath(place) != "/":  # where no working folder is named
            found.append(posixpath.normpath(place))
    return [place for place in dict.fromkeys(found) if not any(place.startswith(f"{other}/") for other in found)]


async def run_tests(
    sandbox: Sandbox, task: HarborTask, seconds: float | None = None, *, backend: str | None = None, results: Iterable[str] | None = ()
) -> tuple[ExecResult, Callable[[], float]]:
    """Run the tests of a task in a new sandbox, which has nothing of its program but the declared results (see `results_of`).

    Args:
        sandbox: Where a program worked on the task.
        task: The task.
        seconds: How long its tests may take that name no limit.
        backend: What made the sandbox, where that was chosen.
        results: Further results. None for the tests of a program that has done nothing.

    Returns:
        What came of the command, and a function that returns the reward that the tests wrote; it raises an `InfraError` where they wrote
        none, or did not end in time.

    Raises:
        SandboxError: If there can be no new sandbox, or the results can't be copied.
    """
    limit = float(task.get("verifier.timeout_sec", seconds or _TEST_SECONDS))
    async with fresh_sandbox(sandbox, ()) as fresh:
        await lay_out(fresh, layout_of(task, backend))
        for place in () if results is None else results_of(task, sandbox.spec.working_dir, results):
            await sandbox.copy_to(fresh, place)
        await fresh.exec(["rm", "-rf", "/tests"])  # of a program whose results lie above
        await fresh.upload(task.folder / "tests", "/tests")
        result = await fresh.exec(["bash", "/tests/test.sh"], timeout=limit, env=task.variables("verifier.env"))
        written = await _first_file(fresh)

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
