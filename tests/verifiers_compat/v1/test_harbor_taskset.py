"""`HarborTaskset`: Harbor's task folders, solved in sandboxes by commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import verifiers_compat.v1 as vf
from tests.agent_programs import LIBRARY, needs_sandbox
from tests.harbor_tasks import make_task, make_tasks
from tests.verifiers_compat.v1.playing import OFFLINE
from vfgym import sandboxes
from vfgym.testing import ScriptedClient

without_engine = pytest.mark.skipif(sandboxes.backends()["container"].probe().works, reason="a container engine builds the images of tasks")


@without_engine
async def test_tasks_of_harbor_are_rewarded_by_their_tests(tmp_path: Path) -> None:
    """By an environment, with an agent that reads its task and does it where it is told; the tests come in afterwards."""
    agent = """
task = open(os.environ["HARBOR_INSTRUCTION_PATH"]).read()
assert os.path.exists("/task/task.toml") and os.getcwd() == os.environ["AGENT_WORKDIR"] and not os.path.exists("/tests")
assert sorted(os.listdir("/logs")) == ["agent", "artifacts", "verifier"]
open("/logs/verifier/reward.txt", "w").write("7")
os.system(chat([user(task)])["content"])
"""
    taskset = vf.HarborTaskset(make_tasks(tmp_path, "greet", "repair"), env={"A": "1"})
    harness = vf.CLIHarness(["python3", "/agent/agent.py"], sandbox=OFFLINE, files={"/agent/agent.py": LIBRARY + agent})
    client = ScriptedClient(["echo hello > greeting.txt"])
    rows = (await vf.Env(taskset, harness).evaluate(client, "m", state_columns=["test_exit_code"]))["outputs"]
    assert [(row["error"], row["reward"], row["test_exit_code"]) for row in rows] == [(None, 1.0, 0), (None, 0.0, 0)]
    task = next(iter(taskset))
    assert (task["task_name"], task["instruction"], task["harbor"]["task_name"]) == ("greet", "Write hello to /app/greeting.txt.", "greet")
    assert task["program"]["env"]["A"] == "1"
    assert (task["sandbox"]["workdir"], task["sandbox"]["command_timeout"], task["sandbox"]["memory_gb"]) == ("/app", 600, 4.0)


@without_engine
async def test_a_task_that_cannot_run_here_is_the_error_of_its_own_rollout(tmp_path: Path) -> None:
    folder = make_task(tmp_path, "built")
    (folder / "environment" / "Dockerfile").write_text("FROM x\nRUN make\n")
    asks = make_task(tmp_path, "asks", check="true")
    (asks / "task.toml").write_text("[environment]\ngpus = 1\n")
    make_task(tmp_path, "works")
    harness = vf.CLIHarness("echo done", sandbox=OFFLINE, model="m")
    harness.attach(taskset := vf.HarborTaskset(tmp_path))
    states = {task["task_name"]: await harness.run(task) for task in taskset}
    assert {name: state["metrics"]["harbor_reward"] for name, state in states.items()} == {"asks": 0.0, "built": 0.0, "works": 1.0}
    assert {name: state["reward"] for name, state in states.items()} == {"asks": 0.0, "built": 0.0, "works": 1.0}
    assert "GPUs" in states["asks"]["error"]["error_chain_repr"]
    assert "a build of its Dockerfile" in states["built"]["error"]["error_chain_repr"]


def test_folders_that_are_no_tasks_are_refused_at_construction(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no task in"):
        vf.HarborTaskset(tmp_path)
    make_task(tmp_path, "a")
    with pytest.raises(ValueError, match="there is no task 'b'"):
        vf.HarborTaskset(tmp_path, task_names=["b"])
    assert vf.HarborTaskset(config={"tasks": str(tmp_path), "workdir": "/work"}).rows()[0]["program"]["env"]["AGENT_WORKDIR"] == "/work"


def test_times_and_cores_of_tasks_are_what_they_say(tmp_path: Path) -> None:
    """A time is rounded up, so that none becomes no limit; cores that nobody named are not limited."""
    task = make_task(tmp_path, "timed")
    (task / "environment" / "Dockerfile").write_text("FROM x\nRUN make\n")
    (task / "task.toml").write_text("[agent]\ntimeout_sec = 0.5\n")
    [row] = vf.HarborTaskset(task).rows()
    assert (row["sandbox"]["command_timeout"], "cpu_cores" in row["sandbox"]) == (1, False)
    [row] = vf.HarborTaskset(task, cpu_cores=3).rows()
    assert row["sandbox"]["cpu_cores"] == 3
    assert vf.HarborTaskset(task, cpu_cores=0.5).rows()[0]["sandbox"]["cpu_cores"] == 0.5
    (task / "task.toml").write_text("[environment]\ncpus = 4\n")
    [row] = vf.HarborTaskset(task, cpu_cores=3).rows()
    assert row["sandbox"]["cpu_cores"] == 4
    with pytest.raises(ValueError, match="command_timeout"):
        vf.CLIHarness("true", sandbox={"command_timeout": 0})


def test_a_row_has_all_that_a_task_says_and_what_is_configured_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_task(tmp_path, "full", "Do this.")
    make_task(tmp_path, "other")
    says = """[environment]\nmemory_mb = 512\nstorage_mb = 2048\nworkdir = "/there"\ndocker_image = "acme/full:1"\ncpus = 4
