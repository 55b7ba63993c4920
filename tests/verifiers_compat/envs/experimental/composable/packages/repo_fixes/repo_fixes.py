"""Repairs of small repositories, each in a sandbox of its own: a task set with tests and gold patches, and a program that works on it."""

import json
from pathlib import Path

import verifiers as vf
from datasets import Dataset
from verifiers.envs.experimental.composable import ComposableEnv, Harness, SandboxSpec, SandboxTaskSet

ROWS = [
    {"repo": "calc", "file": "add.py", "code": "def add(a, b):\n    return a - b\n", "check": "add.add(1, 2) == 3", "gold": "s/-/+/"},
    {"repo": "calc", "file": "neg.py", "code": "def neg(a):\n    return a\n", "check": "neg.neg(4) == -4", "gold": "s/return a/return -a/"},
]


class FixRubric(vf.Rubric):
    def __init__(self, taskset: "FixTaskSet", **kwargs):
        super().__init__(**kwargs)
        self.taskset = taskset
        self.add_reward_func(self.solved)

    async def solved(self, state, info, **kwargs) -> float:
        if isinstance(state.get("error"), vf.InfraError):
            return 0.0
        client, sandbox_id = state["sandbox_client"], state["sandbox_id"]
        output = await self.taskset._run_tests(client, sandbox_id, state, state.get("test_timeout", 900))
        state["test_output"] = output
        return float(self.taskset._calculate_reward(output, info))

    @vf.cleanup
    async def cleanup_sandbox(self, state: vf.State) -> None:
        client, sandbox_id = state.get("sandbox_client"), state.get("sandbox_id")
        if client and sandbox_id:
            await client.delete(sandbox_id)


class FixTaskSet(SandboxTaskSet):
    default_workdir = "/testbed"

    def __init__(self, filter_fn: str | None = None, hide_tests: bool = True):
        self.hide_tests = hide_tests
        super().__init__(dataset=self._build_dataset, name="repo-fixes", filter_fn=filter_fn)

    def _build_dataset(self):
        return Dataset.from_list([{"info": row, "answer": ""} for row in ROWS])

    def get_instruction(self, info: dict) -> str:
        return f"Mend {info['file']} of the repository in /testbed."

    def get_sandbox_spec(self, info: dict) -> SandboxSpec:
        return SandboxSpec(image="python:3.11-slim", cpu_cores=4, memory_gb=1, disk_size_gb=1, timeout_minutes=5)

    def get_env_vars(self) -> dict[str, str]:
        return {"PYTHONDONTWRITEBYTECODE": "1"}

    async def setup(self, state) -> None:
        client, sandbox_id, info = state["sandbox_client"], state["sandbox_id"], state["info"]
        await client.upload_bytes(sandbox_id, f"/testbed/{info['file']}", info["code"].encode(), info["file"])
        results = await client.execute_command(sandbox_id, "mkdir -p /hidden && pwd", working_dir="/testbed", timeout=60)
        if results.exit_code != 0:
            raise vf.SandboxError("no folder")

    async def _apply_gold_patch(self, sandbox_client, sandbox_id, state) -> None:
        info = state["info"]
        await sandbox_client.execute_command(sandbox_id, f"sed -i '{info['gold']}' {info['file']}", working_dir="/testbed")

    async def _run_tests(self, sandbox_client, sandbox_id, state, test_timeout) -> str:
        info = state["info"]
        code = f"import {info['file'][:-3]}; print('PASSED' if {info['check']} else 'FAILED')"
        await sandbox_client.upload_bytes(sandbox_id, "/hidden/check.py", code.encode(), "check.py")
        command = "PYTHONPATH=/testbed python3 /hidden/check.py"
        job = await sandbox_client.run_background_job(sandbox_id, command, timeout=test_timeout, working_dir="/testbed")
        return (job.stdout or "") + (job.stderr or "")

    def _calculate_reward(self, test_output: str, info: dict) -> float:
        return float("PASSED" in test_output)

    def get_rubric(self):
        return FixRubric(self)

    async def validate_instance(self, state) -> bool:
        client, sandbox_id = state["sandbox_client"], state["sandbox_id"]
        await self._apply_gold_patch(client, sandbox_id, state)
        state["test_output"] = await self._run_tests(client, sandbox_id, state, state.get("test_timeout", 900))
        return self._calculate_reward(state["test_output"], state["info"]) > 0


def sed_harness(max_turns: int = 4) -> Harness:
    return Harness(
        install_script="test -f /opt/agent/agent.py && touch /opt/agent/installed",
        run_command='python3 /opt/agent/agent.py > /logs/agent.log 2>&1; status=$?; cat /logs/agent.log; exit "$status"',
        system_prompt="You answer with a sed expression.",
        system_prompt_path="/agent/system.txt",
        instruction_path="/agent/prompt.txt",
        log_path="/logs/agent.log",
        get_upload_dirs=lambda: {"agent": Path(__file__).parent / "agent"},
        upload_dir_mapping={"agent": "/opt/agent"},
        metrics_path="{workdir}/.agent/*.json",
        metrics_prefix="agent_",
        environment_vars=lambda state: {"MAX_TURNS": str(max_turns)},
        tool_names=["sed"],
        post_install_uploads={"/logs/README": json.dumps({"kept": True})},
        post_install_script="chmod -R a+rX /opt/agent",
    )


def load_environment(max_turns: int = 4, filter_fn: str | None = None, **kwargs) -> vf.Environment:
    return ComposableEnv(
        taskset=FixTaskSet(filter_fn=filter_fn),
        harness=sed_harness(max_turns),
        keep_sandbox_for_scoring=True,
        timeout_seconds=120,
        poll_interval=1.0,
        labels=["repo-fixes"],
        sandbox_client_max_workers=8,
        **kwargs,
    )
