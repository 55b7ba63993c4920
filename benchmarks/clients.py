"""Requests a second and CPU time a request of the ways to ask a chat completions server.

Run ``python benchmarks/clients.py``. The server is a process of its own that answers after 20 ms; 256 requests run at once, each a
conversation of a few messages. Nothing asserts on these numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
from aiohttp import web

from vfgym.clients import Client, ClientConfig
from vfgym.clients.providers.anthropic_messages import AnthropicMessagesClient
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.messages import AssistantMessage, Message, SystemMessage, UserMessage

ROUNDS = 3
PROMPT: list[Message] = [
    SystemMessage("You are a careful assistant. " * 10),
    UserMessage("What is the capital of Norway? " * 10),
    AssistantMessage("Oslo. " * 20),
    UserMessage("And of Sweden?"),
]
SAMPLING = {"temperature": 0.7, "max_tokens": 100}
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Stockholm. " * 20}}],
    "usage": {"prompt_tokens": 200, "completion_tokens": 60, "total_tokens": 260},
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Stockholm. " * 20}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 200, "output_tokens": 60},
}


class ThroughTheSDK(OpenAIChatCompletionsClient):
    """Asks through the SDK, as a client with a conversion of its own does."""

    async def from_native_response(self, response: Any) -> Any:
        """Return the response as the library's own."""
        return await super().from_native_response(response)


def serve(port: Connection, latency: float) -> None:
    """Answer every request after `latency` seconds."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(latency)
        return web.Response(body=bodies[request.path], content_type="application/json")

    async def run() -> None:
        app = web.Application()
        for path in bodies:
            app.router.add_post(path, answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        port.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    bodies = {"/v1/chat/completions": json.dumps(CHAT).encode(), "/v1/messages": json.dumps(ANTHROPIC).encode()}
    asyncio.run(run())


@contextlib.contextmanager
def server(latency: float) -> Any:
    """Run the server and yield its URL."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, latency), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{mine.recv()}"
    finally:
        process.terminate()
        process.join()


@contextlib.asynccontextmanager
async def plain_sdk(url: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Ask with the SDK's client as it comes."""
    import openai

    messages: Any = [dict(message) for message in PROMPT]
    async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1") as client:
        yield lambda: client.chat.completions.create(model="m", messages=messages, temperature=0.7, max_completion_tokens=100)


@contextlib.asynccontextmanager
async def raw_aiohttp(url: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Post a prepared body and parse what comes back."""
    body = json.dumps({"model": "m", "messages": PROMPT, **SAMPLING}).encode()

    async def ask() -> Any:
        async with session.post(f"{url}/v1/chat/completions", data=body, headers={"Content-Type": "application/json"}) as response:
            return json.loads(await response.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield ask


def through(kind: Callable[[ClientConfig], Client], path: str = "/v1") -> Callable[[str], Any]:
    """Return a way to ask with one of the library's clients."""

    @contextlib.asynccontextmanager
    async def way(url: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
        client = kind(ClientConfig(api_base_url=url + path, api_key="k"))
        try:
            yield lambda: client.get_response(PROMPT, "m", SAMPLING)
        finally:
            await client.close()

    return way


WAYS: dict[str, Callable[[str], Any]] = {
    "plain AsyncOpenAI": plain_sdk,
    "OpenAI SDK on this library's transport": through(ThroughTheSDK),
    "Anthropic SDK on this library's transport": through(AnthropicMessagesClient, ""),
    "OpenAIChatCompletionsClient": through(OpenAIChatCompletionsClient),
    "raw aiohttp": raw_aiohttp,
}


async def measure(way: Callable[[str], Any], url: str, requests: int, at_once: int) -> tuple[float, float]:
    """Return requests a second and CPU milliseconds a request: the best of some rounds."""
    best = (0.0, float("inf"))
    async with way(url) as ask:

        async def worker(count: int) -> None:
            for _ in range(count):
                await ask()

        async def run(each: int) -> None:
            await asyncio.gather(*(worker(each) for _ in range(at_once)))

        await run(1)  # opens the connections
        each = max(1, requests // at_once)
        for _ in range(ROUNDS):
            began, cpu = time.perf_counter(), time.process_time()
            await run(each)
            rate = each * at_once / (time.perf_counter() - began)
            best = max(best[0], rate), min(best[1], 1000 * (time.process_time() - cpu) / (each * at_once))
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2560)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds that the server takes")
    options = parser.parse_args()
    print(f"{'way':44}{'requests/s':>12}{'CPU ms':>9}")
    with server(options.latency) as url:
        for name, way in WAYS.items():
            rate, cpu = asyncio.run(measure(way, url, options.requests, options.at_once))
            print(f"{name:44}{rate:12.0f}{cpu:9.2f}")


if __name__ == "__main__":
    main()
