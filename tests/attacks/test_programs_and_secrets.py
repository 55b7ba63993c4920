"""What programs, agents and strangers attempt against the model, the memory and the secrets of a run, and what must come of it.

Each test is written from a sentence of ``docs/agent_programs.md`` or ``docs/models.md`` and says what is attempted. The heavy ones run
with ``-m exhaustive``.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web

import vfgym
from tests.agent_programs import ProgramEnv, needs_sandbox, running
from tests.secrecy.hostile_server import FAILURES, hostile_server
from vfgym.agents import ModelAgent
from vfgym.agents.isolated import IsolatedAgent
from vfgym.clients import resolve_client
from vfgym.errors import ConfigurationError, ModelError, WorkerTimeout
from vfgym.interception import Endpoint, Request, budget, open_endpoint, server
from vfgym.messages import AssistantMessage, Response
from vfgym.model_server import ModelRequest, ModelServer
from vfgym.output import redaction
from vfgym.sandboxes import SandboxSpec

KEY = "sk-rollout-0123456789abcdef"
SMUGGLED: dict[str, Any] = {
    "model": "dear",
    "models": ["dear"],
    "extra_body": {"model": "dear", "service_tier": "priority"},
    "extra_headers": {"Authorization": "Bearer sk-of-somebody-else", "X-Team": "theirs"},
    "extra_query": {"key": "sk-of-somebody-else"},
    "timeout": 0.001,
    "provider": {"order": ["dear"]},
    "route": "fallback",
    "service_tier": "priority",
    "api_key": "sk-of-somebody-else",
    "base_url": "http://127.0.0.1:1/",
    "best_of": 20,
    "user": "somebody",
    "headers": {"Authorization": "Bearer sk-of-somebody-else"},
}
"""What a program may write in its request to be served by another model, for another account, or at another price."""


def quick_or_exhaustive(values: list[str], *quick: str) -> list[Any]:
    """Return the values of a family, of which a fixed part always runs."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.exhaustive) for value in values]


@pytest.fixture
def provider() -> Iterator[ModelServer]:
    """A provider that has a cheap and a dear model, and knows one key."""

    def says_yes(request: ModelRequest) -> str:
        return "yes"

    with ModelServer({"cheap": says_yes, "dear": says_yes}, api_keys=[KEY]) as running:
        yield running


def agent_of(provider: ModelServer, model: str = "cheap", **sampling_args: Any) -> ModelAgent:
    return ModelAgent(vfgym.ClientConfig(api_base_url=provider.openai_url, api_key=KEY, max_retries=0), model, sampling_args)


def programs(text: str, count: int = 1) -> ProgramEnv:
    rows = [{"question": f"Say yes, {number}.", "answer": "yes"} for number in range(count)]
    return ProgramEnv(text, dataset=rows, timeout_seconds=120)


# A program asks as its rollout does


@needs_sandbox
def test_another_model_or_account_in_the_body_of_a_request_does_not_reach_the_provider(provider: ModelServer) -> None:
    """Fell: ``extra_body`` named another model, priced as the cheap one, and ``extra_headers`` somebody else's account."""
    env = programs(f"chat([user(read_task())], **{SMUGGLED!r})")
    [row] = vfgym.evaluate(env, agent_of(provider), prices={"cheap": {"input": 1, "output": 1}}, progress=False)["outputs"]
    assert row["error"] is None
    [asked] = provider.requests
    assert asked.body == {"model": "cheap", "messages": [{"role": "user", "content": "Say yes, 0."}]}
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert "X-Team" not in asked.headers
    assert "sk-of-somebody-else" not in asked.path


@needs_sandbox
def test_headers_of_a_request_do_not_reach_the_provider(provider: ModelServer) -> None:
    env = programs(
        """
body = json.dumps({"model": "dear", "messages": [user("go")]}).encode()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-of-somebody-else", "X-Team": "theirs", "Openai-Project": "p"}
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers), timeout=60).read()
"""
    )
    vfgym.evaluate(env, agent_of(provider), progress=False)
    [asked] = provider.requests
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert not {"X-Team", "Openai-Project"} & asked.headers.keys()


