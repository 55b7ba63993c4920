"""What programs and strangers attempt by connections and bodies: all are bounded, and nobody is kept out.

The sentences are those of ``docs/agent_programs.md`` and ``docs/models.md``.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from tests.attacks.attack import KEY
from tests.attacks.endpoints import PLAIN, Answers, post, raw
from vfgym.interception import Endpoint, budget, open_endpoint, server
from vfgym.model_server import ModelServer


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


@pytest.mark.parametrize(
    "data", [b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\xff\x00 / HTTP/1.1\r\n\r\n"]
)
async def test_what_strangers_send_that_is_no_request_is_not_in_the_log(
    endpoint: Endpoint, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Fell: each such request wrote a traceback, so that who has no token filled the log."""
    status, _ = await raw(endpoint, data)
    assert status in (400, 404)
    assert [record for record in caplog.records if "aiohttp" in record.name or "bounded_http" in record.name] == []
