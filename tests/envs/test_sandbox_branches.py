"""Going back in episodes with a sandbox: what was written is there for a branch, wherever it was; what cannot be copied is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.models import calling
from tests.sandboxes.making import need
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import EpisodeNotPicklable, SandboxError
from vfgym.sandboxes import Sandbox
from vfgym.state import State

pytestmark = needs_sandbox

ROWS = [{"question": "Write the number.", "answer": "7"}]


class Writing(vfgym.SandboxEnv):
    def __init__(self, **kwargs: Any) -> None:
        def is_right(state: State, answer: str) -> float:
            return float(state["written"] == f"{answer}\n")

        super().__init__(**{"dataset": ROWS, "rubric": vfgym.Rubric(is_right), "backend": "bwrap", "max_turns": -1, **kwargs})

    async def post_rollout(self, state: State) -> None:
        state["written"] = (await state["sandbox"].exec("cat number.txt")).stdout


@pytest.fixture(autouse=True)
def _need_bubblewrap() -> None:
    need("bwrap")


def bash(env: Any, command: str) -> str:
    return str(env.step(calling(("bash", {"command": command}))).observation[-1].content)


EVERYWHERE = """
mkdir -p deep/empty /app/src && chmod 750 deep/empty && echo 1 > deep/one && printf '\\0\\377' > bytes
ln -s deep/one link && ln -s nowhere lost
echo 2 > /app/src/two && echo 3 > /tmp/three && echo 4 > ~/.four && echo 5 > /dev/shm/five && echo 'exit 6' > run && chmod 755 run
mkdir locked && echo 7 > locked/seven && chmod 400 locked/seven && chmod 500 locked
"""
LISTING = """
find deep bytes link lost run locked /app /tmp /dev/shm ~ -printf '%p %y %m %l\\n' | sort
cat deep/one link /app/src/two /tmp/three ~/.four /dev/shm/five locked/seven; od -c bytes; ./run; echo $?
"""


def test_a_branch_has_the_files_and_what_comes_later_stays_apart() -> None:
    env = Writing()
    env.reset(seed=0)
    bash(env, EVERYWHERE)
    before = bash(env, LISTING)
    assert before.endswith("\n6")
    branch = env.branch()
    assert (len(sandboxes_in_use()), bash(branch, LISTING)) == (2, before)
    bash(env, "echo 7 > number.txt")
    bash(branch, "echo 8 > number.txt; rm -r deep")
    assert (bash(env, LISTING), env.step("done").reward, branch.step("done").reward) == (before, 1.0, 0.0)
    assert sandboxes_in_use() == []


def test_a_moment_can_be_gone_back_to_from_elsewhere_and_as_often_as_one_likes() -> None:
    env = Writing()
    env.reset(seed=0)
    bash(env, "echo 7 > number.txt")
    moment = pickle.loads(pickle.dumps(env.snapshot()))
    bash(env, "echo 8 > number.txt")
    assert env.step("done").reward == 0.0
    other = Writing()
    for seat in (other, env, other):
        observation, _ = seat.restore(moment)
        assert (len(observation), len(sandboxes_in_use())) == (3, 1 if seat is not env else 2)
        assert bash(seat, "cat number.txt") == "7"
        if seat is env:
            assert seat.step("done").reward == 1.0
    other.close()
    assert sandboxes_in_use() == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("mkfifo pipe", "/workspace/pipe"),
        ("mkdir secret && echo 1 > secret/a && chmod 000 secret", "secret"),
        ("chmod 700 ~", "It was there from the beginning, and was changed"),
    ],
)
def test_what_a_copy_cannot_have_is_refused_and_the_episode_goes_on(command: str, said: str) -> None:
    env = Writing()
    env.reset(seed=0)
    bash(env, command)
    with pytest.raises(EpisodeNotPicklable, match=said):
        env.branch()
    assert len(sandboxes_in_use()) == 1
    bash(env, "echo 7 > number.txt")
    assert env.step("done").reward == 1.0


def test_interpreters_are_not_copied() -> None:
    class Reading(Writing):
        async def env_response(self, messages: Any, state: State, **kwargs: Any) -> Any:
            await state["sandbox"].python("x = 1")
            return await super().env_response(messages, state, **kwargs)

    env = Reading()
    env.reset(seed=0)
    bash(env, "true")
    with pytest.raises(EpisodeNotPicklable, match="without the interpreter of its cells"):
        env.snapshot()
    env.close()
    cells = vfgym.PythonEnv(dataset=ROWS, backend="bwrap")
    assert not cells.can_go_back
    cells.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match="PythonEnv has more in it than files"):
        cells.branch()
    cells.close()
    assert sandboxes_in_use() == []


def test_sandboxes_whose_other_files_nobody_knows_are_not_copied() -> None:
    env = Writing(backend="unsafe")
    assert not env.can_go_back
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match="without files that are not in its working directory"):
        env.branch()
    env.close()


def test_nothing_is_left_of_a_branch_that_could_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Writing()
    env.reset(seed=0)
    [own] = sandboxes_in_use()

    async def fail(self: Sandbox, snapshot: Any) -> None:
        raise SandboxError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("vfgym.sandboxes.agent_sandbox.AgentSandbox.restore", fail)
        with pytest.raises(SandboxError, match="the disk is full"):
            env.branch()
    assert sandboxes_in_use() == [own]
    env.close()