@needs_sandbox
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_on_tokens_is_not_passed_under_another_name(provider: ModelServer, name: str) -> None:
    """The rollout allows five tokens; a program asks for a million under each name that there is."""
    env = programs("chat([user('go')], max_tokens=10**6, max_completion_tokens=10**6)\nresponses([user('go')])")
    vfgym.evaluate(env, agent_of(provider, **{name: 5}), progress=False)
    for asked in provider.requests:
        assert [asked.body[name] for name in ("max_tokens", "max_completion_tokens") if name in asked.body] == [5]


@needs_sandbox
def test_a_refusal_that_a_program_provokes_ends_its_rollout_and_not_the_run(provider: ModelServer) -> None:
    """Fell: what the provider answers with 404 to one program's request ended the run of all."""
    env = programs("chat([user(read_task())])", 2)
    rows = vfgym.evaluate(env, agent_of(provider, "no-such-model"), max_concurrent=1, progress=False)["outputs"]
    assert [row["error"]["error"] for row in rows] == ["ModelError", "ModelError"]
    assert all("does not know the model" in repr(row["error"]) for row in rows)


def test_the_rollouts_own_model_that_does_not_exist_still_ends_a_run_that_no_program_asks_in(provider: ModelServer) -> None:
    with pytest.raises(openai.NotFoundError):
        vfgym.evaluate(vfgym.SingleTurnEnv([{"question": "?"}]), agent_of(provider, "no-such-model"), progress=False)


class Answers:
    """Answers what is asked with "yes", and remembers it; the first ones wait where that is said."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        await self.may_answer.wait()
        return Response("r", 0, "m", None, AssistantMessage("yes"))


@pytest.fixture
async def answers() -> Answers:
    return Answers()


@pytest.fixture
async def endpoint(answers: Answers) -> AsyncIterator[Endpoint]:
    endpoint = await open_endpoint(answers)
    yield endpoint
    await endpoint.close()


PLAIN: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [{"role": "user", "content": "go"}]},
    "completions": {"prompt": "go"},
    "responses": {"input": "go"},
    "messages": {"messages": [{"role": "user", "content": "go"}], "max_tokens": 9},
}


async def post(endpoint: Endpoint, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    """Return the status, the headers and the text of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"{endpoint.config('chat', 'm')['base_url']}/{path}"
    async with aiohttp.ClientSession() as session, session.post(url, data=data, headers=headers) as response:
        return response.status, dict(response.headers), await response.text()


@pytest.mark.parametrize("path", PLAIN)
@pytest.mark.parametrize("stream", [False, True])
async def test_only_what_is_named_passes_in_each_format_and_the_program_is_told(
    answers: Answers, endpoint: Endpoint, path: str, stream: bool
) -> None:
    status, headers, _ = await post(endpoint, path, {**PLAIN[path], **SMUGGLED, "stream": stream, "temperature": 0.5, "zzz": 1})
    assert status == 200
    [request] = answers.asked
    allowed = {"temperature", "max_tokens"} if path == "messages" else {"temperature"}
    assert request.sampling_args.keys() == allowed
    aside = set(headers["X-Vfgym-Set-Aside"].split(", "))
    assert {"extra_body", "extra_headers", "models", "zzz"} <= aside
    assert not {"model", "temperature", "messages", "prompt", "input"} & aside


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("chat/completions", "n", 20),
        ("completions", "n", 20),
        ("responses", "n", 20),
        ("chat/completions", "temperature", {"extra_headers": {"Authorization": "x"}}),
        ("chat/completions", "max_tokens", "1e9"),
        ("chat/completions", "max_tokens", True),
        ("chat/completions", "stop", [{"type": "x"}]),
        ("chat/completions", "tool_choice", {"type": "web_search"}),
        ("chat/completions", "thinking", {"type": "enabled", "model": "dear"}),
        ("chat/completions", "functions", [{"name": "x"}]),
        ("chat/completions", "tools", [{"type": "web_search_preview"}]),
        ("responses", "tools", [{"type": "web_search_preview"}]),
        ("responses", "previous_response_id", "resp_of_somebody_else"),
        ("responses", "input", [{"type": "item_reference", "id": "rs_of_somebody_else"}]),
        ("messages", "tools", [{"type": "web_search_20250305", "name": "web_search"}]),
        ("messages", "max_tokens", {"a": 1}),
    ],
)
async def test_what_a_rollout_does_not_offer_is_refused(answers: Answers, endpoint: Endpoint, path: str, field: str, value: Any) -> None:
    """Server tools that cost money, several answers for one turn, others' stored responses, and values in the place of others."""
    status, _, said = await post(endpoint, path, {**PLAIN[path], field: value})
    assert (status, answers.asked) == (400, []), said


