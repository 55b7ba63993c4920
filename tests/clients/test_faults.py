"""What counts as an overlong prompt: the words of many servers, and words that mean another limit."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
import pytest

from vfgym.clients import OVERLONG_RULES, OverlongRule, is_authentication_error, is_overlong_prompt


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
}


@pytest.mark.parametrize("case", OVERLONG)
def test_an_overlong_prompt(case: str) -> None:
    assert is_overlong_prompt(error_of(*OVERLONG[case]))


@pytest.mark.parametrize("case", SOMETHING_ELSE)
def test_another_limit(case: str) -> None:
    assert not is_overlong_prompt(error_of(*SOMETHING_ELSE[case]))


def test_a_rule_can_be_added() -> None:
    error = error_of(499, said("Way too much text!"))
    assert not is_overlong_prompt(error)
    OVERLONG_RULES.append(OverlongRule("too much text", statuses=frozenset({499})))
    try:
        assert is_overlong_prompt(error)
    finally:
        OVERLONG_RULES.pop()


def test_refused_keys_of_both_sdks_and_errors_that_are_no_response() -> None:
    request = httpx2.Request("POST", "http://localhost")
    for sdk in (openai, anthropic):
        for status, is_refused in ((401, True), (403, True), (400, False), (429, False)):
            error = sdk.APIStatusError("no", response=httpx2.Response(status, request=request), body=None)
            assert is_authentication_error(error) is is_refused
    assert not is_overlong_prompt(ValueError("maximum context length"))
    assert not is_authentication_error(ValueError("401"))
