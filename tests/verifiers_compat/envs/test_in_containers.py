"""The documented arguments of sandboxes where a container engine answers: images, CPUs, start commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.harbor_tasks import make_tasks
from tests.sandboxes.engine import Engine
from tests.verifiers_compat.models import calling, evaluated, rolled_out, texts
from vfgym.errors import SandboxError
from vfgym.sandboxes import SandboxSpec

pytestmark = pytest.mark.exhaustive
ROWS = [{"question": "Say yes.", "answer": "yes"}]


async def test_cores_and_a_start_command_are_used(engine: Engine) -> None:
    options: dict[str, Any] = {"cpu_cores": 2, "start_command": "mkfifo /tmp/up", "timeout_per_command_seconds": 60}
    env = vf.SandboxEnv(docker_image=engine.image, dataset=ROWS, backend="container", **options)
    waiting = calling(("bash", {"command": "until [ -p /tmp/up ]; do :; done; echo up"}))
    state = await rolled_out(env, waiting, "done")
    assert texts(state["completion"]) == ["up"]
    assert (env.sandbox_spec.cpus, env.sandbox_spec.image) == (2, engine.image)


async def test_a_sandbox_is_asked_for_nothing_that_is_at_its_default(engine: Engine) -> None:
    env = vf.SandboxEnv(dataset=ROWS, backend="container", sandbox=SandboxSpec(image=engine.image))
    assert (env.sandbox_spec.cpus, env.sandbox_spec.start_command, env.sandbox_spec.image) == (None, None, engine.image)


async def test_an_image_of_a_rollout_is_its_own(engine: Engine) -> None:
    """The hooks say more than the constructor."""

    class Program(vf.CliAgentEnv):
        async def get_docker_image(self, state: vf.State) -> str:
            return engine.image

    class Shell(vf.SandboxEnv):
        def get_sandbox_request(self, state: vf.State) -> Any:
            return super().get_sandbox_request(state).model_copy(update={"docker_image": engine.image})

    missing = "localhost/no-such-image:1"
    program = Program("exit 5", docker_image=missing, dataset=ROWS, backend="container")
    assert (await rolled_out(program, "never"))["agent_exit_code"] == 5
    shell = Shell(sandbox=SandboxSpec(image=missing), dataset=ROWS, backend="container")
    assert (await rolled_out(shell, "done"))["error"] is None
    plain = vf.CliAgentEnv("exit 5", docker_image=missing, dataset=ROWS, backend="container")
    error = (await rolled_out(plain, "never"))["error"]
    assert isinstance(error, SandboxError)
    assert missing in str(error)


async def test_harbor_tasks_are_built_from_their_dockerfiles(engine: Engine, tmp_path: Path) -> None:
    make_tasks(tmp_path, "greet", image=engine.image)
    with (tmp_path / "greet" / "environment" / "Dockerfile").open("a") as file:
        file.write("RUN touch /built\n")
    test = tmp_path / "greet" / "tests" / "test.sh"
    test.write_text(f"test -e /built || exit 1\n{test.read_text()}")
    env = vf.HarborEnv(None, tmp_path, agent="oracle", backend="container")
    [row] = await evaluated(env)
    assert (row["reward"], row["error"]) == (1.0, None)
