"""The model server, asked by the real SDKs over real HTTP: every API, policy, limit and fault."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import anthropic
import openai
import pytest

from tests.model_server.asked import BODIES, HELLO, MODELS, post, says
from vfgym.cli.serve_model import load_models, serve
from vfgym.errors import ConfigurationError
from vfgym.model_server import Faults, ModelServer, Overlong, echo


async def test_models_and_health(gpt: openai.AsyncOpenAI, server: ModelServer) -> None:
    assert [model.id async for model in gpt.models.list()] == list(MODELS)
    async with aiohttp.ClientSession() as session, session.get(server.url + "/health") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})


async def test_half_a_surrogate_pair_passes_through(server: ModelServer) -> None:
    status, answer = await post(server, "/v1/chat/completions", b'{"model": "echo", "messages": [{"role": "user", "content": "a\\ud800"}]}')
    assert (status, says(answer)) == (200, "a\ud800")


def test_plain_code_uses_a_thread() -> None:
    threads = threading.enumerate()
    server = ModelServer()
    for _ in range(2):
        with server, openai.OpenAI(base_url=server.openai_url, api_key="k") as gpt:
            assert gpt.chat.completions.create(model="echo", messages=HELLO).choices[0].message.content == "héllo 😀"
            with anthropic.Anthropic(base_url=server.url, api_key="k") as claude:
                assert claude.messages.create(model="echo", max_tokens=99, messages=HELLO).content[0].text == "héllo 😀"  # type: ignore[union-attr]
    server.close()
    assert server.num_requests == 4
    assert threading.enumerate() == threads
    with pytest.raises(ConfigurationError, match="does not run"):
        _ = server.url


async def test_a_thread_serves_beside_a_running_loop() -> None:
    with ModelServer() as server:
        assert (await post(server, "/v1/completions", BODIES["/v1/completions"]))[0] == 200
        with pytest.raises(ConfigurationError, match="runs already"):
            await server.start()


async def test_starting_and_closing_in_the_wrong_place(server: ModelServer) -> None:
    with pytest.raises(ConfigurationError, match="runs already"):
        server.start_thread()
    with pytest.raises(ConfigurationError, match="aclose"):
        server.close()
    await server.aclose()
    await server.aclose()
    assert not server.is_running


@pytest.mark.parametrize("body", [BODIES["/v1/chat/completions"], {**BODIES["/v1/chat/completions"], "stream": True}])
async def test_closing_ends_what_hangs(body: dict[str, Any]) -> None:
    server = ModelServer()
    await server.start()
    task = asyncio.create_task(post(server, "/v1/chat/completions", body, **{"X-Fault": "hung"}))
    while not server.faults_given:
        await asyncio.sleep(0)
    await server.aclose()
    with pytest.raises(aiohttp.ClientError):
        await task


async def test_closing_ends_a_stream_that_nobody_reads() -> None:
    server = ModelServer()
    await server.start()
    text = "x" * 20_000_000
    body = json.dumps({"model": "echo", "stream": True, "messages": [{"role": "user", "content": text}]}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]), limit=1)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    await reader.readexactly(1)
    await server.aclose()
    num_received = 0
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 20):
            num_received += len(data)
    writer.close()
    assert num_received < len(text)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"models": {}}, "at least one model"),
        ({"models": echo}, "policies by name"),
        ({"models": {"m": "echo"}}, "model 'm' must be a function"),
        ({"models": {"": echo}}, "name of a model"),
        ({"latency": -1}, "latency"),
        ({"max_model_len": 0}, "max_model_len"),
        ({"faults": {"hung": 1}}, "faults must be"),
        ({"api_keys": "sk-test"}, "api_keys must be a set"),
        *[({"keep_requests": value}, "keep_requests must be a number of requests from 0, got ") for value in (-1, "3", 1.5, None)],
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ModelServer(**arguments)


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["scripted answer"]')
    (tmp_path / "my_policies.py").write_text("def shout(request):\n    return 'HI'\n")
    command = [sys.executable, "-m", "vfgym", "serve-model", "echo", "mine=my_policies:shout", "--script", "script.json", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        assert lines[0] == "models: echo, mine, scripted\n"
        url = lines[1].split()[-1]
        assert lines[3] == f"for example: vfgym eval ID --model echo --base-url {url}\n"
        with openai.OpenAI(base_url=url, api_key="k") as gpt:
            for model, text in (("echo", "héllo 😀"), ("mine", "HI"), ("scripted", "scripted answer")):
                assert gpt.chat.completions.create(model=model, messages=HELLO).choices[0].message.content == text
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=240)
        assert (process.returncode, output.strip(), errors) == (0, "stopped after 3 request(s)", "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("name", "problem"), [("scripted", "--script"), ("oracle", "--env"), ("ecko", "Did you mean `echo`")])
def test_the_command_explains_which_model_is_missing(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        load_models([name])


def test_the_command_explains_that_it_cannot_listen() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot listen on 203\.0\.113\.1"):
        serve(ModelServer(host="203.0.113.1"))


@pytest.mark.parametrize("keep_requests", [0, 1, 2])
async def test_requests_are_recorded_and_the_newest_kept(keep_requests: int) -> None:
    async with ModelServer(keep_requests=keep_requests) as server:
        for index in range(3):
            await post(server, "/v1/completions", {"model": "echo", "prompt": str(index)}, **{"X-Index": str(index)})
        await post(server, "/v1/completions", b"oops")
        kept = server.requests
        assert server.num_requests == 4
        assert [request.number for request in kept] == [3, 4][2 - keep_requests :]
        assert [request.body for request in kept] == [{"model": "echo", "prompt": "2"}, "oops"][2 - keep_requests :]
        assert [(request.method, request.path) for request in kept] == [("POST", "/v1/completions")] * keep_requests
        assert keep_requests < 2 or kept[0].headers["x-index"] == "2"


def test_a_thread_that_could_not_listen_is_forgotten() -> None:
    with ModelServer() as other:
        server = ModelServer(port=int(other.url.rpartition(":")[2]))
        for _ in range(2):
            with pytest.raises(OSError, match="in use"):
                server.start_thread()
            assert not server.is_running
            server.close()
    with server:
        assert server.is_running


@pytest.mark.usefixtures("young_heap")
def test_a_server_that_is_closed_as_somebody_connects_closes_their_connection_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: lost.append(str(unraisable.exc_value)))
    for _ in range(10):
        with ModelServer() as server:
            connection = socket.create_connection(("127.0.0.1", urlsplit(server.url).port))
        connection.close()
        del server
        gc.collect()
    assert lost == []


async def test_each_argument_arrives_and_the_models_are_the_servers_own() -> None:
    faults, overlong = Faults(hung=0.5), Overlong(413, "too long", "x")
    given = {"a": echo}
    server = ModelServer(
        given,
        **{"faults": faults, "latency": 0.25, "max_model_len": 7, "overlong": overlong, "api_keys": ["k"], "forbidden_keys": ["f"]},
    )
    given.clear()
    behaviour = server.behaviour
    assert (server.models, behaviour.faults, behaviour.latency, behaviour.max_model_len) == ({"a": echo}, faults, 0.25, 7)
    assert (behaviour.overlong, behaviour.api_keys, behaviour.forbidden_keys) == (overlong, ["k"], ["f"])
    plain = ModelServer().behaviour
    assert (plain.models, plain.faults, plain.latency, plain.max_model_len) == ({"echo": echo}, None, 0.0, None)
    assert (plain.overlong, plain.api_keys, plain.forbidden_keys) == (None, None, ())


async def test_nothing_is_read_of_a_request_whose_key_is_not_known() -> None:
    async with ModelServer(api_keys=["right"]) as server:
        for key in ("wrong", "right"):
            await post(server, "/v1/completions", BODIES["/v1/completions"], Authorization=f"Bearer {key}")
        first, second = server.requests
        assert (first.body, second.body) == (None, BODIES["/v1/completions"])
        server.requests.clear()
        assert len(server.requests) == 2
