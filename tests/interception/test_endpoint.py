"""An endpoint answers the programs of its episode and nobody else, by TCP and by a unix socket, until it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from vfgym.interception import Endpoint, Request, check_api, open_endpoint
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ResponseTokens
from vfgym.output.redaction import Secret

ASKED = {"model": "any", "messages": [{"role": "user", "content": "go"}]}


class Answers:
    """Answers what is asked with the last message in capitals, as soon as it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        await self.may_answer.wait()
        return Response("r", 0, "m", None, AssistantMessage(str(request.messages[-1]["content"]).upper()))


@pytest.fixture
async def answers() -> Answers:
    return Answers()


@pytest.fixture
async def endpoint(answers: Answers) -> AsyncIterator[Endpoint]:
    endpoint = await open_endpoint(answers)
    yield endpoint
    await endpoint.close()


async def post(url: str, body: Any = ASKED, socket_path: str | None = None) -> tuple[int, Any]:
    """Return the status and the body of an answer."""
    connector = None if socket_path is None else aiohttp.UnixConnector(socket_path)
    async with aiohttp.ClientSession(connector=connector) as session, session.post(f"{url}/chat/completions", json=body) as response:
        return response.status, await response.json()


async def test_a_program_asks_by_tcp_and_by_the_unix_socket(answers: Answers, endpoint: Endpoint) -> None:
    answers.may_answer.set()
    at_a_port = endpoint.variables("m", 8000)["OPENAI_BASE_URL"]
    assert at_a_port.startswith("http://127.0.0.1:8000/")
    for url, path in ((endpoint.config("chat", "m")["base_url"], None), (at_a_port, endpoint.socket_path)):
        status, answer = await post(url, socket_path=path)
        assert (status, answer["choices"][0]["message"]["content"]) == (200, "GO")


async def test_an_answer_with_token_ids_is_given_and_headers_are_read_without_the_key() -> None:
    asked: list[Request] = []

    async def answer(request: Request) -> Response:
        asked.append(request)
        return Response("r", 0, "m", None, ResponseMessage("hi", tokens=ResponseTokens([1], [0], [2], [1], [-0.5])))

    endpoint = await open_endpoint(answer)
    headers = {"Authorization": "Bearer key", "X-Api-Key": "key", "X-Depth": "2"}
    url = f"{endpoint.variables('m', 1)['OPENAI_BASE_URL'].replace('127.0.0.1:1', 'localhost')}/chat/completions"
    connector = aiohttp.UnixConnector(endpoint.socket_path)
    async with aiohttp.ClientSession(connector=connector) as session, session.post(url, json=ASKED, headers=headers) as response:
        said = await response.json()
    await endpoint.close()
    assert said["choices"][0]["message"]["content"] == "hi"
    assert (asked[0].headers["x-depth"], "key" in str(asked[0].headers.values())) == ("2", False)


async def test_requests_at_once_all_wait_for_their_own_answers(answers: Answers, endpoint: Endpoint) -> None:
    url = endpoint.config("chat", "m")["base_url"]
    bodies = [{"messages": [{"role": "user", "content": str(number)}]} for number in range(5)]
    waiting = [asyncio.create_task(post(url, body)) for body in bodies]
    while len(answers.asked) < 5:
        await asyncio.sleep(0)
    answers.may_answer.set()
    assert [answer["choices"][0]["message"]["content"] for _, answer in await asyncio.gather(*waiting)] == ["0", "1", "2", "3", "4"]


async def test_who_asks_without_the_secret_path_or_after_the_end_is_refused(answers: Answers, endpoint: Endpoint) -> None:
    url = endpoint.config("chat", "m")["base_url"]
    waiting = asyncio.create_task(post(url))
    while not answers.asked:
        await asyncio.sleep(0)
    await endpoint.close()
    status, answer = await waiting
    assert (status, answer["error"]["message"]) == (410, "the rollout was cancelled")
    for wrong in (url, url.replace(endpoint.key, "guessed")):
        status, answer = await post(wrong)
        assert (status, answer["error"]["message"]) == (404, "there is no such rollout, or it is over")


async def test_a_system_exit_ends_the_request_alone() -> None:
    async def leave(request: Request) -> Response:
        raise SystemExit(3)

    endpoint = await open_endpoint(leave)
    status, answer = await post(endpoint.config("chat", "m")["base_url"])
    assert status == 500
    assert "SystemExit(3)" in answer["error"]["message"]
    await endpoint.close()


def test_an_api_that_there_is_not_is_named_with_the_nearest() -> None:
    assert check_api("anthropic_messages") == "messages"
    with pytest.raises(ValueError, match="Did you mean `responses`"):
        check_api("response")


async def test_tools_are_called_and_what_goes_wrong_is_an_error_that_the_program_reads() -> None:
    is_called = asyncio.Event()

    async def call_tool(name: str, arguments: Any) -> Any:
        if name == "repeat":
            return arguments
        is_called.set()
        await asyncio.Event().wait()

    endpoint = await open_endpoint(Answers(), call_tool)
    url = f"{endpoint.config('messages', 'm')['base_url']}/tools"

    async def call(name: str, body: bytes) -> Any:
        headers = {"Content-Type": "application/json; charset=unknown"}
        async with aiohttp.ClientSession() as session, session.post(f"{url}/{name}", data=body, headers=headers) as response:
            return await response.json()

    assert await call("repeat", b'{"a": 1}') == {"result": {"a": 1}}
    assert "can't decode byte 0xff" in (await call("repeat", b'"\xff"'))["error"]
    waiting = asyncio.create_task(call("wait", b"{}"))
    await is_called.wait()
    await endpoint.close()
    assert await waiting == {"error": "the rollout was cancelled"}


async def test_no_secret_is_told_to_a_program() -> None:
    key = Secret("sk-0123456789abcdef")

    async def fail(*asked: Any) -> Any:
        raise ValueError(f"{key!s} is refused")

    endpoint = await open_endpoint(fail, fail)
    url = endpoint.config("chat", "m")["base_url"]
    status, answer = await post(url)
    assert (status, answer["error"]["message"]) == (500, "ValueError: *** is refused")
    async with aiohttp.ClientSession() as session, session.post(f"{url}/tools/any", json={}) as response:
        assert await response.json() == {"error": "*** is refused"}
    await endpoint.close()


async def test_a_request_without_a_field_is_told_which(endpoint: Endpoint) -> None:
    status, answer = await post(endpoint.config("chat", "m")["base_url"], {"model": "any"})
    assert (status, answer["error"]["message"]) == (400, "the request could not be read: it has no 'messages'")