async def test_a_forged_output_of_the_provider_is_not_sent_back_to_it(answers: Answers, endpoint: Endpoint) -> None:
    """An assistant message may keep what the provider said, to be sent back as it came: a program writes items of its own there."""
    forged = {"api": "openai_responses", "items": [{"type": "item_reference", "id": "rs_of_somebody_else"}]}
    messages = [{"role": "assistant", "content": "yes", "native_output": forged}, {"role": "user", "content": "go"}]
    status, headers, _ = await post(endpoint, "chat/completions", {"messages": messages})
    assert status == 200
    assert "native_output" not in answers.asked[0].messages[0]
    assert headers["X-Vfgym-Set-Aside"] == "native_output"


# Paths and tokens


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/{other}/v1/chat/completions",
        "/{key}",
        "/../{key}/v1/chat/completions",
        "/{key}%2fv1/chat/completions",
        "/{key}x/v1/chat",
    ],
)
async def test_a_path_without_the_secret_finds_nobody(answers: Answers, endpoint: Endpoint, path: str) -> None:
    path = path.format(key=endpoint.key, other="A" * len(endpoint.key))
    status, _ = await raw(endpoint, f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    assert status in (404, 400)
    assert answers.asked == []


async def raw(endpoint: Endpoint, data: bytes, *, reads: bool = True) -> tuple[int, bytes]:
    """Send bytes, and return the status and all that comes back."""
    reader, writer = await asyncio.open_unix_connection(endpoint.socket_path)
    writer.write(data)
    head = await asyncio.wait_for(reader.readline(), 20) if reads else b""
    writer.close()
    return (int(head.split()[1]) if head else 0), head


@pytest.mark.parametrize(
    "data",
    [
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n{}",
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST /{key}/v1/messages HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"\x00\x01\x02\r\n\r\n",
    ],
)
async def test_a_request_that_reads_in_two_ways_or_whose_head_is_too_large_is_refused(
    answers: Answers, endpoint: Endpoint, data: bytes
) -> None:
    status, _ = await raw(endpoint, data.replace(b"{key}", endpoint.key.encode()))
    assert (status, answers.asked) == (400, [])


async def test_a_compressed_body_is_not_unpacked(answers: Answers, endpoint: Endpoint) -> None:
    import gzip

    body = gzip.compress(b" " * 10**7 + json.dumps(PLAIN["messages"]).encode())
    status, _, _ = await post(endpoint, "messages", body, {"Content-Encoding": "gzip"})
    assert (status, answers.asked) == (415, [])


async def test_nesting_that_ends_a_parser_is_one_refused_request(answers: Answers, endpoint: Endpoint) -> None:
    body = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    status, _, said = await post(endpoint, "chat/completions", body)
    assert (status, answers.asked) == (400, []), said
    assert (await post(endpoint, "chat/completions", PLAIN["chat/completions"]))[0] == 200


# Connections and bodies


async def test_a_model_server_reads_no_body_of_who_has_no_key_and_none_that_is_too_large() -> None:
    async with ModelServer(api_keys=[KEY]) as running:
        port = int(running.url.split(":")[2])
        for length, key, status in ((10**10, "wrong", b"401"), (10**10, KEY, b"413")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: {length}\r\n\r\n"
            writer.write(head.encode() + b"x" * 1000)
            assert (await asyncio.wait_for(reader.readline(), 20)).split()[1] == status
            writer.close()
        assert [request.body for request in running.requests] == [None, None]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="descriptors are counted on Linux")
def test_the_soft_limit_of_descriptors_is_raised_once_many_are_opened() -> None:
    from tests.programs import run_python

    said = run_python(
        """
        import asyncio, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        from vfgym.aio import bounds
        from vfgym.interception import open_endpoint
        async def main():
            await (await open_endpoint(None)).close()
        asyncio.run(main())
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft == min(hard, 1 << 20), (soft, hard)
        assert bounds.most_connections() <= soft // 4
        """,
        check=False,
    )
    assert said.returncode == 0, said.stderr


@pytest.fixture
def small_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of its own with small bounds, since the large ones take long to reach."""
    from vfgym.aio import bounded_http

    for name, value in (("_MOST_STRANGERS", 8), ("_LEAST_OF_ONE", 6), ("_MOST_OF_ONE", 6), ("_HEAD_SECONDS", 0.2), ("_BODY_SECONDS", 0.2)):
        monkeypatch.setattr(bounded_http, name, value)
    monkeypatch.setattr(server, "_server", None)


async def connections_of(address: Any, count: int, data: bytes = b"") -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    made = []
    for _ in range(count):
        pair = await (asyncio.open_connection("127.0.0.1", address) if isinstance(address, int) else asyncio.open_unix_connection(address))
        pair[1].write(data)
        made.append(pair)
    return made


async def is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(), 20) == b""
    except ConnectionError:
        return True


@pytest.mark.usefixtures("small_server")
@pytest.mark.parametrize("data", [b"", b"POST /x/v1/messages HTTP/1.1\r\nHost", b"POST "])
async def test_who_connects_and_waits_is_cut_and_keeps_nobody_out(answers: Answers, data: bytes) -> None:
    """Fell: another user of the machine, without a token, took all descriptors with connections that ask nothing, or slowly."""
    endpoint = await open_endpoint(answers)
    port = int(endpoint.config("chat", "m")["base_url"].split(":")[2].split("/")[0])
    waiting = await connections_of(port, 40, data)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert (await post(endpoint, "chat/completions", PLAIN["chat/completions"]))[0] == 200
    assert all([await is_cut(reader) for reader, _ in waiting])
    if before:  # the other ends are ours
        assert len(os.listdir("/proc/self/fd")) <= before
    for _, writer in waiting:
        writer.close()
    await endpoint.close()


async def test_the_body_of_a_request_without_a_token_is_not_read(endpoint: Endpoint) -> None:
    """A stranger announces 10 GB: the answer comes before the body, and the connection is closed."""
    head = b"POST /guessed/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n"
    reader, writer = await asyncio.open_unix_connection(endpoint.socket_path)
    writer.write(head + b"x" * 1000)
    assert (await asyncio.wait_for(reader.readline(), 20)).split()[1] == b"404"
    assert await is_cut_after_answer(reader)
    writer.close()


async def is_cut_after_answer(reader: asyncio.StreamReader) -> bool:
    try:
        await asyncio.wait_for(reader.read(), 20)
    except ConnectionError:
        pass
    return True


@pytest.mark.usefixtures("small_server")
async def test_one_program_has_a_bounded_number_of_connections_and_others_go_on(answers: Answers) -> None:
    """Fell: three evil rollouts took all descriptors of the run."""
    answers.may_answer.clear()
    evil, other = await open_endpoint(answers), await open_endpoint(answers)
    body = json.dumps(PLAIN["messages"]).encode()
    head = f"POST /{evil.key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    made = await connections_of(evil.socket_path, 6, head + body)
    while len(answers.asked) < 6:
        await asyncio.sleep(0)
    status, _ = await raw(evil, head + body)
    assert status == 429
    answers.may_answer.set()
    assert (await post(other, "messages", PLAIN["messages"]))[0] == 200
    for _, writer in made:
        writer.close()
    await evil.close()
    await other.close()


@pytest.mark.usefixtures("small_server")
async def test_a_body_that_comes_drop_by_drop_is_given_up(answers: Answers) -> None:
    endpoint = await open_endpoint(answers)
    head = f"POST /{endpoint.key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{".encode()
    status, _ = await raw(endpoint, head)
    assert (status, answers.asked) == (408, [])
    await endpoint.close()


async def test_bodies_are_bounded_alone_together_and_in_what_is_kept_of_them(
    answers: Answers, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fell: request bodies took 1.7 GB of our own process."""
    head = f"POST /{endpoint.key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {budget.LARGEST_BODY + 1}\r\n\r\n"
    assert (await raw(endpoint, head.encode()))[0] == 413
    many_values = b'{"messages": [' + b"[]," * 300_000 + b"[]]}"  # 0.9 MB that take 70 in memory
    assert (await post(endpoint, "chat/completions", many_values))[0] == 429
    monkeypatch.setattr(budget, "_LEAST_WAITING", 1000)
    monkeypatch.setattr(budget, "MOST_WAITING", 100_000)
    answers.may_answer.clear()
    large = {"messages": [{"role": "user", "content": "x" * 60_000}]}
    waiting = asyncio.ensure_future(post(endpoint, "chat/completions", large))
    while not answers.asked:
        await asyncio.sleep(0)
    assert (await post(endpoint, "chat/completions", large))[0] == 429
    answers.may_answer.set()
    assert (await waiting)[0] == 200
    monkeypatch.setattr(budget, "MOST_KEPT", 200_000)
    monkeypatch.setattr(budget, "MOST_WAITING", 2**20)
    statuses = []
    for number in range(5):
        again = {"messages": [*large["messages"], {"role": "user", "content": f"{number}" * 50_000}]}
        statuses.append((await post(endpoint, "chat/completions", again))[0])
    assert statuses == [200, 200, 413, 413, 413]
    assert (await post(endpoint, "chat/completions", large))[0] == 413
    assert endpoint.budget.waiting == 0


async def test_what_a_conversation_says_again_is_kept_once(answers: Answers, endpoint: Endpoint) -> None:
    """An honest program sends its whole conversation at each turn, which takes no more than what is new in it."""
    messages = [{"role": "user", "content": "x" * 10_000}]
    for number in range(50):
        assert (await post(endpoint, "chat/completions", {"messages": messages}))[0] == 200
        messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": f"go on {number}"}]
    first = answers.asked[0].messages[0]
    assert all(request.messages[0] is first for request in answers.asked)
    assert endpoint.budget.kept < 100_000


# Secrets stay


STATE_KEY = "X-Session-Key"


@pytest.mark.parametrize("count", [20, pytest.param(1100, marks=pytest.mark.exhaustive)])
async def test_the_key_is_hidden_however_many_secrets_have_passed_by(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fell: after 1,000 failing requests, each with a header from its state, the API key stood in errors."""
    monkeypatch.setattr(redaction, "_MOST_PASSING", count - 10)
    faults = iter(range(10**6))
    with ModelServer({"cheap": lambda request: f"{next(faults)}"}, api_keys=["another"]) as running:
        config = vfgym.ClientConfig(
            api_base_url=running.openai_url, api_key=KEY, max_retries=0, extra_headers_from_state={STATE_KEY: "session"}
        )
        client = resolve_client(config)
        try:
            for number in range(count):
                with pytest.raises(openai.AuthenticationError) as caught:
                    await client.get_response([vfgym.UserMessage("go")], "cheap", state={"session": f"session-{number:08}-0123456789"})
                assert KEY not in str(caught.value)
        finally:
            await client.close()
    assert redaction.redact(f"the key is {KEY}") == "the key is ***"
    assert redaction.redact(f"session-{count - 1:08}-0123456789") == "***"
    assert len(redaction._passing) == count - 10


class Echo:
    """A provider that repeats the key it was sent, wherever an answer has text."""

    def __init__(self) -> None:
        self.app = web.Application()
        self.app.router.add_post("/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        key = request.headers.get("x-api-key") or request.headers["Authorization"].removeprefix("Bearer ")
        body = await request.json()
        if request.path.endswith("messages"):
            blocks = [
                {"type": "thinking", "thinking": f"thinks {key}", "signature": "s"},
                {"type": "text", "text": f"says {key}"},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": key}},
            ]
            usage = {"input_tokens": 1, "output_tokens": 1}
            answer: dict[str, Any] = {"id": key, "type": "message", "role": "assistant", "model": key, "content": blocks, "usage": usage}
            return web.json_response({**answer, "stop_reason": "tool_use", "stop_sequence": None})
        if request.path.endswith("responses"):
            text = {"type": "output_text", "text": f"says {key}", "annotations": []}
            items = [
                {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": f"thinks {key}"}]},
                {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]},
                {
                    "type": "function_call",
                    "id": "c",
                    "call_id": "c",
                    "name": "f",
                    "arguments": json.dumps({"a": key}),
                    "status": "completed",
                },
            ]
            return web.json_response(
                {"id": key, "object": "response", "created_at": 1, "model": key, "status": "completed", "output": items}
            )
        call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": key})}}
        message = {"role": "assistant", "content": f"says {key}", "reasoning_content": f"thinks {key}", "tool_calls": [call]}
        if body.get("stream"):
            delta = {**message, "tool_calls": [{"index": 0, **call}]}
            choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls"}
            chunk = {"id": key, "object": "chat.completion.chunk", "created": 1, "model": key, "choices": [choice]}
            return web.Response(text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return web.json_response({"id": key, "object": "chat.completion", "created": 1, "model": key, "choices": [choice]})


@pytest.fixture
async def echo() -> AsyncIterator[str]:
    runner = web.AppRunner(Echo().app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    "client_type",
    quick_or_exhaustive(["openai_chat_completions", "openai_responses", "anthropic_messages", "streamed"], "openai_chat_completions"),
)
async def test_a_key_that_an_answer_repeats_is_in_no_result_and_no_cache(echo: str, tmp_path: Path, client_type: Any) -> None:
    """Fell: a key that the provider (a gateway, or a model that was told it) repeats stood in results and in the cache."""
    is_streamed = client_type == "streamed"
    own_type: Any = "openai_chat_completions" if is_streamed else client_type
    config = vfgym.ClientConfig(api_base_url=echo, api_key=KEY, client_type=own_type)
    env = vfgym.SingleTurnEnv([{"question": "?"}], rubric=vfgym.Rubric(lambda completion: 1.0))
    results = await vfgym.aevaluate(
        env,
        ModelAgent(config, "m", {"stream": True} if is_streamed else {}),
        cache=tmp_path / "cache.sqlite",
        results_path=tmp_path / "results",
        state_columns=["trajectory", "completion"],
        progress=False,
    )
    [row] = results["outputs"]
    assert row["error"] is None
    assert "says ***" in json.dumps(row["completion"], default=str)
    assert KEY not in repr(results)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("cache") for path in files)
    assert any("results" in path.parts for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("failure", quick_or_exhaustive(sorted({*FAILURES} - {"silent"}), "unknown_key_error", "long_header"))
@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses", "anthropic_messages"])
async def test_no_frame_of_an_error_holds_a_key(failure: str, client_type: Any) -> None:
    """Fell: what shows the local variables of a traceback (pytest, rich, error reporters) showed the key in frames of the library."""
    with hostile_server(failure) as port:
        config = vfgym.ClientConfig(
            api_base_url=f"http://127.0.0.1:{port}",
            api_key=KEY,
            client_type=client_type,
            max_retries=0,
            extra_headers={"X-Other-Key": KEY[::-1]},
            extra_headers_from_state={STATE_KEY: "session"},
        )
        client = resolve_client(config)
        state, session = {"session": KEY.swapcase()}, KEY.swapcase()
        try:
            with pytest.raises(Exception) as caught:  # noqa: PT011 # each failure has its own
                await client.get_response([vfgym.UserMessage("go")], "m", {"max_tokens": 5}, state=state)
        finally:
            await client.close()
    shown = [line for link in links_of(caught.value) for line in frames_with_locals(link)]
    assert any("provider.py" in line for line in shown)
    for secret in (KEY, KEY[::-1]):
        assert [line for line in shown if secret in line] == []
    assert [line for line in shown if session in line and "'session'" not in line] == []  # a state shows what is in it


def links_of(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links


def frames_with_locals(error: BaseException) -> list[str]:
    """Return the places and the local variables of an error's frames, but for those of tests."""
    lines = []
    for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
        if os.sep + "tests" + os.sep not in frame.filename:
            lines += [frame.filename, *(f"{name} = {value}" for name, value in (frame.locals or {}).items())]
    return lines


def test_an_error_about_a_configuration_holds_no_key_in_its_frames() -> None:
    for fields in ({"no_such_field": 1}, {"timeout": -1}, {"api_base_url": "nowhere"}):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 # each has its own text
            vfgym.ClientConfig(api_key=KEY, extra_headers={"Authorization": f"Bearer {KEY}"}, **fields)
        assert [line for link in links_of(caught.value) for line in frames_with_locals(link) if KEY in line] == []


# Isolated agents


AGENTS = """
import asyncio, gc, os, pickle, signal, socket, subprocess, sys, threading, time

def note(text):
    with open(os.path.join(os.path.dirname(__file__), "noted"), "a") as file:
        print(text, file=file)

class Pickled:
    def __reduce__(self):
        return exec, ("import os; open('pwned', 'w').write(str(os.getpid()))",)

def object_(observation, info):
    return Pickled()

class Text(str):
    def __reduce__(self):
        return exec, ("import os; open('pwned', 'w').write(str(os.getpid()))",)

def text(observation, info):
    return Text("yes")

def error(observation, info):
    class Evil(Exception):
        def __reduce__(self):
            return exec, ("import os; open('pwned', 'w').write(str(os.getpid()))",)
    raise Evil("no")

def channels():
    # Every descriptor of this process that is a socket: one leads to the evaluator.
    found = []
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                found.append(number)
        except OSError:
            pass
    return found

def send(data, framed=True):
    import struct
    for number in channels():
        try:
            os.write(number, (struct.pack("!i", len(data)) if framed else b"") + data)
        except OSError:
            pass

def writes_pickle(observation, info):
    send(pickle.dumps((pickle.dumps((Pickled(), None)), False)))
    return "yes"

def writes_garbage(observation, info):
    send(b"\\xff" * 100, framed=False)
    return "yes"

def writes_a_size(observation, info):
    send(b"\\xff\\xff\\xff\\xff\\x00\\x00\\xff\\xff\\xff\\xff\\xff\\xff", framed=False)
    time.sleep(3600)

def writes_nesting(observation, info):
    send(b'0{"result": ' + b"[" * 100000 + b"]" * 100000 + b"}")
    return "yes"

def writes_much(observation, info):
    return "x" * (65 << 20)

def leaves(observation, info):
    # A child in a session of its own, whose parent has ended, one that ignores signals, and a thread.
    code = "import os, signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nif os.fork(): os._exit(0)\\nos.setsid()\\n"
    code += "if os.fork(): os._exit(0)\\ntime.sleep(3600)  # left-by-an-agent"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True).wait()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)  # left-by-an-agent"])
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return "yes"

def ignores_its_clock(observation, info):
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGPROF):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(3600)

def exits(observation, info):
    os._exit(0)

def leaves_python(observation, info):
    sys.exit("enough")

def kills_its_keeper(observation, info):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)

def fills_memory(observation, info):
    kept = []
    while True:
        kept.append(bytearray(10**8))

def looks(observation, info):
    found = {name: value for name, value in os.environ.items() if "SECRET" in name or "KEY" in name}
    files = [path for path in (os.environ.get("HOME", "/") + "/.ssh", "/etc/shadow") if os.access(path, os.R_OK)]
    for address in (("127.0.0.1", PORT), ("1.1.1.1", 53)):
        try:
            socket.create_connection(address, timeout=2)
            files.append(address)
        except OSError:
            pass
    try:
        with open(FILE) as file:
            files.append(file.read())
    except OSError:
        pass
    try:
        os.kill(PID, 0)
        files.append("the evaluator's process")
    except OSError:
        pass
    return repr([found, files])

def prints_without_end(observation, info):
    for _ in range(300):
        print("x" * 2**20)
    return "yes"

def says_yes(observation, info):
    return "yes"
"""


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of agents in the current directory, whose name no other test has."""
    name = f"evil_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield name
    assert not (tmp_path / "pwned").exists(), "code of the agent ran in this process"


def yes_env(timeout_seconds: float | None = 60) -> vfgym.SingleTurnEnv:
    rubric = vfgym.Rubric(lambda completion: float(completion[-1].content == "yes"))
    return vfgym.SingleTurnEnv([{"question": "?"}], rubric=rubric, timeout_seconds=timeout_seconds)


def play(agent: Any, **options: Any) -> Any:
    [row] = vfgym.evaluate(yes_env(**options), agent, progress=False)["outputs"]
    return row


FAILING = {
    "object_": "answers with text, a message, a Response or JSON data",
    "error": "Evil",
    "writes_garbage": "",
    "writes_pickle": "",
    "writes_nesting": "",
    "writes_much": "",
    "exits": "its process ended",
    "leaves_python": "enough",
}


@pytest.mark.parametrize("name", quick_or_exhaustive([*FAILING], "error", "writes_pickle", "writes_garbage", "exits"))
def test_nothing_that_an_isolated_agent_says_runs_here_and_its_failures_are_its_own(evil: str, name: str) -> None:
    """Fell: what an agent of ``--isolate`` answered, raised, or wrote to its pipe was unpickled in the evaluator's process."""
    agent = IsolatedAgent(f"{evil}:{name}")
    row = play(agent)
    assert row["reward"] == 0.0 or row["reward"] is None
    assert row["error"]["error"] == "ModelError"
    assert FAILING[name] in repr(row["error"])
    assert row["ending"] == "policy_failed"
    agent.close()
    # The library goes on, with this agent's module and with others.
    other = IsolatedAgent(f"{evil}:says_yes")
    assert play(other)["reward"] == 1.0
    other.close()


def test_a_subclass_of_text_arrives_as_text(evil: str) -> None:
    agent = IsolatedAgent(f"{evil}:text")
    assert play(agent)["reward"] == 1.0
    agent.close()


@pytest.mark.parametrize("name", ["ignores_its_clock", "writes_a_size", "kills_its_keeper"])
def test_an_agent_that_holds_up_its_evaluator_is_ended_from_outside(evil: str, name: str) -> None:
    agent = IsolatedAgent(f"{evil}:{name}", answer_seconds=1)
    environment = yes_env(None)
    observation, info = environment.reset(seed=0)
    with pytest.raises((WorkerTimeout, ModelError)) as caught:
        agent.for_episode(environment)(observation, info)
    assert caught.value.failure_cause == "policy"
    agent.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up, on Linux")
@pytest.mark.parametrize("sandbox", [False, pytest.param(True, marks=needs_sandbox)])
def test_what_an_agent_leaves_behind_ends_with_it(evil: str, sandbox: bool) -> None:
    """Fell: children in sessions of their own stayed when the agent's process had ended."""
    agent = IsolatedAgent(f"{evil}:leaves", sandbox=sandbox)
    assert play(agent)["reward"] == 1.0
    wait_until(lambda: len(running("left-by-an-agent")) >= 2)
    agent.close()
    wait_until(lambda: not running("left-by-an-agent"))


@needs_sandbox
def test_a_sandboxed_agent_sees_nothing_of_its_evaluator(evil: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Environment variables, files of the current directory, the network and loopback, and the processes of the machine."""
    monkeypatch.setenv("MY_SECRET", "s3cret")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=x")
    with ModelServer() as running_server:
        module = tmp_path / f"{evil}.py"
        port = running_server.url.rpartition(":")[2]
        code = module.read_text().replace("PORT)", f"{port})").replace("FILE", repr(str(tmp_path / ".env")))
        module.write_text(code.replace("os.kill(PID", f"os.kill({os.getpid()}"))
        agent = IsolatedAgent(f"{evil}:looks", sandbox=True)
        row = play(agent)
        agent.close()
    assert row["error"] is None
    assert row["completion"][-1]["content"] == "[{}, []]"


@needs_sandbox
@pytest.mark.parametrize("name", quick_or_exhaustive(["fills_memory", "object_", "error", "exits", "leaves_python"], "fills_memory"))
def test_a_sandboxed_agent_that_fails_does_so_by_its_own_doing(evil: str, name: str) -> None:
    agent = IsolatedAgent(f"{evil}:{name}", sandbox=SandboxSpec(memory_mb=600))
    row = play(agent)
    assert row["error"]["error"] == "ModelError"
    assert row["ending"] == "policy_failed"
    agent.close()


@needs_sandbox
@pytest.mark.exhaustive
def test_a_sandboxed_agent_that_prints_without_end_plays_on(evil: str) -> None:
    agent = IsolatedAgent(f"{evil}:prints_without_end", sandbox=True)
    assert play(agent)["reward"] == 1.0
    agent.close()


@needs_sandbox
@pytest.mark.exhaustive
def test_a_sandboxed_agent_that_never_answers_is_ended(evil: str) -> None:
    agent = IsolatedAgent(f"{evil}:ignores_its_clock", sandbox=True, answer_seconds=5)
    row = play(agent, timeout_seconds=None)
    assert "answer took more than 5 wall_seconds" in repr(row["error"])
    agent.close()


@needs_sandbox
def test_a_module_is_not_run_here_to_be_found_for_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose ``__init__`` does harm is copied into the sandbox, and imported there alone."""
    package = tmp_path / f"pack_{tmp_path.name}"
    package.mkdir()
    (package / "__init__.py").write_text("import pathlib\npathlib.Path('/tmp/ran-here').touch()")
    (package / "agent.py").write_text("def agent(observation, info):\n    return 'yes'")
    monkeypatch.chdir(tmp_path)
    agent = IsolatedAgent(f"{package.name}.agent:agent", sandbox=True)
    assert play(agent)["reward"] == 1.0
    agent.close()
    assert not Path("/tmp/ran-here").exists()
    with pytest.raises(ConfigurationError, match="there is no module 'no_such_module'"):
        IsolatedAgent("no_such_module:agent", sandbox=True)
