"""Steps of a vector, sent and received: everything waits at once, bad input moves nobody, and nothing that was returned is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.environments import Echo, Talk
from tests.interruptions import ctrl_c
from vfgym.aio.background import background_loop, wait
from vfgym.errors import ConfigurationError, EpisodeBusy, InvalidAction, ResetNeeded
from vfgym.vector import ChatVectorEnv


class Gate(Talk):
    """Answers once it is let through, by the words of the last message: one gate for each of them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.gates: dict[str, asyncio.Event] = {}

    async def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:
        await self.gates.setdefault(messages[-1].content, asyncio.Event()).wait()
        return [vfgym.UserMessage(f"let through with {messages[-1].content}")]


class Together(Talk):
    """Answers once so many episodes ask at once: otherwise never."""

    def __init__(self, count: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.count = count
        self.barrier = threading.Barrier(count, timeout=20)
        self.asking = 0

    async def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:
        self.asking += 1
        while self.asking % self.count:
            await asyncio.sleep(0)
        return [vfgym.UserMessage("all are here")]


class Threads(Together):
    @vfgym.blocking
    def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:  # type: ignore[override]
        self.barrier.wait()
        return [vfgym.UserMessage("all are here")]


def open_gate(env: Gate, *words: str) -> None:
    """Let episodes through, from whatever thread we are on."""

    async def let_through() -> None:
        for word in words:
            env.gates.setdefault(word, asyncio.Event()).set()

    wait(let_through())


def turns(envs: ChatVectorEnv) -> list[int]:
    return [len(state["trajectory"]) for state in envs.get_attr("state")]


@pytest.mark.parametrize("kind", [Together, Threads])
@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gym.wrappers.TimeLimit(env, 9)])
def test_all_environments_of_a_step_wait_at_once(kind: type[Together], wrap: Callable[[Any], Any]) -> None:
    """Async hooks on the loop and blocking ones on threads, inside wrappers or not: more of them than a pool has by itself."""
    count = 150 if kind is Threads else 40
    envs = ChatVectorEnv(wrap(kind(count)), count)
    envs.reset(seed=0)
    observations, *_ = envs.step(["?"] * count)
    assert {conversation[-1].content for conversation in observations} == {"all are here"}
    envs.close()


@pytest.mark.parametrize(
    ("actions", "error", "says"),
    [
        ("hello", InvalidAction, "actions must be a list with one for each of 3 environments, got one str"),
        (["a", "b"], InvalidAction, "expected 3, got 2"),
        (["a", "b", 3], InvalidAction, "environment 2: an action must be an assistant message"),
        (["a", "b", None], InvalidAction, "environment 2"),
        (["a", {"role": "user", "content": "b"}, "c"], InvalidAction, "environment 1: .*role 'user'"),
    ],
)
def test_after_a_bad_action_nobody_has_moved(actions: Any, error: type[Exception], says: str) -> None:
    """A wrong one, a wrong number of them, or what is no list; also where they are sent."""
    envs = ChatVectorEnv(Echo(), 3)
    envs.reset(seed=0)
    envs.step(["a", "b", "c"])
    with pytest.raises(error, match=says):
        envs.step(actions)
    with pytest.raises(error, match=says):
        envs.send(actions, [0, 1, 2])
    assert turns(envs) == [1, 1, 1]
    envs.step(["a", "b", "c"])
    assert turns(envs) == [2, 2, 2]
    envs.close()


def test_an_environment_that_cannot_be_stepped_keeps_the_others_where_they_are() -> None:
    """Before the first reset, at the end of an episode that nobody resets, while it is busy, and after closing."""
    env = Gate(max_turns=2)
    envs = ChatVectorEnv(env, 2, autoreset_mode="Disabled")
    with pytest.raises(ResetNeeded, match="environment 0: no episode has begun"):
        envs.step(["a", "b"])
    envs.reset(seed=0)
    envs.send(["a"], [1])
    with pytest.raises(EpisodeBusy, match="environment 1 was sent an action"):
        envs.step(["b", "b"])
    open_gate(env, "a", "b")
    assert envs.recv()[-1]["env_id"].tolist() == [1]
    _, _, _, truncations, _ = envs.step(["a", "b"])
    assert (turns(envs), truncations.tolist()) == ([1, 2], [False, True])
    with pytest.raises(ResetNeeded, match="environment 1: its episode is over"):
        envs.step(["a", "b"])
    assert turns(envs) == [1, 2]
    envs.reset(options={"reset_mask": np.array([False, True])})
    envs.step(["a", "b"])
    assert turns(envs) == [2, 1]
    envs.close()
    with pytest.raises(ConfigurationError, match="closed"):
        envs.step(["a", "b"])


