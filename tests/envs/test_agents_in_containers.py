"""Programs and Harbor's tasks in containers: where an engine answers, images are built, and one that cannot be had is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

import vfgym
from tests.agent_programs import ProgramEnv
from tests.harbor_tasks import TASKS, make_task, make_tasks
from tests.sandboxes.engine import Engine
from vfgym.envs.harbor import HarborEnv
from vfgym.errors import SandboxError
from vfgym.sandboxes import SandboxSpec
from vfgym.testing import ScriptedClient

pytestmark = pytest.mark.exhaustive


async def test_a_program_plays_in_an_image(engine: Engine) -> None:
    env = ProgramEnv(sandbox=SandboxSpec(image=engine.image, working_dir="/app"))
    state = await env.rollout(env.tasks.input(0), ScriptedClient(["one", "yes"]), "m")
    assert (state["agent_stdout"], state["stop_condition"]) == ("one\nyes\n", "agent_completed")


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
async def test_tasks_are_built_from_their_dockerfiles(agent: str, reward: float, engine: Engine, tmp_path: Path) -> None:
    for task in make_tasks(tmp_path, image=engine.image).iterdir():
        with (task / "environment" / "Dockerfile").open("a") as file:
            file.write("RUN touch /built\n")
        test = task / "tests" / "test.sh"
        test.write_text(f"test -e /built || exit 1\n{test.read_text()}")
    env = HarborEnv(dataset_path=tmp_path, agent=agent)
    results = await vfgym.aevaluate(env, lambda observation, info: "not asked", progress=False)
    found = {row["info"]["task_name"]: (row["reward"], row["error"]) for row in results["outputs"]}
    assert found == {name: (reward, None) for name in TASKS}


@pytest.mark.parametrize(
    ("dockerfile", "config", "said"),
    [
        ("RUN echo oh no; exit 7", "", "can't be built.*exit status 7"),
        ("", "[environment]\ndocker_image = 'localhost/no-such-image:1'", "localhost/no-such-image:1 is not there"),
    ],
)
async def test_an_image_that_cannot_be_had_is_an_error_of_its_episode(
    dockerfile: str, config: str, said: str, engine: Engine, tmp_path: Path
) -> None:
    task = make_task(tmp_path, "bad")
    (task / "environment" / "Dockerfile").write_text(f"FROM {engine.image}\n{dockerfile}\n")
    (task / "task.toml").write_text(config)
    with pytest.raises(SandboxError, match=f"(?s){said}"):
        await HarborEnv(dataset_path=task, agent="nop").areset(seed=0)
