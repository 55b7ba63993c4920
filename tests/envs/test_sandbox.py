"""`SandboxEnv`: commands run in a sandbox of the episode, the model reads what came of them, and nothing is left whatever ends it."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import gymnasium
import pytest

import vfgym
from tests.agent_programs import needs_sandbox, running
from tests.models import InOrder, calling
from vfgym import sandboxes
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, ModelError, SandboxError
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State
from vfgym.vector import ChatVectorEnv

pytestmark = needs_sandbox

ROWS = [{"question": "Write the number.", "answer": "7"}]
WRITE = calling(("bash", {"command": "echo 7 > number.txt"}))


class Writing(vfgym.SandboxEnv):
    def __init__(self, **kwargs: Any) -> None:
        def is_right(state: State, answer: str) -> float:
            return float(state.get("written") == f"{answer}\n")

        super().__init__(**{"dataset": ROWS, "rubric": vfgym.Rubric(is_right), **kwargs})

    async def post_rollout(self, state: State) -> None:
        state["written"] = (await state["sandbox"].exec("cat number.txt")).stdout


def bash(env: Any, command: str) -> str:
    return str(env.step(calling(("bash", {"command": command}))).observation[-1].content)


def test_the_model_reads_what_came_of_each_command() -> None:
    env = vfgym.SandboxEnv(timeout_per_command_seconds=0.4, dataset=ROWS, max_turns=20, sandbox=SandboxSpec(working_dir="/app/src"))
    _, info = env.reset(seed=0)
    [tool] = info["tools"]
    assert (tool["function"]["name"], list(tool["function"]["parameters"]["properties"])) == ("bash", ["command"])
    assert (bash(env, "printf '  a\\nb  \\n\\n'"), bash(env, "echo out; echo err >&2; exit 3")) == ("a\nb", "out\nstderr:\nerr")
    assert (bash(env, "echo err >&2"), bash(env, "true")) == ("stderr:\nerr", "(no output)")
    assert bash(env, "echo begun; sleep 60") == "Error: Command timed out after 0.4s"
    assert bash(env, "pwd; mkdir -p /opt/mine; echo x > /opt/mine/file; cat /opt/mine/file") == "/app/src\nx"
    assert bash(env, "no-such-program").endswith("no-such-program: command not found")
    *_, info = env.step("done")
    assert info["stop_condition"] == "no_tools_called"
    times = env.episode.state["sandbox_state"]["command_execution_times"]
    assert (len(times), times[4]) == (7, 0.4)
    assert info["metrics"]["sandbox_command_execution_time"] == pytest.approx(sum(times) / 7)
    assert info["metrics"]["sandbox_ready_wait_time"] > 0
    assert info["metrics"]["bash_calls"] == 7


async def test_stepped_and_rolled_out_episodes_are_the_same_and_leave_nothing() -> None:
    env = Writing()
    await env.areset(seed=0)
    assert len(sandboxes_in_use()) == 1
    await env.astep(WRITE)
    *_, reward, terminated, _, _ = await env.astep("done")
    rolled_out = await env.rollout(env.tasks.input(0), InOrder(WRITE, "done"), "m")
    stepped = env.episode.state
    assert (reward, terminated, sandboxes_in_use()) == (1.0, True, [])
    assert (stepped["written"], stepped["completion"]) == (rolled_out["written"], rolled_out["completion"])
    assert pickle.loads(pickle.dumps(dict(stepped)))["sandbox_id"].startswith("vfgym-")  # nothing that lives is left in it


def test_runs_forks_and_vectors_play_each_episode_in_a_sandbox_of_its_own() -> None:
    env = Writing()
    results = vfgym.evaluate(
        env, lambda observation, info: WRITE if len(observation) == 1 else "done", rollouts_per_example=3, progress=False
    )
    assert results["metadata"]["avg_reward"] == 1.0
    vector = ChatVectorEnv([env.fork, env.fork])
    vector.reset(seed=0)
    assert len(sandboxes_in_use()) == 2
    vector.step([WRITE, WRITE])
    _, rewards, terminated, *_ = vector.step(["done", "done"])
    assert (list(rewards), list(terminated)) == ([1.0, 1.0], [True, True])
    vector.close()
    env.close()
    assert sandboxes_in_use() == []


@pytest.mark.parametrize("how", ["close", "reset", "truncate", "max_turns", "model", "hook", "cancelled"])
async def test_whatever_ends_an_episode_closes_its_sandbox_once(how: str) -> None:
    class Failing(vfgym.SandboxEnv):
        async def post_rollout(self, state: State) -> None:
            raise ValueError("no")

    env = (Failing if how == "hook" else vfgym.SandboxEnv)(dataset=ROWS, max_turns=1 if how == "max_turns" else 9)
    await env.areset(seed=0)
    [first] = sandboxes_in_use()
    sandbox = env.episode.state["sandbox"]
    sleep = calling(("bash", {"command": "sleep 600; : vfgym-sandbox-test"}))
    if how == "close":
        await env.aclose()
    elif how == "reset":
        await env.areset(seed=0)
        assert first not in sandboxes_in_use()
        await env.aclose()
    elif how == "truncate":
        await env.atruncate()
    elif how == "max_turns":
        await env.astep(WRITE)
    elif how == "model":
        await env.afail(ModelError("gone"))
    elif how == "hook":
        with pytest.raises(ValueError, match="no"):
            await env.astep("done")
    else:
        step = asyncio.create_task(env.astep(sleep))
        while not running("vfgym-sandbox-test"):
            await asyncio.sleep(0)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
    assert sandboxes_in_use() == []
    assert not sandbox.is_alive
    assert running("vfgym-sandbox-test") == []


async def test_a_sandbox_that_has_ended_is_the_error_of_its_episode() -> None:
    env = vfgym.SandboxEnv(dataset=ROWS)
    await env.areset(seed=0)
    await env.episode.state["sandbox"].close()
    *_, terminated, _, info = await env.astep(WRITE)
    error = env.episode.state["error"]
    assert (terminated, info["stop_condition"]) == (True, "has_error")
    assert isinstance(error.__cause__, SandboxError)
    assert "the sandbox is closed" in repr(error)


def test_a_sandbox_is_not_pickled_and_an_environment_between_episodes_is() -> None:
    env = Writing()
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match="a sandbox cannot be pickled or copied: reset"):
        pickle.dumps(env)
    env.close()
    copied = pickle.loads(pickle.dumps(vfgym.SandboxEnv(dataset=ROWS)))
    copied.reset(seed=0)
    assert bash(copied, "echo again") == "again"
    copied.close()


def test_tools_and_wrappers_of_the_author_go_beside_bash() -> None:
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()

    env = gymnasium.wrappers.TimeLimit(vfgym.SandboxEnv(tools=[shout], dataset=ROWS), 2)
    env.reset(seed=0)
    observation, *_ = env.step(calling(("shout", {"text": "a"}), ("bash", {"command": "echo b"})))
    assert [message.content for message in observation[-2:]] == ["A", "b"]
    env.step("done")
    env.close()


def test_bad_input_is_refused_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="timeout_per_command_seconds must be a number of seconds above 0, got 0"):
        vfgym.SandboxEnv(0, dataset=ROWS)
    with pytest.raises(ConfigurationError, match="the backend bwrap has no images"):
        vfgym.SandboxEnv(dataset=ROWS, sandbox=SandboxSpec(image="acme/tools"), backend="bwrap")
    monkeypatch.setenv("PATH", "")
    sandboxes.bwrap._find_problem.cache_clear()  # type: ignore[attr-defined]
    try:
        for cls in (vfgym.SandboxEnv, vfgym.PythonEnv):
            with pytest.raises(ConfigurationError, match=r"bwrap.* is not installed. To install it: apt-get install bubblewrap"):
                cls(dataset=ROWS, backend="bwrap")
    finally:
        monkeypatch.undo()
        sandboxes.bwrap._find_problem.cache_clear()  # type: ignore[attr-defined]


def test_a_sandbox_that_is_kept_for_scoring_is_closed_where_an_episode_is_not_scored() -> None:
    class Broken(vfgym.SandboxEnv):
        async def post_rollout(self, state: State) -> None:
            raise ValueError("a defect of the environment")

    env = Broken(dataset=ROWS, keep_sandbox_for_scoring=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="a defect of the environment"):
        env.step("done")
    assert sandboxes_in_use() == []
    env.close()
