"""Tasks in Harbor's format: their own tests reward what a program did, and nothing that it wrote itself does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.agent_programs import LIBRARY, needs_sandbox
from tests.harbor_tasks import TASKS, make_task, make_tasks
from vfgym import sandboxes
from vfgym.envs.dockerfiles import Layout
from vfgym.envs.harbor import HarborEnv
from vfgym.envs.harbor_running import layout_of, results_of
from vfgym.envs.harbor_tasks import read_tasks
from vfgym.errors import ConfigurationError, InfraError, SandboxError
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State
from vfgym.testing import ScriptedClient

pytestmark = needs_sandbox

WITHOUT_ENGINE: dict[str, Any] = {"backend": "bwrap"}


async def roll_out(env: HarborEnv, *answers: Any) -> State:
    state = await env.rollout(env.tasks.input(0), ScriptedClient(answers), "m")
    await env.rubric.score_rollout(state)
    return state


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
async def test_the_oracle_solves_every_task_and_doing_nothing_solves_none(agent: str, reward: float, tmp_path: Path) -> None:
    env = HarborEnv(dataset_path=make_tasks(tmp_path), agent=agent, **WITHOUT_ENGINE)
    results = await vfgym.aevaluate(env, lambda observation, info: "not asked", progress=False)
    assert {row["info"]["task_name"]: (row["reward"], row["error"]) for row in results["outputs"]} == {
        name: (reward, None) for name in TASKS
    }


async def test_a_program_solves_a_task_stepped_and_rolled_out_alike(tmp_path: Path) -> None:
    task = make_tasks(tmp_path, "repair")
    agent = tmp_path / "agent.py"
    agent.write_text(
        LIBRARY
        + """