def test_those_that_are_ready_are_received_first() -> None:
    """As many as were asked for, or more; each says which environment it is. What is not ready in time is not lost."""
    env = Gate()
    envs = ChatVectorEnv(env, 4)
    envs.reset(seed=0)
    with pytest.raises(ConfigurationError, match="recv waits for 1 environments, and none were sent"):
        envs.recv()
    envs.send(["a", "b", "c"], np.array([3, 1, 0]))
    open_gate(env, "a")
    observations, rewards, terminations, truncations, infos = envs.recv()
    assert observations[0][-1].content == "let through with a"
    assert (len(observations), rewards.tolist(), terminations.tolist(), truncations.tolist()) == (1, [0.0], [False], [False])
    assert (infos["env_id"].tolist(), infos["env_id"].dtype, infos["example_id"].tolist()) == ([3], np.int64, [0])
    with pytest.raises(ConfigurationError, match="waits for 3 environments, and 2 were sent"):
        envs.recv(min_ready=3)
    open_gate(env, "b")
    with pytest.raises(TimeoutError, match=r"1 of 2 environments were ready within 0\.01 s"):
        envs.recv(min_ready=2, timeout=0.01)
    envs.send(["a"], [3])
    open_gate(env, "c")
    observations, *_, infos = envs.recv(min_ready=3, timeout=20)
    assert infos["env_id"].tolist() == [0, 1, 3]
    assert [conversation[-1].content[-1] for conversation in observations] == ["c", "b", "a"]
    envs.close()


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        ([4, 0], ConfigurationError, "no environment 4: ids are integers from 0 to 3"),
        ([0, 1, 2], InvalidAction, "expected 3, got 2"),
        ([2, 3], EpisodeBusy, "environment 2 was sent an action"),
    ],
)
def test_unknown_and_busy_ids_are_errors(ids: Any, error: type[Exception], says: str) -> None:
    """Nobody has moved then."""
    envs = ChatVectorEnv(Gate(), 4)
    envs.reset(seed=0)
    envs.send(["never"], [2])
    with pytest.raises(error, match=says):
        envs.send(["a", "b"], ids)
    assert turns(envs) == [0, 0, 1, 0]
    wrong: list[Any] = [{"min_ready": 0}, {"min_ready": 1.5}, *({"timeout": value} for value in (-1, "1", True, float("nan")))]
    for arguments in wrong:
        with pytest.raises(ConfigurationError, match="must be"):
            envs.recv(**arguments)
    with pytest.raises(TimeoutError, match="0 of 1 environments were ready within 0 s"):
        envs.recv(timeout=0)
    envs.reset(seed=0)  # gives up what runs
    assert turns(envs) == [0, 0, 0, 0]
    envs.close()


def test_ctrl_c_ends_the_waiting_and_loses_nothing() -> None:
    """A step is interrupted while its environments wait; what they return can be received."""

    class Interrupted(Gate):
        async def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:
            if messages[-1].content == "interrupt":
                interrupt()
            return await super().env_response(messages, state)

    with ctrl_c() as interrupt:
        env = Interrupted()
        envs = ChatVectorEnv(env, 2)
        envs.reset(seed=0)
        with pytest.raises(KeyboardInterrupt):
            envs.step(["a", "interrupt"])
        open_gate(env, "a", "interrupt")
        assert envs.recv(min_ready=2)[-1]["env_id"].tolist() == [0, 1]
        envs.close()


def test_closing_gives_up_what_runs_and_cleans_up() -> None:
    env = Gate()
    envs = ChatVectorEnv(env, 3)
    envs.reset(seed=0)
    envs.send(["never"], [1])
    envs.close()
    assert env.cleaned == 3


def test_many_that_are_plain_let_others_have_their_turn() -> None:
    """A step that computes for long is interrupted now and then, so that what waits elsewhere on the loop goes on."""

    class Computes(Echo):
        def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:
            until = time.perf_counter() + 0.003
            while time.perf_counter() < until:
                pass
            return super().env_response(messages, state)

    seen: list[int] = []

    async def count_turns() -> None:
        while len(seen) < 3:
            seen.append(1)
            await asyncio.sleep(0)

    envs = ChatVectorEnv(Computes(), 20)
    envs.reset(seed=0)
    envs.send(["?"] * 20, range(20))
    asyncio.run_coroutine_threadsafe(count_turns(), background_loop()).result(20)
    envs.recv(min_ready=20)
    assert len(seen) == 3
    envs.close()


class WaitsInPlainCode(Together):
    """A plain hook that calls an environment whose hook is async."""

    def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:  # type: ignore[override]
        other = self.other.fork()
        other.reset(seed=0)
        return [other.step("?").observation[-1]]

    other: Together


def test_plain_hooks_may_wait() -> None:
    """Code that is not async, and calls something that is: others go on meanwhile."""
    env = WaitsInPlainCode(1)
    env.other = Together(3)
    envs = ChatVectorEnv(env, 3)
    envs.reset(seed=0)
    observations, *_ = envs.step(["?"] * 3)
    assert [conversation[-1].content for conversation in observations] == ["all are here"] * 3
    envs.close()
