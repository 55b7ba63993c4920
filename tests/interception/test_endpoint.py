"""An endpoint answers the programs of its episode and nobody else, by TCP and by a unix socket, until it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from vfgym.errors import ConfigurationError
from vfgym.interception import Endpoint, Request, check_api, open_endpoint
from vfgym.interception.endpoint import PROGRAM_VARIABLES
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


@pytest.mark.parametrize(
    ("api", "names"),
    [
        ("chat_completions", ["chat", "openai_chat_completions"]),
        ("completions", ["openai_completions"]),
        ("responses", ["openai_responses"]),
        ("messages", ["anthropic_messages"]),
    ],
)
async def test_each_name_of_an_api_says_how_its_programs_reach_the_endpoint(api: str, names: list[str], endpoint: Endpoint) -> None:
    for name in (api, *names):
        assert check_api(name) == api
        for port in (None, 8000):
            root = f"http://127.0.0.1:{endpoint._server.port if port is None else port}/{endpoint.key}"
            url = {"base_url": root} if api == "messages" else {"base_url": f"{root}/v1", "api_base": f"{root}/v1"}
            assert endpoint.config(name, "m", port) == {"model": "m", "api_key": endpoint.key, "api_client_type": names[-1], **url}


async def test_the_variables_by_which_a_program_finds_its_model(endpoint: Endpoint) -> None:
    root = f"http://127.0.0.1:8000/{endpoint.key}"
    variables = endpoint.variables("m", 8000)
    assert variables == {
        "OPENAI_BASE_URL": f"{root}/v1",
        "OPENAI_API_KEY": endpoint.key,
        "OPENAI_MODEL": "m",
        "ANTHROPIC_BASE_URL": root,
        "ANTHROPIC_API_KEY": endpoint.key,
        **dict.fromkeys(("OPENAI_TIMEOUT", "OPENAI_REQUEST_TIMEOUT", "HTTPX_TIMEOUT"), "3600"),
    }
    assert variables.keys() == PROGRAM_VARIABLES
    assert endpoint.variables("m")["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{endpoint._server.port}/{endpoint.key}"


async def test_clients_of_sdks_are_of_its_api_and_closed_with_it(answers: Answers) -> None:
    endpoint = await open_endpoint(answers)
    kinds: dict[tuple[str, bool], Any] = {
        ("chat", False): openai.AsyncOpenAI,
        ("responses", True): openai.OpenAI,
        ("messages", False): anthropic.AsyncAnthropic,
        ("anthropic_messages", True): anthropic.Anthropic,
    }
    clients = [endpoint.sdk_client(api, sync=sync) for api, sync in kinds]
    assert [type(client) for client in clients] == list(kinds.values())
    assert {(client.api_key, client.max_retries, client.timeout) for client in clients} == {(endpoint.key, 0, 24 * 3600.0)}
    assert [str(client.base_url).rstrip("/") for client in clients] == [endpoint.config(api, "")["base_url"] for api, _ in kinds]
    await endpoint.close()
    assert [client.is_closed() for client in clients] == [True] * 4
    await endpoint.close()


async def test_tools_are_not_called_where_there_are_none(endpoint: Endpoint) -> None:
    url = f"{endpoint.config('messages', 'm')['base_url']}/tools/any"
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as response:
        assert (response.status, await response.json()) == (200, {"error": "the tools of this rollout are not called over HTTP"})


def test_an_api_that_an_endpoint_does_not_speak() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_api("renderer")
    assert str(caught.value) == (
        "the endpoint of a rollout does not speak 'renderer': use one of chat_completions, completions, responses, messages"
    )


def test_an_api_that_there_is_not_is_named_with_the_nearest() -> None:
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
