"""Attacks on ``docs/limits.md``: each test says what is attempted; the table at the end of that page has its sentence."""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.clients.canned_server import COMPLETION, HANG, Canned, canned_server
from vfgym.errors import ConfigurationError, LimitReached
from vfgym.model_server import ModelServer


def agent_of(url: str, model: str = "echo", **config: Any) -> vfgym.ModelAgent:
    return vfgym.ModelAgent(vfgym.ClientConfig(api_base_url=url, api_key_var="NONE", **config), model)


def quiz(reward: Callable[..., Any] = lambda completion: 1.0, size: int = 10) -> vfgym.SingleTurnEnv:
    return vfgym.SingleTurnEnv([{"question": str(n)} for n in range(size)], rubric=vfgym.Rubric(reward), failure_reward=0.0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def test_a_judge_that_takes_no_refusal_and_no_cancellation_asks_no_more_than_is_allowed(server: ModelServer) -> None:
    """It is refused, cancelled when the run ends, and goes on asking: what it cancelled had been sent, and counted as nothing."""
    agent = agent_of(server.openai_url)

    async def judge(completion: Any) -> float:
        for number in range(30):
            try:
                await agent.clients[0].get_response([vfgym.UserMessage(f"judge {number}")], "echo")
            except BaseException:
                pass
        return 1.0

    for number in range(1, 4):
        metadata = vfgym.evaluate(quiz(judge), agent, limits={"requests": 12}, max_concurrent=3, progress=False)["metadata"]
        assert metadata["stopped_by"] == {"limit": "requests", "allowed": 12, "used": 12}
        assert server.num_requests <= 12 * number


async def test_requests_that_are_given_up_count_since_the_server_has_them() -> None:
    """Somebody asks, goes away, and asks again: each is one request to the server that hangs."""
    async with canned_server(HANG) as hanging:
        client = agent_of(hanging.url).clients[0]
        with vfgym.limit(requests=4) as meter:
            for number in range(4):
                asking = asyncio.create_task(client.get_response([vfgym.UserMessage(str(number))], "m"))
                while hanging.num_requests <= number:
                    await asyncio.sleep(0)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
            with pytest.raises(LimitReached):
                await client.get_response([vfgym.UserMessage("one more")], "m")
        assert (meter.spent.requests, meter.spent.errors, hanging.num_requests) == (4, 0, 4)


async def test_threads_that_python_gives_a_context_count_and_bare_ones_do_not(server: ModelServer) -> None:
    client = agent_of(server.openai_url).clients[0]

    def ask() -> None:
        asyncio.run(client.get_response([vfgym.UserMessage("a")], "echo"))

    with vfgym.limit(requests=3) as meter:
        await asyncio.to_thread(ask)
        await vfgym_blocking(ask)
        bare = threading.Thread(target=ask)
        bare.start()
        bare.join()
    assert (meter.spent.requests, server.num_requests) == (2, 3)


async def vfgym_blocking(function: Callable[[], None]) -> None:
    """Call a function as one that is marked as blocking is called, on a thread of the library."""

    @vfgym.blocking
    def reward(completion: Any) -> float:
        function()
        return 1.0

    await vfgym.aevaluate(quiz(reward, size=1), lambda observation, info: "a", progress=False)


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf, -math.inf, True, "5", [1], 1.5])
def test_what_is_not_a_positive_number_is_refused_before_anything_is_asked(server: ModelServer, limit: Any) -> None:
    agent = agent_of(server.openai_url)
    for name in ("tokens", "requests", "errors"):
        with pytest.raises(ConfigurationError, match=f"the limit {name} must be a positive"):
            vfgym.evaluate(quiz(), agent, limits={name: limit}, progress=False)
    for name in ("tokens", "turns"):
        with pytest.raises(ConfigurationError, match=f"the limit {name} must be a positive"):
            vfgym.evaluate(quiz(), agent, limits_each={name: limit}, progress=False)
    if limit != 1.5:
        with pytest.raises(ConfigurationError, match="the limit time must be a positive"):
            vfgym.evaluate(quiz(), agent, limits={"time": limit}, progress=False)
    assert server.num_requests == 0


@pytest.mark.parametrize("error", [LimitReached("tokens", 1, 1), asyncio.CancelledError(), SystemExit(0)])
def test_an_agent_that_pretends_a_limit_or_an_end_stops_no_run_and_gains_nothing(error: BaseException) -> None:
    def agent(observation: Any, info: Any) -> str:
        if observation[-1]["content"] == "1":
            raise error
        return "a"

    results = vfgym.evaluate(quiz(size=4), agent, limits={"tokens": 1000}, progress=False)
    assert results["metadata"]["stopped_by"] is None
    assert [row["counted_reward"] for row in results["outputs"]] == [1.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("retry_after", ["inf", "1e9", "9" * 5000, "-5", "nan", "never", "Wed, 21 Oct 1990 07:28:00 GMT"])
async def test_a_provider_that_asks_to_wait_for_ever_holds_nobody(retry_after: str) -> None:
    """What is longer than the longest wait ends the request; what is no time is none."""
    busy = Canned({"error": {"message": "busy"}}, 429, {"retry-after": retry_after})
    async with canned_server(busy, COMPLETION) as server:
        agent = agent_of(server.url, "m", max_retries=1)
        results = await vfgym.aevaluate(quiz(size=1), agent, limits={"time": 100}, progress=False)
    (row,) = results["outputs"]
    is_too_long = retry_after in ("inf", "1e9") or retry_after.startswith("99")
    assert row["ending"] == ("infrastructure_failed" if is_too_long else "terminated")
    assert results["metadata"]["stopped_by"] is None


DAMAGE: dict[str, Callable[[Path], None]] = {
    "overwritten": lambda path: path.write_bytes(b"x" * 200_000) and None,
    "cut": lambda path: os.truncate(path, 100),
    "removed": lambda path: path.unlink(),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_cache_that_is_damaged_while_a_run_uses_it_costs_no_row_and_no_wrong_answer(
    server: ModelServer, how: str, tmp_path: Path
) -> None:
    path = tmp_path / "cache.sqlite"

    def damage(completion: Any, prompt: Any) -> float:
        if prompt[-1]["content"] == "1":
            for each in (path, path.with_name("cache.sqlite-wal")):
                if each.exists():
                    DAMAGE[how](each)
        return float(completion[-1]["content"] == prompt[-1]["content"])

    agent = agent_of(server.openai_url)
    for reward in (damage, lambda completion, prompt: float(completion[-1]["content"] == prompt[-1]["content"])):
        results = vfgym.evaluate(quiz(reward), agent, cache=path, max_concurrent=1, progress=False)
        assert results["metadata"]["avg_reward"] == 1.0
        assert len(results["outputs"]) == 10


def test_a_model_that_never_ends_is_cut_and_gains_nothing(server: ModelServer) -> None:
    """An environment without a limit of turns, and a model that only repeats: the limit of each rollout ends it."""

    class Talk(vfgym.MultiTurnEnv):
        def env_response(self, messages: Any, state: Any) -> list[vfgym.UserMessage]:
            return [vfgym.UserMessage("go on")]

    env = Talk(dataset=[{"question": "a"}], rubric=vfgym.Rubric(lambda completion: float(len(completion))), failure_reward=-1.0)
    for limits in ({"turns": 3}, {"tokens": 40}, {"time": 0.05}):
        (row,) = vfgym.evaluate(env, agent_of(server.openai_url), limits_each=limits, progress=False)["outputs"]
        assert (row["ending"], row["stop_condition"], row["counted_reward"]) == ("cut", "limit_reached", -1.0)
