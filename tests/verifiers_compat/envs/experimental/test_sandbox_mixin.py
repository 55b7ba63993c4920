"""`SandboxMixin`: sandboxes of an environment of a package's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from verifiers_compat.envs.experimental.sandbox_mixin import CreateSandboxRequest, SandboxMixin, SandboxMonitorRubric, SandboxSetupError
from vfgym.envs.sandboxed import sandboxes_in_use

pytestmark = needs_sandbox


async def test_the_mixin_makes_and_prepares_sandboxes_and_works_in_them(tmp_path: Path) -> None:
    class Mine(SandboxMixin, vf.SingleTurnEnv):
        def __init__(self) -> None:
            super().__init__(dataset=[{"question": "?"}])
            self.init_sandbox_client(max_retries=2, base_delay=0.0, sandbox_creations_per_minute=128)

        async def post_sandbox_setup(self, state: Any) -> None:
            if state.get("fails"):
                raise ValueError("no")
            await self.upload_content(state["sandbox_id"], "a", "/data/a.txt")

    env, state = Mine(), vf.State()
    made = await env.create_sandbox(state, CreateSandboxRequest(name="mine", memory_gb=1, disk_size_gb=1))
    assert (state["sandbox"].id, env.active_sandboxes) == (made, {made})
    await env.upload_bundle(made, {"b/c.txt": "c"}, "/data")
    assert [await env.read_file(made, path) for path in ("/data/a.txt", "/data/b/c.txt", "/no")] == ["a", "c", None]
    ran = await env.run_background_job(state, "cat a.txt", timeout=60, working_dir="/data")
    assert (ran.completed, ran.exit_code, ran.stdout) == (True, 0, "a")
    (tmp_path / "local.txt").write_text("of here")
    await env.upload_file(made, "/data/d.txt", tmp_path / "local.txt")
    assert await env.read_file(made, "/data/d.txt") == "of here"
    await env.delete_sandbox(made)
    assert env.active_sandboxes == set()
    with pytest.raises(SandboxSetupError, match="no"):
        await env.create_sandbox(vf.State(fails=True), CreateSandboxRequest(name="mine"))
    assert len(sandboxes_in_use()) == 1
    env.close()
    assert (env.active_sandboxes, sandboxes_in_use()) == (set(), [])


@pytest.mark.parametrize(
    ("own", "seconds", "minutes"), [(None, None, 1440), (None, 61, 62), (None, 60, 61), (None, 10**6, 1440), (7, 61, 7), (0, None, 0)]
)
def test_the_hosted_service_would_keep_a_sandbox_for_an_hour_more_than_a_rollout_takes(own: Any, seconds: Any, minutes: int) -> None:
    class Mine(SandboxMixin):
        sandbox_timeout_minutes, timeout_seconds = own, seconds

    assert Mine().compute_sandbox_timeout_minutes() == minutes


@pytest.mark.parametrize(
    ("state", "oom", "timeout"),
    [
        ({}, 0.0, 0.0),
        ({"sandbox_oom": True}, 1.0, 0.0),
        ({"sandbox_timeout": True}, 0.0, 1.0),
        ({"error": vf.SandboxError("its programs used up its memory")}, 1.0, 0.0),
        ({"error": vf.SandboxError("no room")}, 0.0, 0.0),
        ({"error": ValueError("used up its memory")}, 0.0, 0.0),
    ],
)
async def test_how_sandboxes_ended_is_measured(state: dict[str, Any], oom: float, timeout: float) -> None:
    scored = vf.State(trajectory=[], **state)
    await SandboxMonitorRubric().score_rollout(scored)
    assert (scored["metrics"], scored["reward"]) == ({"sandbox_oom": oom, "sandbox_timeout": timeout}, 0.0)


async def test_an_environment_that_made_no_client_is_torn_down_all_the_same() -> None:
    class Mine(SandboxMixin, vf.SingleTurnEnv): ...

    await Mine(dataset=[{"question": "?"}]).teardown_sandboxes()