import subprocess
messages = [user(read_task())]
while True:
    messages.append(chat(messages))
    command = messages[-1]["content"]
    if command == "done":
        break
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    messages.append(user(ran.stdout + ran.stderr))
"""
    )
    commands = ("cat double.py", "sed -i 's/x + 2/x * 2/' double.py", "done")
    env = HarborEnv(f"python3 {agent}", task, readable_paths=[str(agent)], **WITHOUT_ENGINE)
    observation, _ = await env.areset(seed=0)
    assert observation[0].content == TASKS["repair"][0]
    observation, *_ = await env.astep(commands[0])
    assert "x + 2" in observation[-1].content
    await env.astep(commands[1])
    *_, reward, terminated, _, info = await env.astep(commands[2])
    assert (reward, terminated, info["stop_condition"]) == (1.0, True, "agent_completed")
    state = await roll_out(env, *commands)
    assert (state["reward"], state["completion"]) == (1.0, env.episode.state["completion"])


async def test_a_reward_that_the_program_wrote_does_not_count(tmp_path: Path) -> None:
    """Neither one from before the tests, nor one of a process that it left behind, nor tests of its own."""
    cheat = (
        "mkdir -p /logs/verifier /tests; echo 1 > /logs/verifier/reward.txt; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh;"
        " setsid sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; sleep 0.01; done' >/dev/null 2>&1 &"
    )
    task = make_task(
        tmp_path, "hard", tests="sleep 0.3; test -e /logs/verifier/reward.txt || echo '{\"reward\": 0.25}' > /logs/verifier/reward.json"
    )
    (task / "solution" / "solve.sh").write_text(cheat)
    assert (await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE)))["reward"] == 0.25


@pytest.mark.parametrize(
    "protection",
    ["chmod 444 /logs/verifier/reward.txt; chmod 555 /logs/verifier", "chmod 444 /logs/verifier/*; chmod 555 /logs/verifier /logs"],
)
async def test_a_reward_that_the_program_protected_does_not_count(protection: str, tmp_path: Path) -> None:
    task = make_task(tmp_path, "hard", check="false")
    (task / "solution" / "solve.sh").write_text(f"mkdir -p /tests; echo 1 > /logs/verifier/reward.txt; chmod 555 /tests; {protection}")
    assert (await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE)))["harbor_reward"] == 0.0


@pytest.mark.parametrize("left", ["mkfifo {}", "ln -s /dev/zero {}", "mkdir {}"])
async def test_a_reward_that_is_no_file_is_none_and_is_not_waited_for(left: str, tmp_path: Path) -> None:
    task = make_task(tmp_path, "hard")
    (task / "tests" / "test.sh").write_text(left.format("/logs/verifier/reward.txt"))
    state = await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE))
    assert isinstance(state["error"], InfraError)
    assert "wrote no reward" in str(state["error"])


async def test_a_link_that_the_program_left_where_tests_come_is_removed_and_not_followed(tmp_path: Path) -> None:
    task = make_task(tmp_path, "hard", check='[ "$(stat -c %a /app/mine)" = 500 ]')
    (task / "solution" / "solve.sh").write_text("mkdir /app/mine; chmod 500 /app/mine; ln -s /app /tests")
    assert (await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE)))["harbor_reward"] == 1.0


async def test_tests_see_the_declared_results_as_they_were_left_and_nothing_else(tmp_path: Path) -> None:
    task = make_task(
        tmp_path,
        "declared",
        tests="cat /app/made/text /srv/own/text /opt/more /logs/agent/log /logs/artifacts/a > seen; stat -c %a /app/made >> seen;"
        " readlink /app/made/link >> seen; ls -A /app >> seen; ls -A /other /srv/own >> seen 2>&1;"
        " test \"$(cat seen | tr '\\n' ' ')\" = \"$(cat /tests/wanted)\" && echo 1 > /logs/verifier/reward.txt ||"
        " { cat seen >&2; echo 0 > /logs/verifier/reward.txt; }",
    )
    (task / "tests" / "wanted").write_text(
        "1 2 3 4 5 500 ../nowhere Dockerfile double.py made seen ls: cannot access '/other': No such file or directory /srv/own: text "
    )
    text = (task / "task.toml").read_text()
    (task / "task.toml").write_text(text.replace("artifacts = []", "artifacts = ['/srv/own', {source = '/app/made'}]"))
    (task / "solution" / "solve.sh").write_text(
        "mkdir -p /app/made /srv/own /other; echo 1 > made/text; ln -s ../nowhere made/link; chmod 500 made; echo 2 > /srv/own/text;"
        " echo 3 > /opt/more || { mkdir /opt; echo 3 > /opt/more; }; echo 4 > /logs/agent/log; echo 5 > /logs/artifacts/a;"
        " echo x > /other/file; rm data.txt"
    )
    state = await roll_out(HarborEnv(None, task, agent="oracle", results=["/opt/more"], **WITHOUT_ENGINE))
    assert state["harbor_reward"] == 1.0, state["test_stderr"]


def test_results_are_the_working_folder_that_of_the_dockerfile_what_harbor_collects_and_what_is_named(tmp_path: Path) -> None:
    [task] = read_tasks(make_task(tmp_path, "declared"))
    assert set(results_of(task, "/work")) == {"/work", "/app", "/logs/agent", "/logs/artifacts"}
    assert set(results_of(task, "/", ["/opt/a", "/opt/"])) == {"/app", "/opt", "/logs/agent", "/logs/artifacts"}
    assert set(results_of(task, "/app/own")) == {"/app", "/logs/agent", "/logs/artifacts"}
    (task.environment / "Dockerfile").unlink()
    assert set(results_of(task, "/work")) == {"/work", "/logs/agent", "/logs/artifacts"}


def test_an_image_without_a_name_is_none(tmp_path: Path) -> None:
    folder = make_task(tmp_path, "unnamed")
    (folder / "task.toml").write_text("[environment]\ndocker_image = ''")
    [task] = read_tasks(folder)
    with pytest.raises(SandboxError, match="needs an image, and backend='bwrap' has no images"):
        layout_of(task, "bwrap", strict_image=True)
    layout = layout_of(task, "bwrap")
    assert layout is not None
    assert layout.copies
    (folder / "environment" / "Dockerfile").unlink()
    assert layout_of(task, "bwrap", strict_image=True) == Layout()


@pytest.mark.parametrize("named", ["relative", 7, {"destination": "/x"}])
def test_a_result_that_is_no_path_is_refused(named: Any, tmp_path: Path) -> None:
    task = make_task(tmp_path, "odd")
    with pytest.raises(ConfigurationError, match="a result of the task 'odd' must be an absolute path"):
        HarborEnv(None, task, agent="nop", results=[named])


@pytest.mark.parametrize(
    ("tests", "reward"),
    [
        ("echo 0.5 > /logs/verifier/reward.txt; echo '{\"reward\": 0.1}' > /logs/verifier/reward.json", 0.5),
        ("echo '{\"only\": 0.7}' > /logs/verifier/rewards.json", 0.7),
        ('pwd > where; test "$(cat where)" = /app && cat /tests/more.txt > /logs/verifier/reward.txt', 3.0),
    ],
)
async def test_rewards_are_read_from_either_file(tests: str, reward: float, tmp_path: Path) -> None:
    task = make_task(tmp_path, "any", tests=tests)
    (task / "tests" / "more.txt").write_text("3")
    assert (await roll_out(HarborEnv(None, tmp_path, agent="nop", **WITHOUT_ENGINE)))["reward"] == reward


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("echo oh no >&2; exit 4", "ended with exit code 4 and wrote no reward to /logs/verifier/reward.txt: oh no"),
        ("echo much > /logs/verifier/reward.txt", "the tests wrote no number as their reward to reward.txt: 'much"),
        ('echo \'{"a": 1, "b": 2}\' > /logs/verifier/reward.json', "wrote no number as their reward to reward.json"),
        ("sleep 60", "did not end within 0.2 s"),
    ],
)
async def test_tests_that_give_no_reward_are_an_error_of_the_episode(tests: str, said: str, tmp_path: Path) -> None:
    task = make_task(tmp_path, "odd", tests=tests)
    if "sleep" in tests:
        (task / "task.toml").write_text((task / "task.toml").read_text().replace("timeout_sec = 60.0", "timeout_sec = 0.2"))
    state = await roll_out(HarborEnv(None, task, agent="nop", **WITHOUT_ENGINE))
    assert isinstance(state["error"], InfraError)
    assert said in str(state["error"])
    assert (state["reward"], state["error"].failure_cause) == (0.0, "infrastructure")


async def test_tests_that_give_no_reward_for_what_the_program_did_are_its_failure(tmp_path: Path) -> None:
    task = make_task(tmp_path, "breaks", solution="rm data.txt", tests="test -e data.txt && echo 1 > /logs/verifier/reward.txt")
    state = await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE))
    assert isinstance(state["error"], InfraError)
    assert (state["reward"], state["error"].failure_cause) == (0.0, "policy")


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "tests/test.sh"])
def test_a_task_folder_with_a_missing_file_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    (make_task(tmp_path, "half") / name).unlink()
    with pytest.raises(ConfigurationError, match=f"the task 'half' has no {name}"):
        HarborEnv("agent", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "takes a run_command, or agent="),
        ({"run_command": "a", "agent": "nop"}, "takes a run_command, or agent="),
        ({"agent": "nop", "backend": "unsafe"}, "needs a sandbox with folders of its own"),
        ({"agent": "orcale"}, "Did you mean `oracle`"),
        ({"run_command": "a", "tasks": ["gret"]}, "no task 'gret'.*Did you mean `greet`"),
        ({"run_command": "a", "tasks": "greet"}, "must be a list of names"),
        ({"run_command": "a", "dataset_path": "/no/such"}, "there is no folder /no/such"),
        ({"run_command": "a", "dataset_path": "tests"}, "there is no task in"),
    ],
)
def test_wrong_arguments_are_refused_at_construction(arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    make_tasks(tmp_path, "greet")
    with pytest.raises(ConfigurationError, match=said):
        HarborEnv(**{"dataset_path": tmp_path, **arguments})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("RUN apt-get install -y gcc", "needs a build of its Dockerfile, for it has the line 'RUN apt-get install -y gcc', and"),
        ("[environment]\ndocker_image = 'acme/tools:1'", "needs the image acme/tools:1, and"),
        ("[environment]\ngpus = 1", "asks for GPUs \\(environment.gpus in task.toml\\)"),
        ("[[environment.mcp_servers]]\nname = 'tools'", "asks for MCP servers"),
    ],
)
async def test_a_task_that_cannot_run_here_says_why(change: str, said: str, tmp_path: Path) -> None:
    task = make_task(tmp_path, "demanding")
    if change.startswith("RUN"):
        (task / "environment" / "Dockerfile").write_text(f"FROM ubuntu:24.04\n{change}\n")
    else:
        (task / "task.toml").write_text(change)
    env = HarborEnv("agent", task, **WITHOUT_ENGINE)
    with pytest.raises(SandboxError, match=said):
        await env.areset(seed=0)


@pytest.mark.parametrize("has_dockerfile", [True, False])
async def test_this_machine_stands_for_a_task_image_unless_that_is_strict(has_dockerfile: bool, tmp_path: Path) -> None:
    task = make_task(tmp_path, "imaged", solution="touch /made", tests="echo 1 > /logs/verifier/reward.txt")
    (task / "task.toml").write_text("[environment]\ndocker_image = 'python:3.11-slim'")
    if not has_dockerfile:
        (task / "environment" / "Dockerfile").unlink()
    assert (await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE)))["harbor_reward"] == 1.0
    with pytest.raises(SandboxError, match=r"needs the image python:3.11-slim, and backend='bwrap' has no images"):
        await HarborEnv(None, task, agent="oracle", strict_image=True, **WITHOUT_ENGINE).areset(seed=0)


async def test_tasks_name_their_own_limits_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[SandboxSpec] = []
    create = sandboxes.create
    monkeypatch.setattr(sandboxes, "create", lambda spec, **how: made.append(spec) or create(spec, **how))
    monkeypatch.setenv("FROM_OUTSIDE", "outside")
    task = make_task(tmp_path, "own", solution='echo "$WITH$KEY" > /app/said', check='test "$(cat /app/said)" = outsideelse')
    (task / "task.toml").write_text(
        "[environment]\nmemory_mb = 300\nstorage_mb = 40\n[environment.env]\nWITH = '${FROM_OUTSIDE}'\n"
        "[solution.env]\nKEY = '${NOT_THERE:-else}'\n"
    )
    state = await roll_out(HarborEnv(None, task, agent="oracle", **WITHOUT_ENGINE))
    assert (state["reward"], made[0].memory_mb, made[0].disk_mb) == (1.0, 300, 40)


@pytest.mark.parametrize("image", ["acme/tools:1", None])
async def test_where_there_are_images_a_task_gets_its_own_or_the_one_that_its_dockerfile_makes(
    image: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task(tmp_path, "imaged")
    if image is not None:
        (task / "task.toml").write_text(f"[environment]\ndocker_image = {image!r}\nworkdir = '/work'\nmemory_mb = 300")
    monkeypatch.setattr("vfgym.envs.harbor_running._find_engine_problem", lambda backend: None)
    env = HarborEnv("agent", task, **WITHOUT_ENGINE)
    spec = await env.get_sandbox_spec(State(info={"task_name": next(iter(env.harbor_tasks))}))
    if image is None:
        assert Path(spec.dockerfile) == task / "environment"
    else:
        assert (spec.image, spec.dockerfile, spec.working_dir, spec.memory_mb) == (image, None, "/work", 300)
