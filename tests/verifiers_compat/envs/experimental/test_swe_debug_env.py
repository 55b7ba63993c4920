"""`SWEDebugEnv` over a `SandboxTaskSet`: each step of the debugger, its state and score, and `SandboxMixin` on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.models import evaluated, rolled_out
from verifiers_compat.envs.experimental.composable import SandboxSpec, SandboxTaskSet
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError, HookMissing

pytestmark = needs_sandbox


class Repairs(SandboxTaskSet):
    """A repository of one file, whose bug is of the row."""

    def __init__(self) -> None:
        super().__init__([{"info": {"name": "add", "bug": "a - b"}}], name="repairs")

    def get_instruction(self, info: dict[str, Any]) -> str:
        return f"Mend {info['name']}."

    def get_env_vars(self) -> dict[str, str]:
        return {"PYTHONDONTWRITEBYTECODE": "1"}

    def get_sandbox_spec(self, info: dict[str, Any]) -> SandboxSpec:
        return SandboxSpec(memory_gb=1, disk_size_gb=1)

    async def setup(self, state: Any) -> None:
        await state["sandbox"].write_file("add.py", f"def add(a, b):\n    return {state['info']['bug']}\n")

    async def apply_gold_patch(self, state: Any) -> None:
        await state["sandbox"].exec("sed -i 's/-/+/' add.py")

    async def run_tests(self, state: Any, timeout: int = 900) -> str:
        ran = await state["sandbox"].exec("python3 -c 'import add; print(add.add(1, 2))'; pwd", timeout=timeout)
        return str(ran.stdout + ran.stderr)

    def score(self, output: str, info: dict[str, Any]) -> float:
        return float(output.startswith("3\n"))


@pytest.mark.parametrize(
    ("arguments", "score", "printed"),
    [
        ({}, 1.0, None),
        ({"debug_step": "none"}, 0.0, None),
        ({"debug_step": "command", "debug_command": "cat add.py; exit 4"}, 0.0, (4, "def add(a, b):\n    return a - b\n")),
        ({"debug_step": "script", "debug_script": "sed -i s/-/+/ add.py\necho $0"}, 1.0, (0, "/tmp/debug.sh\n")),
    ],
)
async def test_each_step_is_done_tested_and_scored_without_a_model(arguments: Any, score: float, printed: Any) -> None:
    env = vf.SWEDebugEnv(Repairs(), **arguments)
    state = await rolled_out(env, "never")
    assert (state["score"], state["stop_condition"], state["trajectory"]) == (score, "debug_completed", [])
    assert state["test_output"].endswith("/app\n")
    if printed is not None:
        assert (state["debug_exit_code"], state["debug_output"]) == printed
    [row] = await evaluated(env, "never")
    assert (row["reward"], row["error"], row["prompt"][0]["content"]) == (score, None, "Mend add.")
    assert (env.active_sandboxes, sandboxes_in_use()) == (set(), [])


async def test_set_up_and_tests_can_be_left_out_and_outputs_are_cut() -> None:
    env = vf.SWEDebugEnv(
        Repairs(), run_setup=False, run_tests=False, debug_step="command", debug_command="ls; echo 12345", output_tail_chars=4
    )
    state = await rolled_out(env, "never")
    assert (state["debug_output"], "test_output" in state, "score" in state) == ("345\n", False, False)
    state = await rolled_out(vf.SWEDebugEnv(Repairs(), debug_step="command", debug_command="echo 12345", output_tail_chars=0), "never")
    assert (state["debug_output"], state["test_output"], state["score"]) == ("", "", 0.0)


def test_a_debugger_is_reset_and_stepped_too() -> None:
    env = vf.SWEDebugEnv(Repairs())
    env.reset(seed=0)
    *_, reward, terminated, _, _ = env.step("nobody asked")
    assert (reward, terminated, sandboxes_in_use()) == (1.0, True, [])


def test_bad_input_is_refused() -> None:
    for arguments, said in (
        ({"debug_step": "gold"}, "debug_step must be one of none, gold_patch, command, script, got 'gold'. Did you mean `gold_patch`"),
        ({"debug_step": "command"}, "needs a debug_command"),
        ({"debug_step": "script"}, "needs a debug_script or a debug_script_path"),
        ({"debug_step": "command", "debug_command": ""}, "needs a debug_command"),
        ({"debug_step": "script", "debug_script": "", "debug_script_path": "x"}, "one of the two"),
        ({"backend": "bwrp"}, "Did you mean `bwrap`"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            vf.SWEDebugEnv(Repairs(), **arguments)
    with pytest.raises(HookMissing, match="must write get_instruction"):
        vf.SWEDebugEnv(SandboxTaskSet([{"info": {}}]))


async def test_arguments_win_over_what_the_task_asks_for_and_a_step_has_its_time(tmp_path: Path) -> None:
    request = vf.SWEDebugEnv(Repairs(), memory_gb=3).get_sandbox_request(vf.State(info={"name": "add"}))
    assert (request.memory_gb, request.disk_size_gb, request.name) == (3, 1, "repairs")
    assert (request.docker_image, request.environment_vars) == (SandboxSpec().image, {"PYTHONDONTWRITEBYTECODE": "1"})
    assert request.model_extra == {"working_dir": "/app"}
    given = {"cpu_cores": 2, "memory_gb": 0.5, "disk_size_gb": 3}
    request = vf.SWEDebugEnv(Repairs(), **given).get_sandbox_request(vf.State(info={"name": "add"}))  # type: ignore[arg-type]
    assert request.model_dump(include={*given}) == given
    seconds: list[Any] = []

    class Timed(Repairs):
        async def run_tests(self, state: Any, timeout: int = 900) -> str:
            seconds.append(timeout)
            return "3\n"

    (tmp_path / "debug.sh").write_text("echo from a file")
    script = {"debug_step": "script", "debug_script_path": str(tmp_path / "debug.sh")}
    rows = [{"info": {"name": "sub", "bug": "a"}}]
    env = vf.SWEDebugEnv(Timed(), rows, **script, test_timeout=7, timeout_seconds=77)  # type: ignore[arg-type]
    state = await rolled_out(env, "never")
    assert (state["debug_output"], seconds, env.timeout_seconds, state["info"]["name"]) == ("from a file\n", [7], 77, "sub")
    env = vf.SWEDebugEnv(Repairs(), debug_step="command", debug_command="sleep 60", debug_timeout=1, run_tests=False)
    state = await rolled_out(env, "never")
    assert state["debug_exit_code"] != 0
