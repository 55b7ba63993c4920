"""Environments whose rollouts each have a sandbox: how it is made, named and closed."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.models import calling, rolled_out, texts
from vfgym import sandboxes
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec

pytestmark = needs_sandbox

ROWS = [{"question": "Make the tests pass.", "answer": "7"}]


async def test_creating_is_tried_again_and_what_fails_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers_compat.envs.sandbox_env import SandboxCreationError

    create, attempts = sandboxes.create, []

    async def fail(spec: Any, backend: Any = None) -> Any:
        attempts.append(spec)
        if len(attempts) < 3:
            raise vf.SandboxError("no room")
        return await create(spec, backend=backend)

    monkeypatch.setattr(sandboxes, "create", fail, raising=False)
    env = vf.SandboxEnv(dataset=ROWS, max_retries=3, base_delay=0.0)
    assert texts((await rolled_out(env, calling(("bash", {"command": "echo a"})), "done"))["completion"]) == ["a"]
    attempts.clear()
    state = await rolled_out(vf.SandboxEnv(dataset=ROWS, max_retries=2, base_delay=0.0), "never")
    assert isinstance(state["error"], SandboxCreationError)
    assert isinstance(state["error"], vf.InfraError)
    assert (len(attempts), state["trajectory"], str(state["error"])) == (2, [], "a sandbox could not be created: no room")
    with pytest.raises(ConfigurationError, match="max_retries must be the number of attempts"):
        vf.SandboxEnv(dataset=ROWS, max_retries=0)


async def test_a_rollout_may_end_its_sandbox_itself() -> None:
    class Hasty(vf.SandboxEnv):
        @vf.cleanup(priority=10)
        async def hurry(self, state: Any) -> None:
            await self.destroy_sandbox(state)

        async def post_rollout(self, state: Any) -> None:
            state["looked"] = state.get("looked", 0) + 1

    env = Hasty(dataset=ROWS)
    state = await rolled_out(env, "done")
    assert (state["looked"], sandboxes_in_use(), env.active_sandboxes) == (1, [], set())


async def test_a_rollout_that_was_not_ended_is_torn_down() -> None:
    env = vf.SandboxEnv(dataset=ROWS)
    made = await env.open_sandbox(SandboxSpec())
    assert env.active_sandboxes == {made.id}
    await env.teardown_sandboxes()
    assert (env.active_sandboxes, sandboxes_in_use()) == (set(), [])
