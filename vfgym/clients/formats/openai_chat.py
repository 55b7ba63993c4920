"""The chat completions format: the library's messages, tools and responses as the API has them.

Messages are in this format already, so little is left to do. What belongs to another provider or to one answer alone
(`HELD_BACK`) is never sent; anything else that a message carries is, since servers know fields of their own (``prefix``,
``cache_control``, ``reasoning_details``). A server that does not know one says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast, get_args

from vfgym.clients.client import SamplingArgs
from vfgym.clients.faults import says_overlong
from vfgym.clients.formats import native_output
from vfgym.clients.formats.usage import TellUnusable, read_usage
from vfgym.errors import EmptyModelResponseError, InvalidModelResponseError, OverlongPromptError
from vfgym.messages import FinishReason, Message, Response, ResponseMessage, ResponseTokens, ToolCall
from vfgym.messages.frozen import FrozenList
from vfgym.output.redaction import excerpt

logger = logging.getLogger(__name__)

HELD_BACK = ResponseMessage.OWN_FIELDS | {"thinking_blocks", native_output.FIELD}
"""Fields of a message that are not sent: what belongs to one answer, and what another provider's client keeps there."""

REQUEST_OPTIONS = ("extra_headers", "extra_query", "extra_body", "timeout")
"""Sampling arguments that concern the request and are not parameters of the API."""

_FINISH_REASONS = frozenset(get_args(FinishReason))
_END_OF_TIME = 2**53
"""Unix times are below it: floats hold them exactly."""
_REASONING_FIELDS = ("reasoning", "reasoning_content", "reasoning_details")


def native_message(message: Message) -> dict[str, Any]:
    """Return a message as the API takes it: raw text is said by the user, and an answer always has content or calls.

    >>> from vfgym.messages import AssistantMessage
    >>> native_message(AssistantMessage(None, reasoning_content="Hm."))
    {'role': 'assistant', 'content': '', 'reasoning_content': 'Hm.'}
    """
    native = {key: value for key, value in message.items() if key not in HELD_BACK}
    if native["role"] == "text":
        native["role"] = "user"
    elif native["role"] == "assistant" and not native.get("tool_calls"):
        native.pop("tool_calls", None)
        if native["content"] is None:
            native["content"] = ""
    return native


def split_sampling_args(sampling_args: SamplingArgs) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the API's parameters among sampling arguments, and the options of the request.

    What is None is left out. ``max_tokens`` becomes ``max_completion_tokens``, its name since the API knows reasoning.
    """
    parameters = {name: value for name, value in sampling_args.items() if value is not None}
    options = {name: parameters.pop(name) for name in REQUEST_OPTIONS if name in parameters}
    if "max_tokens" in parameters:
        limit = parameters.pop("max_tokens")
        parameters.setdefault("max_completion_tokens", limit)
    return parameters, options


def request_headers(options: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return all headers of a request.

    Args:
        options: Its options, or the sampling arguments with them: to those a subclass may have added headers.
        kwargs: What else it is asked with; headers there win (see `ProviderClient.get_native_response`).
    """
    return {**(options.get("extra_headers") or {}), **(kwargs.get("extra_headers") or {})}


def is_streamed(sampling_args: SamplingArgs) -> bool:
    """Say whether the answer is asked for in pieces."""
    return bool(sampling_args.get("stream") or (sampling_args.get("extra_body") or {}).get("stream"))


def as_fields(response: Any) -> Any:
    """Return an SDK's response object as a dict; anything else as it is."""
    dump = getattr(response, "model_dump", None)
    return dump(warnings=False) if callable(dump) else response


def check_completion(response: Any, where: str = "the provider") -> None:
    """Check that a response is one answer with something in it: text, a tool call or reasoning.

    Args:
        response: The response's JSON, as a dict.
        where: Who gave it, for the message.

    Raises:
        EmptyModelResponseError: If there is nothing in it.
        InvalidModelResponseError: If it is not a chat completion, or several.
    """
    choice = require_choice(response, where)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise EmptyModelResponseError(f"{where} gave a choice without a message: {excerpt(choice, 200)}")
    if not (_text(message) or _reasoning(message) or any(_is_call(call) for call in message.get("tool_calls") or ())):
        reason = choice.get("finish_reason")
        raise EmptyModelResponseError(
            f"{where} gave an answer without text, tool calls and reasoning (finish_reason {reason!r}): {excerpt(message, 200)}"
        )


def require_choice(response: Any, where: str) -> Mapping[str, Any]:
    """Return the one choice of a response of the chat or the legacy API.

    Raises:
        EmptyModelResponseError: If there is none.
        OverlongPromptError: If the response says so instead.
        InvalidModelResponseError: If there are several, or the response is something else.
    """
    if response is None:
        raise EmptyModelResponseError(f"{where} gave no response")
    if not isinstance(response, Mapping):
        raise InvalidModelResponseError(
            f"{where} gave something that is not a completion; is the URL that of its API (they often end with /v1)?"
            f" It said {excerpt(response, 200)}"
        )
    choices = response.get("choices")
    if not choices:
        said = response.get("error") or response
        if isinstance(said, Mapping) and says_overlong(400, str(said.get("message")), said):  # OpenRouter says so with status 200
            raise OverlongPromptError(f"the prompt is longer than the model's context: {excerpt(said, 300)}")
        raise EmptyModelResponseError(f"{where} gave a response without choices: {excerpt(said, 300)}")
    if len(choices) != 1:
        raise InvalidModelResponseError(f"expected one choice, {where} gave {len(choices)}: leave out n, or set it to 1")
    return cast("Mapping[str, Any]", choices[0])


