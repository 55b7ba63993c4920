"""Errors in the words and shapes of the providers: prompts that are too long, and keys."""

from __future__ import annotations

import pytest

from tests.model_server.asked import BODIES, PATHS, post, says
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer, Overlong
from vfgym.model_server.exchange import RequestRefused
from vfgym.model_server.provider_errors import error_body, forbidden_key_error, unknown_key_error


@pytest.mark.parametrize("path", PATHS)
async def test_a_prompt_beyond_the_context_is_refused(path: str) -> None:
    async with ModelServer(max_model_len=8) as server:
        status, answer = await post(server, path, BODIES[path])
        assert status == 400
        words = "prompt is too long: " if path == "/v1/messages" else "maximum context length is 8 tokens"
        assert words in answer["error"]["message"]
        if path != "/v1/messages":
            assert answer["error"]["code"] == "context_length_exceeded"
        assert server.num_requests == 1


async def test_prompt_and_answer_share_the_context() -> None:
    num_prompt = len("héllo 😀".encode()) + 3
    async with ModelServer(max_model_len=num_prompt + 3) as server:
        status, answer = await post(server, "/v1/chat/completions", {**BODIES["/v1/chat/completions"], "max_tokens": 100})
        assert (status, says(answer), answer["choices"][0]["finish_reason"]) == (200, "hé", "length")
        assert (await post(server, "/tokenize", {"prompt": "a"}))[1]["max_model_len"] == num_prompt + 3


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_other_words_for_a_prompt_that_is_too_long(path: str) -> None:
    overlong = Overlong(500, "VLLMValidationError: {prompt_tokens} > {max_model_len}", code="too_much", kind="internal")
    async with ModelServer(max_model_len=8, overlong=overlong) as server:
        status, answer = await post(server, path, BODIES[path])
        num_prompt = len("héllo 😀".encode()) + 3
        assert (status, answer["error"]["message"]) == (500, f"VLLMValidationError: {num_prompt} > 8")
        assert answer["error"]["type"] == "internal"


@pytest.mark.parametrize("path", PATHS)
async def test_keys_are_checked(path: str) -> None:
    async with ModelServer(api_keys={"sk-good", "sk-banned"}, forbidden_keys={"sk-banned"}) as server:
        header = "x-api-key" if path == "/v1/messages" else "Authorization"
        scheme = "" if path == "/v1/messages" else "Bearer "

        async def status(key: str | None) -> int:
            return (await post(server, path, BODIES[path], **({} if key is None else {header: scheme + key})))[0]

        assert [await status(key) for key in ("sk-good", "sk-wrong", None, "sk-banned")] == [200, 401, 401, 403]


KINDS = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("invalid_request_error", "authentication_error"),
    403: ("permission_error", "permission_error"),
    404: ("invalid_request_error", "not_found_error"),
    413: ("invalid_request_error", "request_too_large"),
    418: ("invalid_request_error", "invalid_request_error"),
    429: ("requests", "rate_limit_error"),
    499: ("invalid_request_error", "invalid_request_error"),
    500: ("server_error", "api_error"),
    529: ("server_error", "overloaded_error"),
}


@pytest.mark.parametrize("status", KINDS)
def test_the_body_of_an_error_is_in_the_shape_of_its_provider(status: int) -> None:
    refused = RequestRefused(status, "no", code="c", param="p")
    openai_kind, anthropic_kind = KINDS[status]
    assert error_body("openai", refused, 7) == {"error": {"message": "no", "type": openai_kind, "param": "p", "code": "c"}}
    said = {"type": "error", "error": {"type": anthropic_kind, "message": "no"}, "request_id": "req_7"}
    assert error_body("anthropic", refused, 7) == said
    for provider in ("openai", "anthropic"):
        assert error_body(provider, RequestRefused(status, "no", kind="own"), 7)["error"]["type"] == "own"


@pytest.mark.parametrize(
    ("key", "openai_says", "anthropic_says"),
    [
        ("sk-12345678", "Incorrect API key provided: sk-12345678.", "invalid x-api-key"),
        ("sk-123456789", "Incorrect API key provided: sk-1234********6789.", "invalid x-api-key"),
        *(
            (none, "You didn't provide an API key. Send it in an Authorization header: Bearer YOUR_KEY.", "x-api-key header is required")
            for none in ("", None)
        ),
    ],
)
def test_a_key_that_nobody_knows(key: str | None, openai_says: str, anthropic_says: str) -> None:
    told = [unknown_key_error(provider, key) for provider in ("openai", "anthropic")]
    code = "invalid_api_key" if key else None
    assert [(each.status, each.message, each.code) for each in told] == [(401, openai_says, code), (401, anthropic_says, None)]


def test_a_key_that_may_not_ask() -> None:
    told = [forbidden_key_error(provider) for provider in ("openai", "anthropic")]
    assert [(each.status, each.code) for each in told] == [(403, "permission_denied"), (403, None)]
    assert told[0].message != told[1].message


def test_wordings_are_checked() -> None:
    for status in (399, 600):
        with pytest.raises(ConfigurationError, match=f"an error has a status from 400 to 599, got {status}"):
            Overlong(status=status)
    for status in (400, 599):
        refused = Overlong(status, "{max_model_len} < {prompt_tokens}", None, "k").refusal(9, 8)
        assert (refused.status, refused.message, refused.code, refused.kind, refused.param) == (status, "8 < 9", None, "k", "messages")
    for message in ("{0}", "{"):
        with pytest.raises(ConfigurationError, match="the message may name"):
            Overlong(message=message)
    with pytest.raises(ConfigurationError, match="prompt_tokens"):
        Overlong(message="{tokens} are too many")
    with pytest.raises(ConfigurationError, match="status"):
        Overlong(status=200)
