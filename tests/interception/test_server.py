"""What a program is told where the server refuses its request, or its endpoint fails: a status, a kind, and whether to ask again."""

from __future__ import annotations

import logging
from typing import Any

import aiohttp
import httpx2
import openai
import pytest

from vfgym.errors import ModelError, OverlongPromptError
from vfgym.interception import Request, open_endpoint
from vfgym.messages import AssistantMessage, Response

ASKED = {"model": "any", "messages": [{"role": "user", "content": "go"}]}


def refused(status: int) -> openai.APIStatusError:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://localhost"))
    return openai.APIStatusError("no", response=response, body=None)


async def asked(url: str, method: str = "POST", error: BaseException | None = None, **more: Any) -> tuple[int, Any, str | None]:
    """Return status, error and retry header of an answer of an endpoint that fails with an error."""

    async def fail(request: Request) -> Any:
        raise error or AssertionError

    endpoint = await open_endpoint(fail)
    base = endpoint.config("chat", "m")["base_url"]
    async with aiohttp.ClientSession() as session, session.request(method, f"{base}/{url}", json={**ASKED, **more}) as response:
        answer = await response.json()
        await endpoint.close()
        assert answer["type"] == "error"
        return response.status, answer["error"], response.headers.get("x-should-retry")


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "says"),
    [
        ("GET", "chat/completions", 405, "invalid_request_error", "by POST"),
        ("POST", "embeddings", 404, "not_found_error", "serves chat/completions, completions, responses, messages; got 'embeddings'"),
        ("POST", "responses", 400, "invalid_request_error", "could not be read"),
    ],
)
async def test_a_request_that_is_none(method: str, path: str, status: int, kind: str, says: str) -> None:
    told, error, again = await asked(path, method)
    assert (told, error["type"], error["code"], error["param"], again) == (status, kind, None, None, "false")
    assert says in error["message"]


async def test_fields_that_are_set_aside_are_named_and_each_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: Request) -> Response:
        return Response("r", 0, "m", None, AssistantMessage("yes"))

    endpoint = await open_endpoint(answer)
    url = f"{endpoint.config('chat', 'm')['base_url']}/chat/completions"
    named = []  # an endpoint's process logs each name once: these are used in no other test
    with caplog.at_level(logging.WARNING, "vfgym"):
        for fields in ({}, {"of_this_test": {}}, {"\té": 1, "x" * 60: 1}, {"of_this_test": {}}, {f"field{n:02}": 1 for n in range(30)}):
            message = {"role": "user", "content": "go", **fields}
            async with aiohttp.ClientSession() as session, session.post(url, json={**ASKED, "messages": [message]}) as response:
                assert response.status == 200
                named.append(response.headers.get("X-Vfgym-Set-Aside"))
    await endpoint.close()
    assert named == [None, "of_this_test", f"??, {'x' * 50}", "of_this_test", ", ".join(f"field{n:02}" for n in range(20))]
    said = "a program's request has {}, which only its rollout may say: it is not passed on"
    logged = [record.getMessage() for record in caplog.records if record.name == "vfgym.interception.server"]
    assert logged == [said.format(", ".join(map(repr, each.split(", ")))) for each in (named[1], named[2], named[4]) if each]


async def test_the_version_may_be_left_out_of_the_path() -> None:
    async def answer(request: Request) -> Response:
        return Response("r", 0, "m", None, AssistantMessage("yes"))

    endpoint = await open_endpoint(answer)
    base = endpoint.config("chat", "m")["base_url"]
    async with aiohttp.ClientSession() as session:
        for url in (f"{base}/chat/completions", f"{base.removesuffix('/v1')}/chat/completions"):
            async with session.post(url, json=ASKED) as response:
                assert (await response.json())["choices"][0]["message"]["content"] == "yes"
    await endpoint.close()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OverlongPromptError("9 > 8"), (400, "invalid_request_error", "context_length_exceeded", "prompt is too long: 9 > 8")),
        (ModelError("x"), (424, "model_error", None, "x")),
        (refused(401), (401, "authentication_error", None, "no")),
        (refused(403), (403, "permission_error", None, "no")),
        (refused(404), (404, "not_found_error", None, "no")),
        (KeyError("x"), (500, "internal_error", None, "KeyError: 'x'")),
    ],
    ids=repr,
)
async def test_an_endpoint_that_fails(error: BaseException, told: Any, stream: bool) -> None:
    status, said, again = await asked("chat/completions", error=error, stream=stream)
    assert (status, said["type"], said["code"], said["message"], again) == (*told, "false")
