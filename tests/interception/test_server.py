"""What a program is told where the server refuses its request, or its endpoint fails: a status, a kind, and whether to ask again."""

from __future__ import annotations

from typing import Any

import aiohttp
import httpx2
import openai
import pytest

from vfgym.errors import ModelError, OverlongPromptError
from vfgym.interception import Request, open_endpoint

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