def read_completion(response: Mapping[str, Any], tell: TellUnusable, model: str = "") -> Response:
    """Return a response that `check_completion` let pass.

    Args:
        response: The response's JSON, as a dict.
        tell: Is told of a usage that cannot be.
        model: Name of the model, where the response does not say.
    """
    choice = response["choices"][0]
    message = choice["message"]
    fields: dict[str, Any] = {"role": "assistant", "content": _text(message)}
    reasoning = _reasoning(message)
    if reasoning:
        fields["reasoning_content"] = reasoning
    details = message.get("reasoning_details")
    calls = message.get("tool_calls")
    if calls:
        kept = [_tool_call(call) for call in calls if _is_call(call)]
        if len(kept) < len(calls):
            lost = [call for call in calls if not _is_call(call)]
            logger.warning("left out %d malformed tool call(s) of the model's answer: %.300r", len(lost), lost)
        if kept:
            fields["tool_calls"] = FrozenList(kept)
    made = ResponseMessage.of_fields({**fields, "reasoning_details": details}) if isinstance(details, list) else None
    return response_of(response, choice, fields if made is None else made, read_tokens(response, choice), tell, model)


def response_of(
    response: Mapping[str, Any],
    choice: Mapping[str, Any],
    fields: Mapping[str, Any],
    tokens: ResponseTokens | None,
    tell: TellUnusable,
    model: str,
) -> Response:
    """Return a `Response` from what the APIs have in common.

    Args:
        response: The response's JSON.
        choice: Its one choice.
        fields: The message's fields, validated.
        tokens: Token data.
        tell: Is told of a usage that cannot be.
        model: Name of the model, where the response does not say.
    """
    reason = choice.get("finish_reason")
    own: dict[str, Any] = {"is_truncated": reason == "length"}
    if reason in _FINISH_REASONS:
        own["finish_reason"] = reason
    if tokens is not None:
        own["tokens"] = tokens
    identifier, named = response.get("id"), response.get("model")
    return Response(
        identifier if isinstance(identifier, str) else "",
        unix_time(response.get("created")),
        named if isinstance(named, str) and named else model,
        read_usage(response.get("usage"), tell),
        ResponseMessage._of({**fields, **own}),
    )


def unix_time(value: Any) -> int:
    """Return the seconds at which a server says that it answered; 0 where it does not say, or says what is no time."""
    return int(value) if isinstance(value, int | float) and 0 <= value < _END_OF_TIME else 0


def read_tokens(response: Mapping[str, Any], choice: Mapping[str, Any]) -> ResponseTokens | None:
    """Return the token data of a chat completion, where the server gives ids and log-probabilities."""
    prompt_ids, completion_ids = response.get("prompt_token_ids"), choice.get("token_ids")
    logprobs = choice.get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if prompt_ids is None or completion_ids is None or content is None:
        return None
    return tokens_of(prompt_ids, completion_ids, [item["logprob"] for item in content], choice)


def tokens_of(prompt_ids: list[int], completion_ids: list[int], logprobs: list[float], choice: Mapping[str, Any]) -> ResponseTokens:
    """Return token data with its masks: 0 for the prompt, 1 for what the model wrote."""
    experts = _routed_experts(choice.get("routed_experts"))
    return ResponseTokens(prompt_ids, [0] * len(prompt_ids), completion_ids, [1] * len(completion_ids), logprobs, experts)


def _routed_experts(packed: Any) -> Any:
    """Return which experts each token went to, ``[tokens][layers][experts]``; vLLM packs them as base 85 of 32-bit integers."""
    if not (isinstance(packed, Mapping) and "data" in packed and "shape" in packed):
        return packed
    import base64

    import numpy as np

    return np.frombuffer(base64.b85decode(packed["data"]), dtype="<i4").reshape(packed["shape"]).tolist()


def _text(message: Mapping[str, Any]) -> str | None:
    """Return what the model says; a refusal is something that it says."""
    content = message.get("content")
    if isinstance(content, list):  # Mistral's servers give parts
        content = "".join(part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str))
    if isinstance(content, str) and content:
        return content
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) and refusal else cast("str | None", content)


def _reasoning(message: Mapping[str, Any]) -> str | None:
    for name in _REASONING_FIELDS:
        said = message.get(name)
        if isinstance(said, list):  # OpenRouter's details
            said = "".join(part.get("text") or part.get("summary") or "" for part in said if isinstance(part, Mapping))
        if isinstance(said, str) and said:
            return said
    return None


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, Mapping) else None
    return (
        isinstance(function, Mapping)
        and isinstance(call.get("id"), str)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    # Some servers number the calls as a stream does, which others refuse in a prompt.
    return ToolCall(**{key: value for key, value in call.items() if key != "index" and value is not None})
