"""What counts as an overlong prompt: the words of many servers, and words that mean another limit."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from vfgym.clients import OVERLONG_RULES, ClientConfig, OverlongRule, is_authentication_error, is_overlong_prompt
from vfgym.clients.faults import describe_key, ends_only_rollout, is_outage, is_permanent_refusal, is_unknown_model, says_overlong


def error_of(status: int, body: Any) -> openai.APIStatusError:
    """Return the error that the SDK makes of a response."""
    request = httpx2.Request("POST", "http://localhost/v1/chat/completions")
    response = httpx2.Response(status, json=body, request=request)
    client = openai.AsyncOpenAI(api_key="k")
    return client._make_status_error_from_response(response)


def said(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


OVERLONG = {
    "openai": (400, said("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.")),
    "openai, code": (400, said("Please shorten it.", code="context_length_exceeded", type="invalid_request_error")),
    "openai, responses": (400, said("Your input exceeds the context window of this model. Please adjust your input.")),
    "openai, one huge message": (
        400,
        said(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760.",
            code="string_above_max_length",
        ),
    ),
    "azure": (400, said("This model's maximum context length is 128000 tokens.", code="context_length_exceeded")),
    "groq": (400, said("Please reduce the length of the messages or completion.", code="context_length_exceeded")),
    "vllm": (
        400,
        {"object": "error", "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", "code": 400},
    ),
    "vllm, with the answer": (
        400,
        said("'max_completion_tokens' is too large: 500. This model's maximum context length is 4096 tokens (500 > 4096 - 4000)."),
    ),
    "vllm, asks to shorten": (
        400,
        said("You passed 9000 input tokens. Please reduce the length of the input prompt. (parameter=input_tokens)"),
    ),
    "vllm 0.18": (
        500,
        said("VLLMValidationError: the engine prompt length 9000 exceeds the max_model_len 4096", type="InternalServerError"),
    ),
    "sglang": (
        400,
        {"message": "The input (9000 tokens) is longer than the model's context length (4096 tokens).", "type": "BadRequestError"},
    ),
    "llama.cpp": (400, said("the request exceeds the available context size, try increasing it", type="exceed_context_size_error")),
    "llama.cpp, older": (500, said("Context size has been exceeded.")),
    "openrouter": (
        400,
        said("This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens.", code=400),
    ),
    "together": (422, said("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens")),
    "text-generation-inference": (422, {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 3000"}),
    "gemini": (400, [said("The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", code=400)]),
    "bedrock": (400, {"message": "Input is too long for requested model."}),
    "bedrock, nova": (400, {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input."}),
    "anthropic": (400, said("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")),
    "anthropic, all text": (400, said("too many total text bytes: 9000000 > 8000000", type="invalid_request_error")),
    "anthropic, with the answer": (400, said("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000")),
    "anthropic, bytes": (413, said("Request exceeds the maximum size", type="request_too_large")),
    "github": (413, said("Request body too large for gpt-4o model. Max size: 8000 tokens.", code="tokens_limit_reached")),
    "mistral": (400, {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", "code": "3051"}),
    "xai": (400, {"error": "This model's maximum prompt length is 131072 but the request contains 140000 tokens."}),
    "moonshot": (400, said("Invalid request: Your request exceeded model token limit: 8192")),
    "prime": (400, said("Request exceeds the configured limit of 32768 tokens")),
    "ollama": (400, said("the input length exceeds the context length")),
    "cohere": (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081"}),
    "qwen": (400, said("Range of input length should be [1, 30720]")),
    "glm": (400, said("Prompt exceeds max length", code="1261")),
    "a limit that is configured": (400, said("The input exceeds the configured limit")),
    "a code for a message": (400, said("prompt_too_long")),
    "a maximum of the model": (400, said("Input is longer than the maximum model length of 10")),
    **{
        words: (400, said(words.upper() if number % 2 else words))
        for number, words in enumerate(
            [
                "context_length",
                "longer than the maximum",
                "maximum prompt length",
                "reduce the length of the input",
                "reduce the length of the prompt",
                "available context size exceeded",
                "context size exceeded",
                "exceed the available context size",
                "exceeded model",
                "input is too long",
                "exceeds the context limit",
                "exceeds the maximum input tokens",
                "exceed the maximum tokens",
                "input tokens exceed",
                "too many input tokens",
                "prompt exceeds max length",
                "input length (9) exceeds the maximum length",
            ]
        )
    },
    "vllm, both too large": (
        400,
        said("max_tokens is too large: 4096. This model's maximum context length is 4096 tokens (4096 > 4096 - 10)."),
    ),
    "tensorrt": (400, said("Prompt length (5000) exceeds maximum input length (4096)")),
}

SOMETHING_ELSE = {
    "openai, answer": (
        400,
        said("max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000."),
    ),
    "vllm, answer alone": (
        400,
        said("max_tokens is too large: 5000. This model's maximum context length is 4096 tokens (5000 > 4096 - 10)."),
    ),
    "vllm, minimum": (400, said("max_tokens must be at least 1, got -1.")),
    "image": (400, said("The image exceeds the configured limit of 5 MB.")),
    "images": (400, said("Input images exceed the maximum length of a side.")),
    "rate": (429, said("Request too large for gpt-4 on tokens per min (TPM): Limit 30000, Requested 50000.", code="rate_limit_exceeded")),
    "rate, words": (429, said("Too many input tokens, please wait before trying again.")),
    "unknown model": (404, said("The model `long-context` does not exist", code="model_not_found")),
    "bad argument": (400, said("Unrecognized request argument supplied: temprature")),
    "key": (401, said("maximum context length", code="invalid_api_key")),
    "down": (500, said("Internal server error")),
    "upload": (413, said("File exceeds the maximum size")),
    **{
        f"a large {name}": (400, said(f"Your {name} exceeds the maximum length of the input tokens, which exceed the context window"))
        for name in ("image", "audio files", "video", "PDF", "file", "attachments")
    },
    **{
        f"{name} {words}": (400, said(f"`{name}` {words} less than the context length"))
        for name, words in [
            ("max_tokens", "must be"),
            ("max_completion_tokens", "should be"),
            ("max_output_tokens", "has to be"),
            ("max_tokens", "cannot be"),
        ]
    },
    "answer of a context": (400, said("The context window supports at most 4096 output tokens")),
    "too large, not by its size": (400, said("no", code="request_too_large")),
}


@pytest.mark.parametrize("case", OVERLONG)
def test_an_overlong_prompt(case: str) -> None:
    assert is_overlong_prompt(error_of(*OVERLONG[case]))


@pytest.mark.parametrize("case", SOMETHING_ELSE)
def test_another_limit(case: str) -> None:
    assert not is_overlong_prompt(error_of(*SOMETHING_ELSE[case]))


def test_a_body_that_is_nested_too_deeply_does_not_hide_what_is_said() -> None:
    body: Any = {}
    for _ in range(100_000):
        body = {"error": body}
    assert says_overlong(400, "prompt is too long", body)
    assert not says_overlong(400, "no", body)
    while body:  # else its end is nested as deeply
        body = body.pop("error")


@pytest.mark.parametrize("status", [400, 413, 422, 500, 401, 404, 429, 499, 503])
def test_words_tell_only_with_a_status_that_they_come_with(status: int) -> None:
    assert says_overlong(status, "prompt is too long", None) is (status in (400, 413, 422, 500))
    assert says_overlong(status, "", "prompt is too long") is (status in (400, 413, 422, 500))
    assert says_overlong(status, "", {"code": "request_too_large"}) is (status == 413)


def test_a_rule_can_be_added() -> None:
    error = error_of(499, said("Way too much text!"))
    assert not is_overlong_prompt(error)
    OVERLONG_RULES.append(OverlongRule("too much text", statuses=frozenset({499})))
    try:
        assert is_overlong_prompt(error)
    finally:
        OVERLONG_RULES.pop()


@pytest.mark.parametrize("sdk", [openai, anthropic])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 425, 429, 499, 500, 503])
def test_what_a_status_says(sdk: Any, status: int) -> None:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://localhost"))
    error = sdk.APIStatusError("no", response=response, body=None)
    assert is_authentication_error(error) is (status in (401, 403))
    assert is_permanent_refusal(error) is (status in (401, 403, 404))
    assert ends_only_rollout(error) is (status in (403, 404))
    assert is_outage(error) is (status in (408, 409, 425, 429, 500, 503))
    assert is_unknown_model(error, has_answered=False) is (status == 404)
    assert not is_unknown_model(error, has_answered=True)
    for text in ("moderated", "flagged", "content_policy", "content filter", "Safety"):
        for flagged in (sdk.APIStatusError(text, response=response, body=None), sdk.APIStatusError("", response=response, body=[text])):
            assert not is_authentication_error(flagged)


@pytest.mark.parametrize(
    ("error", "is_out"),
    [
        *((error, True) for error in (ConnectionError("x"), TimeoutError(), json.JSONDecodeError("x", "", 0))),
        *((error, False) for error in (ValueError("x"), RecursionError(), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "x"))),
    ],
    ids=repr,
)
def test_errors_that_are_no_response(error: Any, is_out: bool) -> None:
    error.status_code = None if is_out else 401
    assert is_outage(error) is is_out
    assert not is_overlong_prompt(error)
    assert not is_authentication_error(error)
    assert not is_permanent_refusal(error)
    assert not ends_only_rollout(error)
    assert not is_unknown_model(error, has_answered=False)


@pytest.mark.parametrize(
    ("body", "before", "after"),
    [
        (said("The model `m` does not exist"), True, True),
        (said("gone", code="model_not_found"), True, True),
        (said("No such Model: file-like"), True, True),
        *(
            (said(f"No such {name}"), False, False)
            for name in ("File", "image", "item", "previous response", "previous_response", "container")
        ),
        (said("the profile is not found"), True, False),
        ("a file that is not found", True, False),
        ({}, True, False),
    ],
)
def test_a_model_that_is_not_there(body: Any, before: bool, after: bool) -> None:
    error = error_of(404, body)
    assert (is_unknown_model(error, has_answered=False), is_unknown_model(error, has_answered=True)) == (before, after)


@pytest.mark.parametrize(
    ("config", "described"),
    [
        (None, "that of the SDK client that was given"),
        ({"api_key": "k"}, "the api_key that was given"),
        ({"api_key": ""}, "the api_key that was given"),
        ({"api_key_var": "A_KEY"}, "that of the environment variable A_KEY"),
        ({"api_key_var": "NO_KEY_AT_ALL"}, "the environment variable NO_KEY_AT_ALL is not set"),
    ],
)
def test_which_key_was_used(config: Any, described: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sesame")
    monkeypatch.delenv("NO_KEY_AT_ALL", raising=False)
    assert describe_key(config and ClientConfig(api_base_url="http://localhost", **config)) == described


@pytest.mark.parametrize("code", ["context_length_exceeded", "prompt_too_long", "tokens_limit_reached", "exceed_context_size_error"])
@pytest.mark.parametrize("where", ["code", "type"])
def test_a_code_tells_alone(code: str, where: str) -> None:
    for body in ({where: code}, {"error": {where: code}}, {"error": {where: code}, where: 5}):
        for status in (400, 401, 413, 422, 429, 500, 503):
            assert says_overlong(status, "no", body) is (status in (400, 413, 422, 500))
