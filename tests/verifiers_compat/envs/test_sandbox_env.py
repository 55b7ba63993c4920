"""`SandboxEnv` and `PythonEnv` as published packages use them: hooks, arguments, the client of sandboxes, and states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.models import calling, evaluated, rolled_out, texts
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.sandboxes import stand_ins

pytestmark = needs_sandbox

ROWS = Dataset.from_list([{"question": "Make the tests pass.", "answer": "7", "info": {"number": 7}}])


def bash(*commands: str) -> dict[str, Any]:
    return calling(*(("bash", {"command": command}) for command in commands))


async def test_commands_are_answered_in_the_documented_texts() -> None:
    """§ SandboxEnv: the documented signature, tool, texts, states and metrics."""
    options: dict[str, Any] = {"memory_gb": 1, "disk_size_gb": 1, "timeout_per_command_seconds": 1, "environment_vars": {"NAME": "me"}}
    env = vf.SandboxEnv(sandbox_name="mine", labels=["a"], dataset=ROWS, backend="bwrap", **options)
    assert [(tool.name, list(tool.parameters["properties"])) for tool in env.tool_defs] == [("bash", ["command"])]
    commands = ("echo ' a '; echo b >&2", "true", "sleep 60", "echo $NAME; df -m / | tail -1 | awk '{print $2}'")
    state = await rolled_out(env, bash(*commands), "done")
    assert texts(state["completion"]) == ["a\nstderr:\nb", "(no output)", "Error: Command timed out after 1s", "me\n1024"]
    assert state["sandbox_id"].startswith("vfgym-")
    assert (state["sandbox_state"]["ready"], state["sandbox_state"]["command_execution_times"][2]) == (True, 1)
    [row] = await evaluated(env, bash("true"), "done")
    assert {"sandbox_ready_wait_time", "sandbox_command_execution_time", "total_tool_calls", "bash_calls"} < row["metrics"].keys()
    assert (row["metrics"]["sandbox_ready_wait_time"] > 0, row["error"], sandboxes_in_use()) == (True, None, [])


async def test_a_published_kind_of_subclass(tmp_path: Path) -> None:
    """Tools that call bash, files that are uploaded, an image of the row, and what `post_rollout` keeps for the reward."""
    (tmp_path / "test.sh").write_text("test -e /app/number.txt && cat /app/number.txt")

    class Repair(vf.SandboxEnv):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.remove_tool(self.bash)
            self.add_tool(self.write, args_to_skip=["sandbox_id", "sandbox_state"])

        def get_sandbox_request(self, state: Any) -> Any:
            return self.sandbox_request.model_copy(update={"environment_vars": {"NUMBER": str(state["info"]["number"])}})

        async def setup_state(self, state: Any, **kwargs: Any) -> Any:
            state = await super().setup_state(state, **kwargs)
            await self.sandbox_client.wait_for_creation(state["sandbox_id"], max_attempts=3)
            await self.sandbox_client.execute_command(state["sandbox_id"], "mkdir -p /app /tests", timeout=10)
            await self.sandbox_client.upload_file(state["sandbox_id"], "/tests/test.sh", str(tmp_path / "test.sh"))
            return state

        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            updated = super().update_tool_args(tool_name, tool_args, messages, state, **kwargs)
            return {**updated, "sandbox_id": state["sandbox_id"], "sandbox_state": state["sandbox_state"]}

        async def write(self, line: str, sandbox_id: str, sandbox_state: Any) -> str:
            """Write a line."""
            return await self.bash(f"{line} > number.txt; ls", sandbox_id=sandbox_id, sandbox_state=sandbox_state, working_dir="/app")

        async def post_rollout(self, state: Any) -> None:
            ran = await self.with_retry(self.sandbox_client.execute_command)(state["sandbox_id"], "sh /tests/test.sh", working_dir="/tests")
            state["tests"] = (ran.exit_code, ran.stdout.strip())

    async def passes(state: Any, answer: str) -> float:
        return float(state["tests"] == (0, answer))

    env = Repair(dataset=ROWS, rubric=vf.Rubric(passes), max_retries=2, base_delay=0.0)
    assert [tool.name for tool in env.tool_defs] == ["write"]
    [row] = await evaluated(env, calling(("write", {"line": "echo $NUMBER"})), "done")
    assert (texts(row["completion"]), row["reward"], row["error"]) == (["number.txt"], 1.0, None)
    assert (env.active_sandboxes, sandboxes_in_use()) == (set(), [])


async def test_the_client_works_in_sandboxes_of_its_own_too(tmp_path: Path) -> None:
    from verifiers_compat.envs.sandbox_env import CommandTimeoutError, CreateSandboxRequest, ThreadedAsyncSandboxClient

    client = ThreadedAsyncSandboxClient(max_workers=5)
    made = await client.create(CreateSandboxRequest(name="mine", memory_gb=1))
    assert (made.name, (await client.get(made.id)).status) == ("mine", "RUNNING")
    await client.upload_bytes(made.id, "/data/a.txt", b"abc", "a.txt")
    assert (await client.read_file(made.id, "/data/a.txt")).content == "abc"
    await client.download_file(made.id, "/data/a.txt", str(tmp_path / "b.txt"))
    assert (tmp_path / "b.txt").read_text() == "abc"
    ran = await client.execute_command(made.id, "echo $A; exit 3", working_dir="/data", env={"A": "b"})
    assert (ran.stdout, ran.stderr, ran.exit_code) == ("b\n", "", 3)
    with pytest.raises(CommandTimeoutError, match=r"timed out after 0\.2s"):
        await client.execute_command(made.id, "sleep 60", timeout=0.2)
    job = await client.start_background_job(made.id, "cat; echo done; while [ ! -e /data/go ]; do sleep 0.01; done")
    assert not (await client.get_background_job(made.id, job)).completed
    await client.upload_bytes(made.id, "/data/go", b"")
    while not (await client.get_background_job(made.id, job)).completed:
        await client.execute_command(made.id, "true")
    assert (await client.get_background_job(made.id, job)).stdout == "done\n"
    assert (await client.run_background_job(made.id, "echo a")).exit_code == 0
    await client.bulk_delete([made.id])
    with pytest.raises(vf.SandboxError, match="there is no sandbox"):
        await client.execute_command(made.id, "true")


async def test_this_machine_stands_for_images_of_systems_and_languages_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """§ SandboxEnv without an engine: what is asked of a machine is what this one has."""
    stand_ins._tell.cache_clear()
    image = "python:3.12.1-slim"
    env = vf.SandboxEnv(docker_image=image, cpu_cores=4, team_id="t", advanced_configs={"a": 1}, dataset=ROWS, backend="bwrap")
    for _ in range(2):
        state = await rolled_out(env, bash("python3 --version"), "done")
    [version] = texts(state["completion"])
    [said] = [record.message for record in caplog.records if image in record.message]
    assert f"({version}) of this machine stands for the image {image}" in said
    plain = vf.SandboxEnv(dataset=ROWS, backend="bwrap")
    assert texts((await rolled_out(plain, bash("echo a"), "done"))["completion"]) == ["a"]


async def test_an_image_of_a_row_needs_an_engine() -> None:
    class Images(vf.SandboxEnv):
        def get_sandbox_request(self, state: Any) -> Any:
            return self.sandbox_request.model_copy(update={"docker_image": "acme/seven"})

    state = await rolled_out(Images(dataset=ROWS, backend="bwrap"), "never")
    assert "docker_image='acme/seven' needs backend='container'" in str(state["error"])
    assert state["trajectory"] == []


def test_what_is_asked_for_is_in_the_request() -> None:
    sizes = {"cpu_cores": 2, "memory_gb": 3, "disk_size_gb": 7, "timeout_minutes": 9, "environment_vars": {"A": "1"}, "labels": ["l"]}
    env = vf.SandboxEnv(dataset=[{"question": "?"}], **sizes)
    assert {name: getattr(env.sandbox_request, name) for name in sizes} == sizes
    assert vf.SandboxEnv(dataset=[{"question": "?"}]).sandbox_request.memory_gb == 2