[environment.env]\nHOST = "${FULL_HOST}"\nPORT = "${FULL_PORT:-80}"\n"""
    monkeypatch.setenv("FULL_HOST", "here")
    sizes = {"memory_gb": 3.0, "disk_size_gb": 7.0, "timeout_minutes": 9, "agent_timeout_seconds": 20.5, "cpu_cores": 2.0}
    given = {**sizes, "task_dir": "/job", "workdir": "/w", "scope": "group", "env": {"A": "1"}}
    for text, own in (
        ("", {"image": None, "workdir": "/w", "memory_gb": 3.0, "disk_size_gb": 7.0, "env": {}, "cores": 2.0}),
        (
            says,
            {
                **{"image": "acme/full:1", "workdir": "/there", "memory_gb": 0.5, "disk_size_gb": 2.0, "cores": 4},
                "env": {"HOST": "here", "PORT": "80"},
            },
        ),
    ):
        (folder / "task.toml").write_text(text)
        (folder / "environment" / "Dockerfile").write_text("FROM x\nRUN make\n")
        [row] = vf.HarborTaskset(tmp_path, ["full"], **given).rows()
        image = own["image"]
        config = row["harbor"].pop("config")
        assert set(config) == ({"environment"} if text else set())
        assert row == {
            "example_id": 0,
            "prompt": [{"role": "user", "content": "Do this."}],
            "instruction": "Do this.",
            "task_toml": text,
            "task_name": "full",
            "task_dir": str(folder),
            "harbor": {"task_name": "full", "task_dir": str(folder), "docker_image": image},
            "info": {"harbor": {"task_name": "full", "docker_image": image}},
            "sandbox": {
                **{"memory_gb": own["memory_gb"], "disk_size_gb": own["disk_size_gb"], "timeout_minutes": 9, "command_timeout": 21},
                **{"workdir": own["workdir"], "environment_vars": own["env"], "scope": "group", "cpu_cores": own["cores"]},
                **({"image": image} if image else {"dockerfile": str(folder / "environment")}),
            },
            "program": {
                "files": {"/job/instruction.md": {"task": "instruction"}, "/job/task.toml": {"task": "task_toml"}},
                "dirs": {},
                "env": {
                    **{"A": "1", "HARBOR_TASK_NAME": "full", "HARBOR_TASK_DIR": "/job"},
                    **{"HARBOR_INSTRUCTION_PATH": "/job/instruction.md", "AGENT_WORKDIR": own["workdir"]},
                },
            },
        }
    assert vf.HarborTaskset(tmp_path, verifier_timeout_seconds=5.5).config.verifier_timeout_seconds == 5.5


def test_the_least_of_each_size_and_what_fields_are_by_default() -> None:
    config = vf.HarborTasksetConfig()
    sizes = {"cpu_cores": 2.0, "memory_gb": 4.0, "disk_size_gb": 10.0, "timeout_minutes": 120}
    times = {"agent_timeout_seconds": 900.0, "verifier_timeout_seconds": 900.0}
    others = {"tasks": None, "task_names": None, "workdir": "/app", "task_dir": "/task", "scope": "rollout", "env": {}}
    assert {name: getattr(config, name) for name in type(config).__annotations__} == {**sizes, **times, **others}
    for name in (*sizes, *times):
        least = 1 if name == "timeout_minutes" else 0.5
        assert getattr(vf.HarborTasksetConfig({name: least}), name) == least
        with pytest.raises(ValueError, match=name):
            vf.HarborTasksetConfig({name: 0})


pytestmark = needs_sandbox
