"""HTTP on loopback: the model server beside a bare one, the ways to ask a server, and rollouts that ask one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import MICROSECONDS, MILLISECONDS, Bench, Figure, beside, cpu, passed
from benchmarks.rollouts import evaluation, exact, questions
from benchmarks.servers import served

if TYPE_CHECKING:
    from vfgym.clients import Client, ClientConfig

LATENCY = 0.02
"""Seconds that a server takes where clients are measured."""
AT_ONCE = 256
SAMPLING = {"temperature": 0.7, "max_tokens": 100}

Ask = Callable[[], Awaitable[Any]]
Way = Callable[[str], contextlib.AbstractAsyncContextManager[Ask]]


def prompt() -> list[Any]:
    """Return a conversation of a few messages."""
    from vfgym.messages import AssistantMessage, SystemMessage, UserMessage

    return [
        SystemMessage("You are a careful assistant. " * 10),
        UserMessage("What is the capital of Norway? " * 10),
        AssistantMessage("Oslo. " * 20),
        UserMessage("And of Sweden?"),
    ]


# Ways to ask


@contextlib.asynccontextmanager
async def plain_sdk(url: str) -> AsyncIterator[Ask]:
    """Ask with OpenAI's client as it comes."""
    import openai

    messages: Any = [dict(message) for message in prompt()]
    async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1") as client:
        yield lambda: client.chat.completions.create(model="m", messages=messages, temperature=0.7, max_completion_tokens=100)


@contextlib.asynccontextmanager
async def raw_aiohttp(url: str) -> AsyncIterator[Ask]:
    """Post a prepared body and parse what comes back."""
    import aiohttp

    body = json.dumps({"model": "m", "messages": prompt(), **SAMPLING}).encode()

    async def ask() -> Any:
        async with session.post(f"{url}/v1/chat/completions", data=body, headers={"Content-Type": "application/json"}) as response:
            return json.loads(await response.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield ask


def through(make: Callable[[ClientConfig], Client], path: str = "/v1") -> Way:
    """Return a way to ask with one of the library's clients."""

    @contextlib.asynccontextmanager
    async def way(url: str) -> AsyncIterator[Ask]:
        from vfgym.clients import ClientConfig

        client, messages = make(ClientConfig(api_base_url=url + path, api_key="k")), prompt()
        try:
            yield lambda: client.get_response(messages, "m", SAMPLING)  # type: ignore[arg-type]
        finally:
            await client.close()

    return way


def ways() -> dict[str, Way]:
    """Return ways to ask, by their names."""
    from vfgym.clients.providers.anthropic_messages import AnthropicMessagesClient
    from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient

    class ThroughTheSDK(OpenAIChatCompletionsClient):
        async def from_native_response(self, response: Any) -> Any:  # a conversion of its own, which the SDK is asked for then
            return await super().from_native_response(response)

    return {
        "OpenAIChatCompletionsClient": through(OpenAIChatCompletionsClient),
        "the OpenAI SDK on this library's transport": through(ThroughTheSDK),
        "the Anthropic SDK on this library's transport": through(AnthropicMessagesClient, ""),
    }


async def asked(way: Way, url: str, bench: Bench, requests: int, at_once: int, measure: Callable[[], float]) -> tuple[float, float]:
    """Return the most requests a second of some rounds, and the least that `measure` grew for a request."""
    rates, costs = [], []
    async with way(url) as ask:

        async def worker(count: int) -> None:
            for _ in range(count):
                await ask()

        async def run(each: int) -> None:
            await asyncio.gather(*(worker(each) for _ in range(at_once)))

        await run(1)  # opens the connections
        each = max(1, requests // at_once)
        clock = asyncio.get_running_loop().time
        for _ in range(bench.count(3, 1)):
            began, before = clock(), measure()
            await run(each)
            rates.append(each * at_once / (clock() - began))
            costs.append((measure() - before) / (each * at_once))
    return max(rates), min(costs)


# Measurements


def model_server(bench: Bench) -> Iterator[Figure]:
    """What a request costs the model server (`vfgym serve-model`) that answers at once, beside a server of prepared bytes."""
    for connections in (64, 1000)[: bench.count(2, 1)]:
        found = []
        for kind in ("model", "bare"):
            with served(kind, 0.0) as server:
                requests = bench.count(6000, 128)
                found.append(asyncio.run(asked(raw_aiohttp, server.url, bench, requests, connections, server.cpu)))
        (rate, cost), (bare_rate, bare_cost) = found
        name, peer = f"model server, {connections:,} connections", "a bare aiohttp server"
        yield Figure(f"{name}: its CPU for a request", cost * MICROSECONDS, "µs", None, bare_cost * MICROSECONDS, peer)
        yield Figure(f"{name}: requests", rate, "/s", None, bare_rate, peer, more_is_better=True)


def clients(bench: Bench) -> Iterator[Figure]:
    """Requests a second and CPU time of a request, 256 at once, to a server that takes 20 ms; beside OpenAI's own client as it comes."""
    import time

    with served("bare", LATENCY) as server:

        def measured(way: Way) -> tuple[float, float]:
            return asyncio.run(asked(way, server.url, bench, bench.count(2560, 64), bench.count(AT_ONCE, 16), time.process_time))

        peer_name = "AsyncOpenAI as it comes"
        peer_rate, peer_cost = measured(plain_sdk)
        for name, way in {**ways(), "raw aiohttp": raw_aiohttp}.items():
            rate, cost = measured(way)
            yield Figure(f"{name}: requests", rate, "/s", None, peer_rate, peer_name, more_is_better=True)
            yield Figure(f"{name}: CPU of a request", cost * MILLISECONDS, "ms", None, peer_cost * MILLISECONDS, peer_name)


@beside("verifiers")
def rollouts_over_http(bench: Bench) -> Iterator[Figure]:
    """Single-turn rollouts through `evaluate`, 256 at once, with a server that takes 20 ms."""
    vf, count = bench.vf, bench.count(2000, 64)
    env = vf.SingleTurnEnv(dataset=questions(bench, count), rubric=vf.Rubric(funcs=[exact]))
    with served("bare", LATENCY, bench.ours) as server:
        config = vf.ClientConfig(api_base_url=f"{server.url}/v1", api_key_var="NO_SUCH_KEY")
        run = evaluation(env, config, max_concurrent=AT_ONCE, independent_scoring=True)
        seconds = []

        def used() -> float:
            return cpu(lambda: seconds.append(passed(run)))

        [least] = bench.best(used)
    yield Figure("rollouts over HTTP, 256 at once", count / min(seconds), "/s", 2000.0, more_is_better=True)
    yield Figure("CPU of a rollout over HTTP", least / count * MILLISECONDS, "ms", 0.3)


MEASUREMENTS = (model_server, clients, rollouts_over_http)
